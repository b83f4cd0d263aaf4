"""A hostile member as a process of its own, led by lines of JSON: settings first, then orders; one line answers each.

{"address": "host:port", "flood": "requests", "field": {...}, "greeting": {...}}    joins, and seems harmless -> {}
{"do": "flood"}      as fast as its one connection takes it; connects anew when it is cut off                 -> {}
{"do": "quiet"}      and seems harmless again                              -> {"sent_bytes": 123, "cut_off": 0}
{"do": "leave"}      closes its connection                                                                    -> {}
{"do": "spin"}       uses as much of a processor as it gets, and talks to nobody; until "quiet"                 -> {}
"""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import cycle, islice
from typing import Any

import msgspec

from epicast.live.sync import new_loop
from epicast.live.tls import Tls
from tests.live.attacker import Attacker
from tests.live.floods import NUMBERED, STAYING, Field, blocks
from tests.live.relays import credulous

KEPT = 64  # blocks, which are sent again and again
RETRY_S = 0.05
STAY_S = 0.5


def tell(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Flooder:
    def __init__(self, address: str, flood: str, field: Field, greeting: dict[str, Any], keys: Any = None) -> None:
        self.address, self.greeting = address, greeting
        self.context = credulous(Tls.from_folder(*keys)) if keys else None
        made = blocks(flood, field)
        self.blocks = made if flood in NUMBERED else cycle(list(islice(made, KEPT)))
        self.attacker: Attacker | None = None
        self.join, self.stays = STAYING[greeting["stack"].partition("+")[0]]
        self.sent_bytes = self.cut_off = 0
        self.reading: asyncio.Task[None] | None = None

    async def connect(self) -> Attacker:
        """Again and again, if need be."""
        while self.attacker is None or self.attacker.writer.transport.is_closing():
            try:
                self.attacker = await Attacker.greeted(self.address, self.context, **self.greeting)
            except (OSError, AssertionError, EOFError, TimeoutError):
                self.cut_off += 1
                await asyncio.sleep(RETRY_S)
                continue
            self.attacker.send(self.join)
            self.reading = asyncio.create_task(self._read(self.attacker))
        return self.attacker

    async def _read(self, attacker: Attacker) -> None:
        try:
            while await attacker.reader.read(1 << 18):
                pass
        except OSError:
            pass
        attacker.close()

    async def stay(self) -> None:
        while True:
            (await self.connect()).send(self.stays)
            await asyncio.sleep(STAY_S)

    async def flood(self) -> None:
        for block in self.blocks:
            attacker = await self.connect()
            try:
                attacker.writer.write(block)
                await attacker.writer.drain()
            except OSError:
                self.cut_off += 1
                attacker.close()
                continue
            self.sent_bytes += len(block)
            await asyncio.sleep(0)

    async def spin(self) -> None:
        while True:
            await asyncio.sleep(0)

    async def obey(self, orders: asyncio.StreamReader) -> None:
        doing = [asyncio.create_task(self.stay())]
        while line := await orders.readline():
            match json.loads(line)["do"]:
                case "flood":
                    doing.append(asyncio.create_task(self.flood()))
                    tell()
                case "spin":
                    doing.append(asyncio.create_task(self.spin()))
                    tell()
                case "quiet":
                    doing.pop().cancel()
                    tell(sent_bytes=self.sent_bytes, cut_off=self.cut_off)
                case "leave":
                    for each in doing:
                        each.cancel()
                    if self.attacker is not None:
                        self.attacker.close()
                    tell()


async def main() -> None:
    orders = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    settings = json.loads(await orders.readline())
    flooder = Flooder(**settings | {"field": msgspec.convert(settings["field"], Field)})
    await flooder.connect()
    tell()
    await flooder.obey(orders)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
