"""Nodes of one machine talk by Unix sockets where they can, and by TCP where they cannot or should not."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from epicast.live import same_machine
from epicast.live.config import Limits
from epicast.live.ids import Address, parse_address
from epicast.live.node import Node
from epicast.live.same_machine import HERE
from epicast.live.tls import Tls
from tests.live.certified import make_cluster
from tests.live.clusters import cluster, require_all, run, taking, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has names that are no files")

BY_TCP = Limits(local_sockets=False)
NOBODY = 65534  # a user without rights


def remotes(node: Node) -> set[str]:
    return {conn.remote for conn in node._hub.connections()}


@asynccontextmanager
async def two(one: dict[str, Any], other: dict[str, Any], **both: Any) -> AsyncIterator[tuple[Node, Node]]:
    """The second joins through the first."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(Node(**one, **both))
        second = await stack.enter_async_context(Node(**other, **both, seeds=[first.address]))
        await second.ready()
        yield first, second


def free_address() -> Address:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return Address(*listener.getsockname())


async def publish(node: Node, messages: int = 200) -> set[tuple[str, int]]:
    return {(await node.publish("t", bytes(10_000))).id for _ in range(messages)}


@pytest.mark.parametrize("fast", [False, True])
def test_nodes_of_one_machine_talk_by_unix_sockets(fast: bool) -> None:
    async def work() -> None:
        async with cluster(4) as nodes, taking(nodes) as takers:
            await require_all(takers, await publish(nodes[0]))
            assert {remote for node in nodes for remote in remotes(node)} == {HERE}

    run(work(), fast=fast)


@pytest.mark.parametrize("fast", [False, True])
def test_by_tcp_if_told_so(fast: bool) -> None:
    async def work() -> None:
        async with cluster(4, limits=BY_TCP) as nodes, taking(nodes) as takers:
            await require_all(takers, await publish(nodes[0]))
            assert {remote for node in nodes for remote in remotes(node)} == {"127.0.0.1"}

    run(work(), fast=fast)


@pytest.mark.parametrize("first_by_tcp", [False, True])
def test_one_that_does_and_one_that_does_not_talk_by_tcp(first_by_tcp: bool) -> None:
    async def work() -> None:
        limits = [Limits(), BY_TCP]
        async with two({"limits": limits[first_by_tcp]}, {"limits": limits[not first_by_tcp]}) as (one, other):
            assert remotes(one) == remotes(other) == {"127.0.0.1"}

    run(work())


def test_with_tls_by_tcp(tmp_path: Path) -> None:
    async def work() -> None:
        make_cluster(tmp_path, "one", "other", cluster="prices")
        one_tls, other_tls = (Tls.from_folder(tmp_path, name) for name in ("one", "other"))
        async with two({"tls": one_tls}, {"tls": other_tls}, cluster="prices") as (_, other):
            assert remotes(other) == {"127.0.0.1"}

    run(work())


def test_nobody_is_found_where_nobody_listens() -> None:
    assert same_machine.dial(free_address()) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "localhost", "node-7.example"])
def test_what_is_not_the_address_of_one_machine_has_no_name(host: str) -> None:
    assert same_machine.listen(Address(host, 7946), 8) is None
    assert same_machine.dial(Address(host, 7946)) is None


def test_a_name_is_free_again_once_its_node_is_gone() -> None:
    async def work() -> None:
        async with Node() as node:
            address = parse_address(node.address)
            link = same_machine.dial(address)
            assert link is not None
            link.close()
        assert same_machine.dial(address) is None
        async with Node(listen=node.address):
            link = same_machine.dial(address)
            assert link is not None
            link.close()

    run(work())


def test_a_name_that_is_taken_does_not_keep_a_node_from_starting() -> None:
    async def work() -> None:
        address = free_address()
        taken = same_machine.listen(address, 8)
        assert taken is not None
        with closing(taken):
            async with two({"listen": str(address)}, {"limits": BY_TCP}) as (one, _):
                assert remotes(one) == {"127.0.0.1"}

    run(work())


def test_hostile_bytes_end_such_a_connection_too() -> None:
    async def work() -> None:
        async with Node() as node:
            link = same_machine.dial(parse_address(node.address))
            assert link is not None
            reader, writer = await asyncio.open_unix_connection(sock=link)
            writer.write(b"\xff" * 5000)
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()
            await until(lambda: node._hub.counters["nonsense"] == 1)

    run(work())


# Other users

SQUATTER = """
import os, sys
from epicast.live import same_machine
from epicast.live.ids import parse_address
os.setuid(int(sys.argv[1]))
listener = same_machine.listen(parse_address(sys.argv[2]), 8)
print("ready", flush=True)
sys.stdin.read()
"""
CALLER = """
import os, socket, sys
os.setuid(int(sys.argv[1]))
link = socket.socket(socket.AF_UNIX)
link.connect(f"\\0epicast/{sys.argv[2]}")
print(link.recv(1), flush=True)
"""
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")


@contextmanager
def as_nobody(program: str, address: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", program, str(NOBODY), str(address)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@needs_root
def test_a_process_of_another_user_that_took_the_name_is_not_spoken_to() -> None:
    async def work() -> None:
        address = free_address()
        with as_nobody(SQUATTER, address) as squatter:
            assert squatter.stdout is not None
            assert squatter.stdout.readline() == "ready\n"
            assert same_machine.dial(address) is None
            async with two({"listen": str(address)}, {}) as (_, other):
                assert "127.0.0.1" in remotes(other), "what it dialled it dialled by TCP"

    run(work())


@needs_root
def test_a_process_of_another_user_is_not_let_in() -> None:
    async def work() -> None:
        async with Node() as node:
            with as_nobody(CALLER, node.address) as caller:
                said = await asyncio.to_thread(caller.communicate)
            assert said[0] == "b''\n"
            assert node._hub.counters["connections refused"] == 1

    run(work())
