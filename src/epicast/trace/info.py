"""`run.json`: what a run is, how to run it again, and whether it is all there."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from epicast.core.errors import EpicastError
from epicast.core.records import Level
from epicast.trace.files import one_line, write_text

FORMAT = "epicast-run"
FORMAT_VERSION = 1
NAME = "run.json"
RUNNING, COMPLETE, INCOMPLETE = "running", "complete", "incomplete"

_TYPES: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "list[str]": list,
    "dict[str, Any]": dict,
}


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """The content of `run.json`. A killed run stays `running` for ever: only `complete` means that all is there."""

    status: str
    reason: str = ""  # why it is incomplete
    scenario: dict[str, Any]
    seed: int
    level: str  # off, deliveries or full
    engine: str  # what ran it: the simulator's engine, or "live"
    command: list[str]
    epicast: str  # versions
    python: str
    platform: str
    rows: int = 0  # of events
    digest: str = ""  # of events: a trace.digest, or empty
    counters: dict[str, Any] = field(default_factory=dict)
    promises: list[str] = field(default_factory=list)  # what its stack guarantees, by the names of core.promises

    @property
    def trace_level(self) -> Level:
        return Level[self.level.upper()]

    def save(self, folder: Path) -> None:
        content = {"format": FORMAT, "format_version": FORMAT_VERSION, **plain(asdict(self))}
        write_text(folder / NAME, json.dumps(content, indent=2, allow_nan=False) + "\n")


def load(folder: Path) -> RunInfo:
    path = folder / NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise EpicastError(f"{folder} is not a run folder: it has no {NAME}") from None
    except OSError as error:
        raise EpicastError(f"cannot read {path}: {one_line(error)}") from None
    except ValueError:
        raise EpicastError(f"{path} is damaged: run the scenario again into another folder") from None
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise EpicastError(f"{folder} is not a run folder: its {NAME} is of something else")
    version = content.pop("format_version", None)
    if version != FORMAT_VERSION:
        raise EpicastError(f"{path} has format {version}, this version reads {FORMAT_VERSION}: use a matching epicast")
    return _checked(path, content)


def _checked(path: Path, content: dict[str, Any]) -> RunInfo:
    known = {f.name: _TYPES[str(f.type)] for f in fields(RunInfo)}
    content.setdefault("promises", [])  # runs of older versions promise nothing
    for name, kind in known.items():
        if not isinstance(content.get(name), kind):
            raise EpicastError(f"{path} is damaged: {name} is missing or of the wrong type")
    info = RunInfo(**{name: content[name] for name in known})  # fields of later versions are passed over
    if info.status not in (RUNNING, COMPLETE, INCOMPLETE) or info.level.upper() not in Level.__members__:
        raise EpicastError(f"{path} is damaged: status {info.status!r}, level {info.level!r}")
    return info


def plain(value: Any) -> Any:
    """The same in what JSON can carry: no numpy, text keys, and null for what is no number."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
