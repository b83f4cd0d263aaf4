"""The compiled engine and the pure one do the same: every call in the same order, every row, every count."""

from __future__ import annotations

import gc
import sys
import weakref
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicast.core.records import Level
from epicast.sim import engine as pure
from epicast.sim.engine import UP, Engine
from epicast.sim.latency import parse_latency
from epicast.sim.network import Network, NetworkConfig
from epicast.stacks.node import Node, handler_table
from epicast.stacks.stack import load
from epicast.trace.batch import Batch
from epicast.trace.digest import TraceDigest
from tests.determinism.engine_rig import FAR_TICKS, STEPS, Nudge, Part, Program

compiled = pytest.importorskip("epicast.sim._engine", reason="the compiled engine was not built")
ENGINES = (pure.Engine, compiled.Engine)
BOTH = pytest.mark.parametrize("engine", ENGINES, ids=["pure", "compiled"])

Steps = list[tuple[str, int]]


def play(engine: type[Engine], seed: int, level: Level, steps: Steps, **options: Any) -> dict[str, Any]:
    program = Program(engine, seed, level, **options)
    for name, number in steps:
        program.step(name, number)
    return program.outcome()


def check_same(seed: int, level: Level, steps: Steps, **options: Any) -> None:
    expected, found = (play(engine, seed, level, steps, **options) for engine in ENGINES)
    for what, value in expected.items():
        assert found[what] == value, what


@given(
    seed=st.integers(0, 1_000),
    level=st.sampled_from(Level),
    tick_us=st.sampled_from([1, 100, 333]),
    steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 100_000)), max_size=40),
)
def test_any_program_runs_the_same(seed: int, level: Level, tick_us: int, steps: Steps) -> None:
    check_same(seed, level, steps, tick_us=tick_us)


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("seed", range(8))
def test_a_long_program_runs_the_same(seed: int, level: Level) -> None:
    rng = Random(seed)
    steps = [(rng.choice([*STEPS, "act", "act", "run"]), rng.randrange(100_000)) for _ in range(600)]
    check_same(seed, level, steps)


@pytest.mark.parametrize("transport", ["datagram", "tcp"])
def test_flooding_a_random_graph_leaves_the_same_trace(transport: str) -> None:
    pure_run, compiled_run = (flood(engine, transport) for engine in ENGINES)
    assert compiled_run == pure_run
    assert len(pure_run["batches"]) > 2, "too few rows to see where one batch ends and the next begins"


def flood(engine_class: type[Engine], transport: Any, nodes: int = 250, messages: int = 60) -> dict[str, Any]:
    engine = engine_class(100, Random(1), Level.FULL)
    Network(engine, NetworkConfig(transport=transport), parse_latency("uniform 10ms 100ms").build(Random(2)), Random(2))
    stack, graph, batches = load("static-flood"), Random(3), list[Batch]()
    digest = TraceDigest(engine.describer.names)
    engine.sink = batches.append
    engine.use_handlers(handler_table(stack))
    parts = [Node(engine.env(engine.add_node()), stack) for _ in range(nodes)]
    for me, node in enumerate(parts):
        engine.set_state(me, UP, node.parts())
        node.start(graph.sample(range(nodes), 6))
    for number in range(messages):
        parts[number % 7].publish("", bytes(number))
        assert engine.run(engine.now + 200_000)
    engine.flush()
    for batch in batches:
        digest.update(batch)
    return {
        "digest": digest.hexdigest(),
        "batches": [batch.rows for batch in batches],
        "counters": (engine.now, engine.events, engine.counts, engine.in_flight()),
        "sent": [(kind.__name__, tally) for kind, tally in engine.sent.items()],
    }


@BOTH
def test_messages_for_one_tick_arrive_as_they_were_posted_near_or_far(engine: type[Engine]) -> None:
    program = Program(engine, 1, Level.OFF)
    ticks = sorted(tick + ahead for tick in FAR_TICKS for ahead in (0, 1))
    numbers = iter(range(10_000))
    arrivals: list[tuple[int, int]] = []
    for _ in range(3):  # again from later on, when some of these ticks have come near
        for tick in ticks:
            if tick * 100 >= program.engine.now:
                arrivals.append((tick, number := next(numbers)))
                program.engine.post(0, 1, Nudge(number), 0, tick)
        program.engine.run(program.engine.now + 150 * 100)
    assert program.engine.run(2_000_000 * 100)
    heard = [(now // 100, number) for now, _, what, *_, number in program.log if what == "nudge"]
    assert heard == sorted(arrivals)


@BOTH
def test_a_message_cannot_arrive_in_the_past(engine: type[Engine]) -> None:
    program = Program(engine, 1, Level.OFF)
    program.engine.run(1_001)
    with pytest.raises(AssertionError, match="in the past"):
        program.engine.post(0, 1, Nudge(1), 0, 10)
    program.engine.post(0, 1, Nudge(1), 0, 11)


@BOTH
def test_running_for_ever_ends_when_nothing_is_left(engine: type[Engine]) -> None:
    program = Program(engine, 1, Level.OFF, fuel=50)
    program.send_many(program.parts[0])
    assert program.engine.run(pure.NEVER_US)
    assert program.engine.in_flight() == 0


def test_a_handler_that_raises_leaves_both_engines_alike() -> None:
    expected, found = (stumble(engine) for engine in ENGINES)
    assert found == expected


def stumble(engine: type[Engine]) -> dict[str, Any]:
    """Of five messages and five timers for one moment the third raises; then the run goes on."""
    program = Program(engine, 1, Level.FULL)
    nudges = [Nudge(number) for number in range(5)]
    for number in range(5):
        program.engine.post(0, 1, nudges[number], program.engine.describe(nudges[number], 7), 30)
        program.engine.call_at(7_000, raise_at if number == 2 else program.note, number)
    raising = {Nudge: (1, lambda part, sender, nudge: raise_at(2) if nudge.number == 2 else None)}
    program.engine.use_handlers(raising)
    for node, part in enumerate(program.parts):
        program.engine.set_state(node, UP, (part, part))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            program.engine.run(1_000_000)
    assert program.engine.run(1_000_000)
    assert len({sys.getrefcount(nudge) for nudge in nudges}) == 1, "those that were lost are still held"
    return program.outcome()


def raise_at(number: int) -> None:
    raise ZeroDivisionError(number)


@BOTH
def test_an_unknown_message_is_an_error(engine: type[Engine]) -> None:
    program = Program(engine, 1, Level.OFF)
    program.engine.use_handlers({Nudge: (0, Part.on_nudge)})
    program.engine.over_links = False
    program.send_many(program.parts[0])
    program.engine.transmit(0, (1,), Nudge(1))
    with pytest.raises(KeyError, match="Rumor"):
        program.engine.run(1_000_000)


@BOTH
def test_a_dropped_engine_is_collected_with_all_that_waits_in_it(engine: type[Engine]) -> None:
    program = Program(engine, 1, Level.FULL, fuel=40)
    nudge = Nudge(1 << 40)
    held = sys.getrefcount(nudge)
    for tick in FAR_TICKS:
        program.engine.post(0, 1, nudge, 0, tick)
    program.parts[0].env.after(1_000, program.parts[0].on_timer)
    assert sys.getrefcount(nudge) == held + len(FAR_TICKS)
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None
    assert sys.getrefcount(nudge) == held


@BOTH
def test_delivery_releases_the_message(engine: type[Engine]) -> None:
    program = Program(engine, 1, Level.OFF)
    nudge = Nudge(1 << 40)
    held = sys.getrefcount(nudge)
    for tick in FAR_TICKS * 40:
        program.engine.post(0, 1, nudge, 0, tick)
    program.engine.unpost(lambda src, dst: False)
    program.engine.run(819_150)
    assert sys.getrefcount(nudge) == held + program.engine.in_flight() == held + 4 * 40
    assert len(program.engine.unpost(lambda src, dst: True)) == 4 * 40
    assert sys.getrefcount(nudge) == held
