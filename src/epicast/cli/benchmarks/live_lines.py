"""What the benchmark and its worker processes tell each other: one JSON object a line, on stdin and stdout."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import msgspec

LINE_MAX = 1 << 26


class Order(msgspec.Struct, tag=True, frozen=True):
    """To a worker."""


class Probe(Order, frozen=True):
    """Publish now and then, until all subscribers have been seen to receive, and some more to warm up."""


class Halt(Order, frozen=True):
    """Everyone is there."""


class Rate(Order, frozen=True):
    phase: int
    messages: int
    per_second: int


class Flood(Order, frozen=True):
    phase: int
    seconds: float
    window: int | None  # None: the system holds the publisher back by itself


class Passed(Order, frozen=True):
    """Every subscriber has so many messages of the flood."""

    messages: int


class Tell(Order, frozen=True):
    """Say how far you are in this phase, even if it is not all."""

    phase: int


class End(Order, frozen=True):
    pass


class News(msgspec.Struct, tag=True, frozen=True):
    """From a worker."""


class Ready(News, frozen=True):
    address: str = ""


class Seen(News, frozen=True):
    """Every subscriber here has received something."""


class Reached(News, frozen=True):
    """Every subscriber here has so many messages of the flood."""

    messages: int


class Published(News, frozen=True):
    messages: int
    first_ns: int


class Done(News, frozen=True):
    """What the subscribers here have received in this phase."""

    phase: int
    received: int
    duplicates: int
    last_ns: int
    latencies_us: list[int]


Orders = Probe | Halt | Rate | Flood | Passed | Tell | End
Reports = Ready | Seen | Reached | Published | Done

encode = msgspec.json.Encoder().encode
decode_order = msgspec.json.Decoder[Orders](Orders).decode
decode_report = msgspec.json.Decoder[Reports](Reports).decode


def say(news: News) -> None:
    """From a worker; in one write, so that threads do not mix their lines."""
    sys.stdout.buffer.write(encode(news) + b"\n")
    sys.stdout.buffer.flush()


async def orders() -> AsyncIterator[Orders]:
    """To this worker, until the benchmark ends it or is gone."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async for line in reader:
        order = decode_order(line)
        if isinstance(order, End):
            return
        yield order
