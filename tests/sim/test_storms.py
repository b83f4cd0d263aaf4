"""BRISA over HyParView and CLON in storms: hundreds of seeds of churn, crashes, partitions, loss, clogs and resets.

After the faults have healed each run must come to rest with one parent for every process, no cycle, no orphan, and no
message lost for processes that stayed. A failure names the command that plays it again.
"""

from __future__ import annotations

import pytest

from epicast.sim.storm import Storm

BATCH = 12


def failures(stack: str, seeds: range) -> list[str]:
    verdicts = [Storm(seed, stack).play() for seed in seeds]
    return [
        f"epicast storm --stack {stack} --seed {v.seed}  # {'; '.join(v.violations)}" for v in verdicts if not v.passed
    ]


@pytest.mark.parametrize("first", range(0, 192, BATCH))
def test_brisa_comes_to_rest_whole_after_a_storm(first: int) -> None:
    assert not failures("brisa", range(first, first + BATCH))


@pytest.mark.parametrize("first", range(1000, 1024, BATCH))
def test_delay_aware_trees_come_to_rest_whole_after_a_storm(first: int) -> None:
    assert not failures("brisa-delay", range(first, first + BATCH))


@pytest.mark.parametrize("first", range(0, 60, BATCH))
def test_trees_over_clon_come_to_rest_whole_after_a_storm(first: int) -> None:
    assert not failures("clon-brisa", range(first, first + BATCH))


def test_a_storm_is_a_function_of_its_seed() -> None:
    first, second = Storm(5).play(), Storm(5).play()
    assert first.summary is not None
    assert second.summary is not None
    assert first.summary.trace_digest == second.summary.trace_digest
    assert first.rest_us == second.rest_us


def test_storms_do_strike() -> None:
    """Sometimes-assertions: over a few seeds every kind of trouble must really have happened."""
    summaries = [Storm(seed).play().summary for seed in range(2000, 2012)]
    happened = [summary for summary in summaries if summary is not None]
    assert len(happened) == len(summaries)
    assert sum(s.nodes["crashed"] for s in happened) > 20
    assert sum(s.repairs["soft"] for s in happened) > 20
    assert sum(s.repairs["hard"] for s in happened) > 0
    reasons = {reason for s in happened for reason in s.drops}
    assert {"down", "half_open", "partition", "loss"} <= reasons
