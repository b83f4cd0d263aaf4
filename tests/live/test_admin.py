"""The pages for operators, asked over real connections; by careless and hostile clients too."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from epicast.core.errors import EpicastError
from epicast.live import admin as admin_module
from epicast.live.admin import CONNECTIONS_MAX, HEAD_BYTES_MAX, Admin, Answer, BadRequest, Request, parse
from epicast.live.node import Node
from epicast.live.pages import admin_address, get, get_status
from epicast.live.running import run

Body = Callable[[Node, Admin], Coroutine[Any, Any, None]]


@asynccontextmanager
async def served(**settings: Any) -> AsyncIterator[Admin]:
    async with Node(**settings) as node, Admin(node) as admin:
        yield admin


async def ask(admin: Admin, request: bytes, *, end: bool = False) -> tuple[int, dict[str, str], bytes]:
    """Code, headers and body of what is answered to these very bytes; 0 if the connection just ends."""
    address = admin_address(admin.address)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        writer.write(request)
        if end:
            writer.write_eof()
        answer = await asyncio.wait_for(reader.read(), 30)
    except ConnectionError:
        return 0, {}, b""
    finally:
        writer.close()
    if not answer:
        return 0, {}, b""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split(" ")[1]), dict(line.split(": ", 1) for line in lines), body


def request(path: str = "/status", method: str = "GET", host: str = "127.0.0.1") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


def test_the_status_is_json() -> None:
    async def body() -> None:
        async with served(cluster="prices") as admin:
            code, headers, text = await ask(admin, request())
            assert (code, headers["Content-Type"]) == (200, "application/json")
            assert int(headers["Content-Length"]) == len(text)
            assert json.loads(text)["cluster"] == "prices"
            assert await get_status(admin_address(f"http://{admin.address}/"))

    run(body())


def test_the_metrics_are_for_prometheus() -> None:
    async def body() -> None:
        async with served() as admin:
            code, headers, text = await ask(admin, request("/metrics?name=x"))
            assert code == 200
            assert headers["Content-Type"].startswith("text/plain; version=")
            assert b"\nepicast_joined 1.0\n" in text
            openmetrics = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text\r\n\r\n"
            code, headers, text = await ask(admin, openmetrics)
            assert headers["Content-Type"].startswith("application/openmetrics-text")
            assert text.endswith(b"# EOF\n")

    run(body())


def test_health_is_good_once_it_has_joined() -> None:
    async def body() -> None:
        async with served() as first:
            assert await get(admin_address(first.address), "/healthz") == (200, b"joined\n")
            async with Node(seeds=["127.0.0.1:1"]) as lonely, Admin(lonely) as admin:
                assert await get(admin_address(admin.address), "/healthz") == (503, b"no neighbours\n")
            async with Node(seeds=[first._node.address]) as second, Admin(second) as admin:
                await second.ready()
                assert await get(admin_address(admin.address), "/healthz") == (200, b"joined\n")

    run(body())


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (request("/"), 404),
        (request("/status/"), 404),
        (request("/../etc/passwd"), 404),
        (request(method="POST"), 405),
        (request(method="HEAD"), 405),
        (request(method="get"), 405),
        (b"GET /status\r\n\r\n", 400),
        (b"GET  /status HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET http://localhost/status HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /status HTTP/2\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /status HTTP/1.1\r\nHost : localhost\r\n\r\n", 400),
        (b"GET /status HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /status HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n", 400),
        (b"GET /status HTTP/1.1\r\nHost: localhost\r\nX: \xff\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (request() + b"x" * 4000, 200),
        (b"GET /status HTTP/1.1\r\nX: " + b"x" * HEAD_BYTES_MAX + b"\r\n\r\n", 431),
        (b"x" * (2 * HEAD_BYTES_MAX), 431),
    ],
)
def test_whatever_is_asked_is_answered(asked: bytes, code: int) -> None:
    async def body() -> None:
        async with served() as admin:
            answered, headers, _ = await ask(admin, asked)
            assert answered in (code, 0 if code == 431 else code)  # what was not read may reset the connection
            assert headers.get("Allow") == ("GET" if code == 405 else None)
            assert (await get(admin_address(admin.address), "/healthz"))[0] == 200

    run(body())


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:80", "localhost", "localhost:9", "[::1]", "[::1]:80"])
def test_names_of_this_machine_are_served(host: str) -> None:
    async def body() -> None:
        async with served() as admin:
            assert (await ask(admin, request(host=host)))[0] == 200

    run(body())


@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", "localhost@x"]
)
def test_other_names_are_refused_against_rebinding(host: str) -> None:
    async def body() -> None:
        async with served() as admin:
            code, _, text = await ask(admin, request(host=host))
            assert code == 403
            assert b"neighbours" not in text
            assert (await ask(admin, b"GET /status HTTP/1.0\r\n\r\n"))[0] == 403

    run(body())


def test_a_client_that_ends_early_is_no_error() -> None:
    async def body() -> None:
        async with served() as admin:
            assert (await ask(admin, b"GET /sta", end=True))[0] == 0
            assert (await ask(admin, request(), end=True))[0] == 200

    run(body())


def test_a_slow_client_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_module, "DEADLINE_S", 0.1)

    async def body() -> None:
        async with served() as admin:
            assert (await ask(admin, b"GET /status HTTP/1.1\r\n"))[0] == 0
            assert not admin._open

    run(body())


def test_connections_are_bounded() -> None:
    async def body() -> None:
        async with served() as admin:
            address = admin_address(admin.address)
            held = [await asyncio.open_connection(address.host, address.port) for _ in range(CONNECTIONS_MAX)]
            while len(admin._open) < CONNECTIONS_MAX:
                await asyncio.sleep(0)
            assert (await ask(admin, request()))[0] == 0
            held[0][1].write(request())
            assert (await held[0][0].read()).startswith(b"HTTP/1.1 200 OK")
            assert (await ask(admin, request()))[0] == 200
            for _, writer in held:
                writer.close()

    run(body())


def test_a_page_that_fails_is_told_in_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: Request) -> Answer:
        raise RuntimeError("secret")

    async def body() -> None:
        async with served() as admin:
            admin.pages["/broken"] = broken
            code, _, text = await ask(admin, request("/broken"))
            assert (code, text) == (500, b"see the log of the node\n")

    with caplog.at_level(logging.ERROR, logger="epicast"):
        run(body())
    assert "secret" in caplog.text


def test_it_stays_on_this_machine_unless_it_is_told_otherwise() -> None:
    async def body() -> None:
        async with Node() as node:
            with pytest.raises(EpicastError, match="can be reached by others"):
                Admin(node, "0.0.0.0:0")
            assert Admin(node, "0.0.0.0:0", public=True)
            async with Admin(node) as admin:
                with pytest.raises(EpicastError, match="cannot listen"):
                    await Admin(node, admin.address).start()

    run(body())


def test_after_the_end_nobody_answers() -> None:
    async def body() -> None:
        async with Node() as node:
            async with Admin(node) as admin:
                address = admin_address(admin.address)
            with pytest.raises(EpicastError, match="is the node running"):
                await get(address, "/status")

    run(body())


def test_a_node_is_not_mistaken_for_its_admin_address() -> None:
    async def body() -> None:
        async with Node() as node:
            with pytest.raises(EpicastError, match=r"does not (answer|speak HTTP)"):
                await get_status(admin_address(node.address), timeout_s=0.3)

    run(body())


def test_a_request_is_taken_apart() -> None:
    head = b"GET /status?x=1 HTTP/1.1\r\nHost: a\r\nAccept:  text/plain \r\n\r\n"
    assert parse(head) == Request("GET", "/status", {"host": "a", "accept": "text/plain"})
    with pytest.raises(BadRequest):
        parse(b"GET status HTTP/1.1\r\n\r\n")
