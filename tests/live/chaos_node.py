"""One node as a process of its own, led by lines of JSON: settings first, then orders; it tells what it gets.

{"listen": "127.0.0.1:0", "seeds": [], "trace": "folder"}     -> {"up": "id", "address": "host:port"}
{"do": "stream", "topic": "t", "rate": 50}                    -> {"got": [[source, number, Unix us], ...]} ...
{"do": "clock", "ahead_s": 3600}                              the calendar of this process jumps
{"do": "quiet"}                                               -> {"published": [[source, number], ...]}
{"do": "tree"}                                                -> {"tree": [{"root": ..., "parent": ..., ...}]}
{"do": "stop"}, or the end of the input
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from epicast.live.config import Limits
from epicast.live.messages import Gap, Message
from epicast.live.node import Node
from epicast.live.sync import new_loop
from epicast.stacks import stack as stacks

_calendar_ns = time.time_ns


def tell(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class ChaosNode:
    def __init__(self, node: Node) -> None:
        self.node = node
        self.published: list[tuple[str, int]] = []
        self.streaming: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        async with self.node.subscribe("**") as messages:
            tell(up=self.node.id, address=self.node.address)
            async for batch in messages.batches():
                tell(got=[(m.source, m.seq, m.received_us) for m in batch if isinstance(m, Message)])
                if gaps := [(gap.source, gap.lost, gap.reason) for gap in batch if isinstance(gap, Gap)]:
                    tell(gaps=gaps)

    async def stream(self, topic: str, rate: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            receipt = await self.node.publish(topic, b"x" * 100)
            self.published.append(receipt.id)
            due = max(due + 1 / rate, loop.time() - 0.2)  # who was held up does not make up for all of it at once
            await asyncio.sleep(due - loop.time())

    async def obey(self, order: dict[str, Any]) -> bool:
        match order["do"]:
            case "stream":
                self.streaming = asyncio.create_task(self.stream(order["topic"], order["rate"]))
            case "quiet":
                if self.streaming is not None:
                    self.streaming.cancel()
                tell(published=self.published)
            case "tree":
                tell(tree=[self._place(flow) for flow in self._flows()], neighbours=self.node.neighbours)
            case "clock":
                ahead_ns = int(order["ahead_s"] * 1e9)
                time.time_ns = lambda: _calendar_ns() + ahead_ns
            case "stop":
                return False
        return True

    def _flows(self) -> list[Any]:
        return list(getattr(self.node._stack_node.dissemination, "flows", {}).values())

    def _place(self, flow: Any) -> dict[str, Any]:
        return {"root": flow.root, "parent": flow.parent, "children": list(flow.targets())}


async def main() -> None:
    orders = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    settings = json.loads(await orders.readline())
    stack = stacks.load(settings.pop("stack", "brisa"), settings.pop("overrides", {}))
    limits = Limits(**settings.pop("limits", {}))
    async with Node(stack=stack, limits=limits, **settings) as node:
        chaos = ChaosNode(node)
        listening = asyncio.create_task(chaos.listen())
        while line := await orders.readline():
            if not await chaos.obey(json.loads(line)):
                break
        if chaos.streaming is not None:
            chaos.streaming.cancel()
    await listening


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
