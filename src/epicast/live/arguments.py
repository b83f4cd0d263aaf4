"""Checks of what applications hand over: every wrong type or value is one line that says what is expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fsencode
from typing import Annotated, Any

import msgspec

from epicast.core.config import PositiveInt, checked
from epicast.core.errors import ConfigError, EpicastError
from epicast.core.ids import PLACE_LENGTH_MAX
from epicast.live import envelope
from epicast.live.config import Limits, TraceLevel
from epicast.live.ids import Address
from epicast.stacks import stack as stacks
from epicast.stacks.stack import Stack

Seconds = Annotated[float, msgspec.Meta(ge=0)]
_KINDS: dict[str, Any] = {
    "advertise": str | None,
    "area": str,
    "cluster": str,
    "listen": str,
    "trace_level": TraceLevel,
    "messages_max": PositiveInt | None,
    "bytes_max": PositiveInt | None,
    "events_max": PositiveInt,
    "wait": bool,
    "timeout": Seconds | None,
}
_LENGTHS = {"area": (0, PLACE_LENGTH_MAX), "cluster": (1, 100)}


def require(**given: Any) -> None:
    """Each of the type and in the range that a parameter of this name has."""
    for name, value in given.items():
        checked(name, value, _KINDS[name])
        if name in _LENGTHS:
            _require_name(name, value)


def _require_name(name: str, text: str) -> None:
    """Names cross the wire."""
    low, high = _LENGTHS[name]
    if not low <= len(text) <= high:
        raise ConfigError(f"{name}: expected a name of {low} to {high} characters, got {text!r}"[:200])
    _require_utf8(name, text)


def _require_utf8(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{name}: expected a text that UTF-8 can hold, got {text!r}"[:200]) from None


def require_instance(name: str, value: object, kinds: type | tuple[type, ...], words: str) -> None:
    if not isinstance(value, kinds):
        raise ConfigError(f"{name}: expected {words}, got {value!r}"[:200])


def stack_of(stack: object) -> Stack:
    """A named stack, a table as in a stack's file, or a stack that is made already."""
    if isinstance(stack, str):
        return stacks.load(stack)
    if isinstance(stack, Mapping):
        return stacks.from_table(stack)
    require_instance("stack", stack, Stack, "the name of a stack or a table")
    assert isinstance(stack, Stack)
    return stack


def limits_of(limits: object) -> Limits:
    if isinstance(limits, Limits):
        return limits
    require_instance("limits", limits, (Mapping, type(None)), "an epicast.Limits or a table of some of them")
    return Limits.load(dict(limits or {}), "limits")  # type: ignore[call-overload]


def require_tables(order: object, settings: object) -> None:
    require_instance("order", order, (str, Mapping, type(None)), "the name of an order, or a table of them by pattern")
    words = "tables of settings by the name of an order"
    require_instance("order_settings", settings, (Mapping, type(None)), words)
    if isinstance(settings, Mapping):
        for name, table in settings.items():
            require_instance(f"order_settings.{name}", table, Mapping, "a table")
            require_instance(f"order_settings.{name}.balls", table.get("balls", {}), Mapping, "a table")


def require_discovery(ways: object) -> None:
    require_instance("discovery", ways, Iterable, "a list of ways to find nodes")
    assert isinstance(ways, Iterable)
    for way in ways:
        if isinstance(way, type) or not (
            callable(getattr(way, "start", None)) and callable(getattr(way, "close", None))
        ):
            raise ConfigError(f"discovery: expected objects with start and close, got {way!r}"[:200])


def require_folder(trace: object) -> None:
    require_instance("trace", trace, (str, PathLike, type(None)), "a folder")
    try:
        if trace is not None and b"\0" not in fsencode(trace):  # type: ignore[arg-type]
            return
    except UnicodeEncodeError:
        pass
    if trace is not None:
        raise ConfigError(f"trace: expected a folder, got {trace!r}"[:200])


def require_keys(tls: object, *, sign: object, insecure: object) -> None:
    checked("sign", sign, bool)
    checked("insecure", insecure, bool)
    if tls is not None:
        from epicast.live.tls import Tls

        require_instance("tls", tls, Tls, "an epicast.Tls")
    elif sign:
        raise EpicastError("signed messages need the keys of this node: give tls")


def require_protection(listen: Address, tls: object, *, insecure: bool) -> None:
    if tls is None and not listen.loopback and not insecure:
        raise EpicastError(
            f"{listen} can be reached by others and there is no TLS: make keys with `epicast keys`, "
            "listen at 127.0.0.1, or say insecure"
        )


def require_signable(stack: Stack, *, sign: bool) -> None:
    if sign and stack.dissemination.protocol == "balls":
        raise EpicastError("what travels in balls cannot be signed: use stack brisa with order total")


def require_policy(policy: object) -> None:
    if policy not in ("block", "drop-oldest", "drop-newest", "disconnect"):
        raise EpicastError(f"policy: expected block, drop-oldest, drop-newest or disconnect, got {policy!r}")


def bytes_of(payload: object) -> bytes:
    if isinstance(payload, bytes | bytearray | memoryview):
        return bytes(payload)
    raise EpicastError(f"a payload is bytes, got {type(payload).__name__}")


def packed_headers(headers: object, limits: Limits) -> bytes:
    packed = envelope.pack_headers(_texts(headers))
    if len(packed) > limits.header_bytes:
        raise EpicastError(f"headers of {len(packed):,} bytes; the limit is {limits.header_bytes:,} (header_bytes)")
    return packed


def _texts(headers: object) -> dict[str, str]:
    if headers is None:
        return {}
    if isinstance(headers, Mapping) and all(isinstance(part, str) for pair in headers.items() for part in pair):
        texts = {str.__str__(name): str.__str__(value) for name, value in headers.items()}
        _require_utf8("headers", "".join([*texts, *texts.values()]))
        return texts
    raise EpicastError("headers are texts by their names, like {'unit': 'usd'}")


def message_id_of(given: object) -> tuple[str, int]:
    match given:
        case (str() as source, int() as seq):
            return source, seq
    raise EpicastError(f"a message id is its source and its number, as in message.id; got {given!r}"[:200])
