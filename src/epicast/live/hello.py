"""The first frames on a connection: who is there, and whether they belong together.

    dialler --Hello--> listener --Welcome or Refusal--> dialler

A TCP connection, or even a TLS handshake, proves little: a peer counts only after this exchange. Until then it may send
one small frame and nothing else.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from epicast.core.errors import WireError
from epicast.core.ids import NODE_ID_LENGTH_MAX

MAGIC = "epicast"
VERSION = 1

Text = Annotated[str, msgspec.Meta(max_length=255)]
Id = Annotated[str, msgspec.Meta(max_length=NODE_ID_LENGTH_MAX)]


class Hello(msgspec.Struct, frozen=True, array_like=True, tag="hello"):
    magic: Text
    version: int
    cluster: Text
    stack: Text  # the protocols that it speaks
    node: Id
    area: Text = ""
    signs: bool = False  # its messages, and accepts no others


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag="welcome"):
    node: Id
    area: Text = ""
    signs: bool = False


class Refusal(msgspec.Struct, frozen=True, array_like=True, tag="refusal"):
    reason: Text
    node: Id = ""


CROSSING = "crossing"
"""Both sides dialled at the same moment: the other connection will do."""
YOURSELF = "yourself"
"""A process has dialled itself."""

_decoder: msgspec.msgpack.Decoder[Hello | Welcome | Refusal] = msgspec.msgpack.Decoder(Hello | Welcome | Refusal)
encode = msgspec.msgpack.encode


def decode(body: bytes) -> Hello | Welcome | Refusal:
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError, MemoryError) as error:
        raise WireError(f"not a greeting: {error}") from None


def objection(theirs: Hello, cluster: str, stack: str) -> str:
    """Why we will not talk to them; empty if we will."""
    if theirs.magic != MAGIC:
        return "not epicast"
    if theirs.version != VERSION:
        return f"another protocol version: {theirs.version}, expected {VERSION}"
    if theirs.cluster != cluster:
        return "another cluster"
    if theirs.stack != stack:
        return f"another stack or order: {theirs.stack}, expected {stack}; all nodes need the same"
    return ""
