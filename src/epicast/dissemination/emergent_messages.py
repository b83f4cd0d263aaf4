"""The messages and settings of Emergent; see `emergent.py` for how they are used."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from epicast.core.config import Duration, PositiveDuration
from epicast.core.ids import NodeId
from epicast.core.message import Count, Hops, Payload, Topic
from epicast.dissemination.anti_entropy import PullConfig
from epicast.dissemination.requests import Distance, LazyMessage

Fanout = Annotated[int, msgspec.Meta(ge=0, le=4096)]
Rounds = Annotated[int, msgspec.Meta(ge=0, le=32_767)]


class Msg(LazyMessage, tag=60):
    """An event. `hops` counts the links crossed on arrival; `local_round` those within an area since the event came
    into it, and `remote_round` those between areas. `distance` is how far the sender takes the receiver to be away."""

    source: NodeId
    seq: Count
    hops: Hops
    local_round: Hops
    remote_round: Hops
    distance: Distance
    topic: Topic
    payload: Payload


class EmergentConfig(PullConfig):
    scheduler: Literal["naive", "single", "delayed"] = "delayed"  # measured, see emergent.md
    pull: Literal["none", "eager", "lazy", "exchange"] = "exchange"
    pull_interval_us: PositiveDuration = 5_000_000  # our guess: it is the last resort
    grace_us: Duration = 3_000_000  # our guess: by then everyone should have it
    eager: Literal["near", "all", "none"] = "near"  # who gets the payload unasked
    eager_remote_rounds: Rounds = 0  # between areas, in so many rounds; document 001 studies 0 to 9
    local_fanout: Fanout = 0  # neighbours in the area that get it; 0: all, as in document 001's evaluation
    remote_fanout: Fanout = 0  # and outside
    local_rounds: Rounds = 0  # after which it is not passed on within the area; 0: no limit
    remote_rounds: Rounds = 0  # and to others
    patience_us: PositiveDuration = 600_000  # measured, see emergent.md
