"""The messages and settings of gossip; see `gossip.py` for how they are used."""

from __future__ import annotations

from math import ceil, log
from typing import Annotated, Literal

import msgspec

from epicast.core.errors import ConfigError
from epicast.core.ids import NodeId
from epicast.core.message import Count, Hops, Payload, Topic
from epicast.dissemination.anti_entropy import PullConfig
from epicast.dissemination.requests import LazyMessage


class Rumor(LazyMessage, tag=41):
    """An event that is pushed, or that was asked for after an advertisement; `hops` counts the links crossed."""

    source: NodeId
    seq: Count
    hops: Hops
    topic: Topic
    payload: Payload


class GossipConfig(PullConfig):
    scheduler: Literal["naive", "single"] = "single"  # everyone is as near as anyone
    push: Literal["eager", "lazy", "mixed", "none"] = "eager"
    eager_rounds: Annotated[int, msgspec.Meta(ge=0, le=64)] = 2  # our guess; mixed: eager in so many rounds, then lazy
    rounds_max: Annotated[int, msgspec.Meta(ge=0, le=32_767)] = 0  # hops after which nothing is pushed on; 0: no limit
    fanout: Annotated[int, msgspec.Meta(ge=0, le=4096)] = 0  # neighbours that it is pushed to; 0: all
    expected_nodes: Annotated[int, msgspec.Meta(ge=0, le=1 << 40)] = 0  # given: the fanout is its natural logarithm

    def check(self) -> None:
        if self.fanout and self.expected_nodes:
            raise ConfigError("expected_nodes: expected it or fanout, got both")
        if self.push == "none" and self.pull == "none":
            raise ConfigError("push: expected something other than none where pull is none")

    @property
    def targets(self) -> int:
        """How many neighbours get it; 0: all."""
        return max(1, ceil(log(self.expected_nodes))) if self.expected_nodes else self.fanout
