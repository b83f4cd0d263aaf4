"""What an application's message is on its way: its payload with a few facts in front.

    flags (1) | [signature] | published (8, Unix us) | [headers] | [fragment] | payload

    signature: length of the certificate (2) | certificate | signature (64)
    headers: length (2) | msgpack map of texts
    fragment: group (8) | number (4) | of how many (4)

A signature covers all that follows it, and the flags.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import NamedTuple

import msgspec

from epicast.core.errors import WireError
from epicast.live.config import FRAGMENTS_MAX

SIGNED, HEADERS, FRAGMENT = 1, 2, 4
KNOWN = SIGNED | HEADERS | FRAGMENT
PLAIN = Struct(">BQ")
_FRAGMENT = Struct(">QII")
_SIGNATURE_BYTES = 64
_SIZE = Struct(">H")
PLAIN_BYTES = PLAIN.size
TIME_MAX = (1 << 63) - 1

_headers = msgspec.msgpack.Decoder(dict[str, str])


class Fragment(NamedTuple):
    group: int
    number: int
    of: int


class Envelope(NamedTuple):
    published_us: int
    payload: bytes
    headers: dict[str, str]
    fragment: Fragment | None


class Signature(NamedTuple):
    certificate: bytes
    signature: bytes
    covered: bytes


def pack_plain(published_us: int, payload: bytes) -> bytes:
    return PLAIN.pack(0, published_us) + payload


def pack_headers(headers: dict[str, str] | None) -> bytes:
    return msgspec.msgpack.encode(headers) if headers else b""


def pack(published_us: int, payload: bytes, headers: bytes = b"", fragment: Fragment | None = None) -> bytes:
    """Without a signature."""
    flags = (HEADERS if headers else 0) | (FRAGMENT if fragment is not None else 0)
    parts = [PLAIN.pack(flags, published_us)]
    if headers:
        parts += [_SIZE.pack(len(headers)), headers]
    if fragment is not None:
        parts.append(_FRAGMENT.pack(*fragment))
    return b"".join((*parts, payload))


def covered_by_signature(packed: bytes) -> bytes:
    return bytes((packed[0] | SIGNED,)) + packed[1:]


def add_signature(packed: bytes, certificate: bytes, signature: bytes) -> bytes:
    return b"".join((bytes((packed[0] | SIGNED,)), _SIZE.pack(len(certificate)), certificate, signature, packed[1:]))


def split_signature(packed: bytes) -> Signature | None:
    """None if it has none."""
    if not packed or not packed[0] & SIGNED:
        return None
    try:
        size = _SIZE.unpack_from(packed, 1)[0]
    except StructError:
        raise WireError("a short envelope") from None
    begin = 1 + _SIZE.size
    end = begin + size + _SIGNATURE_BYTES
    if len(packed) < end:
        raise WireError("a short envelope")
    return Signature(packed[begin : begin + size], packed[begin + size : end], packed[:1] + packed[end:])


def unpack(packed: bytes) -> Envelope:
    signature = split_signature(packed)
    if signature is not None:
        packed = signature.covered
    try:
        flags, published_us = PLAIN.unpack_from(packed)
        if flags & ~KNOWN or published_us > TIME_MAX:
            raise WireError("flags that nobody knows, or a time that never comes")
        at = PLAIN_BYTES
        headers: dict[str, str] = {}
        if flags & HEADERS:
            size = _SIZE.unpack_from(packed, at)[0]
            at += _SIZE.size
            headers = _headers.decode(packed[at : at + size])
            at += size
        fragment = None
        if flags & FRAGMENT:
            fragment = Fragment(*_FRAGMENT.unpack_from(packed, at))
            at += _FRAGMENT.size
            if not fragment.number < fragment.of <= FRAGMENTS_MAX:
                raise WireError("a bad fragment")
    except (StructError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise WireError(f"not an envelope: {error}") from None
    return Envelope(published_us, packed[at:], headers, fragment)
