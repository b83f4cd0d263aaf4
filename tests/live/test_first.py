"""The first node of a cluster whose nodes all have the same seeds, as in a StatefulSet: real nodes and processes."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from epicast import EpicastError, Limits, Node
from epicast.live.pages import fetch_status, get
from tests.live.certified import make_cluster
from tests.live.clusters import run, until
from tests.live.programs import Program
from tests.live.test_cli_live import nobody

__all__ = ["nobody"]

SOON = Limits(first_us=300_000)
NEVER = Limits(first_us=3_600_000_000)


def free(count: int, host: str = "127.0.0.1") -> list[str]:
    """Addresses, all different."""
    taken = [socket.create_server((host, 0)) for _ in range(count)]
    try:
        return [f"{host}:{each.getsockname()[1]}" for each in taken]
    finally:
        for each in taken:
            each.close()


def same(address: str) -> dict[str, Any]:
    return {"listen": address, "seeds": [address]}


def by_name(address: str) -> dict[str, Any]:
    return {"listen": address, "seeds": [f"localhost:{address.rpartition(':')[2]}"]}


def advertised(address: str) -> dict[str, Any]:
    """By a name that resolves nowhere from here, which others may resolve."""
    port = address.rpartition(":")[2]
    return {"listen": address, "advertise": f"n0.invalid:{port}", "seeds": [f"n0.invalid:{port}"]}


def everywhere(address: str) -> dict[str, Any]:
    return {"listen": f"0.0.0.0:{address.rpartition(':')[2]}", "insecure": True, "seeds": [address]}


def behind_another_address(address: str) -> dict[str, Any]:
    port = address.rpartition(":")[2]
    return {
        "listen": f"0.0.0.0:{port}",
        "insecure": True,
        "advertise": f"127.0.0.1:{port}",
        "seeds": [f"127.0.0.2:{port}"],
    }


@pytest.mark.parametrize("way", [same, by_name, advertised, everywhere, behind_another_address])
@pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])
def test_a_first_node_that_is_its_own_seed_becomes_ready(way: Callable[[str], Any], fast: bool) -> None:
    async def work() -> None:
        (address,) = free(1)
        async with Node(**way(address), limits=SOON) as node:
            await node.ready()
            assert node.neighbours == []
            async with Node(seeds=[address], limits=SOON) as second:
                await second.ready()
                await node.ready()
                assert second.neighbours == [node.id]

    run(work(), fast=fast)


def test_a_first_node_with_keys_finds_itself(tmp_path: Path) -> None:
    from epicast import Tls

    folder = make_cluster(tmp_path / "keys", "n0", cluster="epicast")

    async def work() -> None:
        (address,) = free(1)
        async with Node(**by_name(address), tls=Tls.from_folder(folder, "n0"), limits=SOON) as node:
            await node.ready()

    run(work())


def test_a_name_with_the_addresses_of_all_may_hold_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A headless service: no other pod is there yet."""

    async def work() -> None:
        (address,) = free(1)
        port = int(address.rpartition(":")[2])
        loop = asyncio.get_running_loop()
        asked = loop.getaddrinfo

        async def getaddrinfo(host: Any, *given: Any, **more: Any) -> Any:
            if host != "nodes.example":
                return await asked(host, *given, **more)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{last}", port)) for last in (3, 1, 2)]

        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
        async with Node(listen=address, seeds=[f"nodes.example:{port}"], limits=SOON) as node:
            await node.ready()
            assert node._joining.search.why().startswith("127.0.0.")

    run(work())


def test_a_node_that_is_not_among_its_seeds_is_never_the_first(nobody: str) -> None:
    async def work() -> None:
        async with Node(seeds=[nobody], limits=SOON) as node:
            with pytest.raises(EpicastError, match="Connection refused"):
                await node.ready(timeout=1.5)

    run(work())


def test_nodes_that_start_together_with_the_same_seeds_are_one_cluster() -> None:
    async def work() -> None:
        seeds = free(3)
        for _ in range(5):
            nodes = [Node(listen=address, seeds=seeds, limits=SOON) for address in seeds]
            try:
                await asyncio.gather(*(node.start() for node in nodes))
                await asyncio.gather(*(node.ready() for node in nodes))
                assert all(node.neighbours for node in nodes), "there were two first nodes"
            finally:
                await asyncio.gather(*(node.stop() for node in nodes))

    run(work())


def test_a_node_that_starts_while_another_takes_itself_for_the_first_joins_it() -> None:
    """At whatever moment: it listens before it asks, so that one of the two hears of the other."""

    async def work() -> None:
        one, two = free(2)
        for late_s in (0.0, 0.1, 0.29, 0.3, 0.31, 0.4):
            async with Node(listen=one, seeds=[one, two], limits=SOON) as first:
                await asyncio.sleep(late_s)
                async with Node(listen=two, seeds=[one, two], limits=SOON) as second:
                    await second.ready()
                    await first.ready()
                    assert second.neighbours == [first.id]

    run(work())


def test_a_first_node_that_starts_again_joins_the_cluster_that_still_runs() -> None:
    async def work() -> None:
        seeds = free(2)
        async with Node(listen=seeds[1], seeds=seeds, limits=SOON) as second:
            for _ in range(3):
                async with Node(listen=seeds[0], seeds=seeds, limits=NEVER) as first:
                    await first.ready()
                    assert first.neighbours == [second.id]

    run(work())


@pytest.mark.parametrize("good_order", [True, False])
def test_a_first_node_that_knows_only_itself_is_called_back_by_those_that_knew_it(good_order: bool) -> None:
    """Its only seed is itself, so it cannot ask: its former neighbours ask at its address, before their next look."""

    async def work() -> None:
        (seed,) = free(1)
        rare = Limits(seeds_us=3_600_000_000)
        first = Node(listen=seed, seeds=[seed], limits=SOON)
        await first.start()
        await first.ready()
        async with Node(seeds=[seed], limits=rare) as second, Node(seeds=[seed], limits=rare) as third:
            await asyncio.gather(second.ready(), third.ready())
            await until(lambda: len(second.neighbours) == len(third.neighbours) == 2, "not all are neighbours")
            if not good_order:
                for conn in first._hub.connections():
                    conn.cut("as if killed")
            await first.stop()
            await until(lambda: first.id not in second.neighbours + third.neighbours, "it is still a neighbour")
            async with Node(listen=seed, seeds=[seed], limits=NEVER) as again:
                await again.ready()
                assert set(again.neighbours) <= {second.id, third.id}

    run(work())


def test_a_node_that_has_lost_all_others_is_not_ready_until_it_has_asked_again() -> None:
    async def work() -> None:
        seeds = free(2)
        limits = Limits(first_us=1_000_000)
        async with Node(listen=seeds[0], seeds=seeds, limits=limits) as first:
            async with Node(listen=seeds[1], seeds=seeds, limits=limits) as second:
                await second.ready()
                await first.ready()
            await until(lambda: not first.neighbours, "it is still a neighbour")
            assert not first._readiness.joined()
            await first.ready()
            assert first._readiness.first()

    run(work())


def test_a_seed_that_refuses_us_keeps_us_from_being_the_first() -> None:
    async def work() -> None:
        one, two = free(2)
        async with Node(listen=two, stack="flood"), Node(listen=one, seeds=[one, two], limits=SOON) as node:
            with pytest.raises(EpicastError, match=f"{two}: refused: another stack"):
                await node.ready(timeout=1.5)

    run(work())


# With processes, as an operator has them


def health(admin: str) -> int:
    host, port = admin.split(":")
    from epicast.live.ids import Address

    return asyncio.run(get(Address(host, int(port)), "/healthz", 10.0))[0]


def wait_until_healthy(program: Program, told: dict[str, Any]) -> None:
    async def work() -> None:
        while await asyncio.to_thread(health, told["admin"]) != 200:
            assert program.process.poll() is None, program.errors()
            await asyncio.sleep(0.05)

    run(work())


def test_an_ordered_roll_out_of_processes_with_one_list_of_seeds(tmp_path: Path) -> None:
    """Each starts once the one before is healthy; then the first is killed and starts again, and joins."""
    seeds = free(3)
    for number, address in enumerate(seeds):
        listed = ", ".join(json.dumps(each) for each in seeds)
        text = f'listen = "{address}"\nseeds = [{listed}]\n[limits]\nfirst = "500ms"\n'
        (tmp_path / f"n{number}.toml").write_text(text)
    with Program("node", "n0.toml", "--json", cwd=tmp_path) as first:
        first_told = first.json()
        wait_until_healthy(first, first_told)
        assert fetch_status(first_told["admin"])["first"]
        with Program("node", "n1.toml", "--json", cwd=tmp_path) as second:
            second_told = second.json()
            wait_until_healthy(second, second_told)
            with Program("node", "n2.toml", "--json", cwd=tmp_path) as third:
                third_told = third.json()
                wait_until_healthy(third, third_told)
                first.process.kill()
                first.wait()
                with Program("node", "n0.toml", "--json", cwd=tmp_path) as again:
                    told = again.json()
                    wait_until_healthy(again, told)
                    status = fetch_status(told["admin"])
                    assert (status["first"], status["waits_for"]) == (False, "")
                    assert {each["id"] for each in status["neighbours"]} <= {second_told["id"], third_told["id"]}
                    assert status["neighbours"]


def test_the_port_of_a_seed_may_be_held_by_a_process_that_says_nothing() -> None:
    """A process is there, so the node is not the first: it may be one of ours that is stuck."""

    async def work() -> None:
        (one,) = free(1)
        limits = Limits(first_us=300_000, handshake_us=300_000)
        with closing(socket.create_server(("127.0.0.1", 0))) as silent:
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            async with Node(listen=one, seeds=[one, address], limits=limits) as node:
                with pytest.raises(EpicastError, match=f"{address}: it takes connections, but does not greet"):
                    await node.ready(timeout=1.5)

    run(work())
