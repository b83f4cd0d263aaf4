from pathlib import Path
from typing import Any

import pytest

from epicast.core.errors import ConfigError
from epicast.core.promises import PROMISES
from epicast.sim.recorded import play_into
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from epicast.stacks import stack as stacks
from epicast.stacks.node import heads_wanted
from epicast.trace.run import RunFolder

ROLES = {"membership": {"protocol": "static"}, "dissemination": {"protocol": "flood"}}


@pytest.mark.parametrize("name", stacks.names())
def test_every_named_stack_promises_what_no_fault_may_break(name: str) -> None:
    assert set(stacks.load(name).promises) >= {"integrity", "validity", "no-parasites", "accounting"}


def test_only_stacks_that_mend_what_was_lost_promise_agreement() -> None:
    agreeing = [name for name in stacks.names() if "agreement" in stacks.load(name).promises]
    assert agreeing == ["brisa", "brisa-delay", "causal-brisa", "clon-brisa", "fifo-brisa", "simple-gossip"]


def test_a_table_without_promises_makes_none() -> None:
    assert stacks.from_table(ROLES).promises == ()


def test_promises_come_in_the_order_in_which_they_are_judged_each_once() -> None:
    stack = stacks.from_table({**ROLES, "promises": [*reversed(PROMISES), "fifo"]})
    assert stack.promises == PROMISES
    assert stacks.from_table(stack.source).promises == PROMISES


@pytest.mark.parametrize(
    ("changes", "overrides", "error"),
    [
        (
            {"promises": ["order"]},
            {},
            r"^stack.promises: unknown promise 'order'; known promises: integrity, validity,",
        ),
        ({"promises": [["fifo"]]}, {}, r"^stack.promises: unknown promise \['fifo'\]"),
        ({"promises": "fifo"}, {}, r"^stack.promises: expected a list of names, got 'fifo'$"),
        ({"promise": ["fifo"]}, {}, r"^stack.promise: unknown key; known keys: .*promises"),
        ({}, {"promises": {}}, r"^stack.promises: unknown key; known keys: dissemination, gaps, membership, ordering$"),
    ],
)
def test_a_promise_that_nobody_can_judge_is_refused(
    changes: dict[str, Any], overrides: dict[str, Any], error: str
) -> None:
    with pytest.raises(ConfigError, match=error):
        stacks.from_table({**ROLES, **changes}, overrides)


def test_a_run_folder_carries_the_promises_of_its_stack(tmp_path: Path) -> None:
    world = World(Scenario.load({"stack": "static-flood", "nodes": 4, "workload": {"messages": 1}}))
    play_into(tmp_path, world, ["epicast"])
    assert RunFolder.open(tmp_path).info.promises == list(stacks.load("static-flood").promises)


def test_deployed_stacks_tell_heads_unless_they_see_to_their_holes_themselves() -> None:
    told = {name: bool(heads_wanted(stacks.load(name))) for name in stacks.names()}
    assert told["simple-gossip"]
    assert told["causal-flood"]
    assert not told["epto"], "it says so itself"
    assert not any(told[name] for name in told if name.endswith("brisa"))
