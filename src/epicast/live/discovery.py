"""Finding processes of the cluster on the local network: each one announces its address to a multicast group.

An announcement is one small datagram, every few seconds, that routers do not pass on (TTL 1). It is signed by nothing
and believed in nothing: whom it names is dialled, and belongs to the cluster only if the greeting, and TLS, say so. Too
many announcements, too many addresses from one sender, and whatever is not an announcement are ignored and counted.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv4Address
from random import Random
from typing import Annotated, Any, Protocol, TypeVar

import msgspec

from epicast.core.errors import EpicastError
from epicast.live.ids import Address, parse_address

MAGIC, VERSION = "epicast-lan", 1
GROUP = "239.255.79.46:7947"
EVERY_S = 3.0  # on average
ANSWER_S = 0.5  # a newcomer hears from us so soon, give or take
DATAGRAM_BYTES_MAX = 512
SENDERS_MAX, ADDRESSES_PER_SENDER_MAX = 256, 64
FORGET_S = 60.0  # an address that is announced no more makes room after so long
DATAGRAMS_PER_TURN_MAX = 1000  # between two announcements of ours

Text = Annotated[str, msgspec.Meta(max_length=255)]


class Announcement(msgspec.Struct, frozen=True, array_like=True):
    magic: Text
    version: int
    cluster: Text
    address: Text


class Datagram(Protocol):
    @property
    def magic(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def cluster(self) -> str: ...


D = TypeVar("D", bound=Datagram)

_decoder = msgspec.msgpack.Decoder(Announcement)


def read_datagram(data: bytes, decoder: msgspec.msgpack.Decoder[D], magic: str, cluster: str, nonsense: str) -> D | str:
    """What it says, or why it is none of ours."""
    if len(data) > DATAGRAM_BYTES_MAX:
        return "too large"
    try:
        said = decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError):
        return nonsense
    if said.magic != magic or said.version != VERSION:
        return nonsense
    return said if said.cluster == cluster else "another cluster"


class LanDiscovery(asyncio.DatagramProtocol):
    """For `Node(discovery=[LanDiscovery()])`. `interface`: the address of the one to use; otherwise it is the one at
    which the node is reached, or the system's choice."""

    def __init__(
        self, group: str = GROUP, interface: str = "", *, every_s: float = EVERY_S, rng: Random | None = None
    ) -> None:
        self._group = parse_address(group)
        _require_multicast(self._group)
        self._interface, self._every_s, self._rng = interface, every_s, rng or Random()
        self.counters: Counter[str] = Counter()
        self._cluster, self._me = "", Address("", 0)
        self._datagram = b""
        self._found: Callable[[Address], None] | None = None
        self._by_sender: dict[str, dict[Address, float]] = {}  # when each was last heard of, the oldest first
        self._turn = 0  # datagrams since our last announcement
        self._transport: asyncio.DatagramTransport | None = None
        self._timer: asyncio.TimerHandle | None = None

    # For the node

    async def start(self, me: Address, cluster: str, found: Callable[[Address], None]) -> None:
        self._me, self._cluster, self._found = me, cluster, found
        self._datagram = msgspec.msgpack.encode(Announcement(MAGIC, VERSION, cluster, str(me)))
        if len(self._datagram) > DATAGRAM_BYTES_MAX:
            raise EpicastError(f"cluster: {cluster[:40]!r} is too long a name to be announced; choose a shorter one")
        loop = asyncio.get_running_loop()
        opened = open_socket(self._group, self._interface or interface_of(me))
        try:
            await loop.create_datagram_endpoint(lambda: self, sock=opened)
        except OSError as error:
            opened.close()
            raise EpicastError(f"lan: cannot use {self._group}: {error.strerror or error}") from None
        self._announce()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.close()
        self._transport = self._found = None

    # Announcing

    def _announce(self) -> None:
        if self._transport is None:
            return
        self._turn = 0
        self._transport.sendto(self._datagram, tuple(self._group))
        self.counters["announced"] += 1
        self._announce_in(self._every_s * (0.5 + self._rng.random()))

    def _announce_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(seconds, self._announce)

    def _answer(self) -> None:
        """Somebody is new: it shall not wait for our next turn. Never later than planned."""
        soon = asyncio.get_running_loop().time() + ANSWER_S * (0.5 + self._rng.random())
        if self._timer is None or soon < self._timer.when():
            self._announce_in(soon - asyncio.get_running_loop().time())

    # Listening

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None

    def error_received(self, error: Exception) -> None:
        self.counters["errors"] += 1

    def datagram_received(self, data: bytes, sender: Any) -> None:
        self._turn += 1
        if self._turn > DATAGRAMS_PER_TURN_MAX:
            self.counters["ignored: too many"] += 1
            return
        address = self._read(data)
        if isinstance(address, str):
            self.counters[f"ignored: {address}"] += 1
            return
        if address == self._me:
            return
        if not self._accept(str(sender[0]), address):
            self.counters["ignored: too many addresses"] += 1
        elif self._found is not None:
            self.counters["heard"] += 1
            self._found(address)

    def _read(self, data: bytes) -> Address | str:
        """Whose announcement it is, or why it is none of ours."""
        said = read_datagram(data, _decoder, MAGIC, self._cluster, "not an announcement")
        if isinstance(said, str):
            return said
        try:
            address = parse_address(said.address)
        except EpicastError:
            return "a bad address"
        return address if address.port else "a bad address"

    def _accept(self, sender: str, address: Address) -> bool:
        known = self._by_sender.get(sender)
        if known is None:
            if len(self._by_sender) >= SENDERS_MAX:
                del self._by_sender[next(iter(self._by_sender))]
            known = self._by_sender[sender] = {}
        now = asyncio.get_running_loop().time()
        fresh = known.pop(address, None) is None
        if fresh and len(known) >= ADDRESSES_PER_SENDER_MAX:
            oldest = next(iter(known))
            if now - known[oldest] < FORGET_S:
                return False
            del known[oldest]
        known[address] = now
        if fresh:
            self._answer()
        return True


def open_socket(group: Address, interface: str) -> socket.socket:
    """Hears the group, and sends to it, on one interface; several processes of a machine may have one each."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_UDP)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(AttributeError, OSError):  # what some systems want on top of it
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        opened.bind((group.host, group.port))
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        _join(opened, group.host, interface)
    except OSError as error:
        opened.close()
        raise EpicastError(
            f"lan: cannot use {group} on {interface or 'this machine'}: {error.strerror or error}; "
            "choose an interface, or name seeds"
        ) from None
    return opened


def _join(opened: socket.socket, group: str, interface: str) -> None:
    own = socket.inet_aton(interface or "0.0.0.0")
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + own)
    if interface:
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, own)


def _require_multicast(group: Address) -> None:
    try:
        multicast = IPv4Address(group.host).is_multicast
    except ValueError:
        multicast = False
    if not multicast or not group.port:
        raise EpicastError(f"lan_group: expected a multicast address and a port, like {GROUP}, got {group}")


def interface_of(me: Address) -> str:
    """The interface at which we are reached, if it is one of this machine."""
    try:
        IPv4Address(me.host)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((me.host, 0))
    except (ValueError, OSError):
        return ""
    return "" if me.host == "0.0.0.0" else me.host
