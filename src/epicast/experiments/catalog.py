"""Which experiments there are."""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from epicast.core.errors import EpicastError
from epicast.pipeline.sweep.experiment import Experiment

if TYPE_CHECKING:
    from epicast.experiments.evaluation import Evaluate


def names() -> list[str]:
    entries = (entry.name for entry in files("epicast.experiments").iterdir())
    return sorted(name.removesuffix(".toml") for name in entries if name.endswith(".toml"))


def load(name: str) -> Experiment:
    """One of ours, or a user's own file."""
    if name.endswith(".toml"):
        return Experiment.read(Path(name))
    if name not in names():
        raise EpicastError(f"unknown experiment {name!r}; known: {', '.join(names())}; or give a file.toml")
    return Experiment.from_toml(files("epicast.experiments").joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def evaluate_of(name: str) -> Evaluate:
    """What is looked at: the experiment's own module, or what makes sense for any experiment."""
    module = "general" if name.endswith(".toml") else name.replace("-", "_")
    evaluate: Evaluate = import_module(f"epicast.experiments.{module}").evaluate
    return evaluate
