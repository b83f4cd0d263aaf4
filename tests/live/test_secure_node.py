"""Nodes with keys: TLS on every link, and signed messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from epicast.core.errors import EpicastError
from epicast.live import keys
from epicast.live.node import Node
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
