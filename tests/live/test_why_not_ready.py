"""A node that does not get in says why: by `ready()`, and on the command line in the same words."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from epicast import EpicastError, Limits, Node, SyncNode, Tls
from epicast.cli.main import main
from epicast.live.discovery import LanDiscovery
from epicast.live.status import status
from tests.live.certified import make_cluster
from tests.live.clusters import run, until
from tests.live.test_cli_live import nobody

__all__ = ["nobody"]

LIMITS = Limits(handshake_us=400_000)
fast_and_not = pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cluster(tmp_path_factory.mktemp("keys") / "ours", "n1", "n2", cluster="epicast")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cluster(tmp_path_factory.mktemp("keys") / "theirs", "n1", cluster="epicast")


async def why(seed: str, timeout_s: float = 1.0, **settings: Any) -> str:
    async with Node(seeds=[seed], limits=LIMITS, **settings) as node:
        with pytest.raises(EpicastError) as error:
            await node.ready(timeout=timeout_s)
        said = str(error.value)
        begin = f"nobody let us in within {timeout_s:g} s: "
        assert said.startswith(begin), said
        assert not status(node)["joined"]
        return said.removeprefix(begin)


REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"cluster": "other"}, "refused: another cluster"),
    (
        {"stack": "flood"},
        "refused: another stack or order: hyparview+flood, expected hyparview+brisa; all nodes need the same",
    ),
    ({"order": "fifo"}, r"refused: another stack or order: hyparview\+brisa\+.*, expected hyparview\+brisa;.*"),
]


@fast_and_not
@pytest.mark.parametrize(("settings", "text"), REFUSALS)
def test_another_cluster_stack_or_order(settings: dict[str, Any], text: str, fast: bool) -> None:
    async def work() -> None:
        async with Node() as node:
            said = await why(node.address, **settings)
            assert said == f"{node.address}: {text}" or re.fullmatch(f"{node.address}: {text}", said), said

    run(work(), fast=fast)


@fast_and_not
def test_nobody_listens(nobody: str, fast: bool) -> None:
    async def work() -> None:
        assert await why(nobody) == f"{nobody}: Connection refused"

    run(work(), fast=fast)


@fast_and_not
def test_a_name_that_does_not_resolve(fast: bool) -> None:
    with pytest.raises(socket.gaierror) as error:  # the words of this machine's resolver
        socket.getaddrinfo("no-such-host.invalid", 7946, type=socket.SOCK_STREAM)

    async def work() -> None:
        said = await why("no-such-host.invalid:7946", 3.0)
        assert said == f"no-such-host.invalid:7946: {error.value.strerror}"

    run(work(), fast=fast)


@fast_and_not
def test_keys_on_one_side_only(ours: Path, fast: bool) -> None:
    async def work() -> None:
        tls = Tls.from_folder(ours, "n1")
        async with Node(tls=tls) as secure, Node() as plain:
            said = await why(secure.address)
            assert re.fullmatch(f"{secure.address}: .*TLS on one side only\\?", said), said
            said = await why(plain.address, tls=tls)
            assert re.fullmatch(f"{plain.address}: .*TLS on one side only\\?", said), said

    run(work(), fast=fast)


@fast_and_not
def test_keys_of_another_authority(ours: Path, theirs: Path, fast: bool) -> None:
    async def work() -> None:
        async with Node(tls=Tls.from_folder(ours, "n1")) as node:
            said = await why(node.address, tls=Tls.from_folder(theirs, "n1"))
            assert said.startswith(f"{node.address}: TLS: its certificate is not valid here: "), said
            assert said.endswith("; are the keys of the same authority, and for our addresses?"), said

    run(work(), fast=fast)


def test_a_service_that_is_not_epicast() -> None:
    async def work() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        address = "{}:{}".format(*server.sockets[0].getsockname())
        try:
            assert await why(address) == f"{address}: it speaks another language; TLS on one side only?"
        finally:
            server.close()

    run(work())


def test_a_process_that_is_stuck() -> None:
    async def work() -> None:
        with closing(socket.create_server(("127.0.0.1", 0))) as silent:
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            said = await why(address)
            assert said == f"{address}: it takes connections, but does not greet; is the process stuck?"

    run(work())


def test_a_node_that_has_no_room() -> None:
    async def work() -> None:
        async with Node(limits=Limits(connections=1)) as full, Node(seeds=[full.address]) as guest:
            await guest.ready()
            said = await why(full.address)
            assert "has it no room" in said

    run(work())


def test_nobody_on_the_local_network() -> None:
    async def work() -> None:
        async with Node(discovery=[LanDiscovery("239.255.79.47:7948")], cluster="lonely") as node:
            with pytest.raises(EpicastError, match="no process of cluster 'lonely' was heard on the local network"):
                await node.ready(timeout=0.5)

    try:
        run(work())
    except EpicastError as error:
        if "lan: cannot use" not in str(error):
            raise
        pytest.skip(str(error))


def test_an_order_that_has_not_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with Node() as first, Node(seeds=[first.address]) as second:
            settled = False
            monkeypatch.setattr(type(second._stack_node), "settled", lambda self: settled)
            with pytest.raises(EpicastError, match=r"not ready within 0\.5 s: the order .* has not settled yet"):
                await second.ready(timeout=0.5)
            assert not status(second)["joined"]
            settled = True
            await second.ready()

    run(work())


def test_every_seed_has_its_reason_and_the_status_tells_them_too(nobody: str) -> None:
    async def work() -> None:
        async with Node() as first, Node(cluster="other", seeds=[nobody, first.address], limits=LIMITS) as node:
            expected = {f"{nobody}: Connection refused", f"{first.address}: refused: another cluster"}
            await until(lambda: set(status(node)["waits_for"].split("; ")) == expected, "a reason is missing")

    run(work())


def test_without_async_the_words_are_the_same(nobody: str) -> None:
    with SyncNode(seeds=[nobody]) as node, pytest.raises(EpicastError) as error:
        node.ready(timeout=0.5)
    assert str(error.value) == f"nobody let us in within 0.5 s: {nobody}: Connection refused"


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "another cluster": ({"cluster": "other"}, ["--cluster", "other"]),
    "another stack": ({"stack": "flood"}, ["--stack", "flood"]),
    "another order": ({"order": "fifo"}, ["--order", "fifo"]),
}


@pytest.mark.parametrize("case", [*CASES, "keys"])
def test_the_command_line_says_what_ready_says(
    case: str, ours: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, words = CASES.get(case, ({}, ["--keys", str(ours), "--name", "n2"]))
    if case == "keys":
        settings = {"tls": Tls.from_folder(ours, "n2")}
    with SyncNode() as node:
        with SyncNode(seeds=[node.address], **settings) as other, pytest.raises(EpicastError) as error:
            other.ready(timeout=1)
        command = ["epicast", "pub", "a", "b", "--seed", node.address, "--timeout", "1", *words]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert capsys.readouterr().err == f"epicast: error: {error.value}\n"
