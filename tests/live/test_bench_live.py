"""`epicast bench live`: its books find every loss, its ratios are of what they name, and all of its processes end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from epicast.cli.benchmarks import live_bench, live_measure, live_processes, live_report, live_slices
from epicast.cli.benchmarks.live_job import Job, Result
from epicast.cli.benchmarks.live_lines import Done, Published, Rate, decode_report
from epicast.cli.benchmarks.live_measure import Processes, percentile, run_job, typical
from epicast.cli.benchmarks.live_payload import FLOOD, LAST, MARK, PROBE, RATE, TIMED, Payloads, Tally, first_of
from epicast.cli.benchmarks.live_plan import Plan, make_plan
from epicast.cli.benchmarks.live_processes import last_line
from epicast.cli.benchmarks.live_publisher import LEAD, Source
from epicast.cli.benchmarks.live_slices import Phase, Slices, in_slices
from epicast.cli.benchmarks.live_systems import OTHERS, OURS, SYSTEMS, VARIANTS, System
from epicast.cli.benchmarks.live_verdict import TARGETS, by_cell, costs, middle, ratios
from epicast.cli.benchmarks.verdict import verdicts
from epicast.core.errors import EpicastError
from tests.unit.cli.shell import Shell, start

TINY: dict[str, Any] = {"probes": 5, "rate_seconds": 0.1, "flood_seconds": 0.1}


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


# A subscriber's books


class Book:
    """A tally, and what it told."""

    def __init__(self) -> None:
        self.marks: list[int] = []
        self.events = 0
        self.tally = Tally(self.marks.append, self._on_event)
        self.payloads = Payloads(100)

    def _on_event(self) -> None:
        self.events += 1

    def take(self, phase: int, *numbers: int, flags: int = 0) -> Tally:
        for number in numbers:
            self.tally.take(self.payloads.one(first_of(phase) + number, flags))
        return self.tally


def test_all_messages_in_turn_are_complete() -> None:
    book = Book()
    book.take(FLOOD, 0, 1, 2)
    assert not book.tally.complete  # nobody knows yet how many there are
    assert book.take(FLOOD, 3, flags=LAST).complete
    assert (book.tally.received, book.tally.duplicates) == (4, 0)


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (1, 0, 3, 2), (3, 2, 1, 0), (2, 3, 0, 1)])
def test_another_order_is_no_loss(order: tuple[int, ...]) -> None:
    book = Book()
    for number in order:
        book.take(RATE, number, flags=LAST if number == 3 else 0)
    assert book.tally.complete
    assert book.tally.received == 4
    assert book.events >= 2  # that it has begun, and that it may be complete


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_lost_message_is_missed(missing: int) -> None:
    book = Book()
    book.take(FLOOD, *(number for number in range(3) if number != missing))
    book.take(FLOOD, 3, flags=LAST)
    assert not book.tally.complete
    assert book.tally.received == 3
    assert book.take(FLOOD, missing).complete


@pytest.mark.parametrize("again", [0, 1, 3])
def test_what_comes_twice_is_counted_apart(again: int) -> None:
    book = Book()
    tally = book.take(FLOOD, 0, 1, 3, again)  # 2 is not there yet
    assert (tally.received, tally.duplicates) == (3, 1)


def test_leftovers_of_an_earlier_phase_do_not_count() -> None:
    book = Book()
    book.take(PROBE, 7, 8)
    tally = book.take(RATE, 0, 1)
    book.take(PROBE, 9, flags=MARK | TIMED | LAST)
    assert (tally.phase, tally.received, tally.duplicates, tally.total) == (RATE, 2, 0, None)
    assert (book.marks, tally.latencies_ns) == ([], [])


def test_marks_and_latencies_are_taken_where_they_are_asked_for() -> None:
    book = Book()
    for payload in book.payloads.many(first_of(FLOOD), first_of(FLOOD) + 5, MARK):
        assert len(payload) == 100
        book.tally.take(payload)
    assert (book.marks, book.tally.latencies_ns) == ([5], [])
    assert len(book.take(FLOOD, 5, 6, flags=TIMED).latencies_ns) == 2
    assert all(latency >= 0 for latency in book.tally.latencies_ns)


class Listener:
    """A publisher that keeps the books of one subscriber."""

    address = ""

    def __init__(self) -> None:
        self.book = Book()

    async def publish(self, payloads: Sequence[bytes]) -> None:
        for payload in payloads:
            self.book.tally.take(payload)


def test_the_first_messages_and_the_last_one_are_not_timed(capsys: pytest.CaptureFixture[str]) -> None:
    listener = Listener()
    source = Source(Job(OURS, 1, 100), listener)
    asyncio.run(source.at_rate(Rate(RATE, messages=20, per_second=10_000)))
    assert len(listener.book.tally.latencies_ns) == 20
    assert listener.book.tally.complete
    told = decode_report(capsys.readouterr().out)
    assert isinstance(told, Published)
    assert told.messages == LEAD + 20 + 1 == listener.book.tally.received


def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed() -> None:
    assert percentile(range(1, 101), 99) == 99
    assert percentile(range(1, 101), 50) == 50
    assert percentile([5], 99) == 5
    assert percentile([], 99) is None


# The arrangement


def test_the_subscribers_are_spread_over_the_processes() -> None:
    assert Job("nats", 64, 100).shares == [16, 16, 16, 16]
    assert Job("nats", 6, 100).shares == [2, 2, 1, 1]
    assert Job("nats", 2, 100).shares == [1, 1]


def test_the_window_and_the_rate_keep_within_their_bounds() -> None:
    for payload in (100, 1_000, 10_000, 1_000_000):
        job = Job("nats", 64, payload)
        assert 1 <= job.batch <= job.window
        assert job.rate * job.subscribers <= 16_000


def test_every_system_is_measured_in_every_cell_and_next_to_the_others() -> None:
    plan = Plan((OURS, *OTHERS, *VARIANTS), {})
    jobs = plan.jobs()
    assert len(jobs) == 9 * 6 + 3 * 2
    assert [job.system for job in jobs[:5]] == [OURS, *OTHERS]
    assert len({job.cell for job in jobs[:5]}) == 1
    assert {job.cell for job in make_plan([OURS], 1, quick=True).jobs()} == {
        "8 subscribers, 1.0 KB",
        "32 subscribers, 1.0 KB",
    }


def test_an_unknown_system_is_refused(shell: Shell) -> None:
    assert "unknown system 'kafka'; there are epicast," in shell.refusal("bench", "live", "--systems", "nats,kafka")


def test_what_is_missing_is_told_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = System("nats", "live_nats", {"nats-py": "no.such.module", "other": "none"}, "no-such-server")
    monkeypatch.setitem(SYSTEMS, "nats", absent)
    plan = make_plan(["nats", OURS], 1, quick=True)
    assert plan.systems == (OURS,)
    assert plan.missing == {
        "nats": "the program no-such-server was not found: apt-get install no-such-server; "
        'nats-py and other not installed: pip install "epicast[bench]"'
    }
    found = live_report.as_dict(plan, {Job(OURS, 8, 1000): [Result(1, 8, 1.0, 1.0, 2.0)]})
    assert found["missing"] == plan.missing
    assert found["targets"]["throughput_vs_nats"]["met"] is None


# Latency in slices


class Machine:
    """Plays slices; the host steals so much processor time in each, in turn, and nothing after that."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *stolen_s: float) -> None:
        self.coming, self.stolen_s, self.now_s = list(stolen_s), 0.0, 0.0
        self.lengths: list[float] = []
        monkeypatch.setattr(live_slices, "stolen_seconds", lambda: self.stolen_s)
        monkeypatch.setattr(live_slices, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(live_slices.os, "cpu_count", lambda: 2)

    async def play(self, number: int, seconds: float) -> Phase:
        assert number == len(self.lengths)
        self.lengths.append(seconds)
        self.now_s += seconds
        self.stolen_s += self.coming.pop(0) if self.coming else 0.0
        return Phase(Published(10, 0), [Done(RATE + number, 9, 0, 0, [number])])

    def take(self, seconds: float) -> Slices:
        return asyncio.run(in_slices(self.play, seconds))


def counting(found: Slices) -> list[int]:
    """The latencies that count."""
    return [latency for each in found.chosen for latency in each.phase.latencies_us()]


def test_a_moment_that_nobody_counted_does_not_show_in_a_typical_second_but_in_all_of_them() -> None:
    calm, disturbed = list(range(1, 101)), [*range(1, 51), *range(1001, 1051)]
    slices = [calm, disturbed, calm]
    assert typical(slices, 99) == 99.0
    assert percentile(sorted(chain.from_iterable(slices)), 99) == 1047.0
    assert typical([], 99) is None


def test_undisturbed_slices_all_count(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Machine(monkeypatch, 0.0, 0.02).take(3.0)
    assert counting(found) == [0, 2, 1]
    assert (found.stolen, found.left_out) == (pytest.approx(0.01 / 3), 0)


def test_a_slice_that_the_host_disturbed_is_replaced_whatever_was_measured_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Machine(monkeypatch, 0.0, 0.3, 0.0, 0.03).take(3.0)
    assert sorted(counting(found)) == [0, 2, 4]
    assert (found.stolen, found.left_out) == (0.0, 2)
    assert sum(phase.lost(1) for phase in found.phases) == 5  # lost is lost, also where latency does not count


def test_on_a_machine_that_is_always_disturbed_the_least_disturbed_slices_have_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch, *(1.0 - number / 10 for number in range(8)))
    found = machine.take(2.0)
    assert len(machine.lengths) == 8
    assert sorted(counting(found)) == [6, 7]
    assert found.stolen == pytest.approx((0.3 + 0.4) / 4)


def test_a_short_measurement_is_one_short_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    assert machine.take(0.1).left_out == 0
    assert machine.lengths == [0.1]


def test_where_the_system_does_not_tell_nothing_counts_as_stolen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_processes, "PROC", tmp_path)
    assert live_processes.stolen_seconds() == 0.0
    (tmp_path / "stat").write_text("cpu 1 2 3 4 5 6 7\n", encoding="ascii")
    assert live_processes.stolen_seconds() == 0.0
    (tmp_path / "stat").write_text("cpu 1 2 3 4 5 6 7 250 0 0\ncpu0 1\n", encoding="ascii")
    assert live_processes.stolen_seconds() == 250 / os.sysconf("SC_CLK_TCK")


# Real measurements


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_tiny_measurement_loses_nothing(name: str) -> None:
    if reason := SYSTEMS[name].missing():
        pytest.skip(reason)
    job = Job(name, 3, 100, **TINY)
    found = run_job(job)
    assert found.error == ""
    assert (found.lost, found.duplicates) == (0, 0)
    assert found.deliveries == 3 * found.messages > 3
    assert found.per_second is not None
    assert found.p50_us is not None
    assert found.p99_us is not None
    assert 0 < found.p50_us <= found.p99_us
    assert all(SYSTEMS[name].versions().values())


def test_a_process_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(OURS, 1, 4, **TINY)  # too short for the header
    assert run_job(job).error == "publisher ended: ValueError: negative count"


def test_a_server_that_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = tmp_path / "broken-server"
    server.write_text("#!/bin/sh\necho out of order\nexit 1\n", encoding="utf-8")
    server.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    broken = System("broken", "live_nats", server="broken-server")
    monkeypatch.setitem(SYSTEMS, "broken", broken)
    monkeypatch.setattr(System, "adapter", lambda _: Arguments())
    assert run_job(Job("broken", 1, 100, **TINY)).error == "broken-server ended: out of order"


class Numbered(NamedTuple):
    """Of a worker, what is asked."""

    pid: int


class Arguments:
    def server_arguments(self, folder: Path, port: int) -> list[str]:
        return []


def test_the_last_line_of_a_log_is_one_that_says_something(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("  | Traceback:\n  | ValueError: no\n  +--------\n", encoding="utf-8")
    assert last_line(log) == "ValueError: no"
    log.write_text("", encoding="utf-8")
    assert last_line(log) == "it said nothing"


LONG = """
import msgspec, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
from epicast.cli.benchmarks.live_job import Job
from epicast.cli.benchmarks.live_measure import run_job
try:
    print(run_job(msgspec.json.decode(sys.argv[1], type=Job)))
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_measurement_leaves_no_process_behind(signum: signal.Signals) -> None:
    if not Path("/proc/self/task").is_dir():
        pytest.skip("no /proc here")
    name = next((each for each in ("nats", "redis", "mosquitto") if SYSTEMS[each].missing() is None), OURS)
    job = Job(name, 2, 100, rate_seconds=600)
    wanted = 3 + (SYSTEMS[name].server is not None)
    with start(LONG, msgspec.json.encode(job).decode()) as process:
        pids = children_of(process, wanted)
        process.send_signal(signum)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (out, err) == ("interrupted\n", "")
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


def children_of(process: subprocess.Popen[str], wanted: int) -> list[str]:
    listing, deadline = Path(f"/proc/{process.pid}/task/{process.pid}/children"), time.monotonic() + 60
    while len(found := listing.read_text(encoding="ascii").split()) < wanted:
        assert time.monotonic() < deadline, found
        assert process.poll() is None
        time.sleep(0.01)
    return found


# What it comes to


def result(per_second: float, p99_us: float = 1000.0, **more: Any) -> Result:
    """Of a system that keeps two cores busy."""
    return Result(1000, int(per_second), 1.0, p99_us / 2, p99_us, 2 * p99_us, 2e3 / per_second, **more)


def results(**of: tuple[float, float]) -> dict[Job, Result]:
    """By system: deliveries a second and p99 in two cells, the second twice as good."""
    found = {}
    for name, (speed, p99_us) in of.items():
        system = name.replace("_", "-")
        found[Job(system, 8, 1000)] = result(speed, p99_us)
        found[Job(system, 32, 1000)] = result(2 * speed, p99_us / 2)
    return found


def test_ratios_are_of_epicast_over_the_other_in_each_cell() -> None:
    found = results(epicast=(600, 1000), nats=(150, 2000))
    assert by_cell(found, "nats") == {
        cell: {"throughput": 4.0, "p50": 0.5, "p99": 0.5, "p99_of_second": 0.5, "cpu": 0.25}
        for cell in ("8 subscribers, 1.0 KB", "32 subscribers, 1.0 KB")
    }
    assert by_cell(found, "zenoh") == {}


def test_targets_are_judged_on_the_mean_and_on_the_worst_cell() -> None:
    found = results(epicast=(600, 1000), nats=(150, 2000), zenoh=(500, 1100))
    found[Job("nats", 8, 1000)] = result(600, 500)
    measured = ratios(found)
    assert (measured["throughput_vs_nats"], measured["throughput_vs_nats_worst"]) == (2.0, 1.0)
    assert (measured["p99_vs_nats"], measured["p99_vs_nats_worst"]) == (1.0, 2.0)
    judged = {name: verdict["met"] for name, verdict in verdicts(measured, TARGETS).items()}
    assert judged == {
        "throughput_vs_nats": False,
        "throughput_vs_nats_worst": False,
        "throughput_vs_zenoh": True,
        "throughput_vs_zenoh_worst": True,
        "cpu_vs_nats": False,
        "cpu_vs_nats_worst": False,
        "cpu_vs_zenoh": True,
        "cpu_vs_zenoh_worst": True,
        "p99_vs_nats": True,
        "p99_vs_nats_worst": False,
        "p99_vs_zenoh": True,
        "p99_vs_zenoh_worst": True,
        "lost": True,
    }


def test_processor_time_is_judged_beside_deliveries() -> None:
    """On a busy machine epicast may miss its goal of deliveries and still take little of the processor."""
    job, other = Job(OURS, 8, 1000), Job("nats", 8, 1000)
    slow = msgspec.structs.replace(result(100), cpu_ms_per_1000=1.0)
    measured = ratios({job: slow, other: msgspec.structs.replace(result(100), cpu_ms_per_1000=4.0)})
    judged = {name: verdict["met"] for name, verdict in verdicts(measured, TARGETS).items()}
    assert (measured["cpu_vs_nats"], measured["cpu_vs_nats_worst"]) == (0.25, 0.25)
    assert (judged["throughput_vs_nats"], judged["cpu_vs_nats"], judged["cpu_vs_zenoh"]) == (False, True, None)


def test_the_processor_time_of_a_server_counts() -> None:
    """All pids of a system: its server's first."""
    publisher, subscriber = (Numbered(pid) for pid in (2, 3))
    assert Processes(publisher, [subscriber], [1]).pids == [1, 2, 3]  # type: ignore[arg-type, list-item]


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    assert {each["met"] for each in verdicts(ratios({}), TARGETS).values()} == {None}


@pytest.mark.parametrize("fault", [{"lost": 3}, {"duplicates": 3}, {"error": "gone"}])
def test_a_measurement_with_a_fault_does_not_count_and_is_told(fault: dict[str, Any]) -> None:
    bad = result(900, **fault)
    assert not bad.valid
    assert middle([bad]).per_second is None
    found = middle([result(100), bad, result(200), result(300)])
    assert found.per_second == 200
    assert not found.valid
    measured = ratios({Job(OURS, 8, 1000): found, Job("nats", 8, 1000): result(50)})
    assert measured["throughput_vs_nats"] == 4.0
    assert measured["lost"] == (1 if "error" in fault else 3)
    assert verdicts(measured, TARGETS)["lost"]["met"] is False


def test_the_middle_of_each_value_counts() -> None:
    found = middle([result(100, 3000.0), result(300, 2000.0), result(200, 1000.0)])
    assert (found.per_second, found.p99_us, found.valid) == (200, 2000.0, True)


def test_what_tls_and_signatures_cost_is_told_over_plain_epicast() -> None:
    found = results(epicast=(600, 1000), epicast_tls=(300, 1500))
    assert costs(found)["epicast-tls"]["8 subscribers, 1.0 KB"]["throughput"] == 0.5
    assert "epicast-signed" not in costs(found)


# The command


def answer_at_once(job: Job) -> Result:
    speeds = {OURS: 1000, "nats": 200, "zenoh": 500, **dict.fromkeys(VARIANTS, 400)}
    return result(speeds.get(job.system, 100), 500.0 if job.system == OURS else 1000.0)


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """All systems are here, and answer at once."""
    monkeypatch.setattr(live_bench, "run_job", answer_at_once)
    monkeypatch.setattr(System, "missing", lambda _: None)


@pytest.mark.usefixtures("everything")
def test_the_report_has_every_measurement_ratio_and_target(shell: Shell) -> None:
    answer = shell("bench", "live", "--quick", "--rounds", 2, "--json", "--check")
    assert answer.code == 0
    found = answer.json
    assert set(found["ratios"]) == set(found["targets"]) == set(TARGETS)
    assert found["ratios"]["throughput_vs_nats"] == 5.0
    assert set(found["ratios_by_cell"]) == set(OTHERS)
    assert set(found["costs_by_cell"]) == set(VARIANTS)
    assert {"python", "cores", "load_average"} <= set(found["machine"])
    assert len(found["measurements"]) == 2 * 6 + 2
    assert all(len(each["deliveries_per_second_of_all"]) == 2 for each in found["measurements"])
    assert len(answer.err.splitlines()) == 2 * len(found["measurements"])
    assert "1/28 epicast, 8 subscribers, 1.0 KB: 1.0 k/s, p99 0.5 ms" in answer.err
    shown = shell("bench", "live", "--quick", "-q").out
    assert "epicast over nats" in shown
    assert "epicast-tls over epicast" in shown
    assert "missed" not in shown


@pytest.mark.usefixtures("everything")
def test_only_chosen_systems_are_measured(shell: Shell) -> None:
    found = shell("bench", "live", "--quick", "--systems", "epicast, redis", "--json", "-q").json
    assert {each["system"] for each in found["measurements"]} == {"epicast", "redis"}
    assert found["targets"]["throughput_vs_nats"]["met"] is None


@pytest.mark.usefixtures("everything")
def test_only_a_check_fails_for_a_missed_target(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_bench, "run_job", lambda job: result(100, lost=5 if job.system == OURS else 0))
    assert shell("bench", "live", "--quick", "-q", "--rounds", 1).code == 0
    answer = shell("bench", "live", "--quick", "-q", "--rounds", 1, "--check")
    assert answer.code == 1
    assert "5 lost" in answer.out


def test_a_failed_measurement_is_a_result_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> Result:
        raise EpicastError("no luck")

    monkeypatch.setattr(live_measure, "_measure", fail)
    assert run_job(Job(OURS, 8, 1000)).outcome == "no luck"
