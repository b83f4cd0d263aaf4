"""An event that is on its way to the application, out of whatever message carried it."""

from __future__ import annotations

import msgspec

from epicast.core.ids import NodeId


class Ordered(msgspec.Struct, frozen=True, gc=False):
    source: NodeId
    seq: int
    topic: str
    hops: int  # links that it crossed, or rounds that it had behind it
    payload: bytes
