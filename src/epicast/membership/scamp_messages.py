"""The messages and settings of Scamp; see `scamp.py` for how they are used."""

from __future__ import annotations

from typing import Annotated

import msgspec

from epicast.core.config import Config, Duration, PositiveDuration
from epicast.core.errors import ConfigError
from epicast.core.ids import NodeId, Place
from epicast.core.message import LIST_LENGTH_MAX, Position
from epicast.membership.distances import DISTANCE_MAX, parse_distances
from epicast.membership.hyparview_messages import MembershipMessage

HOPS_MAX = 1024
ANY_KIND = -1


class Subscription(MembershipMessage, tag=10):
    """A process to its contact: spread word of me. `copies`: so many, rather than as many as you know."""

    place: Place = ""
    copies: Annotated[int, msgspec.Meta(ge=0, le=LIST_LENGTH_MAX)] = 0


class ForwardedSubscription(MembershipMessage, tag=11):
    """A copy, on its way until somebody keeps it: anybody, or one for whom the subject is at the distance `kind`."""

    subject: NodeId
    hops_left: Annotated[int, msgspec.Meta(ge=0, le=HOPS_MAX)]
    place: Place = ""
    kind: Annotated[int, msgspec.Meta(ge=ANY_KIND, le=DISTANCE_MAX)] = ANY_KIND


class Kept(MembershipMessage, tag=12):
    """To the subject: you are in my view, from now on."""

    place: Place = ""


class Unsubscription(MembershipMessage, tag=13):
    """To whoever has the sender in its view: take it out, and the first of these in its place, if there is one."""

    instead: Annotated[tuple[tuple[NodeId, Place], ...], msgspec.Meta(max_length=LIST_LENGTH_MAX)] = ()


class Dropped(MembershipMessage, tag=14):
    """To a process that is in the sender's view no longer. `ran_out`: for being there for long, so ask for another."""

    ran_out: bool = False


class Heartbeat(MembershipMessage, tag=15):
    """To all neighbours: whoever hears none is known to nobody. Tells also where the sender stands in each flow."""

    positions: Annotated[tuple[Position, ...], msgspec.Meta(max_length=LIST_LENGTH_MAX)] = ()


class Welcome(MembershipMessage, tag=22):
    """A contact to whoever subscribed through it: I have spread your copies; and there I am."""

    place: Place = ""


class ScampConfig(Config):
    copies: Annotated[float, msgspec.Meta(ge=0.0, le=64.0)] = 1.0  # the paper's c; a part of one with that probability
    # Arcs that a join adds, the joiner's own among them; 0: the paper's rule, with which views grow with the logarithm
    # of the size.
    target_degree: Annotated[int, msgspec.Meta(ge=0, le=1024)] = 0
    view_max: Annotated[int, msgspec.Meta(ge=1, le=LIST_LENGTH_MAX)] = 1024  # our guess; a full view keeps no more
    hops_max: Annotated[int, msgspec.Meta(ge=1, le=HOPS_MAX)] = 256  # of a copy; our guess: ten times a large view
    symmetric: bool = False  # neighbours are also those who know us: for trees, which need links that both ends have
    distances: str = "labels"  # how far others are; see distances.py
    heartbeat_us: Duration = 2_000_000  # our guess; 0: none, and nobody notices that it is isolated
    isolated_us: PositiveDuration = 7_000_000  # without a heartbeat; our guess: three lost in a row
    reply_timeout_us: PositiveDuration = 3_000_000  # of a contact or a probe; our guess: above any round trip
    lease_us: Duration = (
        120_000_000  # an entry lasts about so long, then another takes its place; our guess; 0: for ever
    )

    def check(self) -> None:
        parse_distances(self.distances)
        if self.heartbeat_us and self.isolated_us <= self.heartbeat_us:
            least, got = self.heartbeat_us, self.isolated_us
            raise ConfigError(f"isolated_us: expected more than heartbeat_us = {least}, got {got}")
