"""What travels: frozen, tagged structs.

The simulator passes messages by reference (nothing can change them), live nodes encode them as msgpack arrays.
`gc=False` keeps millions of them out of the collector; it is safe because a frozen message cannot be part of a cycle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Protocol, dataclass_transform

import msgspec

from epicast.core.ids import NodeId

# Caps that a decoder enforces on everything a peer can make long.
PAYLOAD_BYTES_MAX = 1 << 24
PATH_LENGTH_MAX = 1024
LIST_LENGTH_MAX = 4096
TOPIC_LENGTH_MAX = 255

Payload = Annotated[bytes, msgspec.Meta(max_length=PAYLOAD_BYTES_MAX)]
Topic = Annotated[str, msgspec.Meta(max_length=TOPIC_LENGTH_MAX)]
Path = Annotated[tuple[NodeId, ...], msgspec.Meta(max_length=PATH_LENGTH_MAX)]
Peers = Annotated[tuple[NodeId, ...], msgspec.Meta(max_length=LIST_LENGTH_MAX)]
Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Last = Annotated[int, msgspec.Meta(ge=-1, le=(1 << 63) - 1)]  # of the numbers received; -1: none
HOPS_MAX = (1 << 15) - 1
AGE_MAX = (1 << 16) - 1
Age = Annotated[int, msgspec.Meta(ge=0, le=AGE_MAX)]
DELAY_UNKNOWN = (1 << 16) - 1
Delay = Annotated[int, msgspec.Meta(ge=0, le=DELAY_UNKNOWN)]
Hops = Annotated[int, msgspec.Meta(ge=0, le=HOPS_MAX)]


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))  # subclasses are frozen too
class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The base of every message. A subclass gives a `tag`, unique in the whole project, and its `layer`. `with_events`:
    it carries events, or there are as many of it as there are events."""

    layer: ClassVar[str] = ""
    with_events: ClassVar[bool] = False

    @property
    def context(self) -> str:
        """Of an event: what its publisher decides besides source, number, topic and payload. A signature covers it."""
        return ""


class Event(Protocol):
    """What an application published, as any message that carries it shows it."""

    @property
    def source(self) -> NodeId: ...
    @property
    def seq(self) -> int: ...
    @property
    def topic(self) -> str: ...
    @property
    def hops(self) -> int: ...
    @property
    def payload(self) -> bytes: ...


class Payloads(Protocol):
    """Of several events that came together, with consecutive numbers."""

    @property
    def seq(self) -> int:
        """Of the first."""

    @property
    def payload_bytes(self) -> int: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[bytes]: ...


class Position(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where a process stands in one flow, as it tells its neighbours (on keep-alives and when asked).

    `path` runs from the flow's source to the process itself and is empty while it is an orphan. `progress` gives, for
    each publisher of the flow, the highest sequence number received so far.
    """

    flow: tuple[NodeId, int]
    path: Path
    progress: Annotated[tuple[tuple[NodeId, Last], ...], msgspec.Meta(max_length=LIST_LENGTH_MAX)] = ()
    pending: bool = False  # looking for a parent, or about to change it: not to be adopted now
    age: Age = 0  # whole seconds since the last sign of life of the source
    delay: Delay = 0  # how long messages take from the source, in tenths of a millisecond, where parents go by that
