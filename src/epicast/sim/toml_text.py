"""Writes TOML, so that a scenario can be kept beside its run and read back as the same scenario.

Only what configs are made of: tables, lists of tables, texts, numbers, booleans and lists of them. TOML has no null: a
value of None is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_LINES = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f]*")


def write(table: Mapping[str, Any]) -> str:
    return "\n".join(_lines(table, "")).lstrip("\n") + "\n"


def _lines(table: Mapping[str, Any], path: str) -> Iterator[str]:
    """Values first: whatever follows a header belongs to that table."""
    given = {key: value for key, value in table.items() if value is not None}
    yield from (f"{_key(key)} = {_value(value)}" for key, value in given.items() if not _is_table(value))
    for key, value in given.items():
        if not _is_table(value):
            continue
        name, several = f"{path}{_key(key)}", not isinstance(value, Mapping)
        for part in value if several else [value]:
            yield from ("", f"[[{name}]]" if several else f"[{name}]")
            yield from _lines(part, f"{name}.")


def _is_table(value: Any) -> bool:
    """Or a list of nothing but tables."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(item, Mapping) for item in value)
    return isinstance(value, Mapping)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _text(key)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return _lines_of_text(value) if "\n" in value else _text(value)
        case Mapping():
            return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(_value(item) for item in value) + "]"
    raise TypeError(f"{value!r} has no place in TOML")


def _text(text: str) -> str:
    # JSON escapes as TOML does, but for one character that it leaves as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lines_of_text(text: str) -> str:
    plain = _PLAIN_LINES.fullmatch(text) and "'''" not in text and not text.endswith("'")
    return f"'''\n{text}'''" if plain else _text(text)
