"""Storms must catch bugs: each of these is planted on purpose, and some storm among many must fail because of it.

A checker that has never rejected anything proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from epicast.core.window import SeqWindow
from epicast.dissemination.brisa import Brisa
from epicast.dissemination.brisa_recovery import Recovery
from epicast.dissemination.brisa_repair import TreeRepair
from epicast.membership.hyparview import HyParView
from epicast.sim.storm import Storm

SEEDS = (89, *range(120))  # 89 first: only there is an orphan left with nobody but descendants around it


def nothing(*_: Any, **__: Any) -> None: ...


def forgetful_dedup(window: SeqWindow, seq: int) -> bool:
    """Now and then a duplicate passes for new; always would never end."""
    return real_add(window, seq) or (seq % 7 == 3 and window.lost == 0 and bool(setattr(window, "lost", 1) or True))


def any_neighbour_will_do(brisa: TreeRepair, flow: Any, peer: Any) -> bool:
    position = flow.known.get(peer)
    return position is not None and peer in brisa.neighbours


def cycles_unnoticed(brisa: TreeRepair, flow: Any, path: Any) -> None:
    flow.parent_path = path
    flow.path = (*dict.fromkeys((*path, brisa.env.me)),)


real_add = SeqWindow.add

BUGS: dict[str, tuple[type, str, Callable[..., Any], str]] = {
    "messages are delivered twice": (SeqWindow, "add", forgetful_dedup, "times"),
    "nothing is sent again": (Recovery, "on_recover", nothing, "missing"),
    "orphans do not search": (TreeRepair, "start_repair", nothing, "parent"),
    "no repair by asking everybody": (TreeRepair, "_repair_hard", nothing, "parent"),
    "anyone may become a parent and cycles go unnoticed": (TreeRepair, "eligible", any_neighbour_will_do, ""),
    "a lost neighbour is not replaced": (HyParView, "_fill", nothing, "neighbours"),
    "silence goes unnoticed": (HyParView, "_listen", nothing, ""),
    "nobody is evicted from a full view": (HyParView, "_evict", nothing, "neighbours"),
    "an Activate is not obeyed": (Brisa, "on_activate", nothing, "parent"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, wrong, sign = BUGS[bug]
    monkeypatch.setattr(where, name, wrong)
    if name == "eligible":
        monkeypatch.setattr(TreeRepair, "parent_moved", cycles_unnoticed)
    assert any(sign in violation for seed in SEEDS for violation in judge(seed)), f"{len(SEEDS)} storms missed it"


def judge(seed: int) -> list[str]:
    try:
        return Storm(seed).play().violations
    except AssertionError as error:  # the protocol noticed its own broken invariant
        return [f"assertion: {error} parent reaches"]
