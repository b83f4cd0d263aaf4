"""The messages and settings of HyParView; see `hyparview.py` for how they are used."""

from __future__ import annotations

from enum import IntEnum
from math import ceil
from typing import Annotated, ClassVar

import msgspec

from epicast.core.config import Config, PositiveDuration, Probability
from epicast.core.errors import ConfigError
from epicast.core.ids import NodeId
from epicast.core.message import LIST_LENGTH_MAX, Count, Message, Peers, Position


class Priority(IntEnum):
    """How badly the sender of a Neighbour request needs the link."""

    LOW = 0  # it has neighbours and would like one more
    HIGH = 1  # it has none: refusing would isolate it
    WALK = 2  # a join walk ended here and offers a link to the joiner


class MembershipMessage(Message):
    layer: ClassVar[str] = "membership"


class Join(MembershipMessage, tag=1):
    """A new process to its contact."""


class ForwardJoin(MembershipMessage, tag=2):
    """A random walk that looks for neighbours for the joiner."""

    joiner: NodeId
    ttl: Annotated[int, msgspec.Meta(ge=0, le=64)]


class Neighbour(MembershipMessage, tag=3):
    """Asks for a symmetric link."""

    priority: Priority


class NeighbourReply(MembershipMessage, tag=4):
    """Answers Join and Neighbour. `sample` gives a joiner its first passive view."""

    accepted: bool
    sample: Peers = ()


class Disconnect(MembershipMessage, tag=5):
    """Ends a link; `leaving`: the sender is going for good."""

    leaving: bool


class Shuffle(MembershipMessage, tag=6):
    """Offers part of the origin's views at the end of a random walk."""

    origin: NodeId
    ttl: Annotated[int, msgspec.Meta(ge=0, le=64)]
    sample: Peers


class ShuffleReply(MembershipMessage, tag=7):
    sample: Peers


class KeepAlive(MembershipMessage, tag=8):
    """To every neighbour, every period: I am alive, I have so many neighbours, and there I stand in each flow."""

    sent_us: Count  # 0: no answer is wanted
    degree: Count
    positions: Annotated[tuple[Position, ...], msgspec.Meta(max_length=LIST_LENGTH_MAX)] = ()


class KeepAliveAck(MembershipMessage, tag=9):
    """Returns the sender's own time stamp, so that it can measure the round trip."""

    sent_us: Count


Size = Annotated[int, msgspec.Meta(ge=1, le=1024)]


class HyParViewConfig(Config):
    active_size: Size = 4  # target of the documents' comparison and churn runs
    expansion: Annotated[float, msgspec.Meta(ge=1.0, le=8.0)] = 2.0  # the documents' default
    passive_size: Size = 30  # HyParView paper
    join_walk_length: Annotated[int, msgspec.Meta(ge=0, le=64)] = 6  # HyParView paper: ARWL
    passive_walk_at: Annotated[int, msgspec.Meta(ge=0, le=64)] = 3  # HyParView paper: PRWL
    shuffle_walk_length: Annotated[int, msgspec.Meta(ge=0, le=64)] = 6  # our choice: as long as a join's walk
    shuffle_active: Size = 3  # HyParView paper: ka
    shuffle_passive: Size = 4  # HyParView paper: kp
    shuffle_interval_us: PositiveDuration = 10_000_000  # our guess: ten keep-alives
    keep_alive_us: PositiveDuration = 1_000_000  # our guess
    rtt_every: Size = 1  # of so many keep-alives one is answered, to measure the round trip; our guess
    silence_us: PositiveDuration = 3_500_000  # our guess: three keep-alives lost in a row
    reply_timeout_us: PositiveDuration = 1_500_000  # our guess: well above a wide-area connection set-up
    refresh: Probability = 0.1  # chance of one more link to a passive peer, each shuffle period; our guess
    island_periods: Annotated[int, msgspec.Meta(ge=0)] = (
        3  # measured: in 300 processes one in 500 misses all walks of 3
    )
    shed: Probability = 0.3  # chance of giving up one surplus link, each keep-alive period; our guess
    lost_size: Size = 30  # failed peers remembered to find back after a partition; our guess: like the passive view

    @property
    def active_size_max(self) -> int:
        return ceil(self.active_size * self.expansion)

    def check(self) -> None:
        if self.passive_walk_at > self.join_walk_length:
            most, got = self.join_walk_length, self.passive_walk_at
            raise ConfigError(f"passive_walk_at: expected at most join_walk_length = {most}, got {got}")
        if self.silence_us <= self.keep_alive_us:
            least, got = self.keep_alive_us, self.silence_us
            raise ConfigError(f"silence_us: expected more than keep_alive_us = {least}, got {got}")
