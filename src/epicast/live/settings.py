"""What a node is told by a file and by flags, and the node made of it. A flag wins over the file."""

from __future__ import annotations

import socket
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from epicast.core.config import Config
from epicast.core.errors import ConfigError, EpicastError
from epicast.live.config import Limits
from epicast.live.discovery import GROUP, LanDiscovery
from epicast.live.ids import Address, parse_address
from epicast.live.local_calls import LocalCalls, call_types
from epicast.live.node import Node
from epicast.live.seeds import DEFAULT_PORT
from epicast.stacks import stack as stacks
from epicast.stacks.node import message_types
from epicast.stacks.stack import Stack

if TYPE_CHECKING:
    from epicast.live.tls import Tls

OFF = "off"
LOOPBACK = "127.0.0.1"
CLUSTER = "epicast"
WHOLE = ("stack", "order")
"""Tables that a flag replaces: half of one and half of the other would be a third."""


class Settings(Config):
    listen: str = ""  # host:port; nothing: a free port, at the address from which the first seed is reached
    advertise: str = ""  # the address under which others reach us, if it is not the one that we listen at
    seeds: tuple[str, ...] = ()  # host:port, a name with several addresses, or @file with one a line
    cluster: str = ""  # nothing: the one of the certificate, or "epicast"
    stack: str | dict[str, Any] = "brisa"  # a name, or a table as in a stack's file
    overrides: dict[str, dict[str, Any]] = {}  # settings of the stack's roles, on top of those that it has
    order: str | dict[str, str] = ""  # fifo, causal or total for all topics, or by pattern; alike on all nodes
    order_settings: dict[str, dict[str, Any]] = {}  # of these orders, by name

    keys: str = ""  # the folder that `epicast keys issue --out` made
    name: str = ""  # of the certificate in it
    sign: bool = False  # publish signed messages and accept no others
    insecure: bool = False  # listen beyond this machine without keys

    lan: bool = False  # find others on the local network
    lan_group: str = GROUP
    lan_interface: str = ""  # nothing: the one at which we are reached

    admin: str = "127.0.0.1:0"  # of the pages for operators; "off": none
    admin_public: bool = False  # let others than this machine see them

    trace: str = ""  # a folder for what happens
    trace_level: Literal["full", "deliveries"] = "full"
    area: str = ""  # where the node is, as in eu/paris: for the trace, and for stacks that prefer near neighbours
    log: Literal["text", "json"] = "text"

    limits: Limits = Limits()

    def check(self) -> None:
        if bool(self.keys) != bool(self.name):
            raise ConfigError("keys and name belong together: the folder, and which of its certificates is ours")
        if self.sign and not self.keys:
            raise ConfigError("sign: signed messages need keys; make them with `epicast keys`")
        for key in ("listen", "advertise"):
            if getattr(self, key):
                _require_address(key, getattr(self, key))
        if self.admin != OFF:
            _require_address("admin", self.admin)

    @classmethod
    def read(cls, file: Path | None, flags: Mapping[str, Any], more: Mapping[str, Any] | None = None) -> Settings:
        """None among the flags: not given. Of tables, some keys may come from the file, some from flags and some from
        `more`, which wins."""
        table = _table(file) if file is not None else {}
        given = {key: value for key, value in flags.items() if value is not None}
        try:
            return cls.load(_merged(_merged(table, given), more or {}))
        except ConfigError as error:
            raise ConfigError(f"{file}: {error}" if file is not None else str(error)) from None


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(below)
    for key, value in above.items():
        mine = found.get(key)
        if isinstance(mine, Mapping) and isinstance(value, Mapping) and key not in WHOLE:
            found[key] = _merged(mine, value)
        else:
            found[key] = value
    return found


def make_node(settings: Settings) -> Node:
    tls = _tls(settings)
    listen = settings.listen or str(Address(_own_host(settings), 0))
    _require_reachable(listen, settings.advertise)
    return Node(
        listen=listen,
        advertise=settings.advertise or None,
        seeds=settings.seeds,
        stack=_stack(settings),
        cluster=_cluster(settings, tls),
        tls=tls,
        sign=settings.sign,
        insecure=settings.insecure,
        discovery=_discovery(settings),
        limits=settings.limits,
        trace=settings.trace or None,
        trace_level=settings.trace_level,
        area=settings.area,
        order=settings.order or None,
        order_settings=settings.order_settings or None,
    )


def _stack(settings: Settings) -> Stack:
    table = settings.stack
    stack = (
        stacks.load(table, settings.overrides)
        if isinstance(table, str)
        else stacks.from_table(table, settings.overrides)
    )
    if settings.lan and _calls(stack):
        return stacks.from_table(stack.source, {"membership": {"discovery": "first"}})
    return stack


def _calls(stack: Stack) -> bool:
    """Does it find others on the local network by itself?"""
    return bool(call_types(message_types(stack)))


def _discovery(settings: Settings) -> list[LanDiscovery | LocalCalls]:
    if not settings.lan:
        return []
    way = LocalCalls if _calls(_stack(settings)) else LanDiscovery
    return [way(settings.lan_group, settings.lan_interface)]


def _table(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror or error}; give a node's settings file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: not TOML: {error}") from None


def _require_address(key: str, text: str) -> None:
    try:
        parse_address(text)
    except EpicastError as error:
        raise ConfigError(f"{key}: {error}") from None


def _require_reachable(listen: str, advertise: str) -> None:
    if not advertise and parse_address(listen).host in ("0.0.0.0", "::", "*"):
        raise EpicastError(f"listen: {listen} stands for every address of this machine; say with advertise which one")


def _tls(settings: Settings) -> Tls | None:
    if not settings.keys:
        return None
    from epicast.live.tls import Tls

    return Tls.from_folder(settings.keys, settings.name)


def _cluster(settings: Settings, tls: Tls | None) -> str:
    if tls is None:
        return settings.cluster or CLUSTER
    own = tls.identity().cluster
    if settings.cluster and settings.cluster != own:
        raise EpicastError(
            f"cluster: {settings.cluster!r}, but the keys are of {own!r}: leave it out, or change the keys"
        )
    return own


def _own_host(settings: Settings) -> str:
    """The address of this machine on the way to whom we want to meet."""
    targets = [entry for entry in settings.seeds if not entry.startswith("@")]
    if settings.lan and not targets:
        if settings.lan_interface:
            return settings.lan_interface
        targets = [settings.lan_group]
    for entry in targets:
        found = _host_towards(parse_address(entry, default_port=DEFAULT_PORT))
        if found:
            return found
    return LOOPBACK


def _host_towards(address: Address) -> str:
    """Nothing is sent for that: the system says which address it would use."""
    try:
        family, kind, _, _, target = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])
    except OSError:
        return ""
