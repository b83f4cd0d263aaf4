"""Ids of live processes are texts. The types of messages know the numbers of simulated ones too, which have no place
here: where ids of both sorts were compared, an error would follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from epicast.core.errors import WireError
from epicast.core.ids import NodeId
from epicast.core.message import Message
from epicast.wire.codec import Decoder

Check = Callable[[Any], bool]  # are all ids in it texts?


class TextIdDecoder(Decoder):
    """Reads messages of live processes."""

    def __init__(self, kinds: Iterable[type[Message]]) -> None:
        kinds = list(kinds)
        super().__init__(kinds)
        self._checks = {kind: check for kind in kinds if (check := _check_of(kind)) is not None}

    def decode(self, body: bytes | memoryview) -> Message:
        msg = super().decode(body)
        check = self._checks.get(type(msg))
        if check is not None and not check(msg):
            raise WireError("an id that is not a text")
        return msg


def _check_of(hint: Any) -> Check | None:
    """None: there are no ids in it."""
    if hint == NodeId:
        return _is_text
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _check_of(arguments[0])
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        hints = get_type_hints(hint, include_extras=True)
        checks = [(name, check) for name in hint.__struct_fields__ if (check := _check_of(hints[name])) is not None]
        return partial(_fields, checks) if checks else None
    if origin is tuple and arguments[-1] is Ellipsis:
        each = _check_of(arguments[0])
        return None if each is None else partial(_each, each)
    if origin is tuple:
        places = [(at, check) for at, part in enumerate(arguments) if (check := _check_of(part)) is not None]
        return partial(_places, places) if places else None
    if origin in (Union, UnionType) and all(part in arguments for part in get_args(NodeId)):
        raise TypeError(f"an id in a choice of types, {hint}: use a tuple of ids")  # `NodeId | None` shows no NodeId
    return None


def _is_text(value: Any) -> bool:
    return type(value) is str


def _fields(checks: list[tuple[str, Check]], value: Any) -> bool:
    return all(check(getattr(value, name)) for name, check in checks)


def _each(check: Check, values: tuple[Any, ...]) -> bool:
    return all(map(check, values))


def _places(checks: list[tuple[int, Check]], values: tuple[Any, ...]) -> bool:
    return all(check(values[at]) for at, check in checks)
