"""The orders that a topic may have, and an event on its way to the application, out of whatever message carried it."""

from __future__ import annotations

from typing import Literal

import msgspec

from epicast.core.ids import NodeId

OrderName = Literal["none", "fifo", "causal", "total"]
ORDERS: tuple[OrderName, ...] = ("none", "fifo", "causal", "total")
"""From the weakest to the strongest: within a topic each keeps what those before it promise."""


class Ordered(msgspec.Struct, frozen=True, gc=False):
    source: NodeId
    seq: int
    topic: str
    hops: int  # links that it crossed, or rounds that it had behind it
    payload: bytes
