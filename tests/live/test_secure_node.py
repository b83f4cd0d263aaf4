"""Nodes with keys: TLS on every link, and signed messages."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from epicast.core.errors import EpicastError
from epicast.dissemination.flood import Gossip
from epicast.live import keys
from epicast.live.config import Limits
from epicast.live.envelope import add_signature, covered_by_signature, pack
from epicast.live.messages import Message
from epicast.live.node import Node
from epicast.live.subscription import Subscription
from epicast.live.switchboard import Switchboard
from epicast.live.tls import Tls
from tests.live.clusters import cluster, payloads, run, until


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    folder = tmp_path_factory.mktemp("keys") / "ours"
    keys.init(folder, cluster="epicast")
    keys.issue(folder, "node", hosts=["127.0.0.1"])
    keys.issue(folder, "elsewhere", hosts=["10.0.0.1"])
    return Tls.from_folder(folder, "node")


@pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("sign", [False, True], ids=["tls", "signed"])
def test_everybody_gets_what_anybody_publishes(tls: Tls, fast: bool, sign: bool) -> None:
    async def work() -> None:
        async with cluster(5, tls=tls, sign=sign) as nodes:
            subscriptions = [node.subscribe("a/*") for node in nodes]
            for each in subscriptions:
                await each.__aenter__()
            for number, node in enumerate(nodes):
                await node.publish("a/b", b"%d" % number, headers={"n": str(number)})
            for each in subscriptions:
                assert await payloads(each, 5) == [b"%d" % number for number in range(5)]
            counters = [node._hub.counters for node in nodes]
            assert not any(counter["bad signatures"] or counter["replays"] for counter in counters)

    run(work(), fast=fast)


def test_large_signed_messages_and_several_topics(tls: Tls) -> None:
    async def work() -> None:
        async with cluster(3, tls=tls, sign=True) as nodes, nodes[2].subscribe() as messages:
            body = bytes(600_000)
            await nodes[0].publish("big", body)
            for number in range(4):
                await nodes[0].publish(f"t/{number % 2}", b"%d" % number)
            assert await payloads(messages, 5) == [body, b"0", b"1", b"2", b"3"]

    run(work())


def test_a_node_without_keys_does_not_get_in(tls: Tls) -> None:
    async def work() -> None:
        async with Node(tls=tls) as node, Node(seeds=[node.address]) as stranger:
            with pytest.raises(EpicastError, match="nobody let us in"):
                await stranger.ready(timeout=1)
            assert node.neighbours == []

    run(work())


def test_a_node_that_does_not_sign_is_not_heard_by_those_that_do(tls: Tls) -> None:
    async def work() -> None:
        async with Node(tls=tls, sign=True) as node, Node(tls=tls, seeds=[node.address]) as careless:
            await careless.ready()
            async with node.subscribe() as messages:
                await careless.publish("t", b"forged")
                await node.publish("t", b"true")
                assert await payloads(messages, 1) == [b"true"]
                await until(lambda: node._hub.counters["bad signatures"] == 1, "nobody looked at the signature")
                assert messages.waiting == 0

    run(work())


def test_keys_for_another_host_or_cluster_are_refused_at_the_start(tls: Tls) -> None:
    async def work() -> None:
        elsewhere = Tls.from_folder(Path(tls.ca).parent, "elsewhere")
        with pytest.raises(EpicastError, match=r"10\.0\.0\.1"):
            await Node(tls=elsewhere).start()
        with pytest.raises(EpicastError, match="the keys are for cluster epicast, this node is of other"):
            await Node(tls=tls, cluster="other").start()

    run(work())


def test_a_link_ends_with_the_certificate_of_the_other_side(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    keys.init(tmp_path, cluster="epicast", now=now - timedelta(days=10))
    for name, ends in (("lasting", timedelta(days=1)), ("brief", timedelta(seconds=3))):
        keys.issue(tmp_path, name, hosts=["127.0.0.1"], days=1, now=now - timedelta(days=1) + ends)

    async def work() -> None:
        lasting, brief = (Tls.from_folder(tmp_path, name) for name in ("lasting", "brief"))
        async with Node(tls=lasting) as first, Node(tls=brief, seeds=[first.address]) as second:
            await second.ready()
            await until(lambda: first._hub.counters["ended: certificate"] > 0)
            await until(lambda: not first.neighbours)
            assert datetime.now(UTC) >= now + timedelta(seconds=2), "it was good until then"

    run(work())


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tls, Tls]:
    folder = tmp_path_factory.mktemp("keys") / "two"
    keys.init(folder, cluster="epicast")
    for name in ("anna", "bert"):
        keys.issue(folder, name, hosts=["127.0.0.1"])
    return Tls.from_folder(folder, "anna"), Tls.from_folder(folder, "bert")


async def take(messages: Subscription, count: int) -> list[Message]:
    found: list[Message] = []
    while len(found) < count:
        item = await anext(messages)
        assert isinstance(item, Message)
        found.append(item)
    return found


@pytest.mark.parametrize("order", [None, "fifo", "total"])
def test_a_message_says_who_signed_it(two: tuple[Tls, Tls], order: str | None) -> None:
    """Small ones, those in pieces, and a node's own."""

    async def work() -> None:
        first = Node(tls=two[0], sign=True, order=order)
        async with first as anna, Node(tls=two[1], sign=True, order=order, seeds=[anna.address]) as bert:
            await bert.ready()
            async with anna.subscribe() as messages:
                for node in (bert, anna):
                    await node.publish("t", b"small", headers={"a": "b"})
                    await node.publish("t", bytes(300_000))
                found = {(each.source, each.size): each.signer for each in await take(messages, 4)}
        assert found == {
            **{(bert.id, size): "bert" for size in (5, 300_000)},
            **{(anna.id, size): "anna" for size in (5, 300_000)},
        }

    run(work())


def test_messages_in_total_order_say_who_signed_them_before_their_turn(two: tuple[Tls, Tls]) -> None:
    async def work() -> None:
        async with Node(tls=two[0], sign=True, order="total") as anna, anna.subscribe("t", order="none") as hasty:
            await anna.publish("t", b"x")
            (waiting,) = anna.waiting("t")
            assert waiting.message.signer == "anna"
            assert [each.signer for each in await take(hasty, 1)] == ["anna"]
            taken = anna.take(waiting.message.id)
            assert taken is not None
            assert taken.signer == "anna"

    run(work())


@pytest.mark.parametrize("with_keys", [False, True], ids=["plain", "tls"])
def test_a_message_that_nobody_signed_has_no_signer(two: tuple[Tls, Tls], with_keys: bool) -> None:
    async def work() -> None:
        tls = two if with_keys else (None, None)
        async with Node(tls=tls[0]) as anna, Node(tls=tls[1], seeds=[anna.address]) as bert:
            await bert.ready()
            async with anna.subscribe() as messages:
                await bert.publish("t", b"plain")
                await bert.publish("t", b"dressed", headers={"a": "b"})
                assert [each.signer for each in await take(messages, 2)] == [None, None]

    run(work())


def test_a_signature_that_nobody_verified_makes_no_signer() -> None:
    """A node without `sign` looks at no signature: whatever stands there, it names nobody."""
    board = Switchboard(Limits(), Counter(), lambda: 100, lambda each: None, lambda each: None)

    async def work() -> None:
        async with board.subscribe("t", "drop-oldest", None, None) as messages:
            forged = add_signature(covered_by_signature(pack(40, b"x")), b"no certificate", bytes(64))
            board.deliver(Gossip("a:1/x", 1, 1, "t", forged))
            (message,) = await take(messages, 1)
            assert (message.payload, message.signer) == (b"x", None)

    run(work())
