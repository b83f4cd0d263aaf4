"""Every checker rejects what it must and nothing else: one is trusted only after it has rejected a bad history."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from epicast.core.promises import PROMISES
from epicast.core.records import Level
from epicast.pipeline import tables
from epicast.pipeline.duck import DuckKernel
from epicast.pipeline.guarantees import FINDINGS_MAX, GUARANTEES, Verdict, judge
from epicast.pipeline.kernel import RunFacts
from epicast.trace.run import RunFolder
from tests.pipeline.bad_histories import BAD, Case
from tests.pipeline.good_histories import GOOD, Good
from tests.pipeline.histories import History


def verdicts(run: RunFolder) -> dict[str, Verdict]:
    facts = RunFacts.of(run.info)
    with DuckKernel(run) as kernel:
        tables.define(kernel, facts)
        return {verdict.guarantee: verdict for verdict in judge(kernel, facts)}


@pytest.mark.parametrize("make", BAD.values(), ids=BAD.keys())
def test_a_bad_history_is_rejected_with_its_proof(make: Callable[[], Case], tmp_path: Path) -> None:
    case = make()
    found = verdicts(case.history.save(tmp_path))
    assert {name: verdict.violations for name, verdict in found.items() if verdict.violations} == case.wrong
    assert [name for name, verdict in found.items() if verdict.broken] == [
        name for name in PROMISES if name in case.wrong
    ]
    assert {name: [finding.rows for finding in found[name].findings] for name in case.proof} == case.proof
    assert {name: found[name].findings[0].what for name in case.says} == case.says
    assert found["total"].numbers["inversions"] == case.inversions
    assert found["total"].numbers["holes"] == found["agreement"].violations
    assert found["total"].numbers["holes"] >= case.holes


@pytest.mark.parametrize("make", GOOD.values(), ids=GOOD.keys())
def test_a_history_that_only_looks_bad_is_accepted(make: Callable[[], Good], tmp_path: Path) -> None:
    case = make()
    found = verdicts(case.history.save(tmp_path))
    assert {name: verdict.findings for name, verdict in found.items() if verdict.violations or verdict.findings} == {}
    assert tuple(name for name, verdict in found.items() if not verdict.judged) == case.not_judged
    assert {name: found[name].checked for name in case.checked} == case.checked
    assert {found["total"].numbers[name] for name in ("holes", "inversions", "knots")} == {0}
    for name, reason in case.reasons.items():
        assert reason in found[name].reason


def test_the_guarantees_are_those_that_a_stack_can_promise() -> None:
    assert tuple(guarantee.name for guarantee in GUARANTEES) == PROMISES


def test_there_are_histories_against_every_guarantee() -> None:
    assert {name for make in BAD.values() for name in make().wrong} == set(PROMISES)


def test_a_guarantee_that_nobody_promised_is_judged_but_not_broken(tmp_path: Path) -> None:
    found = verdicts(BAD["a_hole"]().history.save(tmp_path, promises=["integrity"]))
    hole = found["agreement"]
    assert (hole.promised, hole.judged, hole.violations, hole.broken) == (False, True, 1, False)
    assert found["integrity"].promised


def test_few_violations_are_listed_but_all_are_counted(tmp_path: Path) -> None:
    h = History(2)
    posts = [h.publish(0) for _ in range(30)]
    h.deliver(1, *posts[::-1])
    found = verdicts(h.save(tmp_path))
    assert (found["fifo"].violations, len(found["fifo"].findings)) == (29, FINDINGS_MAX)
    assert (found["causal"].violations, len(found["causal"].findings)) == (29, FINDINGS_MAX)
    assert (found["total"].violations, len(found["total"].findings)) == (30, 1)


def test_a_chain_of_holes_that_is_too_long_to_follow_is_no_acquittal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epicast.pipeline.guarantees.causal.WALK_MAX", 3)
    causal = verdicts(BAD["through_six_messages_that_the_process_lacks"]().history.save(tmp_path))["causal"]
    assert (causal.judged, causal.violations) == (False, 0)
    assert causal.reason == "1 chain of holes left unexplored after 3 steps"


def test_a_run_without_a_trace_is_not_judged(tmp_path: Path) -> None:
    found = verdicts(History(0, level=Level.OFF).save(tmp_path))
    assert {(verdict.judged, verdict.reason) for verdict in found.values()} == {(False, "the run kept no trace")}


def test_findings_call_processes_by_their_names(tmp_path: Path) -> None:
    h = History(2)
    h.publish(0)
    h.name = {0: "10.0.0.1:7000", 1: "10.0.0.2:7000"}
    (hole,) = verdicts(h.save(tmp_path))["agreement"].findings
    assert hole.what == (
        "process 10.0.0.2:7000 never delivered message 0 of process 10.0.0.1:7000, which process 10.0.0.1:7000 did"
    )
