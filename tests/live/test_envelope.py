"""What an application's message is on its way, and how pieces become one again."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicast.core.errors import WireError
from epicast.live.envelope import (
    Envelope,
    Fragment,
    add_signature,
    covered_by_signature,
    pack,
    pack_headers,
    pack_plain,
    split_signature,
    unpack,
)
from epicast.live.reassembly import PIECE_BYTES, Reassembly

times = st.integers(0, 2**63)
headers = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)
fragments = st.integers(1, 100).flatmap(
    lambda of: st.builds(Fragment, st.integers(0, 2**63), st.integers(0, of - 1), st.just(of))
)


@given(times, st.binary(max_size=50), headers, st.none() | fragments)
def test_what_is_packed_comes_out_again(
    at_us: int, payload: bytes, named: dict[str, str], fragment: Fragment | None
) -> None:
    packed = pack(at_us, payload, pack_headers(named), fragment)
    assert unpack(packed) == Envelope(at_us, payload, named, fragment)
    assert split_signature(packed) is None
    signed = add_signature(packed, b"certificate", bytes(64))
    assert unpack(signed) == unpack(packed)
    found = split_signature(signed)
    assert found is not None
    assert (found.certificate, found.signature) == (b"certificate", bytes(64))
    assert found.covered == covered_by_signature(packed)


def test_the_plain_one_is_the_usual_one() -> None:
    assert pack_plain(7, b"x") == pack(7, b"x")


@given(st.binary(max_size=80))
def test_any_bytes_are_an_envelope_or_an_error(data: bytes) -> None:
    with suppress(WireError):
        unpack(data)


@pytest.mark.parametrize("fragment", [Fragment(1, 1, 1), Fragment(1, 0, 0), Fragment(1, 0, 1 << 17)])
def test_impossible_fragments_are_refused(fragment: Fragment) -> None:
    with pytest.raises(WireError):
        unpack(pack(0, b"", b"", fragment))


# Pieces


class Lost(list[tuple[str, str]]):
    def __call__(self, source: str, why: str) -> None:
        self.append((source, why))


def piece(payload: bytes, number: int, of: int, group: int = 1) -> Envelope:
    return Envelope(0, payload, {"a": "b"} if number == 0 else {}, Fragment(group, number, of))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_pieces_make_the_message_in_any_order(order: tuple[int, ...]) -> None:
    board = Reassembly(1000, 1000, 100, Lost())
    parts = [b"he", b"ll", b"o"]
    *early, last = (board.add("s", 10 + at, piece(parts[at], at, 3), 0) for at in order)
    assert early == [None, None]
    assert last is not None
    assert (last.seq, last.payload, last.headers) == (10, b"hello", {"a": "b"})
    assert board.waiting_bytes == 0


def test_a_piece_that_comes_twice_counts_once() -> None:
    board = Reassembly(1000, 1000, 100, Lost())
    assert board.add("s", 1, piece(b"x", 0, 2), 0) is None
    assert board.add("s", 1, piece(b"y", 0, 2), 0) is None
    assert board.add("s", 1, piece(b"y", 0, 3), 0) is None, "of another number of pieces"
    assert board.waiting_bytes == PIECE_BYTES + len("x") + len("ab")


def test_what_never_becomes_whole_is_given_up_and_said() -> None:
    lost = Lost()
    board = Reassembly(2 * PIECE_BYTES + 50, 8, 100, lost)
    board.add("old", 1, piece(b"12345", 0, 2), 0)
    board.add("new", 1, piece(b"123456", 0, 2, group=2), 50)
    assert lost == []
    board.add("third", 1, piece(b"1", 0, 2, group=3), 60)
    assert lost == [("old", "too many messages in pieces")]
    board.add("new", 2, piece(b"123456", 1, 2, group=2), 60)
    assert lost[1:] == [("new", "too large")]
    board.expire(161)
    assert lost[2:] == [("third", "pieces missing")]
    assert board.waiting_bytes == 0
