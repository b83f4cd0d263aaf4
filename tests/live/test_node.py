"""Live nodes on real sockets: joining, publishing, subscribing, leaving."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from epicast.core.errors import EpicastError
from epicast.live.config import Limits
from epicast.live.messages import Message
from epicast.live.node import Node
from epicast.live.sync import SyncNode
from tests.live.clusters import cluster, payloads, run, until

fast_and_not = pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])
stacks = pytest.mark.parametrize("stack", ["brisa", "flood"])


@fast_and_not
@stacks
def test_everybody_gets_what_anybody_publishes(fast: bool, stack: str) -> None:
    async def work() -> None:
        async with cluster(8, stack=stack) as nodes:
            subscriptions = [node.subscribe("a/*") for node in nodes]
            for each in subscriptions:
                await each.__aenter__()
            for number, node in enumerate(nodes):
                receipt = await node.publish("a/b", b"%d" % number)
                assert receipt.id[0] == node.id
                assert receipt.neighbours >= 1
                assert receipt.dropped == ()
            expected = [b"%d" % number for number in range(8)]
            for each in subscriptions:
                assert await payloads(each, 8) == expected
                assert each.lost == 0

    run(work(), fast=fast)


def test_the_first_message_after_ready_is_not_lost() -> None:
    async def work() -> None:
        async with cluster(5) as nodes, nodes[0].subscribe() as messages:
            for number in range(10):
                async with Node(seeds=[nodes[1].address]) as newcomer:
                    await newcomer.ready()
                    await newcomer.publish("t", b"%d" % number)
                assert await payloads(messages, 1) == [b"%d" % number]

    run(work())


def test_headers_and_large_messages_arrive_whole() -> None:
    async def work() -> None:
        limits = Limits(fragment_bytes=10_000, message_bytes=1_000_000)
        async with cluster(4, limits=limits) as nodes, nodes[3].subscribe("big") as messages:
            body = bytes(range(256)) * 1000
            receipt = await nodes[0].publish("big", body, headers={"unit": "usd"})
            assert receipt.fragments == 26
            message = await messages.__anext__()
            assert isinstance(message, Message)
            assert (message.payload, message.headers, message.id) == (body, {"unit": "usd"}, receipt.id)
            assert 0 <= message.latency < 30
            with pytest.raises(EpicastError, match=r"1,000,001 bytes; the limit is 1,000,000 \(message_bytes\)"):
                await nodes[0].publish("big", bytes(1_000_001))
            with pytest.raises(EpicastError, match="headers of"):
                await nodes[0].publish("t", b"", headers={"a": "x" * 20_000})

    run(work())


def test_bad_calls_get_one_line() -> None:
    async def work() -> None:
        async with Node() as node:
            for topic in ("", "a/*", "a//b"):
                with pytest.raises(EpicastError, match="topic"):
                    await node.publish(topic, b"")
            with pytest.raises(EpicastError, match="a payload is bytes, got str"):
                await node.publish("t", "text")  # type: ignore[arg-type]
            with pytest.raises(EpicastError, match="headers are texts"):
                await node.publish("t", b"", headers={"a": 1})  # type: ignore[dict-item]
            with pytest.raises(EpicastError, match="policy: expected block"):
                node.subscribe("t", policy="other")  # type: ignore[arg-type]
            with pytest.raises(EpicastError, match="whole levels"):
                node.subscribe("a*")
        with pytest.raises(EpicastError, match="not running"):
            await node.publish("t", b"")

    run(work())


def test_thousands_of_topics_are_one_tree() -> None:
    async def work() -> None:
        async with cluster(3) as nodes, nodes[2].subscribe("t/*", policy="block") as messages:
            for number in range(3000):
                await nodes[0].publish(f"t/{number}", b"%d" % number)
            assert len(await payloads(messages, 3000)) == 3000
            assert len(nodes[2]._stack_node.dissemination.flows) == 1  # type: ignore[attr-defined]

    run(work())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"listen": "0.0.0.0:0"}, "can be reached by others and there is no TLS"),
        ({"listen": "nonsense"}, "expected an address"),
        ({"seeds": "127.0.0.1:1"}, "seeds: expected a list"),
        ({"seeds": ["a b:1"]}, "expected an address"),
        ({"cluster": ""}, "cluster: expected a name"),
        ({"stack": "none"}, "unknown stack"),
        ({"sign": True}, "signed messages need the keys"),
        ({"limits": {"connection": 3}}, "limits.connection: unknown key"),
        ({"limits": {"peer_queue_bytes": 1 << 19}}, "peer_queue_high_bytes"),
    ],
)
def test_bad_settings_are_refused_before_anything_starts(settings: dict[str, object], message: str) -> None:
    with pytest.raises(EpicastError, match=message):
        Node(**settings)  # type: ignore[arg-type]


def test_a_taken_address_is_said() -> None:
    async def work() -> None:
        async with Node() as node:
            with pytest.raises(EpicastError, match=r"cannot listen at .*; choose another address"):
                await Node(listen=node.address).start()

    run(work())


def test_clusters_and_stacks_never_mix() -> None:
    async def work() -> None:
        async with Node(cluster="one") as node:
            for settings in ({"cluster": "two"}, {"cluster": "one", "stack": "flood"}):
                async with Node(seeds=[node.address], **settings) as other:
                    with pytest.raises(EpicastError, match=r"nobody let us in within 0\.5 s"):
                        await other.ready(timeout=0.5)
            assert node.neighbours == []
            assert {key for key in node._hub.counters if key.startswith("refused")} == {
                "refused: another cluster",
                "refused: another stack or order",
            }

    run(work())


def test_who_leaves_is_gone_at_once_and_the_rest_goes_on() -> None:
    async def work() -> None:
        async with cluster(6) as nodes, nodes[0].subscribe() as messages:
            gone = nodes[3].id
            await nodes[3].stop()
            rest = [node for node in nodes if node is not nodes[3]]
            await until(lambda: not any(gone in node.neighbours for node in rest), "it is still a neighbour")
            await nodes[5].publish("t", b"x")
            assert await payloads(messages, 1) == [b"x"]

    run(work())


def test_a_seed_that_comes_later_is_found() -> None:
    async def work() -> None:
        async with Node() as first:
            address = first.address
        late = Node(seeds=[address])
        async with late:
            ready = asyncio.create_task(late.ready())
            await until(lambda: late._hub.counters["dials failed"] > 0, "nobody dialled")
            async with Node(listen=address):
                await ready

    run(work())


def test_seeds_may_be_in_a_file_that_changes(tmp_path: Path) -> None:
    async def work() -> None:
        seeds = tmp_path / "seeds.txt"
        async with Node() as first, Node(seeds=[f"@{seeds}"]) as second:
            ready = asyncio.create_task(second.ready())
            seeds.write_text(f"# ours\n\nnonsense line\n{first.address}\n")
            await ready
            assert second.neighbours == [first.id]

    run(work())


def test_two_islands_find_each_other_through_a_seed() -> None:
    async def work() -> None:
        limits = Limits(seeds_us=500_000)
        async with Node() as lonely, cluster(3, limits=limits) as nodes:
            nodes[1]._joining._seeds._entries.append(lonely.address)
            nodes[1]._joining.look_again()
            await until(lambda: lonely.neighbours, "the islands stay apart")

    run(work())


@pytest.mark.parametrize("seed", ["{address}", "localhost:{port}"])
def test_looking_up_a_seed_again_leaves_the_link_to_it_alone(seed: str) -> None:
    async def work() -> None:
        limits = Limits(seeds_us=100_000, handshake_us=300_000)
        async with Node(limits=limits) as first:
            known = seed.format(address=first.address, port=first.address.rpartition(":")[2])
            async with Node(seeds=[known], limits=limits) as second:
                await second.ready()
                links = [node._hub.connections()[0] for node in (first, second)]
                await asyncio.sleep(1.5)  # some ten times
                assert [node._hub.connections() for node in (first, second)] == [[link] for link in links]

    run(work())


def test_publishers_wait_for_a_neighbour_that_is_behind_and_it_is_cut_in_the_end() -> None:
    """One node's process stands still: here, it does not read."""

    async def work() -> None:
        limits = Limits(
            peer_queue_high_bytes=200_000, peer_queue_bytes=4_000_000, stall_us=1_000_000, slow_us=2_000_000
        )
        async with cluster(3, limits=limits) as nodes, nodes[2].subscribe("t", policy="block") as messages:
            stuck = nodes[1]
            for conn in stuck._hub.connections():
                conn.transport.pause_reading()
            body = bytes(10_000)
            sent = 0
            while True:
                if nodes[0]._hub.congestion:
                    await asyncio.sleep(0.5)  # the healthy one takes it all, and the system has buffers too
                    if nodes[0]._hub.congestion:
                        break
                await nodes[0].publish("t", body)
                sent += 1
                assert sent < 2000, "no pressure"
            with pytest.raises(EpicastError, match="a neighbour cannot take more now"):
                await nodes[0].publish("t", body, wait=False)
            with pytest.raises(EpicastError, match="a neighbour cannot take more now"):
                nodes[0].publish_now("t", body)
            while not nodes[0]._hub.counters["slow peers cut"]:
                await nodes[0].publish("t", body)
                sent += 1
                await asyncio.sleep(0.01)
                assert sent < 5000, "not cut"
            await nodes[0].publish("t", b"last")
            assert nodes[0]._hub.counters["slow peers cut"] == 1
            assert any("slow peer" in key for key in nodes[0]._hub.counters)
            assert (await payloads(messages, sent + 1))[-1] == b"last"

    run(work())


@pytest.mark.parametrize("high", [16_384, 262_144])
@pytest.mark.parametrize("size", [1_000, 10_000])
@fast_and_not
def test_small_queues_hold_up_nobody_for_ever(high: int, size: int, fast: bool) -> None:
    async def work() -> None:
        limits = Limits(peer_queue_high_bytes=high, local_socket_bytes=262_144)
        async with cluster(6, limits=limits) as nodes:
            subscriptions = [node.subscribe("t", policy="block") for node in nodes[1:]]
            for each in subscriptions:
                await each.__aenter__()
            count = 20_000_000 // size
            reading = [asyncio.create_task(payloads(each, count)) for each in subscriptions]
            for number in range(count):
                await nodes[0].publish("t", number.to_bytes(8, "big") + bytes(size))
            for each in reading:
                assert len(await each) == count
            assert nodes[0]._hub.counters["slow peers cut"] == 0

    run(work(), fast=fast)


def test_a_run_that_is_handed_on_as_it_came_is_the_same_everywhere() -> None:
    async def work() -> None:
        async with cluster(8) as nodes:
            subscriptions = [node.subscribe("t", policy="block") for node in nodes]
            for each in subscriptions:
                await each.__aenter__()
            expected = sorted(b"%d" % number for number in range(3000))
            for number in range(3000):
                await nodes[0].publish("t", b"%d" % number)
                if number % 100 == 0:
                    await asyncio.sleep(0)
            for each in subscriptions:
                assert await payloads(each, 3000) == expected
            assert all(each.lost == 0 for each in subscriptions)

    run(work(), fast=True)


def test_without_async() -> None:
    with SyncNode() as first, SyncNode(seeds=[first.address]) as second:
        second.ready()
        with first.subscribe("a/*") as messages:
            receipt = second.publish("a/b", b"x")
            message = messages.get(timeout=30)
            assert isinstance(message, Message)
            assert (message.payload, message.id) == (b"x", receipt.id)
            with pytest.raises(TimeoutError):
                messages.get(timeout=0.01)
        assert list(messages) == []
    with pytest.raises(EpicastError, match="not running"):
        first.publish("t", b"")
