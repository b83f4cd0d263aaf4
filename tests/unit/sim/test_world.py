"""What an operator can do to a world, and what a whole run does."""

from __future__ import annotations

import gc
import signal
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epicast.core.ids import NOBODY
from epicast.core.message import Message
from epicast.core.records import Kind, Level
from epicast.dissemination.flood import Flood, Gossip
from epicast.sim.scenario import Scenario
from epicast.sim.world import GRACE_US, World
from epicast.trace.batch import Batch
from epicast.trace.run import RunFolder
from epicast.wire.codec import Decoder

SECOND = 1_000_000
QUICK = {"nodes": 20, "warmup": "1s", "workload": {"messages": 5, "rate": 10}, "drain": "5s"}


def make(stack: str = "static-flood", level: Level = Level.FULL, **settings: Any) -> World:
    return World(Scenario.load({"stack": stack, **QUICK, **settings}), 1, level=level)


class Rows:
    """The rows of a world, as they come."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.batches: list[Batch] = []
        world.sinks.append(self.batches.append)

    def __iter__(self) -> Iterator[tuple[int, Kind, int, int]]:
        """Time, kind, node, peer."""
        self.world.engine.flush()
        for batch in self.batches:
            columns = (batch.time_us.tolist(), map(Kind, batch.kind.tolist()), batch.node.tolist(), batch.peer.tolist())
            yield from zip(*columns, strict=True)

    def of(self, *kinds: Kind) -> list[tuple[int, Kind, int]]:
        return [(time_us, kind, node) for time_us, kind, node, _ in self if kind in kinds]

    def counts(self) -> Counter[Kind]:
        return Counter(kind for _, kind, _, _ in self)


# Steps


def test_processes_join_leave_crash_and_keep_their_numbers() -> None:
    world = make("flood")
    rows = Rows(world)
    nodes = [world.join() for _ in range(5)]
    world.run_until(SECOND)
    world.leave(1)
    assert list(world.up) == [0, 2, 3, 4]
    world.crash(3)
    world.run_until(2 * SECOND)
    world.crash(3)
    world.leave(1)
    assert nodes == [0, 1, 2, 3, 4]
    assert list(world.up) == [0, 2, 4]
    assert sorted(world.nodes) == [0, 2, 4]
    assert world.join() == 5
    assert rows.of(Kind.LEAVE, Kind.CRASH) == [(SECOND, Kind.CRASH, 3), (SECOND + GRACE_US, Kind.LEAVE, 1)]
    assert [node for _, _, node in rows.of(Kind.JOIN)] == [0, 1, 2, 3, 4, 5]


def test_contacts_are_among_those_that_are_up() -> None:
    world, contacts = make("flood"), list[int]()
    for _ in range(4):
        world.join()
    world.crash(0)
    world.crash(1)
    start = world.start
    world.start = lambda node, others: (contacts.extend(others), start(node, others))[1]  # type: ignore[method-assign]
    world.join()
    assert sorted(contacts) == [2, 3]


def test_a_leaving_process_says_goodbye_and_its_neighbours_forget_it() -> None:
    world = make("flood")
    for _ in range(4):
        world.join()
    world.run_until(5 * SECOND)
    world.leave(2)
    world.run_until(5 * SECOND + GRACE_US + 300_000)  # long before a crash would be noticed
    assert all(2 not in node.membership.peers() for node in world.nodes.values())


def test_a_crash_is_noticed_through_the_links() -> None:
    world = make("flood", network={"detection": "700ms"})
    rows = Rows(world)
    for _ in range(4):
        world.join()
    world.run_until(5 * SECOND)
    world.crash(2)
    world.run_until(6 * SECOND)
    noticed = [(time_us, peer) for time_us, kind, _, peer in rows if kind is Kind.LINK_DOWN and peer == 2]
    assert set(noticed) == {(5_700_000, 2)}
    assert all(2 not in node.membership.peers() for node in world.nodes.values())


def test_a_paused_process_sleeps_and_then_catches_up() -> None:
    world = make(nodes=2)
    rows = Rows(world)
    for node in [world.add_node(), world.add_node()]:
        world.start(node, [1 - node])
    world.run_until(SECOND)
    world.pause(1)
    world.pause(1)
    world.publish(0, "t", b"x")
    world.run_until(2 * SECOND)
    assert world.network.in_flight() == 1
    world.resume(1)
    world.resume(1)
    assert rows.of(Kind.PAUSE, Kind.RESUME, Kind.DELIVER) == [
        (SECOND, Kind.PAUSE, 1),
        (SECOND, Kind.DELIVER, 0),
        (2 * SECOND, Kind.RESUME, 1),
        (2 * SECOND, Kind.DELIVER, 1),
    ]


def test_a_paused_process_publishes_and_leaves_when_it_wakes() -> None:
    world = make("flood")
    rows = Rows(world)
    world.join()
    world.pause(0)
    world.publish(0, "t", b"x")
    world.leave(0)
    world.run_until(SECOND)
    assert rows.of(Kind.PUBLISH, Kind.LEAVE) == []
    world.resume(0)
    world.run_until(2 * SECOND)
    assert rows.of(Kind.PUBLISH, Kind.LEAVE) == [(SECOND, Kind.PUBLISH, 0), (SECOND + GRACE_US, Kind.LEAVE, 0)]


def test_publishing_at_a_process_that_is_gone_does_nothing() -> None:
    world = make("flood")
    world.join()
    world.crash(0)
    world.publish(0, "t", b"x")
    assert world.summary().messages == 0


def test_running_while_something_holds() -> None:
    world = make()
    assert world.run_while(lambda: world.now_us < 300, step_us=100, limit_us=1_000)
    assert world.now_us == 300
    assert not world.run_while(lambda: True, step_us=100, limit_us=450)
    assert world.now_us == 450


def test_dead_processes_are_freed_even_while_the_collector_rests() -> None:
    world = make("flood")
    for _ in range(6):
        world.join()
    world.run_until(10 * SECOND)
    gc.collect()
    gc.disable()
    try:
        gc.freeze()
        parts = [weakref.ref(world.nodes[node].membership) for node in (2, 3)]
        world.crash(2)
        world.leave(3)
        world.run_until(60 * SECOND)  # the timers that still held them are over
        assert [part() for part in parts] == [None, None]
    finally:
        gc.unfreeze()
        gc.enable()


# Whole runs


@pytest.mark.parametrize("transport", ["tcp", "datagram"])
@pytest.mark.parametrize("graph", ["directed", "symmetric"])
def test_a_given_graph_is_flooded(transport: str, graph: str) -> None:
    world = make(network={"transport": transport}, joins={"graph": graph, "degree": 8})
    summary = world.run()
    assert (summary.messages, summary.owed, summary.missing, summary.delivery_ratio) == (5, 100, 0, 1.0)
    assert summary.nodes == {"started": 20, "up_at_end": 20, "crashed": 0, "left": 0}
    assert all(len(node.membership.peers()) == 8 for node in world.nodes.values())
    # Everyone forwards to all neighbours but the one that it came from, who is always among them if all is symmetric.
    each = summary.messages_by_type["Gossip"] / 5
    assert each == 8 + 19 * 7 if graph == "symmetric" else 8 + 19 * 7 < each <= 8 * 20


def test_joins_come_one_after_the_other_and_then_the_overlay_settles() -> None:
    world = make("flood", joins={"interval": "20ms"}, warmup="2s")
    rows = Rows(world)
    summary = world.run()
    assert [(time_us, node) for time_us, _, node in rows.of(Kind.JOIN)] == [(20_000 * i, i) for i in range(20)]
    first, *_, last = rows.of(Kind.PUBLISH)
    assert first[0] == 19 * 20_000 + 2 * SECOND
    assert last[0] == first[0] + 4 * 100_000
    assert summary.delivery_ratio == 1.0


def test_a_run_ends_when_everyone_has_everything_or_at_the_limit() -> None:
    assert make().run().virtual_s < 3
    cut_off = make(fault=[{"kind": "isolate", "at": 0, "nodes": [7]}], drain="5s")
    summary = cut_off.run()
    assert summary.missing == 5
    assert summary.virtual_s == 1 + 0.5 + 5


@pytest.mark.parametrize("stack", ["static-flood", "flood"])
def test_churn_comes_and_goes_but_spares_the_sources(stack: str) -> None:
    world = make(
        stack, nodes=40, churn="const churn 30% each 1s; at 300ms leave 4", workload={"messages": 20, "rate": 5}
    )
    summary = world.run()
    assert summary.nodes["left"] == 4
    assert summary.nodes["crashed"] > 20
    assert summary.nodes["started"] == 40 + summary.nodes["crashed"]
    assert 0 in world.up
    assert summary.messages == 20


def test_unprotected_sources_may_go_and_then_do_not_publish() -> None:
    world = make(nodes=10, protect_sources=False, churn="at 0s crash 10", workload={"start": "100ms", "messages": 3})
    summary = world.run()
    assert (summary.messages, summary.nodes["up_at_end"]) == (0, 0)
    assert summary.delivery_ratio is None


@pytest.mark.parametrize("transport", ["tcp", "datagram"])
@pytest.mark.parametrize("stack", ["static-flood", "flood"])
def test_every_message_of_a_troubled_run_is_accounted_for(stack: str, transport: str) -> None:
    faults = [
        {"kind": "partition", "at": "100ms", "until": "1s", "fraction": 0.4},
        {"kind": "one-way", "at": "200ms", "until": "900ms", "count": 3},
        {"kind": "clog", "at": "300ms", "until": "1s", "count": 2, "delay": "200ms"},
        {"kind": "pause", "at": "400ms", "until": "2s", "count": 4},
        {"kind": "reset", "at": "500ms", "count": 3},
        {"kind": "half-open", "at": "600ms", "count": 3},
        {"kind": "loss", "at": "1s", "until": "2s", "probability": 0.3},
        {"kind": "isolate", "at": "1s", "until": "2s", "count": 2},
        {"kind": "crash", "at": "1500ms", "fraction": 0.1},
    ]
    world = make(
        stack,
        nodes=30,
        network={"transport": transport, "duplication": 0.1, "retransmit_max": 1},
        churn="const churn 10% each 1s; at 700ms leave 2",
        workload={"messages": 30, "rate": 10},
        fault=faults,
    )
    counts = Rows(world)
    summary = world.run()
    rows = counts.counts()
    assert rows[Kind.SEND] == sum(summary.messages_by_type.values())
    assert rows[Kind.DROP] == sum(summary.drops.values())
    arrived = rows[Kind.RECEIVE] + rows[Kind.DUPLICATE]
    assert rows[Kind.SEND] + rows[Kind.COPY] == arrived + rows[Kind.DROP] + summary.in_flight
    assert {"partition", "loss", "down", "isolate"} <= summary.drops.keys()
    assert rows[Kind.PAUSE] >= rows[Kind.RESUME] > 0
    assert summary.nodes["crashed"] >= 3


def test_the_codec_changes_nothing() -> None:
    assert make("flood", codec_check=True).run() == make("flood").run()


def test_a_message_that_the_codec_changes_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = Decoder.decode

    def forgetful(self: Decoder, body: bytes | memoryview) -> Message:
        msg = decode(self, body)
        return Gossip(msg.source, msg.seq, 0, msg.topic, msg.payload) if isinstance(msg, Gossip) else msg

    monkeypatch.setattr(Decoder, "decode", forgetful)
    with pytest.raises(AssertionError, match="is decoded as"):
        make(codec_check=True).run()


def test_tracing_does_not_change_the_run() -> None:
    summaries = [
        make("flood", level, fault=[{"kind": "pause", "at": 0, "until": 1, "count": 9}]).run() for level in Level
    ]
    assert len({(s.events, s.deliveries, s.virtual_s, tuple(s.messages_by_type.items())) for s in summaries}) == 1
    quiet = summaries[Level.OFF]
    assert (quiet.owed, quiet.delivery_ratio, quiet.latency_ms["p50"], quiet.trace_digest) == (None, None, None, None)


def test_without_a_trace_a_run_of_constant_size_ends_early_too() -> None:
    assert make(level=Level.OFF).run().virtual_s == make(level=Level.DELIVERIES).run().virtual_s < 3


def test_another_seed_is_another_run() -> None:
    one, two = (World(Scenario.load({"stack": "flood", **QUICK}), seed).run() for seed in (1, 2))
    assert one.trace_digest != two.trace_digest


def test_the_workload_is_the_same_under_any_stack() -> None:
    workload = {"messages": 10, "pattern": "poisson", "sources": 5, "source_order": "random"}
    published = []
    for stack in ("static-flood", "flood"):
        world = make(stack, workload=workload)
        rows = Rows(world)
        world.run()
        found = rows.of(Kind.PUBLISH)
        published.append([(time_us - found[0][0], node) for time_us, _, node in found])
    assert published[0] == published[1]


# Looking in and stopping


def test_progress_goes_from_nothing_to_all() -> None:
    told: list[tuple[float, int, int]] = []
    summary = make().run(on_progress=lambda *now: told.append(now))
    fractions = [fraction for fraction, _, _ in told]
    assert fractions == sorted(fractions)
    assert told[-1] == (1.0, round(summary.virtual_s * 1e6), summary.events)


def test_the_speed_is_measured_with_the_clock_that_is_given() -> None:
    ticks = iter([10.0, 12.0])
    summary = make().run(clock=lambda: next(ticks))
    assert summary.events_per_second == round(summary.events / 2)


@pytest.mark.parametrize("how", ["exception", "signal", "stop"])
def test_an_interrupted_run_ends_in_good_order(how: str) -> None:
    world = make("flood", workload={"messages": 1_000, "rate": 100}, joins={"interval": "1s"})

    def interrupt(fraction: float, virtual_us: int, events: int) -> None:
        if virtual_us > 0 and not world.interrupted:
            if how == "exception":
                raise KeyboardInterrupt
            if how == "signal":
                signal.raise_signal(signal.SIGINT)
            else:
                world.stop()

    summary = world.run(on_progress=interrupt)
    assert (summary.complete, summary.interrupted) == (False, True)
    assert summary.virtual_s < 60
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert gc.get_freeze_count() == 0


def test_an_error_in_a_protocol_says_when_where_and_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Flood, sender: int, msg: Gossip) -> bool:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(Flood, "on_gossip", fail)
    world = make()
    with pytest.raises(ZeroDivisionError, match="oops") as raised:
        world.run()
    (note,) = raised.value.__notes__
    assert f"at {world.now_us / 1e6:.6f} s of virtual time, node " in note
    assert note.endswith(f"to see it again: {world.replay}")
    assert eval(world.replay.removesuffix(".run()"), {"World": World, "Scenario": Scenario}).scenario == world.scenario


def test_the_command_that_replays_a_run_may_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(Scenario(stack="static-flood"), 1, replay="epicast sim a.toml --seed 1")
    world.call_at(5, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError) as raised:
        world.run_until(10)
    assert raised.value.__notes__ == [
        "at 0.000005 s of virtual time, outside of any node; to see it again: epicast sim a.toml --seed 1"
    ]


def test_a_process_that_is_saying_goodbye_has_left_in_the_table_of_processes() -> None:
    world = make("flood")
    for _ in range(4):
        world.join()
    world.run_until(2_000_000)
    world.leave(3)
    nodes = world.nodes_table()
    assert (nodes.ended_us[3], nodes.how[3]) == (2_000_000, "leave")
    assert (nodes.ended_us[2], nodes.how[2]) == (-1, "")


def test_a_run_that_ends_with_a_picture_takes_it_once() -> None:
    """Or the same edges would stand in the trace twice."""
    world, pictures = make(snapshot_interval="250ms", warmup="1s"), list[Any]()
    world.on_snapshot = pictures.append
    world.run()
    assert pictures[-1].time_us == world.now_us
    moments = [(picture.time_us, picture.overlay, picture.flow) for picture in pictures]
    assert len(moments) == len(set(moments))


def test_pictures_are_taken_on_time_and_at_the_end() -> None:
    world, pictures = make(snapshot_interval="200ms"), list[Any]()
    world.on_snapshot = pictures.append
    summary = world.run()
    times = [picture.time_us for picture in pictures]
    assert times[:3] == [1_000_000, 1_200_000, 1_400_000]
    assert times[-1] == round(summary.virtual_s * 1e6)
    assert {picture.overlay for picture in pictures} == {"active"}
    edges = set(zip(pictures[0].node.tolist(), pictures[0].peer.tolist(), strict=True))
    assert edges == {(node, peer) for node, part in world.nodes.items() for peer in part.membership.peers()}


def test_a_stack_with_trees_shows_them() -> None:
    world = make("brisa", nodes=30, warmup="10s")
    summary = world.run()
    views, tree = world.snapshot_overlay()
    assert (views.overlay, tree.overlay, tree.flow) == ("active", "tree", "0/0")
    assert sorted(tree.node.tolist()) == list(range(1, 30))
    assert set(tree.peer.tolist()) <= set(range(30))
    assert summary.tree is not None
    assert summary.tree["orphans"] == 0
    assert 1 <= summary.tree["depth_mean"] <= summary.tree["depth_max"] < 30  # type: ignore[operator]


def test_the_table_of_processes_tells_their_lives() -> None:
    world = make("flood", latency="areas 2 1ms 20ms")
    for _ in range(3):
        world.join()
    world.run_until(SECOND)
    world.crash(1)
    table = world.nodes_table()
    assert table.area == ["0", "1", "0"]
    assert table.joined_us.tolist() == [0, 0, 0]
    assert table.ended_us.tolist() == [-1, SECOND, -1]
    assert table.how == ["", "crash", ""]
    assert table.table().num_rows == 3


def test_a_run_folder_takes_all_that_a_world_tells(tmp_path: Path) -> None:
    world = make("brisa", churn="const churn 10% each 1s", snapshot_interval="200ms")
    scenario = world.scenario
    with RunFolder.create(
        tmp_path / "run",
        scenario=scenario.as_dict(),
        scenario_text=scenario.to_toml(),
        seed=world.seed,
        level=Level.FULL,
        engine="pure",
    ) as run:
        world.sinks.append(run.events(world.names).write)
        world.on_snapshot = run.write_snapshot
        summary = world.run()
        run.write_nodes(world.nodes_table())
        run.finish(summary.as_dict(), summary.trace_digest or "")
    found = RunFolder.open(tmp_path / "run").require_complete()
    assert found.info.digest == summary.trace_digest
    assert found.info.counters == summary.as_dict()
    assert Scenario.load(found.info.scenario) == scenario


def test_rows_of_the_world_itself_name_nobody_else() -> None:
    world = make("flood")
    rows = Rows(world)
    world.join()
    world.crash(0)
    world.engine.flush()
    assert [(kind, peer) for _, kind, _, peer in rows] == [(Kind.JOIN, NOBODY), (Kind.CRASH, NOBODY)]
    assert all(np.all(batch.seq == -1) for batch in rows.batches)
