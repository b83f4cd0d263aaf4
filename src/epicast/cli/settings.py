"""From a scenario file and flags to a scenario. A flag that was given wins over the file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epicast.core.errors import ConfigError
from epicast.stacks.stack import PROTOCOLS

if TYPE_CHECKING:
    from epicast.sim.scenario import Scenario

Settings = dict[str, Any]


def build_scenario(file: Path | None, flags: Mapping[str, Any], assignments: Iterable[str] = ()) -> Scenario:
    """`flags` by the dotted name of the setting, None for what was not given; `assignments` are texts `name=value`."""
    from epicast.sim.scenario import Scenario

    settings = Scenario.read(file).as_dict() if file is not None else {}
    for name, value in flags.items():
        if value is not None:
            _put(settings, name, value)
    for text in assignments:
        name, value = _assignment(text)
        _put(settings, name, value)
    return Scenario.load(settings)


def stack_from(text: str) -> str | Settings:
    """A named stack, or the table in a TOML file."""
    if not text.endswith(".toml"):
        return text
    try:
        return tomllib.loads(Path(text).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{text}: {error.strerror or error}; give a stack's file or name") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{text}: not TOML: {error}") from None


def node_settings(assignments: Iterable[str]) -> Settings:
    """Of a live node: `membership.active_size=5` sets a role of the stack, `total.balls.period=100ms` an order, and
    `limits.stall=3s` a limit."""
    from epicast.core.ordered import ORDERS

    homes = dict.fromkeys(PROTOCOLS, "overrides.") | dict.fromkeys(ORDERS[1:], "order_settings.") | {"limits": ""}
    settings: Settings = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        home, _, setting = name.strip().partition(".")
        if not equals or not setting or home not in homes:
            raise ConfigError(
                f"--set {text}: expected name=value, like membership.active_size=5; names begin with {', '.join(homes)}"
            )
        _put(settings, f"{homes[home]}{name.strip()}", _value(value.strip()))
    return settings


def _assignment(text: str) -> tuple[str, Any]:
    """`membership.active_size=5` sets a role of the stack, `network.duplication=0.1` anything else of the scenario."""
    name, equals, value = text.partition("=")
    role, _, setting = name.strip().partition(".")
    if not equals or not role:
        raise ConfigError(f"--set {text}: expected name=value, like membership.active_size=5")
    if role in PROTOCOLS and not setting:
        raise ConfigError(f"--set {text}: expected a setting of the {role}, like {role}.name=value")
    return f"overrides.{name.strip()}" if role in PROTOCOLS else name.strip(), _value(value.strip())


def _value(text: str) -> Any:
    """As TOML has it; whatever TOML does not understand is a text, so that durations and names need no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _put(settings: Settings, name: str, value: Any) -> None:
    *tables, key = name.split(".")
    table = settings
    for each in tables:
        inner = table.setdefault(each, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{name}: {each} is no table; set it as a whole")
        table = inner
    full = f"{key}_us"  # a scenario that was read has the full names
    table[full if full in table else key] = value
