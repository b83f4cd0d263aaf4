"""`epicast node`: a node until it is stopped, with its pages for operators and, if asked, orders on stdin.

Orders are lines, and each is answered by a line on stdout with one JSON object:

    publish TOPIC COUNT RATE BYTES    so many messages, so many a second (0: as fast as it goes), so large
    listen                            subscribe to everything from now on, and count how long it took
    heard                             what was counted
    leave                             end in good order; so does the end of stdin
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import msgspec

from epicast.core.errors import EpicastError
from epicast.live.admin import Admin
from epicast.live.blocking import lines, write_all
from epicast.live.heard import Heard, listen
from epicast.live.node import Node
from epicast.live.running import on_stop, running, unless
from epicast.live.settings import OFF, Settings, make_node
from epicast.live.watch import Watch

STDIN, STDOUT = 0, 1
ORDER_BYTES_MAX = 4096
TURN = 32
"""After so many messages others get their turn, whatever the rate."""

log = logging.getLogger("epicast")

Tell = Callable[[dict[str, Any]], None]


async def serve(settings: Settings, tell: Tell, *, orders: bool = False, join_s: float | None = None) -> None:
    """`tell` gets the addresses, once. `join_s`: give up if nobody lets us in within so long; None: keep trying."""
    with on_stop() as stopped:
        node = make_node(settings)
        async with AsyncExitStack() as ending:
            await ending.enter_async_context(running(node))
            admin = None
            if settings.admin != OFF:
                admin = Admin(node, settings.admin, public=settings.admin_public)
                await ending.enter_async_context(admin)
            tell(_addresses(node, admin))
            log.info("listening at %s, cluster %s, stack %s", node.address, node.cluster, node._stack.name)
            await unless(stopped, _work(node, orders=orders, join_s=join_s))
            log.info("leaving")


def _addresses(node: Node, admin: Admin | None) -> dict[str, Any]:
    return {
        "address": node.address,
        "id": node.id,
        "cluster": node.cluster,
        "admin": None if admin is None else admin.address,
    }


async def _work(node: Node, *, orders: bool, join_s: float | None) -> None:
    watching = asyncio.create_task(Watch(node).run())
    try:
        if join_s is not None:
            await node.ready(join_s)
        if orders:
            await obey(node)
        else:
            await watching
    finally:
        watching.cancel()


async def obey(node: Node) -> None:
    """Until the order to leave, or the end of stdin."""
    await _Orders(node).obey()


class _Orders:
    """Orders are carried out side by side: the end of stdin is noticed at any time."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._heard = Heard()
        self._doing: set[asyncio.Task[None]] = set()
        self._said = asyncio.Lock()  # one answer after the other, each in one piece

    async def obey(self) -> None:
        try:
            async for some in lines(STDIN, ORDER_BYTES_MAX):
                for line in some:
                    words = line.decode("utf-8", "replace").split()
                    if words == ["leave"]:
                        return
                    self._begin(self._carry_out(words))
        finally:
            for task in list(self._doing):
                task.cancel()
            await asyncio.gather(*self._doing, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)

    async def _carry_out(self, words: list[str]) -> None:
        node = self._node
        try:
            match words:
                case ["publish", topic, count, rate, size]:
                    answer = await publish_many(node, topic, int(count), float(rate), int(size))
                case ["listen"]:
                    self._begin(listen(node, self._heard))
                    await asyncio.sleep(0)  # it has subscribed
                    answer = {"listening": True}
                case ["heard"]:
                    answer = self._heard.as_dict()
                case _:
                    raise EpicastError("expected publish TOPIC COUNT RATE BYTES, listen, heard, or leave")
        except (EpicastError, ValueError) as error:
            answer = {"error": str(error)}
        async with self._said:
            await write_all(STDOUT, msgspec.json.encode(answer) + b"\n")


async def publish_many(node: Node, topic: str, count: int, rate: float, size: int) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(count):
        ahead = began + number / rate - loop.time() if rate > 0 else 0.0
        if ahead > 0:
            await asyncio.sleep(ahead)
        elif number % TURN == 0:
            await asyncio.sleep(0)
        await node.publish(topic, payload(number, size))
    return {"published": count, "seconds": loop.time() - began}


def payload(number: int, size: int) -> bytes:
    """Its number, filled up; no two are alike as long as there is room for the number."""
    return f"{number} ".encode().ljust(size, b".")[:size]
