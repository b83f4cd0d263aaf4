"""What fails on one connection, or in one part, leaves all others as they are."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from epicast.core.errors import EpicastError
from epicast.dissemination.brisa import Brisa
from epicast.live.config import Limits
from epicast.live.node import Node
from epicast.membership.hyparview import HyParView
from tests.live.certified import make_cluster
from tests.live.clusters import cluster, require_all, run, taking, until

fast_and_not = pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])


@fast_and_not
def test_a_protocol_that_fails_when_a_peer_goes_concerns_no_other_peer(
    fast: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told = HyParView.on_link_down
    broken: list[Node] = []

    def fails_once(self: HyParView, peer: Any) -> None:
        if broken and self.env.me == broken[0].id:
            broken.pop()
            raise ValueError("a fault of a protocol")
        told(self, peer)

    monkeypatch.setattr(HyParView, "on_link_down", fails_once)

    async def work() -> None:
        async with cluster(5) as nodes, taking(nodes[1:]) as takers:
            errors: list[Any] = []
            asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
            broken.append(nodes[1])
            published = {(await nodes[0].publish("t", b"before")).id}
            nodes[1]._hub.connections()[0].cut("a test")
            await until(lambda: not broken)
            for number in range(20):
                published.add((await nodes[0].publish("t", b"%d" % number)).id)
            await require_all(takers, published)
            assert errors == []

    run(work(), fast=fast)
    assert "on_link_down could not be handled" in caplog.text


@fast_and_not
def test_a_part_that_fails_on_a_run_of_events_costs_one_connection(
    fast: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    take = Brisa.take_run
    broken: list[Node] = []

    def fails_once(self: Brisa, *given: Any) -> Any:
        if broken and self.env.me == broken[0].id:
            broken.pop()
            raise ValueError("a fault of a protocol")
        return take(self, *given)

    monkeypatch.setattr(Brisa, "take_run", fails_once)

    async def work() -> None:
        async with cluster(5) as nodes, taking(nodes[1:]) as takers:
            errors: list[Any] = []
            asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
            published = {(await nodes[0].publish("t", b"before")).id}
            await require_all(takers, published)
            broken.append(nodes[2])
            for number in range(50):
                published.add((await nodes[0].publish("t", b"%d" % number)).id)
                await asyncio.sleep(0.01)
            await require_all(takers, published)
            assert broken == []
            assert nodes[2]._hub.counters["nonsense"] == 1
            assert errors == []

    run(work(), fast=fast)
    assert "could not be handled; the connection is cut" in caplog.text


@fast_and_not
def test_a_node_stops_although_a_protocol_fails(fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: HyParView) -> None:
        raise ValueError("a fault of a protocol")

    async def work() -> None:
        async with cluster(2) as (first, second):
            monkeypatch.setattr(HyParView, "leave", fails)
            await first.stop()
            monkeypatch.undo()
            assert first._hub._open == {}
            async with Node(listen=first.address) as again:  # nothing listens there any more
                assert again.address == first.address
            await until(lambda: not second.neighbours, "it still believes in the one that stopped")

    run(work(), fast=fast)


class Broken:
    """A discovery that cannot start."""

    async def start(self, *_: Any) -> None:
        raise EpicastError("no network")

    def close(self) -> None:
        raise ValueError("never opened")


@fast_and_not
def test_a_node_that_cannot_start_leaves_nothing_open(fast: bool) -> None:
    async def work() -> None:
        node = Node(discovery=[Broken()])
        with pytest.raises(EpicastError, match="no network"):
            await node.start()
        async with Node(listen=node.address) as another:
            assert another.neighbours == []

    run(work(), fast=fast)


@fast_and_not
def test_a_peer_that_takes_nothing_does_not_keep_a_connection_open_over_tls(fast: bool, tmp_path: Any) -> None:
    """TLS knows no half of an end: what waits would have to be taken first."""
    from epicast.live.tls import Tls

    folder = make_cluster(tmp_path / "keys", "n1", "n2")

    async def work() -> None:
        limits = Limits(idle_us=500_000)
        settings: Any = {"cluster": "prices", "limits": limits}
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(Node(tls=Tls.from_folder(folder, "n1"), **settings))
            settings["seeds"] = [first.address]
            second = await stack.enter_async_context(Node(tls=Tls.from_folder(folder, "n2"), **settings))
            await second.ready()
            (conn,) = first._hub.connections()
            (other,) = second._hub.connections()
            other.transport.pause_reading()
            conn.send(bytes(8 << 20))
            first._hub.close(second.id)
            await until(lambda: conn.ended, "it never ends")
            assert conn not in first._hub._open

    run(work(), fast=fast)
