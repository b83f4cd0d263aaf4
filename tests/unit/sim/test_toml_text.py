"""Whatever is written reads back as the same."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicast.sim import toml_text

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALAR = st.one_of(st.booleans(), st.integers(-(1 << 63), (1 << 63) - 1), st.floats(allow_nan=False), TEXT)
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))


@given(st.dictionaries(TEXT, VALUE, max_size=5))
def test_any_table_survives(table: dict[str, Any]) -> None:
    assert tomllib.loads(toml_text.write(table)) == table


def test_tables_follow_the_values() -> None:
    table = {"a": {"b": 1, "c": {"d": 2}}, "e": [{"f": 3}, {"f": 4}], "g": 5, "nothing": None}
    assert toml_text.write(table) == "g = 5\n\n[a]\nb = 1\n\n[a.c]\nd = 2\n\n[[e]]\nf = 3\n\n[[e]]\nf = 4\n"


def test_what_toml_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="has no place in TOML"):
        toml_text.write({"a": b"bytes"})
