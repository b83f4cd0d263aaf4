"""An honest node as a process of its own, led by lines of JSON: settings first, then orders; one line answers each.

{"listen": "127.0.0.1:0", "seeds": []}      -> {"up": "id", "address": "host:port"}
{"do": "publish", "rate": 25}               publish at a steady rate from now on                        -> {}
{"do": "pause"}                                                                          -> {"published": 750}
{"do": "take"}    what happened since the last time      -> {"latencies_us": {source: [...]}, "turn_ms": 3.1, ...}
{"do": "stop"}, or the end of the input
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter, defaultdict
from typing import Any

from epicast.live.config import Limits
from epicast.live.messages import Gap, Message
from epicast.live.node import Node
from epicast.live.sync import new_loop
from epicast.live.tls import Tls
from epicast.stacks import stack as stacks
from tests.live.siege import StallMeter

TOPIC = "honest"
PADDING = bytes(92)


def tell(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class FloodedNode:
    def __init__(self, node: Node) -> None:
        self.node = node
        self.meter = StallMeter(asyncio.get_running_loop())
        self.latencies_us: dict[str, list[int]] = defaultdict(list)
        self.heard: Counter[str] = Counter()  # messages by source, from the beginning
        self.lost: Counter[str] = Counter()  # the same, of what we were told as lost
        self.published = 0
        self.worked_s = time.process_time()
        self.publishing: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        async with self.node.subscribe("**") as messages:
            tell(up=self.node.id, address=self.node.address)
            async for batch in messages.batches():
                for item in batch:
                    if isinstance(item, Message):
                        if item.topic == TOPIC and item.source != self.node.id:
                            due_us = int.from_bytes(item.payload[:8], "big")
                            self.latencies_us[item.source].append(item.received_us - due_us)
                            self.heard[item.source] += 1
                    elif isinstance(item, Gap):
                        self.lost[item.source] += item.lost

    async def publish(self, rate: float) -> None:
        """A message that was due while the node was busy counts as late from then on."""
        due = time.time()
        while True:
            await self.node.publish(TOPIC, int(due * 1e6).to_bytes(8, "big") + PADDING)
            self.published += 1
            due += 1 / rate
            await asyncio.sleep(due - time.time())

    def take(self) -> dict[str, Any]:
        latencies_us, self.latencies_us = self.latencies_us, defaultdict(list)
        worked_s, self.worked_s = self.worked_s, time.process_time()
        turn_s = self.meter.worst_s
        self.meter.again()
        return {
            "latencies_us": latencies_us,
            "turn_ms": turn_s * 1e3,
            "worked_s": self.worked_s - worked_s,
            "heard": self.heard,
            "lost": self.lost,
            "neighbours": self.node.neighbours,
            "counters": dict(self.node._hub.counters),
        }

    async def obey(self, order: dict[str, Any]) -> bool:
        match order["do"]:
            case "publish":
                self.publishing = asyncio.create_task(self.publish(order["rate"]))
                tell()
            case "pause":
                if self.publishing is not None:
                    self.publishing.cancel()
                tell(published=self.published)
            case "take":
                tell(**self.take())
            case "stop":
                return False
        return True


async def main() -> None:
    orders = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    settings = json.loads(await orders.readline())
    stack = stacks.load(settings.pop("stack", "brisa"), settings.pop("overrides", {}))
    limits = Limits(**settings.pop("limits", {}))
    if keys := settings.pop("keys", None):
        settings["tls"] = Tls.from_folder(*keys)
    async with Node(stack=stack, limits=limits, **settings) as node:
        flooded = FloodedNode(node)
        listening = asyncio.create_task(flooded.listen())
        while line := await orders.readline():
            if not await flooded.obey(json.loads(line)):
                break
        if flooded.publishing is not None:
            flooded.publishing.cancel()
        flooded.meter.stop()
    await listening


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
