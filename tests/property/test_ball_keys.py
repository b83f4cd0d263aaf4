"""Keys of events sort like what they are made of, name one event each, and nothing else is taken for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicast.core.errors import WireError
from epicast.dissemination.ball_keys import SEQ_MAX, TIMESTAMP_MAX, make_key, read_key, timestamp_of

TIMES = st.integers(0, TIMESTAMP_MAX)
NUMBERS = st.integers(0, (1 << 63) - 1)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=120)


@given(TIMES, NUMBERS | NAMES, st.integers(0, SEQ_MAX))
def test_a_key_is_read_as_it_was_made(timestamp: int, source: int | str, seq: int) -> None:
    key = make_key(timestamp, source, seq)
    assert read_key(key) == (timestamp, source, seq)
    assert timestamp_of(key) == timestamp


@given(st.lists(st.tuples(TIMES, NUMBERS, st.integers(0, SEQ_MAX)), min_size=2, max_size=20))
def test_keys_sort_like_time_source_and_number(parts: list[tuple[int, int, int]]) -> None:
    assert sorted(make_key(*part) for part in parts) == [make_key(*part) for part in sorted(parts)]


@given(st.tuples(TIMES, NAMES, st.integers(0, SEQ_MAX)), st.tuples(TIMES, NAMES, st.integers(0, SEQ_MAX)))
def test_different_events_have_different_keys(one: tuple[int, str, int], other: tuple[int, str, int]) -> None:
    assert (make_key(*one) == make_key(*other)) == (one == other)


@given(st.binary(max_size=600))
def test_whatever_is_read_as_a_key_would_be_made_again(junk: bytes) -> None:
    try:
        parts = read_key(junk)
    except WireError:
        return
    assert make_key(*parts) == junk


@pytest.mark.parametrize("junk", [b"", b"\x00" * 16, b"\xff" * 25, make_key(1, "x", 1)[:9] + b"\xff" + b"\x00" * 8])
def test_junk_is_refused(junk: bytes) -> None:
    with pytest.raises(WireError, match="not the key of an event"):
        read_key(junk)
