"""Names of things: processes, flows, messages.

A `NodeId` is opaque, hashable and totally ordered among the ids of one run: an `int` in the simulator, an endpoint
string live. A process that crashed and came back is a new process with a new id.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

NODE_ID_LENGTH_MAX = 120  # a host name, a port and an incarnation
PLACE_LENGTH_MAX = 64  # regions from the largest to the smallest
NodeId = int | Annotated[str, msgspec.Meta(max_length=NODE_ID_LENGTH_MAX)]
FlowId = tuple[NodeId, int]  # (the process that created the flow, its local number)
MsgId = tuple[NodeId, int]  # (source, sequence number)
Place = Annotated[str, msgspec.Meta(max_length=PLACE_LENGTH_MAX)]  # where a process is, as in `eu/paris`

NOBODY = -1  # stands in a trace column where there is no process


def precedes(a: NodeId, b: NodeId) -> bool:
    """The total order among the ids of one run."""
    return a < b  # type: ignore[operator]  # ids of one run are of one type
