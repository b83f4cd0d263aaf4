"""How many bytes both clocks add to a message, beside a vector with all its entries: the table in causal.md.

Everybody publishes, at a rate of all together. Processes have names as long as those of live ones. The first half of a
run is left out: there publishers are told by name for the first time.
"""

from __future__ import annotations

from functools import cache
from statistics import mean
from typing import Any, NamedTuple

import msgspec
import pytest

from epicast.core.records import Level
from epicast.ordering.barrier import Barrier
from epicast.ordering.barrier import Header as Names
from epicast.ordering.vector import Header as Growth
from epicast.ordering.vector import Vector
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from tests.tidy.source import ROOT
from tests.tidy.test_docs import read, table

MESSAGES = {16: 480, 64: 768}
TOLERANCE = 0.15  # of what the document says
CASES = [(16, 5), (16, 100), (64, 5), (64, 100)]  # publishers, messages a second

_encode = msgspec.msgpack.encode


class Sizes(NamedTuple):
    """Means, in bytes."""

    barrier: float
    vector: float
    full: float  # names and numbers of all publishers
    bare: float  # numbers alone, where everybody knows everybody's place


def named(process: int) -> str:
    return f"10.0.{process // 256}.{process % 256}:7946/{process:08x}"


def in_words(header: Any) -> int:
    sources = tuple(named(source) for source in header.sources)
    return 1 + len(_encode(msgspec.structs.replace(header, sources=sources)))


@cache
def sizes(publishers: int, rate: int) -> Sizes:
    found: dict[str, list[int]] = {"barrier": [], "vector": [], "full": [], "bare": []}

    def measure(room: Any, clock: str, header: bytes) -> None:
        kind: Any = {"barrier": Names, "vector": Growth}[clock]
        found[clock].append(in_words(msgspec.msgpack.decode(header[1:], type=kind)))
        if clock == "vector":
            return  # what all entries would take is the same in both runs
        clock_now = {named(source): stream.next - 1 for source, stream in room.streams.items() if stream.next}
        found["full"].append(1 + len(_encode((room.own.next, tuple(clock_now), tuple(clock_now.values())))))
        found["bare"].append(1 + len(_encode((room.own.next, tuple(clock_now.values())))))

    for clock, room in (("barrier", Barrier), ("vector", Vector)):
        play(clock, room, publishers, rate, measure)
    return Sizes(*(mean(lengths[len(lengths) // 2 :]) for lengths in found.values()))


def play(clock: str, kind: Any, publishers: int, rate: int, measure: Any) -> None:
    workload = {
        "messages": MESSAGES[publishers],
        "rate": rate,
        "sources": publishers,
        "source_order": "random",
        "payload_bytes": 100,
    }
    changes = {"stack": "causal-brisa", "overrides": {"ordering": {"clock": clock}}}
    scenario = Scenario.load({**changes, "nodes": publishers, "warmup": "10s", "workload": workload})
    header = kind.header
    with pytest.MonkeyPatch.context() as patch:

        def watched(room: Any) -> bytes:
            written: bytes = header(room)
            measure(room, clock, written)
            return written

        patch.setattr(kind, "header", watched)
        world = World(scenario, 7, level=Level.DELIVERIES)
        assert world.run().delivery_ratio == 1.0, world.replay


@pytest.mark.parametrize(("publishers", "rate"), CASES)
def test_the_document_says_how_long_headers_are(publishers: int, rate: int) -> None:
    rows = table(read(ROOT / "docs" / "protocols" / "causal.md"), "header bytes")
    said = {(int(row[0]), int(row[1])): [float(cell.replace(",", "")) for cell in row[2:]] for row in rows}
    assert list(said) == CASES
    assert list(sizes(publishers, rate)) == pytest.approx(said[publishers, rate], rel=TOLERANCE)


@pytest.mark.parametrize(("publishers", "rate"), CASES)
def test_both_clocks_are_much_shorter_than_a_vector_with_names(publishers: int, rate: int) -> None:
    measured = sizes(publishers, rate)
    assert max(measured.barrier, measured.vector) < measured.full / 3


def test_barriers_grow_with_what_is_under_way_and_vectors_with_the_group() -> None:
    quiet, busy = sizes(16, 5), sizes(16, 100)
    assert busy.barrier > 2 * quiet.barrier
    assert busy.vector == pytest.approx(quiet.vector, rel=0.2)
    assert sizes(64, 5).barrier < 2 * quiet.barrier
    assert sizes(64, 5).vector > 2 * quiet.vector
