"""Which engine a run uses: the compiled one where it was built, else the pure one. Their runs are the same."""

from __future__ import annotations

import os
from random import Random

from epicast.core.errors import EpicastError
from epicast.core.records import Level
from epicast.sim import engine as pure

ENGINES = ("auto", "pure", "compiled")
VARIABLE = "EPICAST_ENGINE"  # decides for "auto"


def make_engine(name: str, tick_us: int, rng: Random, level: Level = Level.OFF) -> pure.Engine:
    return engine_class(name)(tick_us, rng, level)


def engine_class(name: str) -> type[pure.Engine]:
    """The class by its name; "auto" is what EPICAST_ENGINE says, else the faster one that can be imported."""
    where = "engine"
    if name == "auto":
        where, name = VARIABLE, os.environ.get(VARIABLE) or "auto"
    if name not in ENGINES:
        raise EpicastError(f"{where}: expected one of {', '.join(ENGINES)}; got {name!r}")
    compiled = None if name == "pure" else _compiled()
    if compiled is None and name == "compiled":
        raise EpicastError(f"{where}: the compiled engine was not built; reinstall with a C compiler, or choose 'pure'")
    return compiled or pure.Engine


def _compiled() -> type[pure.Engine] | None:
    try:
        from epicast.sim._engine import Engine
    except ImportError:
        return None
    return Engine
