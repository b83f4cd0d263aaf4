"""A peer that keeps no rules: whatever bytes it likes, over a real socket."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, ClassVar

import msgspec

from epicast.core.message import Message
from epicast.dissemination.brisa_messages import Data
from epicast.live.hello import MAGIC, VERSION, Hello, Refusal, Welcome, decode
from epicast.membership.hyparview_messages import KeepAlive
from epicast.wire.codec import HEADER_BYTES, encode, frame
from epicast.wire.streams import Head, Shape

DEADLINE_S = 20.0
STACK = "hyparview+brisa"
ME = "127.0.0.1:9/badc0de1"  # the port for discarding: nobody listens there
_data = Shape(Data)


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(HEADER_BYTES, "big") + body


def packed(*values: Any) -> bytes:
    """A frame with any values, in whatever order and of whatever type."""
    return framed(msgspec.msgpack.encode(values))


def hello(**changes: Any) -> bytes:
    greeting = Hello(MAGIC, VERSION, "epicast", STACK, ME)
    return framed(msgspec.msgpack.encode(msgspec.structs.replace(greeting, **changes)))


def data(flow: Any, source: Any, seq: int, payload: bytes, *, topic: str = "t", **changes: Any) -> Data:
    given: dict[str, Any] = {"hops": 0, "path": (flow[0],), "flags": 0, **changes}
    return Data(flow, source, seq, given["hops"], given["path"], given["flags"], topic, payload)


def stream_of(message: Data) -> int:
    return _data.stream_of(message)


def head(message: Data) -> bytes:
    return frame(_data.head(message, stream_of(message)))


def head_under(number: int, like: Message) -> bytes:
    """A head that says whatever it likes."""
    return frame(Head(number, msgspec.Raw(encode(like))))


class Attacker:
    everyone: ClassVar[list[Attacker]] = []

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.everyone.append(self)

    @classmethod
    async def dial(cls, address: str, context: ssl.SSLContext | None = None) -> Attacker:
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port), ssl=context))

    @classmethod
    async def greeted(cls, address: str, context: ssl.SSLContext | None = None, **changes: Any) -> Attacker:
        """One that got in."""
        attacker = await cls.dial(address, context)
        attacker.send(hello(**changes))
        answer = await attacker.answer()
        assert isinstance(answer, Welcome), answer
        return attacker

    def send(self, *what: bytes | Message) -> None:
        """If the other side still listens."""
        if not self.writer.transport.is_closing():
            self.writer.write(b"".join(each if isinstance(each, bytes) else frame(each) for each in what))

    async def stay(self) -> None:
        """Seem alive until cancelled."""
        while True:
            self.send(KeepAlive(1, 4))
            await asyncio.sleep(0.1)

    async def answer(self) -> Hello | Welcome | Refusal:
        return decode(await self.body())

    async def body(self) -> bytes:
        async with asyncio.timeout(DEADLINE_S):
            length = int.from_bytes(await self.reader.readexactly(HEADER_BYTES), "big")
            return await self.reader.readexactly(length)

    async def gone(self) -> bytes:
        """All that comes until the other side ends the connection."""
        heard = b""
        try:
            async with asyncio.timeout(DEADLINE_S):
                while chunk := await self.reader.read(1 << 16):
                    heard += chunk
        except TimeoutError:
            raise
        except OSError:
            pass
        finally:
            self.close()
        return heard

    def close(self) -> None:
        self.writer.transport.abort()

    @classmethod
    def close_all(cls) -> None:
        while cls.everyone:
            cls.everyone.pop().close()
