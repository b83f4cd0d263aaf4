"""What one member may send without end: the floods of `test_flood_latency.py`, as bytes to be sent again and again.

Where a repetition would be known as one, the numbers are drawn anew all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random

import msgspec

from epicast.core.message import Message, Position
from epicast.dissemination.ball_messages import Ball, Heads
from epicast.dissemination.brisa_messages import (
    BOOTSTRAP,
    UPWARD,
    Activate,
    Baseline,
    Data,
    Deactivate,
    Recover,
    Whereabouts,
)
from epicast.dissemination.gaps import Heights
from epicast.live.envelope import Fragment, pack, pack_plain
from epicast.membership.cyclon import Enter, ExchangeReply
from epicast.membership.hyparview_messages import (
    ForwardJoin,
    Join,
    KeepAlive,
    Neighbour,
    NeighbourReply,
    Priority,
    Shuffle,
    ShuffleReply,
)
from epicast.wire.codec import frame
from epicast.wire.frames import event_frame
from tests.live.attacker import ME, data, head, stream_of

BLOCK_BYTES = 1 << 17
FAR = 1 << 40


class Field(msgspec.Struct, frozen=True):
    """What the member knows of the cluster that it is in."""

    node: str  # whose neighbour it is
    publishers: tuple[str, ...]
    victims_port: int = 9  # where the system takes connections, and nobody answers
    seed: int = 1

    def flow(self, draw: Random) -> tuple[str, int]:
        return draw.choice(self.publishers), 0

    def victim(self, number: int) -> str:
        number %= 60_000
        return f"127.77.{number // 250}.{number % 250 + 1}:{self.victims_port}/x{number}"


Flood = Callable[[Field, Random, int], Iterable[bytes | Message]]
"""Given how often it was called before, it gives the next few messages."""


def quiet(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    return ()


# Membership


def joins(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    return Join(), ForwardJoin(f"127.0.0.1:9/j{draw.random()}", 6), Neighbour(Priority(number % 3))


def keep_alives(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    flows = [field.flow(draw), *((f"127.0.0.1:9/k{draw.random()}", 0) for _ in range(63))]
    progress = ((field.publishers[0], FAR + draw.randrange(FAR)),)
    return (KeepAlive(1 + number, 4, tuple(Position(flow, (flow[0], ME), progress) for flow in flows)),)


def shuffles(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    names = tuple(f"127.0.0.1:9/s{draw.random()}" for _ in range(30))
    return Shuffle(names[0], 6, names), ShuffleReply(names), NeighbourReply(False, names)


def names(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    """Of addresses that are to be dialled."""
    some = tuple(field.victim(30 * number + each) for each in range(30))
    return Shuffle(some[0], 0, some), ForwardJoin(some[1], 0), NeighbourReply(False, some), ShuffleReply(some)


# Trees


def requests(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    """For much, and never twice the same."""
    flow = field.flow(draw)
    ranges = tuple((flow[0], draw.randrange(1000), FAR + draw.randrange(1000)) for _ in range(64))
    return Recover(flow, ranges), Recover(flow, (), 1 + draw.randrange(60_000_000), anything=True)


def activations(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    flow, taint = field.flow(draw), tuple(f"127.0.0.1:9/a{draw.random()}" for _ in range(8))
    return Activate(flow, number % 2 == 0, taint), Deactivate(flow, mutual=number % 3 == 0), Activate(flow)


def whereabouts(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    """New paths all the time: those who believe them tell others."""
    flow = field.flow(draw)
    path = (flow[0], *(f"127.0.0.1:9/w{draw.random()}" for _ in range(number % 8)), ME)
    return (Whereabouts(Position(flow, path if number % 5 else (), ((flow[0], draw.randrange(FAR)),))),)


def baselines(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    flow = field.flow(draw)
    firsts = tuple((publisher, draw.randrange(FAR)) for publisher in (*field.publishers, *map(str, range(56))))
    return (Baseline(flow, firsts, draw.randrange(2) * draw.randrange(60_000_000), draw.randrange(FAR)),)


def flows(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    """That do not exist: by word, by request and by message."""
    for _ in range(16):
        root = f"127.0.0.1:9/f{draw.random()}"
        yield Whereabouts(Position((root, 0), (root, ME)))
        yield Activate((root, 1))
        yield data((root, 2), root, 0, b"", flags=BOOTSTRAP)
        yield data((ME, draw.randrange(1 << 30)), ME, 0, b"", flags=BOOTSTRAP)


def publishers(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    """On flows that exist, which do not."""
    flow = field.flow(draw)
    for _ in range(16):
        source = f"127.0.0.1:9/p{draw.random()}"
        yield data(flow, source, draw.randrange(FAR), b"", path=(), flags=BOOTSTRAP | UPWARD)


# Events


def heads(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    """Definitions of streams, of which nothing ever comes."""
    path = (ME, *(f"127.0.0.1:9/h{draw.random()}" for _ in range(16)))
    return [head(data((ME, 0), ME, 0, b"", topic=f"h{draw.random()}", path=path)) for _ in range(16)]


def unsigned(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    """Messages with bad signatures, or none."""
    flow = field.flow(draw)
    for each in range(16):
        event = data(flow, flow[0], FAR + draw.randrange(FAR), b"", topic="honest", path=(flow[0], ME))
        certificate = draw.randbytes(430)
        bad = b"\x01" + len(certificate).to_bytes(2, "big") + certificate + draw.randbytes(64) + bytes(108)
        yield head(event) + event_frame(stream_of(event), event.seq, bad if each % 2 else pack_plain(1, b"x"))


def old_events(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    """Again and again."""
    event = _own(0)
    yield head(event)
    yield from [event_frame(stream_of(event), each % 4, pack_plain(1, bytes(100))) for each in range(256)]


def events(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    return _published(pack_plain(1, bytes(100)), 256 * number, 256)


def large_events(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    return _published(pack_plain(1, bytes(1 << 18)), 2 * number, 2)


def pieces(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    """Of messages that never become whole."""
    event, seq = _own(0), 64 * number
    yield head(event)
    for each in range(64):
        piece = pack(1, bytes(1000), b"", Fragment(seq + each, 0, 60))
        yield event_frame(stream_of(event), seq + each, piece)


def _own(seq: int, topic: str = "flood") -> Data:
    return data((ME, 0), ME, seq, b"", topic=topic)


def _published(packed: bytes, first: int, how_many: int) -> Iterator[bytes]:
    event = _own(0)
    yield head(event)
    yield b"".join(event_frame(stream_of(event), first + each, packed) for each in range(how_many))


# Long messages


def large_frames(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    flow, some = field.flow(draw), tuple(f"127.0.0.1:9/{'l' * 80}{each}" for each in range(4000))
    yield Activate(flow, True, some)
    yield Recover(flow, tuple((name, number + 1, FAR + number) for name in some))
    yield Baseline(flow, tuple((name, FAR) for name in some))
    yield Whereabouts(Position(flow, (flow[0], *some[:1000], ME), tuple((name, FAR) for name in some[:300])))


# Other stacks


def heights(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    honest = tuple((publisher, draw.randrange(FAR)) for publisher in field.publishers)
    invented = tuple((f"127.0.0.1:9/g{draw.random()}", draw.randrange(FAR)) for _ in range(252))
    return Heights(honest + invented), Heights((), asks=True, checksum=draw.randrange(FAR))


def balls(field: Field, draw: Random, number: int) -> Iterable[bytes | Message]:
    """With events of nobody, and counts of processes that are not."""
    keys = [draw.randbytes(16) + ME.encode() for _ in range(64)]
    yield Ball(draw.randrange(1 << 20), ((1 + number % 20, {key: ("flood", pack_plain(1, b"x")) for key in keys}),))
    yield Heads(number, tuple(draw.randrange(65_536) for _ in range(64)), draw.randrange(1 << 20))


PUBLISHING = {"events", "large events", "pieces", "balls"}
"""What every node is to pass on and deliver, as a member may ask of it."""

ON_TREES: dict[str, Flood] = {
    each.__name__.replace("_", " "): each
    for each in (
        quiet,
        joins,
        keep_alives,
        shuffles,
        names,
        requests,
        activations,
        whereabouts,
        baselines,
        flows,
        publishers,
        heads,
        large_frames,
        old_events,
        events,
        large_events,
        pieces,
    )
}
ELSEWHERE: dict[str, tuple[str, Flood]] = {"heights": ("flood", heights), "balls": ("epto", balls)}
SIGNED: dict[str, Flood] = {"unsigned": unsigned}
NUMBERED = {"events", "large events", "pieces"}
"""Of which nothing is sent twice."""

STAYING: dict[str, tuple[Message, Message]] = {
    "hyparview": (Join(), KeepAlive(1, 4)),
    "cyclon": (Enter(), ExchangeReply(())),
}
"""What gets a process in, and what keeps it there."""

ALL: dict[str, Flood] = ON_TREES | SIGNED | {name: flood for name, (_, flood) in ELSEWHERE.items()}


def blocks(flood: str, field: Field) -> Iterator[bytes]:
    """Without end; none, if nothing is to be sent."""
    draw, number, make = Random(field.seed), 0, ALL[flood]
    while True:
        block: list[bytes] = []
        size = 0
        while size < BLOCK_BYTES:
            parts = [each if isinstance(each, bytes) else frame(each) for each in make(field, draw, number)]
            if not parts:
                return
            number += 1
            block += parts
            size += sum(map(len, parts))
        yield b"".join(block)
