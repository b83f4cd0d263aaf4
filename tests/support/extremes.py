"""Messages with fields at the ends of what a decoder takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import product
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import replace

from epicast.core.ids import NodeId
from epicast.core.message import Message
from epicast.dissemination.ball_keys import SEQ_MAX, TIMESTAMP_MAX, make_key
from epicast.dissemination.ball_messages import Events, Heads
from epicast.stacks.node import message_types
from epicast.stacks.stack import Stack

NUMBER_MAX = (1 << 63) - 1
MARKS = 64


def extremes(stack: Stack, names: Sequence[NodeId]) -> Iterator[Message]:
    """Of all messages that a node of this stack may receive: numbers and flags at their highest and at their lowest,
    and each of these ids in all places that have one."""
    for kind, name, most in product(message_types(stack), names, (True, False)):
        message = build(kind, name, most=most)
        yield message
        if isinstance(message, Heads):
            yield replace(message, marks=message.marks * MARKS, answer=False)


def build(kind: type[msgspec.Struct], name: NodeId, *, most: bool) -> Any:
    hints = get_type_hints(kind, include_extras=True)
    return kind(*[_extreme(hints[field], name, most=most) for field in kind.__struct_fields__])


def _extreme(hint: Any, name: NodeId, *, most: bool, meta: msgspec.Meta | None = None) -> Any:
    """Of whatever there may be many, one."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint == NodeId:
        return name
    if hint == Events:
        return {make_key(TIMESTAMP_MAX if most else 0, name, SEQ_MAX if most else 0): ("t", b"x")}
    if origin is Annotated:
        return _extreme(arguments[0], name, most=most, meta=arguments[1])
    if origin is tuple:
        parts = arguments[:1] if arguments[-1] is Ellipsis else arguments
        return tuple(_extreme(part, name, most=most) for part in parts)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return build(hint, name, most=most)
    if isinstance(hint, type) and issubclass(hint, IntEnum):
        return max(hint) if most else min(hint)
    if hint is int:
        low, high = (None, None) if meta is None else (meta.ge, meta.le if meta.lt is None else meta.lt - 1)
        return (NUMBER_MAX if high is None else high) if most else (0 if low is None else low)
    return {bool: most, str: "t" if most else "", bytes: b"x" if most else b""}[hint]
