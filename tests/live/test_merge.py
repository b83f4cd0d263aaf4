"""Journals of live processes become a run that is judged and measured like a simulated one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from epicast.core.ids import NOBODY
from epicast.core.records import Kind, Level
from epicast.pipeline import analysis
from epicast.pipeline.duck import DuckKernel
from epicast.sim.recorded import play_into
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from epicast.trace import journal_order
from epicast.trace.journal_clocks import solved
from epicast.trace.journal_format import number_of
from epicast.trace.read import read_events, read_nodes, read_snapshots
from epicast.trace.run import RunFolder
from tests.live.journals import START_US, A, B, C, Cluster, S, id_of, merged, split, start

IDS = ("peer", "source")


def answer(run: RunFolder) -> dict[str, Any]:
    with DuckKernel(run.require_complete()) as kernel:
        found: dict[str, Any] = analysis.analyse(kernel, run, "run").to_pylist()[0]
    return found


def verdicts(run: RunFolder) -> dict[str, dict[str, Any]]:
    return {verdict["guarantee"]: verdict for verdict in answer(run)["verdicts"]}


# A simulated run and the journals that its processes would have written

RUNS: dict[str, dict[str, Any]] = {
    "calm": {"snapshot_interval": "1s", "latency": "areas 3 1ms 20ms"},
    "crashes and joins": {"churn": "from 0s to 6s const churn 10% each 2s"},
    "goodbyes and joins": {"churn": "from 0s to 6s const churn 10% each 2s leave"},
    "failures and repairs": {"fault": [{"kind": "crash", "at": "2s", "nodes": [5, 6, 8]}]},
}


def play(folder: Path, level: Level = Level.FULL, **changes: Any) -> RunFolder:
    base = {"nodes": 20, "warmup": "12s", "workload": {"messages": 30, "rate": 2, "sources": 2}, "drain": "20s"}
    play_into(folder, World(Scenario.load({"stack": "brisa", **base, **changes}), 3, level=level), [])
    return RunFolder.open(folder)


@pytest.fixture(scope="module", params=RUNS)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, RunFolder]:
    """The same run, simulated and as it would have been live."""
    folder = tmp_path_factory.mktemp("both")
    simulated = play(folder / "simulated", **RUNS[request.param])
    crashes = split(simulated, folder / "live")
    return simulated, merged(folder / "live", crashes=crashes)


@pytest.fixture(scope="module")
def answers(both: tuple[RunFolder, RunFolder]) -> tuple[dict[str, Any], dict[str, Any]]:
    return answer(both[0]), answer(both[1])


def test_the_journals_of_a_run_become_a_complete_run(both: tuple[RunFolder, RunFolder]) -> None:
    simulated, live = both
    assert live.require_complete().info.rows == simulated.info.rows
    assert (live.info.engine, live.info.level, live.info.promises) == ("live", "full", simulated.info.promises)
    assert live.info.counters["nodes"] == simulated.info.counters["nodes"]
    assert "in_flight" not in live.info.counters
    for ours, theirs in zip(read_nodes(live.path).to_pylist(), read_nodes(simulated.path).to_pylist(), strict=True):
        assert (ours["node"], ours["name"]) == (number_of(id_of(theirs["node"])), id_of(theirs["node"]))
        assert (ours["area"], ours["how"]) == (theirs["area"], theirs["how"])
        assert ours["joined_us"] == START_US + theirs["joined_us"]
        assert ours["ended_us"] == (None if theirs["ended_us"] is None else START_US + theirs["ended_us"])


def test_rows_are_in_the_order_of_time_and_each_process_keeps_its_own(both: tuple[RunFolder, RunFolder]) -> None:
    simulated, live = (read_events(run.path).to_pylist() for run in both)
    assert [row["row"] for row in live] == list(range(len(live)))
    assert [row["time_us"] for row in live] == [START_US + row["time_us"] for row in simulated]
    for node in sorted({row["node"] for row in simulated}):
        ours = [told(row) for row in live if row["node"] == number_of(id_of(node))]
        assert ours == [told(row, live=False) for row in simulated if row["node"] == node]


def told(row: dict[str, Any], *, live: bool = True) -> tuple[Any, ...]:
    """What a row says, with the ids of a live run."""
    peer, source = (row[name] if live or row[name] == NOBODY else number_of(id_of(row[name])) for name in IDS)
    return peer, source, *(row[name] for name in ("kind", "seq", "hops", "bytes", "layer", "detail", "topic", "flags"))


def test_a_live_run_is_judged_like_a_simulated_one(answers: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """What differs: nobody knows what was under way at the end, findings call processes by their names, and the rows
    of different processes in one microsecond may stand in another order."""
    simulated, live = ({verdict["guarantee"]: verdict for verdict in each["verdicts"]} for each in answers)
    assert "not known" in live["accounting"]["reason"]
    live["accounting"]["reason"] = ""
    for guarantee, theirs in simulated.items():
        ours = live[guarantee]
        assert len(ours.pop("findings")) == len(theirs.pop("findings"))
        assert ours | {"reason": unnamed(ours["reason"])} == theirs
    assert simulated["agreement"]["judged"]
    assert simulated["agreement"]["checked"] > 100


def unnamed(text: str) -> str:
    return re.sub(r"127\.0\.0\.1:7\d+/k0*(\d+)", r"\1", text)


TREES = ("tree_", "childless_share", "depth", "out_degree", "children", "leaf_in_trees")


def values(found: dict[str, Any], *, of_trees: bool) -> dict[Any, float]:
    """Metrics, histograms and series by what they are of."""
    metrics = {("metric", name): value for name, value in found["metrics"]}
    bins = {("histogram", bar["name"], round(bar["value"], 9)): bar["count"] for bar in found["histograms"]}
    points = {("series", point["name"], point["time_s"]): point["value"] for point in found["series"]}
    return {key: value for key, value in (metrics | bins | points).items() if key[1].startswith(TREES) == of_trees}


def test_a_live_run_is_measured_like_a_simulated_one(answers: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """What differs: the last digits of means, whose terms come in another order."""
    simulated, live = (values(each, of_trees=False) for each in answers)
    assert len(simulated) > 500
    assert live == pytest.approx(simulated, rel=1e-12, abs=1e-12)


def test_the_trees_of_a_live_run_are_measured_like_those_of_a_simulated_one(
    answers: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    simulated, live = (values(each, of_trees=True) for each in answers)
    assert live == pytest.approx(simulated, rel=1e-12, abs=1e-12)


def test_the_order_does_not_depend_on_the_size_of_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    split(play(tmp_path / "simulated", nodes=6, workload={"messages": 4}), tmp_path / "live")
    whole = merged(tmp_path / "live").info
    monkeypatch.setattr(journal_order, "WINDOW_ROWS", 1)
    for size in (1, 7, 100):
        monkeypatch.setattr(journal_order, "CHUNK_ROWS_MIN", size)
        again = merged(tmp_path / "live", overwrite=True).info
        assert (again.rows, again.digest) == (whole.rows, whole.digest)


def test_the_level_is_the_lowest_of_all(tmp_path: Path) -> None:
    run = play(tmp_path / "simulated", Level.DELIVERIES, nodes=6, workload={"messages": 4})
    split(run, tmp_path / "live")
    full = start(tmp_path / "live" / "more", "127.0.0.1:9/a", promises=run.info.promises)
    full.write(START_US, Kind.SEND, B, bytes_=10, layer="membership", detail="Join")
    full.end("leave", START_US + 100 * S)
    live = merged(tmp_path / "live")
    assert (live.info.level, live.info.status) == ("deliveries", "complete")
    assert "send" not in set(read_events(live.path).column("kind").to_pylist())


# Small histories


def kinds(run: RunFolder) -> list[tuple[str, str]]:
    names = {row["node"]: row["name"] for row in read_nodes(run.path).to_pylist()}
    return [(row["kind"], names[row["node"]]) for row in read_events(run.path).to_pylist()]


@pytest.mark.parametrize(("sender", "receiver"), [(A, B), (B, A)])
def test_what_arrives_in_the_microsecond_of_its_sending_comes_after_it(
    sender: str, receiver: str, tmp_path: Path
) -> None:
    cluster = Cluster(tmp_path, sender, receiver)
    travel = {"seq": -1, "bytes_": 10, "layer": "membership", "detail": "Join"}
    cluster[receiver].write(START_US + 5, Kind.RECEIVE, sender, **travel)
    cluster[receiver].write(START_US + 5, Kind.LINK_UP, sender)
    cluster[sender].write(START_US + 5, Kind.LINK_UP, receiver)
    cluster[sender].write(START_US + 5, Kind.SEND, receiver, **travel)
    cluster.end(S, S)
    found = kinds(merged(tmp_path))
    assert found[2:] == [("link_up", sender), ("send", sender), ("receive", receiver), ("link_up", receiver)]


def test_a_clock_that_is_slow_is_put_right(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, A, B, C)
    cluster.publish(A, 10 * S)
    cluster.deliver(B, 7 * S, A)
    cluster.publish(B, 8 * S)
    cluster.deliver(C, 8 * S - 1, B)
    cluster.deliver(C, 10 * S + 500, A)
    cluster.end(20 * S, 17 * S, 20 * S)
    run = merged(tmp_path)
    # B is put forward by 3 s and 1 us, and C by as much as it then lacks.
    assert run.info.counters["clock_shift_us_max"] == 3 * S + 3
    assert verdicts(run)["integrity"]["violations"] == 0
    assert verdicts(run)["agreement"]["violations"] == 1  # A lacks the message of B
    times = [row["time_us"] for row in read_events(run.path).to_pylist()]
    assert times == sorted(times)


def test_clocks_that_contradict_each_other_are_left_alone() -> None:
    assert solved([1, 2], {(1, 2): -5, (2, 1): 0}) is None
    assert solved([1, 2, 3], {(1, 2): -5, (2, 3): -5}) == {1: 0, 2: 6, 3: 12}


def test_whoever_was_up_when_the_last_message_had_arrived_was_up_to_the_end(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, A, B, C)
    for who in (A, B, C):
        cluster[who].write(START_US + 1, Kind.SUBSCRIBE, topic="t")
    cluster.publish(A, 2 * S)
    cluster.deliver(B, 2 * S + 100, A)
    cluster[B].write(START_US + 3 * S, Kind.UNSUBSCRIBE, topic="t")
    cluster[B].write(START_US + 3 * S, Kind.LEAVE)
    cluster[C].write(START_US + 4 * S, Kind.UNSUBSCRIBE, topic="t")
    run = merged(cluster.end(5 * S, 3 * S, 4 * S).folder)
    assert run.info.counters["nodes"] == {"started": 3, "up_at_end": 3, "crashed": 0, "left": 0}
    assert run.info.counters["over_us"] == START_US + 3 * S
    assert {kind for kind, _ in kinds(run)} == {"join", "subscribe", "publish", "deliver"}
    agreement = verdicts(run)["agreement"]
    assert (agreement["checked"], agreement["violations"]) == (3, 1)  # C lacks it


def test_whoever_left_before_others_got_a_message_has_left(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, A, B, C)
    cluster.publish(A, 2 * S)
    cluster.deliver(B, 3 * S, A)
    run = merged(cluster.end(5 * S, 6 * S, 2 * S + 1).folder)
    assert run.info.counters["nodes"] == {"started": 3, "up_at_end": 2, "crashed": 0, "left": 1}
    assert kinds(run)[-2:] == [("leave", C), ("deliver", B)]
    assert verdicts(run)["agreement"]["violations"] == 0


def test_what_arrived_before_the_end_was_sent_even_if_the_receivers_clock_is_slow(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, A, B)
    travel = {"bytes_": 10, "layer": "membership", "detail": "Disconnect"}
    cluster[A].write(START_US + 3 * S + 50, Kind.SEND, B, **travel)
    cluster[A].write(START_US + 3 * S + 60, Kind.RECEIVE, B, **travel)
    cluster[B].write(START_US + 3 * S - 20, Kind.RECEIVE, A, **travel)
    cluster[A].write(START_US + 4 * S + 50, Kind.SEND, B, **travel)
    run = merged(cluster.end(5 * S, 3 * S).folder)
    assert kinds(run)[2:] == [("receive", B), ("send", A)]
    assert verdicts(run)["accounting"]["violations"] == 0


def test_a_run_can_be_judged_up_to_a_given_moment(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, A, B)
    cluster.publish(A, 2 * S)
    cluster.deliver(B, 3 * S, A)
    cluster.publish(A, 4 * S, 1)
    run = merged(cluster.end(5 * S, 4 * S + 1).folder, until_us=START_US + 4 * S)
    assert run.info.counters["nodes"]["up_at_end"] == 2
    assert kinds(run)[2:] == [("publish", A), ("deliver", A), ("deliver", B)]


@pytest.mark.parametrize("told", [True, False])
def test_a_process_without_an_end_crashed_with_its_last_row_or_when_somebody_saw_it(told: bool, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, A, B)
    cluster.publish(A, 2 * S)
    cluster.deliver(B, 3 * S, A)
    cluster[B].close()
    cluster.publish(A, 8 * S, 1)
    cluster[A].end("leave", START_US + 9 * S)
    run = merged(tmp_path, crashes={B: START_US + 4 * S} if told else None)
    crashed = [row for row in read_events(run.path).to_pylist() if row["kind"] == "crash"]
    assert [(row["node"], row["time_us"]) for row in crashed] == [(number_of(B), START_US + (4 if told else 3) * S)]
    nodes = {row["name"]: (row["ended_us"], row["how"]) for row in read_nodes(run.path).to_pylist()}
    assert nodes == {A: (None, ""), B: (START_US + (4 if told else 3) * S, "crash")}


def test_a_row_of_joining_is_put_in_where_the_journal_has_none(tmp_path: Path) -> None:
    journal = start(tmp_path / "a", A, started_us=START_US + 7)
    journal.write(START_US + 9, Kind.SUBSCRIBE, topic="t")
    journal.end("leave", START_US + S)
    empty = start(tmp_path / "b", B, started_us=START_US + 8)
    empty.close()  # killed at once
    start(tmp_path / "c", C, started_us=None).close()  # says nothing at all
    run = merged(tmp_path)
    rows = [(row["kind"], row["node"], row["time_us"] - START_US) for row in read_events(run.path).to_pylist()]
    a, b = number_of(A), number_of(B)
    assert rows == [("join", a, 7), ("join", b, 8), ("crash", b, 8), ("subscribe", a, 9)]


# Pictures


def photographed(tmp_path: Path, *pictures: tuple[str, int, str | None], end_us: int = 40 * S) -> RunFolder:
    """A is the source; at these times processes tell who their parent is."""
    cluster = Cluster(tmp_path, A, B, C, promises=["tree"])
    for who, at_us, parent in sorted(pictures, key=lambda picture: picture[1]):
        cluster[who].snapshot(START_US + at_us, "tree", f"{A}/0", [] if parent is None else [(parent, -1)])
        if parent is not None:
            cluster[who].write(START_US + 2, Kind.PARENT, parent, A, 0)
    return merged(cluster.end(end_us, end_us + 1, end_us + 2).folder)


def edges(run: RunFolder) -> list[tuple[int, str, int, int]]:
    rows = read_snapshots(run.path).to_pylist()
    return [(row["time_us"] - START_US, row["flow"], row["node"], row["peer"]) for row in rows]


def test_the_last_pictures_of_all_are_the_final_one_and_the_tree_is_judged_by_it(tmp_path: Path) -> None:
    run = photographed(tmp_path, (A, 20 * S, None), (B, 21 * S, A), (C, 22 * S, B), (B, 50 * S, None))
    flow = f"{number_of(A)}/0"
    assert sorted(edges(run)) == sorted(
        [(22 * S, flow, number_of(B), number_of(A)), (22 * S, flow, number_of(C), number_of(B))]
    )
    tree = verdicts(run)["tree"]
    assert (tree["judged"], tree["checked"], tree["violations"]) == (True, 2, 0)


def test_a_flaw_in_the_final_picture_is_found(tmp_path: Path) -> None:
    run = photographed(tmp_path, (A, 20 * S, None), (B, 20 * S, C), (C, 20 * S, B))
    tree = verdicts(run)["tree"]
    assert tree["violations"] == 1
    assert f"process {B}" in tree["findings"][0]["what"]


def test_pictures_of_one_time_are_one_picture_if_everyone_is_in_it(tmp_path: Path) -> None:
    whole = [(who, at_us, parent) for at_us in (10 * S, 20 * S) for who, parent in ((A, None), (B, A), (C, A))]
    run = photographed(tmp_path, *whole, (B, 15 * S, A))
    assert sorted({at_us for at_us, *_ in edges(run)}) == [10 * S, 20 * S]


def test_half_a_picture_is_none(tmp_path: Path) -> None:
    run = photographed(tmp_path, (A, 20 * S, None), (B, 20 * S, A))
    assert edges(run) == []
    assert verdicts(run)["tree"]["reason"] == "the run has no picture of its overlay"


def test_a_picture_from_before_a_change_is_no_part_of_a_final_one_taken_much_later(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, A, B)
    cluster[B].snapshot(START_US + 2 * S, "tree", (A, 0), [(A, -1)])
    cluster[A].snapshot(START_US + 30 * S, "tree", (A, 0), [])
    cluster[B].write(START_US + 3 * S, Kind.PARENT, A, A, 0)
    assert edges(merged(cluster.end(40 * S, 40 * S).folder)) == []
