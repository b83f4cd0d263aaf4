"""Which engine is chosen."""

from __future__ import annotations

import importlib.util
import sys
from random import Random

import pytest

from epicast.core.errors import EpicastError
from epicast.core.records import Level
from epicast.sim.engines import make_engine

BUILT = importlib.util.find_spec("epicast.sim._engine") is not None


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EPICAST_ENGINE", raising=False)


def compiled(name: str) -> bool:
    return make_engine(name, 100, Random(1)).compiled


def test_the_compiled_engine_is_preferred() -> None:
    assert compiled("auto") is BUILT


def test_the_pure_engine_can_be_asked_for() -> None:
    assert not compiled("pure")


def test_the_pure_engine_stands_in_when_the_compiled_one_was_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "epicast.sim._engine", None)
    assert not compiled("auto")
    with pytest.raises(EpicastError, match=r"^engine: the compiled engine was not built"):
        compiled("compiled")


def test_the_variable_decides_for_auto_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPICAST_ENGINE", "pure")
    assert not compiled("auto")
    if BUILT:
        assert compiled("compiled")
    monkeypatch.setenv("EPICAST_ENGINE", "compiled")
    assert not compiled("pure")
    monkeypatch.setitem(sys.modules, "epicast.sim._engine", None)
    with pytest.raises(EpicastError, match=r"^EPICAST_ENGINE: the compiled engine was not built"):
        compiled("auto")


def test_an_empty_variable_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPICAST_ENGINE", "")
    assert compiled("auto") is BUILT


def test_an_unknown_name_is_refused_with_where_it_stood(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EpicastError, match=r"^engine: expected one of auto, pure, compiled; got 'fast'"):
        compiled("fast")
    monkeypatch.setenv("EPICAST_ENGINE", "fast")
    with pytest.raises(EpicastError, match=r"^EPICAST_ENGINE: expected one of auto, pure, compiled; got 'fast'"):
        compiled("auto")


@pytest.mark.parametrize("name", ["pure", "auto"])
def test_the_engine_is_set_up_as_asked(name: str) -> None:
    rng = Random(1)
    engine = make_engine(name, 250, rng, Level.FULL)
    assert (engine.tick_us, engine.rng, engine.level, engine.full) == (250, rng, Level.FULL, True)
