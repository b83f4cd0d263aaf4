"""Every stack that promises agreement or an order, in storms: churn, crashes, partitions, loss, clogs and resets.

After the faults have healed each run must come to rest with all that its stack promises. A failure names the command
that plays it again. `make soak` plays a thousand storms of each stack.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256

import pytest

from epicast.core.errors import ConfigError, EpicastError
from epicast.sim.history import History
from epicast.sim.storm import Storm, draw, playable
from epicast.sim.storm_draw import JUDGED
from epicast.stacks import stack as stacks

STORMS, BATCH = (1_000, 25) if os.environ.get("EPICAST_SOAK") == "1" else (50, 10)
STACKS = playable()


def failures(stack: str, seeds: range) -> list[str]:
    verdicts = [Storm(seed, stack).play() for seed in seeds]
    return [
        f"epicast storm --stack {stack} --seed {v.seed}  # {'; '.join(v.violations)}" for v in verdicts if not v.passed
    ]


@pytest.mark.parametrize("first", range(0, STORMS, BATCH))
@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_keeps_its_promises_in_a_storm(stack: str, first: int) -> None:
    assert not failures(stack, range(first, first + BATCH))


def test_every_stack_that_promises_agreement_or_an_order_has_storms() -> None:
    promising = {name: set(stacks.load(name).promises) for name in stacks.names()}
    assert [name for name, promises in promising.items() if promises & set(JUDGED)] == STACKS
    assert set().union(*(promising[name] for name in STACKS)) >= set(JUDGED)


def test_a_stack_that_promises_neither_is_refused_and_so_is_an_unknown_one() -> None:
    with pytest.raises(EpicastError, match=r"promises agreement or an order: brisa, .*; got 'flood'"):
        draw(0, "flood")
    with pytest.raises(ConfigError, match="unknown stack 'nothing'"):
        draw(0, "nothing")


@pytest.mark.parametrize("stack", ["brisa", "epto"])
def test_a_storm_is_a_function_of_its_seed(stack: str) -> None:
    first, second = Storm(5, stack).play(), Storm(5, stack).play()
    assert first.summary is not None
    assert second.summary is not None
    assert first.summary.trace_digest == second.summary.trace_digest
    assert first.rest_us == second.rest_us


# Fifty scenarios, as texts: a storm that failed once must stay the same storm.
DRAWN = {"brisa": "7ea5344faa889f84", "brisa-delay": "7a03f4a0ed8e6e8a", "clon-brisa": "a17d6be1ad024d5c"}


@pytest.mark.parametrize("stack", DRAWN)
def test_what_is_added_for_one_stack_leaves_the_storms_of_others_alone(stack: str) -> None:
    texts = "".join(draw(seed, stack).to_toml() for seed in range(50))
    assert sha256(texts.encode()).hexdigest()[:16] == DRAWN[stack]


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


def histories(stack: str, seeds: range) -> Iterator[History]:
    for seed in seeds:
        storm = Storm(seed, stack)
        storm.play()
        yield storm.judge.history


@pytest.mark.parametrize("stack", ["causal-flood", "causal-brisa", "epto", "epto-brisa", "fifo-brisa"])
def test_publishers_of_ordered_stacks_hear_each_other(stack: str) -> None:
    """Most messages follow one of another publisher, that was delivered before they were published."""
    played = list(histories(stack, range(6)))
    answers = sum(bool(history.follows(each)) for history in played for each in history.published_us)
    assert answers > sum(len(history.published_us) for history in played) / 2
    assert any(len(set(history.topics.values())) > 1 for history in played)


@pytest.mark.parametrize("stack", ["causal-flood", "epto", "epto-brisa"])
def test_where_no_agreement_is_promised_there_are_holes_to_tell(stack: str) -> None:
    played = list(histories(stack, range(12)))
    assert sum(history.holes() for history in played) > 100
    assert sum(len(told) for history in played for told in history.told.values()) > 100


@pytest.mark.parametrize("stack", ["causal-brisa", "causal-flood", "fifo-brisa"])
def test_newcomers_join_while_publishers_publish(stack: str) -> None:
    """They meet streams in mid-stream, and get messages of them."""
    newcomers = 0
    for history in histories(stack, range(30)):
        begin, end = min(history.published_us.values()), max(history.published_us.values())
        joined_us = history.world.population.joined_us
        newcomers += sum(begin < joined_us[node] < end and len(got) > 3 for node, got in history.got.items())
    assert newcomers > 10
