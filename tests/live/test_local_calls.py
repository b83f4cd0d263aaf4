"""Calls on the local network: real multicast on loopback, newcomers without a seed, and hostile datagrams."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from random import Random

import msgspec
import pytest

from epicast.core.errors import EpicastError
from epicast.core.message import Message
from epicast.live.discovery import DATAGRAM_BYTES_MAX, VERSION
from epicast.live.local_calls import CALLS_PER_SECOND_MAX, MAGIC, Call, LocalCalls
from epicast.live.node import Node
from epicast.live.settings import Settings, make_node
from epicast.membership.clon_messages import ContactWanted, NodeInfo
from epicast.stacks import stack as stacks
from epicast.stacks.node import message_types
from epicast.wire.codec import encode
from tests.live.clusters import cluster, run, until
from tests.live.test_discovery import needs_multicast, own_group

HOST = "127.0.0.1"
ME, OTHER = f"{HOST}:7000/aaaaaaaa", "10.0.0.9:7946/bbbbbbbb"
SENDER = ("10.0.0.9", 7947)
WANTED = ContactWanted(3)


def call(
    msg: Message = WANTED, node: str = OTHER, cluster: str = "epicast", magic: str = MAGIC, version: int = VERSION
) -> bytes:
    return msgspec.msgpack.encode(Call(magic, version, cluster, node, encode(msg)))


def hearing(*datagrams: bytes) -> tuple[list[tuple[str, Message]], dict[str, int]]:
    found: list[tuple[str, Message]] = []
    counters: dict[str, int] = {}

    async def body() -> None:
        calls = LocalCalls()
        kinds = message_types(stacks.load("clon-flood"))
        calls._me, calls._cluster, calls._heard = ME, "epicast", lambda *heard: found.append(heard)
        calls._messages = calls._decoder_of(kinds)
        for data in datagrams:
            calls.datagram_received(data, SENDER)
        counters.update(calls.counters)

    run(body())
    return found, counters


def test_a_call_is_heard_and_our_own_is_not() -> None:
    assert hearing(call()) == ([(OTHER, WANTED)], {"heard": 1})
    assert hearing(call(node=ME)) == ([], {})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a call"),
        (b"\xc1", "not a call"),
        (b"\x91" * 500, "not a call"),
        (Random(3).randbytes(64), "not a call"),
        (call(magic="epicast-lan"), "not a call"),
        (call(version=2), "not a call"),
        (call(cluster="another"), "another cluster"),
        (call(node="10.0.0.8:7946/bbbbbbbb"), "an address that is not the caller's"),
        (call(node="10.0.0.9"), "an address that is not the caller's"),
        (call(NodeInfo(3, (1, 2))), "not a message for calls"),
        (msgspec.msgpack.encode([MAGIC, VERSION, "epicast", OTHER, b"\xc1"]), "not a message for calls"),
        (b"x" * (DATAGRAM_BYTES_MAX + 1), "too large"),
    ],
)
def test_hostile_datagrams_are_ignored_and_counted(data: bytes, reason: str) -> None:
    assert hearing(data) == ([], {f"ignored: {reason}": 1})


def test_a_flood_of_calls_is_cut() -> None:
    found, counters = hearing(*[call()] * (3 * CALLS_PER_SECOND_MAX))
    assert len(found) <= 2 * CALLS_PER_SECOND_MAX, "a second may end meanwhile"
    assert counters["ignored: too many"] + len(found) == 3 * CALLS_PER_SECOND_MAX


@needs_multicast
def test_newcomers_find_each_other_without_a_seed() -> None:
    group = own_group()
    settings = Settings(listen=f"{HOST}:0", stack="clon-flood", lan=True, lan_group=group, area="a")

    async def body() -> None:
        async with AsyncExitStack() as open_nodes:
            first = await open_nodes.enter_async_context(make_node(settings))
            nodes = [first]
            second = Settings(
                listen=f"{HOST}:0", stack="clon-flood", lan=True, lan_group=group, area="a", seeds=(first.address,)
            )
            nodes.append(await open_nodes.enter_async_context(make_node(second)))
            await until(lambda: nodes[1].neighbours, "the second is in, by its seed: nobody answers the first call")
            for _ in range(4):
                nodes.append(await open_nodes.enter_async_context(make_node(settings)))
                await until(lambda: nodes[-1].neighbours, "a newcomer without seeds")
            async with nodes[-1].subscribe("t") as messages:
                await nodes[0].publish("t", b"hello")
                async for message in messages:
                    assert message.payload == b"hello"  # type: ignore[union-attr]
                    break

    run(body())


def test_nodes_of_other_areas_count_as_far_and_may_be_slowed_down() -> None:
    async def body() -> None:
        limits = {"far_delay_us": 50_000}
        async with (
            Node(stack="clon-flood", area="eu/a", limits=limits) as first,
            Node(stack="clon-flood", area="eu/a", limits=limits, seeds=[first.address]) as near,
            Node(stack="clon-flood", area="eu/b", limits=limits, seeds=[first.address]) as far,
        ):
            await asyncio.gather(near.ready(), far.ready())
            await until(lambda: far.id in first.neighbours or far.id in near.neighbours, "somebody knows the far one")
            async with far.subscribe("t") as there, near.subscribe("t") as here:
                await first.publish("t", b"x" * 1000)
                latency = {}
                for name, messages in (("near", here), ("far", there)):
                    async for message in messages:
                        latency[name] = message.latency  # type: ignore[union-attr]
                        break
            assert latency["far"] >= 0.05
            sent = first._hub.sent_bytes()
            assert sent[1] + near._hub.sent_bytes()[1] > 1000

    run(body())


def test_a_name_of_an_area_that_others_would_refuse_is_refused_at_once() -> None:
    with pytest.raises(EpicastError, match="area: expected a name of 0 to 64 characters"):
        Node(area="x" * 65)


def test_a_cluster_without_areas_has_no_far_links() -> None:
    async def body() -> None:
        async with cluster(3, stack="clon-flood") as nodes:
            assert [node._hub.sent_bytes()[1] for node in nodes] == [0, 0, 0]

    run(body())
