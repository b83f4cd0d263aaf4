"""Calls to everyone on the local network (`Env.shout`): a datagram to a multicast group, which routers do not pass on.

A call proves nothing about its sender, so it may only carry messages that say so (`local_call`), and all that such a
message can bring about is an answer over a proper connection, to an address of the machine that it came from. There
the greeting, and TLS, decide who belongs together. Too many calls are ignored and counted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from epicast.core.errors import EpicastError, WireError
from epicast.core.ids import NODE_ID_LENGTH_MAX
from epicast.core.message import Message
from epicast.live.discovery import DATAGRAM_BYTES_MAX, GROUP, VERSION, Text, interface_of, open_socket, read_datagram
from epicast.live.ids import address_of, parse_address
from epicast.live.text_ids import TextIdDecoder
from epicast.wire.codec import encode

MAGIC = "epicast-call"
CALLS_PER_SECOND_MAX = 200


class Call(msgspec.Struct, frozen=True, array_like=True):
    magic: Text
    version: int
    cluster: Text
    node: Annotated[str, msgspec.Meta(max_length=NODE_ID_LENGTH_MAX)]
    body: Annotated[bytes, msgspec.Meta(max_length=DATAGRAM_BYTES_MAX)]


_decoder = msgspec.msgpack.Decoder(Call)
_encode = msgspec.msgpack.encode


def call_types(kinds: list[type[Message]]) -> list[type[Message]]:
    return [kind for kind in kinds if getattr(kind, "local_call", False)]


class LocalCalls(asyncio.DatagramProtocol):
    def __init__(self, group: str = GROUP, interface: str = "") -> None:
        self._group, self._interface = parse_address(group), interface
        self.counters: Counter[str] = Counter()
        self._transport: asyncio.DatagramTransport | None = None
        self._second, self._calls = 0, 0

    async def start(
        self, me: str, cluster: str, kinds: list[type[Message]], heard: Callable[[str, Message], None]
    ) -> None:
        self._me, self._cluster, self._heard = me, cluster, heard
        self._messages = self._decoder_of(kinds)
        loop, own = asyncio.get_running_loop(), address_of(me)
        assert own is not None
        opened = open_socket(self._group, self._interface or interface_of(own))
        try:
            await loop.create_datagram_endpoint(lambda: self, sock=opened)
        except OSError as error:
            opened.close()
            raise EpicastError(f"lan: cannot use {self._group}: {error.strerror or error}") from None

    def _decoder_of(self, kinds: list[type[Message]]) -> TextIdDecoder:
        return TextIdDecoder(call_types(kinds))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        self._transport = None

    def shout(self, msg: Message) -> None:
        datagram = _encode(Call(MAGIC, VERSION, self._cluster, self._me, encode(msg)))
        if self._transport is not None and len(datagram) <= DATAGRAM_BYTES_MAX:
            self._transport.sendto(datagram, tuple(self._group))
            self.counters["announced"] += 1

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def error_received(self, error: Exception) -> None:
        self.counters["errors"] += 1

    def datagram_received(self, data: bytes, sender: Any) -> None:
        second = int(asyncio.get_running_loop().time())
        if second != self._second:
            self._second, self._calls = second, 0
        self._calls += 1
        if self._calls > CALLS_PER_SECOND_MAX:
            self.counters["ignored: too many"] += 1
            return
        call = self._read(data, str(sender[0]))
        if isinstance(call, str):
            self.counters[f"ignored: {call}"] += 1
        elif call is not None:
            self.counters["heard"] += 1
            self._heard(*call)

    def _read(self, data: bytes, host: str) -> tuple[str, Message] | str | None:
        """Who calls, and what; or why it is none of ours. Our own calls come back to us too."""
        call = read_datagram(data, _decoder, MAGIC, self._cluster, "not a call")
        if isinstance(call, str):
            return call
        if call.node == self._me:
            return None
        address = address_of(call.node)
        if address is None or address.host != host:
            return "an address that is not the caller's"
        try:
            return call.node, self._messages.decode(call.body)
        except WireError:
            return "not a message for calls"
