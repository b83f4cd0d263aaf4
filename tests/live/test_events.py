"""`node.events()`: what happens to a node's place in the cluster, on real sockets."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import time
from collections.abc import Callable

import pytest

from epicast import EpicastError, Events, Limits, Message, Node, NodeEvent, SyncNode
from epicast.live.events import LISTENERS_MAX, Tap
from epicast.stacks import stack as stacks
from tests.live.clusters import WAIT_S, cluster, run, until
from tests.live.programs import Program
from tests.live.test_cli_live import nobody

__all__ = ["nobody"]

fast_and_not = pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])


async def the(events: Events, fits: Callable[[NodeEvent], bool]) -> NodeEvent:
    """The next one that fits; others are passed over."""
    async with asyncio.timeout(WAIT_S):
        async for event in events:
            if fits(event):
                return event
    raise AssertionError("the events ended")


def kind(name: str) -> Callable[[NodeEvent], bool]:
    return lambda event: event.kind == name


@fast_and_not
def test_a_join_is_told_on_both_sides(fast: bool) -> None:
    async def work() -> None:
        async with Node() as first, Node(seeds=[first.address]) as second:
            theirs, ours = first.events(), second.events()
            began_us = second.unix_us()
            up, joined = await anext(ours), await anext(ours)
            assert (up.kind, up.peer, up.reason, up.missed) == ("neighbour-up", first.id, "", 0)
            assert (joined.kind, joined.peer, joined.reason) == ("joined", first.id, "the first neighbour")
            assert began_us <= up.time_us <= joined.time_us <= second.unix_us()
            assert (await the(theirs, kind("neighbour-up"))).peer == second.id

    run(work(), fast=fast)


@fast_and_not
def test_a_neighbour_that_leaves_is_told_with_the_reason(fast: bool) -> None:
    async def work() -> None:
        async with Node() as first:
            async with Node(seeds=[first.address]) as second:
                await second.ready()
                events = first.events()
            down, alone = await anext(events), await anext(events)
            assert (down.kind, down.peer, down.reason) == ("neighbour-down", second.id, "it left")
            assert (alone.kind, alone.peer, alone.reason) == ("alone", "", "the last neighbour is gone")

    run(work(), fast=fast)


@fast_and_not
@pytest.mark.parametrize("sockets", ["tcp", "unix"])
def test_a_neighbour_that_is_killed_is_told_with_the_reason(fast: bool, sockets: str) -> None:
    with Program("node", "--json") as process:
        told = process.json()

        async def work() -> None:
            limits = Limits(local_sockets=sockets == "unix")
            async with Node(seeds=[told["address"]], limits=limits) as node:
                await node.ready()
                events = node.events()
                process.process.send_signal(signal.SIGKILL)
                down = await the(events, kind("neighbour-down"))
                assert down.peer == told["id"]
                assert down.reason in ("closed by the peer", "Connection reset by peer", "Broken pipe"), down
                assert (await the(events, kind("alone"))).peer == ""
                await the(events, lambda event: (event.kind, event.reason) == ("dial-failed", "Connection refused"))

        run(work(), fast=fast)


def test_a_neighbour_that_hangs_is_told_with_the_reason() -> None:
    with Program("node", "--json") as process:
        told = process.json()

        async def work() -> None:
            async with Node(seeds=[told["address"]]) as node:
                await node.ready()
                events = node.events()
                process.process.send_signal(signal.SIGSTOP)
                down = await the(events, kind("neighbour-down"))
                assert (down.peer, down.reason) == (told["id"], "it was silent for too long")

        run(work())


@fast_and_not
def test_a_refused_dial_is_told(nobody: str, fast: bool) -> None:
    async def work() -> None:
        async with Node(cluster="other") as other, Node(seeds=[nobody, other.address]) as node:
            events, reasons = node.events(), {}
            while len(reasons) < 2:
                failed = await the(events, kind("dial-failed"))
                reasons[failed.peer] = failed.reason
            assert reasons == {
                nobody: "Connection refused",
                other.address: "refused by the peer: another cluster",
            }

    run(work(), fast=fast)


def test_a_node_that_becomes_the_first_is_told() -> None:
    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
        async with Node(listen=address, seeds=[address], limits=Limits(first_us=100_000)) as node:
            joined = await anext(node.events())
            assert (joined.kind, joined.peer) == ("joined", "")
            assert joined.reason == "the first: no other process is there"

    run(work())


def test_a_repair_of_a_tree_is_told() -> None:
    async def work() -> None:
        narrow = stacks.load("brisa", {"membership": {"active_size": 2, "expansion": 1.5}})
        async with cluster(10, stack=narrow) as nodes:
            source = nodes[0]

            async def heard(publish: int) -> None:
                async with nodes[-1].subscribe("t") as messages:
                    for _ in range(publish):
                        await source.publish("t", b"x")
                    for _ in range(publish):
                        assert isinstance(await anext(messages), Message)

            def parent(node: Node) -> str:
                flows = node._stack_node.dissemination.flows.values()  # type: ignore[attr-defined]
                return next((str(flow.parent) for flow in flows if flow.parent is not None), "")

            def orphans() -> list[Node]:
                return [node for node in nodes[1:] if parent(node) not in ("", source.id)]

            await heard(20)
            await until(orphans, "all are children of the source")
            orphan = orphans()[0]
            lost = next(node for node in nodes if node.id == parent(orphan))
            events = orphan.events()
            for conn in lost._hub.connections():
                conn.cut("as if killed")
            await lost.stop()
            repaired = await the(events, kind("repaired"))
            assert repaired.peer in {node.id for node in nodes} - {lost.id, orphan.id}
            assert repaired.reason.endswith(f" repair: it is our parent in the tree of {source.id}")
            assert repaired.reason.split()[0] in ("soft", "hard")

    run(work())


# The queue


def test_a_full_queue_drops_the_oldest_and_the_next_event_says_how_many() -> None:
    async def work() -> None:
        async with Node() as node:
            events = node.events(events_max=3)
            for number in range(10):
                node._happenings.dial_failed(str(number), "why")
            assert (events.waiting, events.lost) == (3, 7)
            taken = [await anext(events) for _ in range(3)]
            assert [(each.peer, each.missed) for each in taken] == [("7", 7), ("8", 0), ("9", 0)]
            for number in range(4):
                node._happenings.dial_failed(str(number), "why")
            assert ((await anext(events)).missed, events.lost) == (1, 8)

    run(work())


def test_every_listener_gets_every_event_and_ends_with_the_node() -> None:
    async def work() -> None:
        node = Node()
        await node.start()
        one, two = node.events(), node.events()
        node._happenings.dial_failed("x", "why")
        waiting = asyncio.create_task(the(two, lambda event: event.peer == "never"))
        assert (await anext(one)).peer == "x"
        await node.stop()
        assert [event async for event in one] == []
        with pytest.raises(AssertionError, match="the events ended"):
            await waiting
        with pytest.raises(EpicastError, match="the node is not running"):
            node.events()

    run(work())


def test_without_listeners_nothing_is_wrapped_and_no_event_is_made(nobody: str) -> None:
    async def work() -> None:
        async with Node(seeds=[nobody]) as node:
            driver, above = node._driver, node._stack_node.dissemination
            assert (driver.happenings, node._stack_node.membership.listener) == (None, above)
            one, two = node.events(), node.events()
            assert isinstance(node._stack_node.membership.listener, Tap)
            one.close()
            one.close()
            assert isinstance(node._stack_node.membership.listener, Tap)
            async with two:
                pass
            assert (driver.happenings, node._stack_node.membership.listener) == (None, above)

    run(work())


def test_a_listener_that_is_forgotten_is_closed() -> None:
    async def work() -> None:
        async with Node() as node:
            gc.collect()
            gc.freeze()  # what the tests before left behind need not be looked through each time
            for _ in range(3 * LISTENERS_MAX):
                node.events()
                gc.collect()
                await asyncio.sleep(0)
            kept = [node.events() for _ in range(LISTENERS_MAX)]
            with pytest.raises(EpicastError, match=f"more than {LISTENERS_MAX} listeners to events: close some"):
                node.events()
            kept.clear()
            gc.collect()
            await until(lambda: node._driver.happenings is None, "a listener is left")
            assert node.events().waiting == 0

    try:
        run(work())
    finally:
        gc.unfreeze()


def test_a_loop_alone_will_do(nobody: str) -> None:
    """There is nothing to open: the events are those after the call, and the queue is bounded."""

    async def work() -> None:
        async with Node(seeds=[nobody]) as node:
            async for event in node.events():
                assert (event.kind, event.peer) == ("dial-failed", nobody)
                break
            gc.collect()
            await until(lambda: node._driver.happenings is None, "it still listens")

    run(work())


@pytest.mark.parametrize("stack", ["scamp-flood", "cyclon-flood", "clon-brisa", "flood"])
def test_every_membership_tells_of_its_neighbours(stack: str) -> None:
    async def work() -> None:
        async with Node(stack=stack) as first, Node(stack=stack, seeds=[first.address]) as second:
            events = second.events()
            assert (await the(events, kind("neighbour-up"))).peer == first.id
            assert (await the(events, kind("joined"))).peer == first.id
            await second.ready()

    run(work())


# Without async


def test_events_without_async(nobody: str) -> None:
    with SyncNode(seeds=[nobody]) as node, node.events() as events:
        failed = events.get(timeout=30)
        assert (failed.kind, failed.peer, failed.reason) == ("dial-failed", nobody, "Connection refused")
        for event in events:
            assert event.kind == "dial-failed"
            break
        assert events.lost == 0
        events.close()
        assert all(event.kind == "dial-failed" for event in events), "what waits comes first; then the loop ends"
        with pytest.raises(EpicastError, match="the events are closed"):
            events.get(timeout=30)


def test_a_timeout_without_async() -> None:
    with SyncNode() as node:
        events = node.events(events_max=5)
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            events.get(timeout=0.05)
        assert time.monotonic() - began >= 0.05
        with pytest.raises(EpicastError, match="events_max: expected an integer"):
            node.events(events_max=0)
    with pytest.raises(EpicastError, match="the node is not running"):
        events.get(timeout=1)
    with pytest.raises(EpicastError, match="the node is not running"):
        node.events()
