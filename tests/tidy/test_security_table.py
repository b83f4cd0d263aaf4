"""The tables of docs/security.md say of every field of every message that a live node can receive who may change it."""

from __future__ import annotations

import pkgutil
import re
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import msgspec
import pytest

import epicast.live
from epicast.core.message import Position
from epicast.live import envelope
from epicast.ordering import barrier, vector
from tests.tidy.source import ROOT
from tests.tidy.test_messages import HOMES, messages

TABLE = re.compile(r"^<!-- fields: \w+ -->\n((?:\|.*\n)+)", re.MULTILINE)
COLUMNS = ["message", "fields", "set by", "a relay's word", "at most", "test"]

Fields = dict[str, list[str]]


def on_the_wire() -> list[tuple[Any, tuple[str, ...]]]:
    """All that is decoded from what a peer sends, with its fields."""
    kinds = [kind for kind in messages() if kind.__struct_config__.tag is not None and is_of_a_stack(kind)]
    structs = [*kinds, Position, barrier.Header, vector.Header, *greetings()]
    packed = [envelope.Envelope, envelope.Fragment, envelope.Signature]
    return [(kind, kind.__struct_fields__) for kind in structs] + [(kind, kind._fields) for kind in packed]


def is_of_a_stack(kind: type) -> bool:
    """Benchmarks have messages of their own."""
    return kind.__module__.split(".")[1] in HOMES


def greetings() -> list[type[msgspec.Struct]]:
    """Of the live node itself: what travels is an array."""
    found = [import_module(f"epicast.live.{each.name}") for each in pkgutil.iter_modules(epicast.live.__path__)]
    return [
        item
        for module in found
        for item in vars(module).values()
        if isinstance(item, type)
        and issubclass(item, msgspec.Struct)
        and item.__module__ == module.__name__
        and item.__struct_config__.array_like
    ]


def expected() -> Fields:
    """By name; of those that share one, with the last part of their module's."""
    kinds = on_the_wire()
    count = Counter(kind.__name__ for kind, _ in kinds)
    return {name_of(kind, count): sorted(fields) for kind, fields in kinds}


def name_of(kind: type, count: Counter[str]) -> str:
    module = kind.__module__.rpartition(".")[2].removesuffix("_messages")
    return kind.__name__ if count[kind.__name__] == 1 else f"{module}.{kind.__name__}"


def rows(text: str) -> list[list[str]]:
    found = []
    for table in TABLE.findall(text):
        heading, _, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        assert heading == COLUMNS
        found += lines
    return found


def documented(lines: Iterable[list[str]]) -> Fields:
    found: Fields = {}
    for message, fields, *_ in lines:
        found.setdefault(message.strip("`"), []).extend(re.findall(r"`(\w+)`", fields))
    return {name: sorted(fields) for name, fields in found.items()}


def wrong(text: str, known: Fields) -> list[str]:
    said = documented(rows(text))
    found = [f"{name} is nowhere in the tables" for name in known.keys() - said.keys()]
    found += [f"there is no {name}" for name in said.keys() - known.keys()]
    for name in known.keys() & said.keys():
        if known[name] != said[name]:
            found.append(f"{name}: the tables have {said[name]}, the code {known[name]}")
    return sorted(found)


def text_of(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_the_tables_name_every_field_of_every_message_once_and_nothing_else() -> None:
    assert wrong(text_of("security.md"), expected()) == []


def test_every_row_says_who_sets_a_field_and_what_a_lie_does_at_most() -> None:
    for row in rows(text_of("security.md")):
        assert len(row) == len(COLUMNS), row
        assert all(cell for cell in (*row[:1], *row[2:])), row
        assert re.match(r"(signed|own|checked|hint|as )", row[3]), row


HEADING = (
    "<!-- fields: x -->\n| message | fields | set by | a relay's word | at most | test |\n|---|---|---|---|---|---|\n"
)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("| `One` | `a`, `b` | . | own | . | . |\n", []),
        ("| `One` | `a` | . | own | . | . |\n| `One` | `b` | . | own | . | . |\n", []),
        ("| `One` | `a` | . | own | . | . |\n", ["One: the tables have ['a'], the code ['a', 'b']"]),
        (
            "| `One` | `a`, `b`, `b` | . | own | . | . |\n",
            ["One: the tables have ['a', 'b', 'b'], the code ['a', 'b']"],
        ),
        ("| `Two` | `a` | . | own | . | . |\n", ["One is nowhere in the tables", "there is no Two"]),
    ],
)
def test_what_is_missing_or_invented_is_found(lines: str, said: list[str]) -> None:
    assert wrong(HEADING + lines, {"One": ["a", "b"]}) == said
