import pytest

from epicast.core.errors import EpicastError, WireError
from epicast.ordering import trailer


@pytest.mark.parametrize("payload", [b"", b"x", bytes(100_000), b"\0\1\1"])
@pytest.mark.parametrize("header", [b"\1", b"\2abc", bytes(trailer.HEADER_BYTES_MAX)])
def test_what_was_added_is_split_off_again(payload: bytes, header: bytes) -> None:
    assert trailer.split(trailer.add(payload, header)) == (payload, header)


def test_the_payload_comes_first_and_the_length_last() -> None:
    assert trailer.add(b"payload", b"\1head") == b"payload\1head\0\5"


def test_trailers_can_be_put_behind_each_other() -> None:
    twice = trailer.add(trailer.add(b"x", b"\1inner"), b"\2outer")
    inside, outer = trailer.split(twice)
    assert (trailer.split(inside), outer) == ((b"x", b"\1inner"), b"\2outer")


@pytest.mark.parametrize("dressed", [b"", b"\0", b"\1", b"\0\0", b"x\0\0", b"\0\1", b"x\0\2", b"x\xff\xff"])
def test_nonsense_is_refused(dressed: bytes) -> None:
    with pytest.raises(WireError, match=f"^a trailer of [0-9]+ bytes in a payload of {len(dressed)}$"):
        trailer.split(dressed)


@pytest.mark.parametrize("length", [0, trailer.HEADER_BYTES_MAX + 1])
def test_a_header_of_no_size_is_refused(length: int) -> None:
    with pytest.raises(EpicastError, match="does not fit"):
        trailer.add(b"x", bytes(length))
