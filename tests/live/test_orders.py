"""Orders of topics on real sockets, as an application sees them."""

import asyncio
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from epicast.core.errors import EpicastError
from epicast.live.messages import Gap, Message, QueueFull
from epicast.live.node import Node
from epicast.live.subscription import Subscription
from epicast.live.tls import Tls
from epicast.stacks import stack as stacks
from tests.live.certified import make_cluster
from tests.live.clusters import WAIT_S, cluster, run, until
from tests.support.neighbours import Members

ORDERS = {"ledger/**": "total", "chat/*": "causal", "log": "fifo"}
TOPICS = ("ledger/eur", "chat/a", "log", "news")


async def collect(subscription: Subscription, count: int) -> list[Message]:
    found: list[Message] = []
    async with asyncio.timeout(WAIT_S):
        while len(found) < count:
            item = await subscription.__anext__()
            assert isinstance(item, Message), item
            found.append(item)
    return found


def test_each_topic_has_its_order() -> None:
    async def body() -> None:
        async with cluster(6, order=ORDERS) as nodes:
            reading = []
            for node in nodes:
                subscription = await node.subscribe("**").__aenter__()
                reading.append(asyncio.create_task(collect(subscription, 6 * 10 * len(TOPICS))))
            for number in range(10):
                for node in nodes:
                    for topic in TOPICS:
                        await node.publish(topic, b"%d" % number)
            got = [await task for task in reading]
        ledgers = {tuple(m.id for m in each if m.topic == "ledger/eur") for each in got}
        assert len(ledgers) == 1
        for each in got:
            for topic in TOPICS[:3]:
                for source in {m.source for m in each}:
                    numbers = [int(m.payload) for m in each if (m.topic, m.source) == (topic, source)]
                    assert numbers == list(range(10))
        assert len({tuple(m.id for m in each if m.topic == "news") for each in got}) > 1  # nobody asked

    run(body())


def test_a_subscriber_in_a_hurry_gets_messages_as_they_come_and_each_once() -> None:
    async def body() -> None:
        async with (
            cluster(3, order="total") as nodes,
            nodes[1].subscribe("t", order="none") as hasty,
            nodes[1].subscribe("t") as patient,
        ):
            await nodes[0].publish("t", b"x")
            (first,) = await collect(hasty, 1)
            assert first.payload == b"x"
            assert patient.waiting == 0
            (second,) = await collect(patient, 1)
            assert second.id == first.id
            assert hasty.waiting == 0

    run(body())


def test_what_waits_can_be_looked_at_and_taken() -> None:
    async def body() -> None:
        settings = {"total": {"balls": {"period_us": 300_000}}}
        async with (
            cluster(3, order={"t": "total"}, order_settings=settings) as nodes,
            nodes[1].subscribe("**") as messages,
        ):
            receipt = await nodes[0].publish("t", b"early")
            await until(lambda: nodes[1].waiting("t"), "the message does not come")
            (waiting,) = nodes[1].waiting()
            assert (waiting.message.id, waiting.message.payload) == (receipt.id, b"early")
            assert 0.0 < waiting.probability <= 1.0
            assert nodes[1].waiting("other") == []
            taken = nodes[1].take(receipt.id)
            assert taken is not None
            assert taken.payload == b"early"
            assert nodes[1].take(receipt.id) is None
            await nodes[0].publish("t", b"next")
            assert [m.payload for m in await collect(messages, 1)] == [b"next"]  # not again

    run(body())


def test_large_messages_keep_their_order() -> None:
    async def body() -> None:
        async with (
            cluster(3, order="total", limits={"fragment_bytes": 1024}) as nodes,
            nodes[1].subscribe("t") as one,
            nodes[2].subscribe("t") as other,
        ):
            sizes = [10, 5_000, 20, 3_500, 30]
            await asyncio.gather(*(nodes[at % 3].publish("t", bytes(size)) for at, size in enumerate(sizes)))
            seen = [[len(m.payload) for m in await collect(each, 5)] for each in (one, other)]
            assert seen[0] == seen[1]
            assert sorted(seen[0]) == sorted(sizes)

    run(body())


def test_signed_messages_have_orders_too(tmp_path: Path) -> None:
    async def body() -> None:
        names = ("a", "b", "c")
        keys = make_cluster(tmp_path, *names)
        async with AsyncExitStack() as stack:
            nodes: list[Node] = []
            for name in names:
                seeds = [node.address for node in nodes]
                tls = Tls.from_folder(keys, name)
                node = Node(seeds=seeds, cluster="prices", tls=tls, sign=True, order=ORDERS)
                nodes.append(await stack.enter_async_context(node))
            await asyncio.gather(*(node.ready() for node in nodes))
            async with nodes[1].subscribe("**") as one, nodes[2].subscribe("**") as other:
                for topic in TOPICS:
                    await asyncio.gather(*(node.publish(topic, topic.encode()) for node in nodes))
                seen = [await collect(each, 12) for each in (one, other)]
                assert all(m.payload == m.topic.encode() for each in seen for m in each)
                ledgers = [[m.id for m in each if m.topic == "ledger/eur"] for each in seen]
                assert ledgers[0] == ledgers[1]

    run(body())


def test_nodes_that_disagree_about_orders_do_not_talk() -> None:
    async def body() -> None:
        async with Node(order={"t": "total"}) as one, Node(order={"t": "fifo"}, seeds=[one.address]) as other:
            with pytest.raises(EpicastError, match="nobody let us in"):
                await other.ready(timeout=1.5)

    run(body())


def test_an_order_that_a_topic_does_not_have_cannot_be_subscribed_to() -> None:
    async def body() -> None:
        async with Node(order=ORDERS) as node:
            node.subscribe("ledger/eur", order="total")
            node.subscribe("ledger/**", order="causal")  # a stronger one will do
            for pattern, order in (("log", "total"), ("news", "fifo"), ("**", "fifo"), ("log", "sorted")):
                with pytest.raises(EpicastError, match="order"):
                    node.subscribe(pattern, order=order)

    run(body())


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"order": "sorted"}, "order: expected none, fifo, causal, total, got 'sorted'"),
        ({"order": {"t": "sorted"}}, "order: expected none, fifo, causal, total, got 'sorted'"),
        ({"order": "total", "stack": "epto"}, "stack epto has its own order, epto: leave order out"),
        ({"order_settings": {"fifo": {}}}, "order_settings are for topics that have an order: give order"),
        ({"order": "total", "order_settings": {"total": {"ball": {}}}}, "stack.ordering.total.ball: unknown key"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(settings: dict[str, object], what: str) -> None:
    with pytest.raises(EpicastError) as error:
        Node(**settings)  # type: ignore[arg-type]
    assert str(error.value).startswith(what)
    assert "\n" not in str(error.value)


def test_a_stack_with_one_order_for_all_has_no_messages_as_they_come() -> None:
    async def body() -> None:
        async with cluster(3, stack="epto") as nodes:
            with pytest.raises(EpicastError, match="one order for all topics"):
                nodes[0].subscribe("t", order="none")
            async with nodes[1].subscribe("t", order="total") as messages:
                await nodes[0].publish("t", b"x")
                assert [m.payload for m in await collect(messages, 1)] == [b"x"]

    run(body())


@pytest.mark.parametrize(
    ("stack", "order"), [("fifo-brisa", "fifo"), ("causal-brisa", "causal"), ("epto-brisa", "total")]
)
def test_a_stack_may_have_the_order(stack: str, order: str) -> None:
    async def body() -> None:
        async with cluster(3, stack=stack) as nodes, nodes[1].subscribe("t", order=order) as messages:
            for number in range(20):
                await nodes[0].publish("t", b"%d" % number)
            assert [int(m.payload) for m in await collect(messages, 20)] == list(range(20))

    run(body())


def test_publishing_waits_for_room_in_the_order_or_says_that_there_is_none() -> None:
    async def body() -> None:
        settings = {"total": {"order": {"pending_max": 16}, "balls": {"period_us": 100_000}}}
        async with cluster(3, order="total", order_settings=settings) as nodes, nodes[1].subscribe("t") as messages:
            await nodes[0].publish("t", b"x")  # as soon as it knows the time
            sent = 1
            with suppress(QueueFull):
                while sent < 50:
                    await nodes[0].publish("t", b"x", wait=False)
                    sent += 1
            assert sent == 8  # half of what may wait
            with pytest.raises(QueueFull, match="order of this topic"):
                nodes[0].publish_now("t", b"x")
            await nodes[0].publish("t", b"y")
            got = await collect(messages, sent + 1)
            assert got[-1].payload == b"y"

    run(body())


def test_a_hole_is_told_where_it_is() -> None:
    """A message that FIFO order gives up is a gap on its topic, and nowhere else."""

    async def body() -> None:
        stack = stacks.load("flood")
        settings = {"fifo": {"patience_us": 200_000, "settle_us": 50_000}}
        async with (
            cluster(2, stack=stack, order={"log": "fifo"}, order_settings=settings) as nodes,
            nodes[1].subscribe("log") as log,
            nodes[1].subscribe("news") as news,
        ):
            await nodes[0].publish("log", b"0")
            await collect(log, 1)
            flood: Any = nodes[0]._stack_node.dissemination
            flood.members, members = Members(()), flood.members
            await nodes[0].publish("log", b"1")  # reaches nobody
            flood.members = members
            await nodes[0].publish("log", b"2")
            gap = await asyncio.wait_for(log.__anext__(), WAIT_S)
            assert isinstance(gap, Gap)
            assert (gap.lost, gap.source) == (1, nodes[0].id)
            assert [m.payload for m in await collect(log, 1)] == [b"2"]
            assert news.waiting == 0

    run(body())
