"""What is published, when and by whom.

A workload is a stream of publications in order of time. Messages come evenly, in bursts, or at random as a Poisson
process; their sizes are constant, uniform between two bounds, or a list that is gone through again and again. A source
is given by its place: the world maps it to the first processes that joined, or to `source_ids` where these are given.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from random import Random
from typing import Annotated, Literal, NamedTuple

import msgspec

from epicast.core.config import Config, Duration, PositiveDuration
from epicast.core.errors import ConfigError

Size = Annotated[int, msgspec.Meta(ge=0, le=16 * 1024 * 1024)]
TopicName = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
NodeNumber = Annotated[int, msgspec.Meta(ge=0)]

SECOND_US = 1_000_000


class Publication(NamedTuple):
    time_us: int
    source_index: int
    topic: str
    payload_bytes: int


class WorkloadConfig(Config, frozen=True):
    messages: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 50  # our guess: ten seconds' worth
    pattern: Literal["rate", "burst", "poisson"] = "rate"
    rate: Annotated[float, msgspec.Meta(ge=0.0001, le=1_000_000.0)] = 5.0  # messages a second of all sources together
    burst_size: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 10  # our guess, as is the interval
    burst_interval_us: PositiveDuration = SECOND_US
    start_us: Duration = 0
    payload_bytes: Size = 1000
    payload_bytes_max: Size | None = None  # given: sizes are uniform from payload_bytes to this, both included
    payload_sizes: tuple[Size, ...] = ()  # given: these sizes in turn instead
    sources: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] = 1
    source_ids: tuple[NodeNumber, ...] = ()  # given: these processes instead of the first ones that joined
    source_order: Literal["turn", "random"] = "turn"
    topic: TopicName = "stream"
    topics: tuple[TopicName, ...] = ()  # given: one of these for each message, at random

    def check(self) -> None:
        if self.payload_bytes_max is not None and self.payload_bytes_max < self.payload_bytes:
            raise ConfigError(f"payload_bytes_max: expected at least payload_bytes = {self.payload_bytes}")
        if self.payload_sizes and self.payload_bytes_max is not None:
            raise ConfigError("payload_sizes: expected either a list of sizes or payload_bytes_max, got both")
        if len(set(self.source_ids)) < len(self.source_ids):
            raise ConfigError("source_ids: expected each process once")
        if self.source_ids and self.sources not in (1, len(self.source_ids)):
            raise ConfigError(f"sources: expected {len(self.source_ids)}, the number of source_ids, or nothing")

    @property
    def source_count(self) -> int:
        return len(self.source_ids) or self.sources

    @property
    def end_us(self) -> int:
        """When the stream is over, one gap after its last message. For the Poisson pattern this is an expectation."""
        if self.pattern == "burst":
            return self.start_us + -(-self.messages // self.burst_size) * self.burst_interval_us
        return self.start_us + round(self.messages * SECOND_US / self.rate)


def publications(config: WorkloadConfig, rng: Random) -> Iterator[Publication]:
    """In order of time. The draws come from `rng` alone, so equal seeds publish alike under any stack."""
    sizes = _sizes(config, rng)
    for number, time_us in enumerate(_times_us(config, rng)):
        in_turn = config.source_order == "turn"
        source = number % config.source_count if in_turn else rng.randrange(config.source_count)
        topic = rng.choice(config.topics) if config.topics else config.topic
        yield Publication(time_us, source, topic, next(sizes))


def _times_us(config: WorkloadConfig, rng: Random) -> Iterator[int]:
    start_us, count = config.start_us, config.messages
    if config.pattern == "burst":
        yield from (start_us + i // config.burst_size * config.burst_interval_us for i in range(count))
    elif config.pattern == "rate":
        # From the number and not from the time before: roundings must not add up.
        yield from (start_us + round(i * SECOND_US / config.rate) for i in range(count))
    else:
        seconds = 0.0
        for _ in range(count):
            seconds += rng.expovariate(config.rate)
            yield start_us + round(seconds * SECOND_US)


def _sizes(config: WorkloadConfig, rng: Random) -> Iterator[int]:
    if config.payload_bytes_max is not None:
        while True:
            yield rng.randint(config.payload_bytes, config.payload_bytes_max)
    yield from cycle(config.payload_sizes or (config.payload_bytes,))
