"""Settings that validate themselves, however they were made: in Python, from TOML or from a command line.

A config is a frozen struct whose fields carry their range in the type (`Annotated[int, Meta(ge=1, le=64)]`). Whatever
is wrong with a value becomes one line that names the key and what it accepts.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, dataclass_transform, get_args, get_origin, get_type_hints

import msgspec

from epicast.core.errors import ConfigError

C = TypeVar("C", bound="Config")

DAY_US = 86_400_000_000
Duration = Annotated[int, msgspec.Meta(ge=0, le=DAY_US, extra={"duration": True})]
"""Microseconds. TOML and flags may say "250ms", "1.5s", "2min" instead."""
PositiveDuration = Annotated[int, msgspec.Meta(ge=1, le=DAY_US, extra={"duration": True})]
PositiveInt = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
Probability = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]

_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h)\s*")


def parse_duration_us(text: str) -> int | None:
    """Microseconds of a text like "250ms", or None if it is not a duration."""
    match = _DURATION.fullmatch(text)
    if match is None or len(text) > 40:  # longer numbers overflow
        return None
    return round(float(match[1]) * _UNITS_US[match[2]])


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))  # subclasses are frozen too
class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all settings. Override `check` for rules between fields."""

    def __post_init__(self) -> None:
        for key, kind in field_types(type(self)).items():
            value = getattr(self, key)
            found = checked(key, value, kind)
            if found is not value:  # a text became a duration, a table a config
                msgspec.structs.force_setattr(self, key, found)
        self.check()

    def check(self) -> None:
        """Raise ConfigError where single values are right but do not fit together."""

    @classmethod
    def load(cls: type[C], settings: Mapping[str, Any], where: str = "") -> C:
        """From a TOML table. `where` is the table's name, for the error. Durations may go without the ending of their
        unit: `at = "20s"` is short for `at_us`."""
        types = field_types(cls)
        settings = _full_names(types, settings, where)
        for key in settings:
            if key not in types or not isinstance(key, str):
                raise ConfigError(_unknown_key(_dotted(where, key), key, list(types)))
        values = {key: checked(_dotted(where, key), settings[key], types[key]) for key in settings}
        missing = [field.name for field in msgspec.structs.fields(cls) if field.required and field.name not in values]
        if missing:
            key = missing[0]
            raise ConfigError(f"{_dotted(where, key)} is missing: give {describe(types[key])}")
        try:
            return cls(**values)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}" if where else str(error)) from None


@cache
def field_types(cls: type[Config]) -> dict[str, Any]:
    hints = get_type_hints(cls, include_extras=True)
    return {name: hints[name] for name in cls.__struct_fields__}


def _full_names(types: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in settings.items():
        name = f"{key}_us" if f"{key}_us" in types else key
        if name in values:
            raise ConfigError(f"{_dotted(where, name)}: given twice, with and without _us; keep one")
        values[name] = value
    return values


def describe(kind: Any) -> str:
    """What a field accepts, in words: "an integer from 1 to 64"."""
    base, meta = _unwrap(kind)
    if get_origin(base) is Literal:
        return "one of " + ", ".join(str(choice) for choice in get_args(base))
    if get_origin(base) in (list, tuple):
        return f"a list, each {describe(get_args(base)[0])}"
    if type(None) in get_args(base):
        return " or ".join(describe(arm) for arm in get_args(base) if arm is not type(None)) + ", or nothing"
    words = {int: "an integer", float: "a number", str: "a text", bool: "true or false"}
    duration = _is_duration(meta)
    name = "a duration in microseconds" if duration else words.get(base, _type_name(base))
    return name + _range(meta) + (', or a text like "250ms"' if duration else "")


def _range(meta: msgspec.Meta | None) -> str:
    if meta is None:
        return ""
    low = meta.ge if meta.ge is not None else meta.gt
    high = meta.le if meta.le is not None else meta.lt
    above, below = (" above" if meta.gt is not None else ""), (" below" if meta.lt is not None else "")
    if low is not None and high is not None:
        return f" from{above} {low} to{below} {high}"
    if low is not None:
        return f"{above or ' at least'} {low}"
    if high is not None:
        return f"{below or ' at most'} {high}"
    return ""


def checked(key: str, value: Any, kind: Any) -> Any:
    """The value as the type `kind` has it; ConfigError if it is not of that type or out of its range."""
    prepared = _prepared(key, value, kind)
    if isinstance(prepared, _configs(kind)):  # it validated itself when it was made
        return prepared
    try:
        return msgspec.convert(prepared, kind)
    except (AttributeError, UnicodeEncodeError):  # of an array, which msgspec takes for a table, and of lone surrogates
        raise ConfigError(f"{key}: expected {describe(kind)}, got {_shown(value)}") from None
    except msgspec.ValidationError as error:
        inside = re.search(r"at `\$(.+)`", str(error))
        key = key + inside[1] if inside else key
        raise ConfigError(f"{key}: expected {describe(kind)}, got {_shown(value)}") from None


def _prepared(key: str, value: Any, kind: Any) -> Any:
    """The value with texts made durations and tables made configs, wherever in it they stand."""
    base, meta = _unwrap(kind)
    origin, arms = get_origin(base), get_args(base)
    if isinstance(value, str) and _is_duration(meta):
        us = parse_duration_us(value)
        return value if us is None else us
    if origin in (Union, UnionType):
        prepared = (_prepared(key, value, arm) for arm in arms)
        return next((other for other in prepared if other is not value), value)
    if origin in (list, tuple) and isinstance(value, (list, tuple)):
        each = arms if Ellipsis not in arms and len(arms) == len(value) else [arms[0]] * len(value)
        return [_prepared(f"{key}[{at}]", item, each[at]) for at, item in enumerate(value)]
    if origin is dict and isinstance(value, Mapping):
        return {name: _prepared(_dotted(key, name), item, arms[1]) for name, item in value.items()}
    if _configs(base) and isinstance(value, Mapping):
        return base.load(value, key)
    return value


def _configs(kind: Any) -> tuple[type[Config], ...]:
    """The classes of configs among what a field accepts."""
    base, _ = _unwrap(kind)
    arms = get_args(base) if get_origin(base) in (Union, UnionType) else (base,)
    return tuple(arm for arm in arms if isinstance(arm, type) and issubclass(arm, Config))


def _is_duration(meta: msgspec.Meta | None) -> bool:
    return meta is not None and bool((meta.extra or {}).get("duration"))


def _unwrap(kind: Any) -> tuple[Any, msgspec.Meta | None]:
    if get_origin(kind) is Annotated:
        base, *extras = get_args(kind)
        return base, next((e for e in extras if isinstance(e, msgspec.Meta)), None)
    return kind, None


def _unknown_key(dotted: str, key: str, known: list[str]) -> str:
    close = difflib.get_close_matches(str(key), known, n=1)
    hint = f"did you mean {close[0]}?" if close else "known keys: " + (", ".join(known) or "none")
    return f"{dotted}: unknown key; {hint}"


def _dotted(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _type_name(base: Any) -> str:
    return base.__name__ if isinstance(base, type) and not get_args(base) else str(base).replace("typing.", "")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
