"""A stack as data: which protocol plays each role, and its settings.

    name = "brisa"
    summary = "trees that emerge from a HyParView overlay"
    promises = ["integrity", "agreement"]
    [membership]
    protocol = "hyparview"
    active_size = 4
    [dissemination]
    protocol = "brisa"
    [ordering]
    protocol = "fifo"

The order is optional: without it events are delivered as they come. So is a table `gaps`: with it processes tell each
other how far sources have come, so that the last messages of a source are missed too (`dissemination/gaps.py`).

Named stacks are the TOML files in `named/`; a user's own file or table works the same. `promises` names the guarantees
(`core/promises.py`) that the stack gives as long as its faults are of the kind that it mends; a run that breaks one has
failed its check. Without the key it promises nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources import files
from typing import Any

from epicast.core.config import Config
from epicast.core.errors import ConfigError
from epicast.core.promises import PROMISES

# role -> protocol -> module, class, config class. Imported when used, so that listing stacks stays quick.
PROTOCOLS: dict[str, dict[str, tuple[str, str, str]]] = {
    "membership": {
        "static": ("epicast.membership.static", "Static", "StaticConfig"),
        "scamp": ("epicast.membership.scamp", "Scamp", "ScampConfig"),
        "cyclon": ("epicast.membership.cyclon", "Cyclon", "CyclonConfig"),
        "clon": ("epicast.membership.clon", "Clon", "ClonConfig"),
        "hyparview": ("epicast.membership.hyparview", "HyParView", "HyParViewConfig"),
    },
    "dissemination": {
        "flood": ("epicast.dissemination.flood", "Flood", "FloodConfig"),
        "brisa": ("epicast.dissemination.brisa", "Brisa", "BrisaConfig"),
        "gossip": ("epicast.dissemination.gossip", "Gossip", "GossipConfig"),
        "emergent": ("epicast.dissemination.emergent", "Emergent", "EmergentConfig"),
        "balls": ("epicast.dissemination.balls", "Balls", "BallsConfig"),
    },
    "ordering": {
        "fifo": ("epicast.ordering.fifo", "Fifo", "FifoConfig"),
        "causal": ("epicast.ordering.causal", "Causal", "CausalConfig"),
        "epto": ("epicast.ordering.epto", "Epto", "EptoConfig"),
        "epto-ids": ("epicast.ordering.epto_ids", "EptoIds", "EptoIdsConfig"),
        "by-topic": ("epicast.ordering.by_topic", "ByTopic", "ByTopicConfig"),
    },
    "gaps": {"heads": ("epicast.dissemination.gaps", "Gaps", "GapsConfig")},
}
OPTIONAL = frozenset({"ordering", "gaps"})


@dataclass(frozen=True)
class Role:
    """One layer of a stack: a protocol's class and its validated settings."""

    protocol: str
    make: Callable[..., Any]
    config: Config


@dataclass(frozen=True)
class Stack:
    name: str
    summary: str
    membership: Role
    dissemination: Role
    ordering: Role | None = None  # events are delivered as they come
    gaps: Role | None = None  # holes are told, but not those at the end of what a source published
    promises: tuple[str, ...] = ()  # by the names of core.promises
    source: Mapping[str, Any] = field(default_factory=dict, compare=False)  # the table that it was loaded from


def names() -> list[str]:
    folder = files("epicast.stacks").joinpath("named")
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def summaries() -> dict[str, str]:
    """The named stacks with one line each."""
    return {name: str(_named_table(name)["summary"]) for name in names()}


def load(name: str, overrides: Mapping[str, Mapping[str, Any]] | None = None) -> Stack:
    """A named stack, with some settings of its roles replaced."""
    return from_table(_named_table(name), overrides)


def from_table(table: Mapping[str, Any], overrides: Mapping[str, Mapping[str, Any]] | None = None) -> Stack:
    _require_known(table, {"name", "summary", "promises", *PROTOCOLS})
    _require_known(overrides or {}, set(PROTOCOLS))
    for role in PROTOCOLS:
        if not isinstance(table.get(role, {}), Mapping):
            raise ConfigError(f"stack.{role}: expected a table with its protocol, got {table[role]!r}")
    merged = {role: {**table.get(role, {}), **(overrides or {}).get(role, {})} for role in PROTOCOLS}
    merged = {role: settings for role, settings in merged.items() if settings or role not in OPTIONAL}
    name = str(table.get("name", "custom"))
    roles = {role: _role(role, settings) for role, settings in merged.items()}
    promises = _promises(table.get("promises", []))
    source: dict[str, Any] = {"name": name, "summary": str(table.get("summary", "")), "promises": promises, **merged}
    below, order = roles["dissemination"], roles.get("ordering")
    gaps = roles.get("gaps")
    return Stack(name, source["summary"], roles["membership"], below, order, gaps, tuple(promises), source)


def _require_known(table: Mapping[str, Any], known: set[str]) -> None:
    for key in table:
        if key not in known:
            raise ConfigError(f"stack.{key}: unknown key; known keys: {', '.join(sorted(known))}")


def _promises(given: Any) -> list[str]:
    """In the order in which they are judged, each once."""
    if not isinstance(given, list | tuple):
        raise ConfigError(f"stack.promises: expected a list of names, got {given!r}")
    for name in given:
        if name not in PROMISES:
            raise ConfigError(f"stack.promises: unknown promise {name!r}; known promises: {', '.join(PROMISES)}")
    return [name for name in PROMISES if name in given]


def _named_table(name: str) -> dict[str, Any]:
    if name not in names():
        raise ConfigError(f"unknown stack {name!r}; known stacks: {', '.join(names())}")
    text = files("epicast.stacks").joinpath("named", f"{name}.toml").read_text(encoding="utf-8")
    return {"name": name, **tomllib.loads(text)}


def _role(role: str, table: Mapping[str, Any]) -> Role:
    protocols = PROTOCOLS[role]
    protocol = table.get("protocol")
    if not isinstance(protocol, str) or protocol not in protocols:
        raise ConfigError(f"stack.{role}.protocol: expected one of {', '.join(protocols)}, got {protocol!r}")
    module_name, class_name, config_name = protocols[protocol]
    module = import_module(module_name)
    settings = {key: value for key, value in table.items() if key != "protocol"}
    config = getattr(module, config_name).load(settings, f"stack.{role}")
    return Role(protocol, getattr(module, class_name), config)
