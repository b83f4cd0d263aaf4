"""`epicast pub` and `epicast sub`: a node that joins, does one thing and leaves."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec

from epicast.core.errors import EpicastError
from epicast.core.patterns import has_wildcard, require_topic
from epicast.live.blocking import everything, lines, write_all
from epicast.live.config import Policy
from epicast.live.messages import Correction, Gap, Message, Receipt
from epicast.live.node import Node
from epicast.live.running import on_stop, running, sent, unless
from epicast.live.settings import Settings, make_node
from epicast.live.subscription import Item

STDIN, STDOUT = 0, 1

Note = Callable[[str], None]


# Publishing


async def publish(
    settings: Settings,
    topic: str,
    message: bytes | None,
    *,
    headers: Mapping[str, str],
    whole: bool,
    receipts: bool,
    join_s: float,
) -> int | None:
    """How many messages were published: the one given, or those on stdin. None: we were stopped before their end."""
    require_topic(topic)
    _require_somebody(settings)
    with on_stop() as stopped:
        async with running(make_node(settings)) as node:
            payloads = _payloads(node, message, whole=whole)
            work = _publish_all(node, topic, payloads, headers, receipts=receipts, join_s=join_s)
            done = await unless(stopped, work)
            await sent(node)
            return done


async def _payloads(node: Node, message: bytes | None, *, whole: bool) -> AsyncIterator[list[bytes]]:
    if message is not None:
        yield [message]
    elif whole:
        yield [await everything(STDIN, node.limits.message_bytes)]
    else:
        async for some in lines(STDIN, node.limits.message_bytes):
            yield some


async def _publish_all(
    node: Node,
    topic: str,
    batches: AsyncIterator[list[bytes]],
    headers: Mapping[str, str],
    *,
    receipts: bool,
    join_s: float,
) -> int:
    await node.ready(join_s)
    done = unheard = 0
    async for batch in batches:
        got = [await node.publish(topic, payload, headers=headers or None) for payload in batch]
        done += len(got)
        unheard += sum(not receipt.neighbours and not receipt.waiting for receipt in got)
        if receipts:
            await write_all(STDOUT, b"".join(_encoded(receipt_table(topic, each)) for each in got))
    if unheard:
        raise EpicastError(f"{unheard:,} of {done:,} messages were sent to nobody: all neighbours had left")
    return done


def receipt_table(topic: str, receipt: Receipt) -> dict[str, Any]:
    return {
        "topic": topic,
        "source": receipt.id[0],
        "seq": receipt.id[1],
        "neighbours": receipt.neighbours,
        "waiting": receipt.waiting,
        "dropped": [{"neighbour": peer, "reason": reason} for peer, reason in receipt.dropped],
        "fragments": receipt.fragments,
    }


# Subscribing


async def subscribe(
    settings: Settings,
    pattern: str,
    *,
    policy: Policy,
    order: str | None = None,
    count: int | None,
    as_json: bool,
    topics: bool | None = None,
    seconds: float | None,
    join_s: float,
    note: Note,
) -> int:
    """How many messages were printed until there were `count`, the time was over or we were stopped. `topics`: before
    each payload; None: if the pattern has wildcards."""
    many = has_wildcard(pattern)
    _require_somebody(settings)
    with on_stop() as stopped:
        async with running(make_node(settings)) as node:
            printer = Printer(count, note, as_json=as_json, topics=many if topics is None else topics)
            await unless(stopped, _listen(node, pattern, policy, order, printer, seconds, join_s, note))
            return printer.printed


async def _listen(
    node: Node,
    pattern: str,
    policy: Policy,
    order: str | None,
    printer: Printer,
    seconds: float | None,
    join_s: float,
    note: Note,
) -> None:
    async with node.subscribe(pattern, policy=policy, order=order) as messages:
        await node.ready(join_s)
        note(f"subscribed to {pattern} as {node.address}")
        try:
            async with asyncio.timeout(seconds):
                async for batch in messages.batches():
                    await printer.print(batch)
                    if printer.done:
                        return
        except TimeoutError:
            pass


class Printer:
    """Messages on stdout: all that waited at once, so that a slow reader slows nothing but this subscription."""

    def __init__(self, count: int | None, note: Note, *, as_json: bool, topics: bool = False) -> None:
        self._count, self._note, self._as_json, self._topics = count, note, as_json, topics
        self.printed = 0

    @property
    def done(self) -> bool:
        return self._count is not None and self.printed >= self._count

    async def print(self, batch: list[Item]) -> None:
        out: list[bytes] = []
        printed = self.printed
        for item in batch:
            if self._count is not None and printed >= self._count:
                break
            printed += isinstance(item, Message)
            out.append(self._line(item))
        await write_all(STDOUT, b"".join(out))
        self.printed = printed

    def _line(self, item: Item) -> bytes:
        if self._as_json:
            return _encoded(item_table(item))
        if isinstance(item, Gap):
            self._note(f"{item.lost:,} messages are missing here: {item.reason}")
            return b""
        if isinstance(item, Correction):
            self._note("a message that belongs before some of these came late:")
            item = item.message
        topic = _shown(item.topic) + b" " if self._topics else b""
        return topic + item.payload + b"\n"


def _shown(topic: str) -> bytes:
    """No line breaks and no orders to the terminal, whatever a publisher called it."""
    return "".join(letter if letter.isprintable() else "?" for letter in topic).encode("utf-8", "replace")


def item_table(item: Item) -> dict[str, Any]:
    if isinstance(item, Gap):
        return gap_table(item)
    if isinstance(item, Correction):
        return {"correction": message_table(item.message)}
    return message_table(item)


def message_table(message: Message) -> dict[str, Any]:
    try:
        body = {"payload": message.payload.decode()}
    except UnicodeDecodeError:
        body = {"payload_base64": base64.b64encode(message.payload).decode()}
    return {
        "topic": message.topic,
        **body,
        "source": message.source,
        "seq": message.seq,
        "headers": message.headers,
        "latency_ms": round(message.latency * 1e3, 3),
    }


def gap_table(gap: Gap) -> dict[str, Any]:
    return {"lost": gap.lost, "reason": gap.reason, "source": gap.source}


def _encoded(table: dict[str, Any]) -> bytes:
    return msgspec.json.encode(table) + b"\n"


def _require_somebody(settings: Settings) -> None:
    if not settings.seeds and not settings.lan:
        raise EpicastError("there is nobody to talk to: give --seed with the address of a node, or --lan")
