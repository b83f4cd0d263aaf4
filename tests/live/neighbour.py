"""An attacker that got into the active view of a node, where its word counts."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from epicast.membership.hyparview_messages import Join
from epicast.wire.frames import event_frame
from tests.live.attacker import ME, Attacker, data, head, stream_of
from tests.live.siege import Siege, until

FLOW = (ME, 0)
FAR = 10**18


@asynccontextmanager
async def neighbour_of(siege: Siege, context: ssl.SSLContext | None = None, **greeting: Any) -> AsyncIterator[Attacker]:
    """It stays there, as it seems to be alive."""
    attacker = await Attacker.greeted(siege.node.address, context, **greeting)
    attacker.send(Join())
    await until(lambda: ME in siege.node.neighbours)
    staying = asyncio.create_task(attacker.stay())
    reading = asyncio.create_task(attacker.reader.read())
    try:
        yield attacker
    finally:
        staying.cancel()
        reading.cancel()
        attacker.close()


def published(seq: int, packed: bytes, **changes: Any) -> bytes:
    """An event of the attacker's own flow, as a member would send it."""
    event = data(FLOW, ME, seq, packed, **changes)
    return head(event) + event_frame(stream_of(event), seq, packed)
