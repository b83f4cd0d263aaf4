"""Discovery on the local network: real multicast on the loopback interface, and hostile datagrams."""

from __future__ import annotations

import asyncio
import os
import socket
from random import Random

import msgspec
import pytest

from epicast.core.errors import EpicastError
from epicast.live import discovery
from epicast.live.discovery import (
    ADDRESSES_PER_SENDER_MAX,
    DATAGRAM_BYTES_MAX,
    DATAGRAMS_PER_TURN_MAX,
    MAGIC,
    SENDERS_MAX,
    VERSION,
    Announcement,
    LanDiscovery,
    open_socket,
)
from epicast.live.ids import Address
from epicast.live.node import Node
from epicast.live.running import run

HOST = "127.0.0.1"
ME = Address(HOST, 7000)
OTHER = Address("10.0.0.9", 7946)
SENDER = ("10.0.0.9", 7947)


def own_group() -> str:
    """Different for each process of the tests."""
    chance = Random(os.getpid())
    return f"239.255.{chance.randrange(1, 255)}.{chance.randrange(1, 255)}:{chance.randrange(20_000, 30_000)}"


def multicast_works() -> bool:
    group = Address("239.255.79.46", 17_947)
    try:
        with open_socket(group, HOST) as both:
            both.setblocking(True)
            both.settimeout(2.0)
            both.sendto(b"hello", tuple(group))
            return both.recv(100) == b"hello"
    except (EpicastError, OSError):
        return False


needs_multicast = pytest.mark.skipif(not multicast_works(), reason="this system has no multicast on loopback")


def announcement(
    address: object = OTHER, cluster: str = "epicast", magic: str = MAGIC, version: int = VERSION
) -> bytes:
    return msgspec.msgpack.encode(Announcement(magic, version, cluster, str(address)))


def hearing(data: bytes) -> tuple[list[Address], dict[str, int]]:
    """What comes of one datagram."""

    async def body() -> tuple[list[Address], dict[str, int]]:
        heard: list[Address] = []
        found = LanDiscovery()
        found._me, found._cluster, found._found = ME, "epicast", heard.append
        found.datagram_received(data, SENDER)
        found.close()
        return heard, dict(found.counters)

    return run(body())


def test_an_announcement_names_an_address() -> None:
    assert hearing(announcement()) == ([OTHER], {"heard": 1})
    assert hearing(announcement(ME)) == ([], {})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not an announcement"),
        (b"\xc1", "not an announcement"),
        (b"\x91" * 500, "not an announcement"),
        (Random(3).randbytes(64), "not an announcement"),
        (announcement(magic="memberlist"), "not an announcement"),
        (announcement(version=2), "not an announcement"),
        (msgspec.msgpack.encode([MAGIC, VERSION, "epicast", 5]), "not an announcement"),
        (msgspec.msgpack.encode([MAGIC, 1e9, "epicast", "10.0.0.9:1"]), "not an announcement"),
        (msgspec.msgpack.encode([MAGIC, VERSION, "epicast"]), "not an announcement"),
        (announcement(cluster="another"), "another cluster"),
        (announcement("10.0.0.9"), "a bad address"),
        (announcement("10.0.0.9:0"), "a bad address"),
        (announcement("10.0.0.9:99999"), "a bad address"),
        (announcement("a b:1"), "a bad address"),
        (announcement("10.0.0.9:1/k3f9a2c1"), "a bad address"),
        (b"x" * (DATAGRAM_BYTES_MAX + 1), "too large"),
        (announcement() + b"x" * DATAGRAM_BYTES_MAX, "too large"),
    ],
)
def test_hostile_datagrams_are_ignored_and_counted(data: bytes, reason: str) -> None:
    assert hearing(data) == ([], {f"ignored: {reason}": 1})


def test_one_sender_cannot_name_any_number_of_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        heard: list[Address] = []
        found = LanDiscovery()
        found._me, found._cluster, found._found = ME, "epicast", heard.append
        for port in range(1, 201):
            found.datagram_received(announcement(Address("10.0.0.9", port)), SENDER)
        assert len(heard) == ADDRESSES_PER_SENDER_MAX
        assert found.counters["ignored: too many addresses"] == 200 - ADDRESSES_PER_SENDER_MAX
        found.datagram_received(announcement(Address("10.0.0.9", 1)), SENDER)  # known: still welcome
        assert len(heard) == ADDRESSES_PER_SENDER_MAX + 1
        monkeypatch.setattr(discovery, "FORGET_S", 0.0)  # the others have been silent for long
        found.datagram_received(announcement(Address("10.0.0.9", 200)), SENDER)
        assert heard[-1].port == 200
        found.close()

    run(body())


def test_many_senders_do_not_fill_the_memory() -> None:
    async def body() -> None:
        found = LanDiscovery()
        found._me, found._cluster, found._found = ME, "epicast", lambda address: None
        for number in range(2 * SENDERS_MAX):
            found.datagram_received(announcement(), (f"10.0.{number // 256}.{number % 256}", 1))
        assert len(found._by_sender) == SENDERS_MAX
        found.close()

    run(body())


def test_a_flood_is_ignored_until_our_next_turn() -> None:
    async def body() -> None:
        found = LanDiscovery()
        found._me, found._cluster, found._found = ME, "epicast", lambda address: None
        for _ in range(DATAGRAMS_PER_TURN_MAX + 50):
            found.datagram_received(announcement(), SENDER)
        assert found.counters == {"heard": DATAGRAMS_PER_TURN_MAX, "ignored: too many": 50}
        found.close()

    run(body())


def test_groups_and_names_that_cannot_work_are_refused() -> None:
    for group in ("10.0.0.1:7947", "239.255.79.46:0", "[ff02::1]:7947", "example:7947"):
        with pytest.raises(EpicastError, match="lan_group: expected a multicast address"):
            LanDiscovery(group)

    async def body() -> None:
        with pytest.raises(EpicastError, match="too long a name"):
            await LanDiscovery().start(Address("x" * 200, 1), "ü" * 100 + "x" * 155, lambda address: None)

    run(body())


@needs_multicast
def test_nodes_find_each_other_without_seeds() -> None:
    group = own_group()

    async def body() -> None:
        async with Node(discovery=[LanDiscovery(group)]) as first, Node(discovery=[LanDiscovery(group)]) as second:
            await first.ready()
            await second.ready()
            assert (first.neighbours, second.neighbours) == ([second.id], [first.id])

    run(body())


@needs_multicast
def test_other_clusters_on_the_same_group_are_left_alone() -> None:
    group = own_group()

    async def body() -> None:
        heard: list[Address] = []
        one, two = LanDiscovery(group, HOST), LanDiscovery(group, HOST)
        stranger = LanDiscovery(group, HOST)
        await one.start(Address(HOST, 1001), "one", heard.append)
        await stranger.start(Address(HOST, 1002), "another", lambda address: None)
        await two.start(Address(HOST, 1003), "one", lambda address: None)
        async with asyncio.timeout(30):
            while not (heard and one.counters["ignored: another cluster"]):
                await asyncio.sleep(0.01)
        assert set(heard) == {Address(HOST, 1003)}
        for each in (one, two, stranger):
            each.close()

    run(body())


@needs_multicast
def test_a_newcomer_hears_from_others_before_their_next_turn() -> None:
    group = own_group()

    async def body() -> None:
        heard: list[Address] = []
        old = LanDiscovery(group, HOST, every_s=1000)
        await old.start(Address(HOST, 1001), "one", lambda address: None)
        new = LanDiscovery(group, HOST, every_s=1000)
        await new.start(Address(HOST, 1002), "one", heard.append)
        async with asyncio.timeout(30):
            while Address(HOST, 1001) not in heard:
                await asyncio.sleep(0.01)
        old.close()
        new.close()

    run(body())


@needs_multicast
def test_datagrams_stay_on_the_local_network() -> None:
    with open_socket(Address("239.255.79.46", 17_948), HOST) as opened:
        assert opened.getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL) == 1


def test_an_interface_that_is_not_there_is_named() -> None:
    with pytest.raises(EpicastError, match=r"lan: cannot use .* on 203\.0\.113\.1"):
        open_socket(Address("239.255.79.46", 17_949), "203.0.113.1").close()
