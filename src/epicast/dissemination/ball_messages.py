"""The messages and settings of balls; see `balls.py` and `head_count.py` for how they are used."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from epicast.core.config import Config, PositiveDuration
from epicast.core.message import Count, Message, Payload, Topic
from epicast.dissemination.ball_clock import ClockKind
from epicast.dissemination.ball_keys import KEY_BYTES_MAX

TTL_MAX = 64  # rounds: more than anybody needs for 2^50 processes
LEVEL_EVENTS_MAX = 1 << 16
MARKS_MAX = 1024

Key = Annotated[bytes, msgspec.Meta(min_length=17, max_length=KEY_BYTES_MAX)]
Ttl = Annotated[int, msgspec.Meta(ge=1, le=TTL_MAX)]
Entry = tuple[Topic, Payload]
Events = Annotated[dict[Key, Entry], msgspec.Meta(max_length=LEVEL_EVENTS_MAX)]
Size = Annotated[int, msgspec.Meta(ge=1)]


class BallMessage(Message):
    layer: ClassVar[str] = "dissemination"


class Ball(BallMessage, tag=62):
    """Events under way, by the number of rounds that each has behind it. Whoever gets it must not change it: it is the
    sender's own. `clock` is not below the time of any event in it."""

    with_events: ClassVar[bool] = True
    clock: Count
    levels: Annotated[tuple[tuple[Ttl, Events], ...], msgspec.Meta(max_length=TTL_MAX)]


class Heads(BallMessage, tag=63):
    """What a process knows about the size of the system. `answer`: do not answer this again."""

    epoch: Count
    marks: Annotated[tuple[Annotated[int, msgspec.Meta(ge=0, le=65_535)], ...], msgspec.Meta(max_length=MARKS_MAX)]
    clock: Count
    answer: bool = False


class HeadCountConfig(Config):
    marks: Annotated[int, msgspec.Meta(ge=8, le=MARKS_MAX)] = 64  # our choice: 13 % off, a fifth of a round
    count_interval_us: PositiveDuration = 500_000  # our guess
    epoch_intervals: Annotated[int, msgspec.Meta(ge=4)] = 40  # our guess: twice what a million processes need


class BallsConfig(HeadCountConfig):
    period_us: PositiveDuration = 125_000  # of a round; the documents': about the time that a message takes
    drift: Annotated[float, msgspec.Meta(ge=0.0, le=100.0)] = 0.0  # a round is longer or shorter by up to this share
    clock: ClockKind = "logical"
    c: Annotated[float, msgspec.Meta(ge=0.1, le=10.0)] = 1.25  # our choice; the documents ask for more than 1
    fanout: Annotated[int, msgspec.Meta(ge=0, le=4096)] = 0  # 0: by the size of the system
    rounds: Annotated[int, msgspec.Meta(ge=0, le=TTL_MAX)] = 0  # the documents' TTL; 0: by the size of the system
    targets: Literal["known", "neighbours"] = "known"  # whom balls are thrown to: the former are the more uniform
    go_on: bool = False  # throw slow copies on after the fastest has reached its end, as the document has it
    everybody_throws: bool = True  # once, also when the first copy to come has all rounds behind it; the documents: no
    as_printed: bool = False  # the last round's events are of no use to whom they reach (E-E6)
    round_events_max: Size = 32_768  # our guess; publishers wait from an eighth on; above, events of others are dropped
    round_bytes_max: Size = 1 << 23  # our guess; of payloads: from half of it on publishers wait
    frame_events_max: Annotated[int, msgspec.Meta(ge=1, le=LEVEL_EVENTS_MAX)] = 1_024  # more go in a further message
    frame_bytes_max: Size = 1 << 18  # of payloads, likewise
