"""Pages for operators: GET /status (JSON), /metrics (Prometheus) and /healthz, over a very small HTTP/1.1 server.

It answers one request a connection and reads no more than a request's head. It listens on this machine only, unless it
is told otherwise: whoever reaches it sees who is in the cluster. On this machine the Host header must name this machine
as well, or a web page could read the answers through a name of its own that points here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from epicast.core.errors import EpicastError
from epicast.live.ids import Address, parse_address
from epicast.live.metrics import exposition
from epicast.live.status import joined, status

if TYPE_CHECKING:
    from epicast.live.node import Node

HEAD_BYTES_MAX = 8192
DEADLINE_S = 5.0
CONNECTIONS_MAX = 64

TEXT, JSON = "text/plain; charset=utf-8", "application/json"
log = logging.getLogger("epicast")


class Answer(NamedTuple):
    code: HTTPStatus
    content_type: str
    body: bytes


class Request(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]  # by names in small letters


class BadRequest(Exception):
    def __init__(self, code: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.code = code


class Admin:
    """`pages` may be added to; each gets the request and answers."""

    def __init__(self, node: Node, listen: str = "127.0.0.1:0", *, public: bool = False) -> None:
        self._node, self._listen = node, parse_address(listen)
        if not self._listen.loopback and not public:
            raise EpicastError(
                f"admin: {self._listen} can be reached by others, who would see the cluster: "
                "listen at 127.0.0.1, or say admin_public"
            )
        self.address = ""
        self.pages: dict[str, Callable[[Request], Answer]] = {
            "/status": self._status,
            "/metrics": self._metrics,
            "/healthz": self._healthz,
        }
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.StreamWriter, None] = {}

    async def __aenter__(self) -> Admin:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        host, port = self._listen
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=HEAD_BYTES_MAX)
        except OSError as error:
            why = error.strerror or error
            raise EpicastError(f"admin: cannot listen at {self._listen}: {why}; choose another address") from None
        found = self._server.sockets[0].getsockname()
        self.address = str(Address(str(found[0]), int(found[1])))

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for writer in list(self._open):
                writer.transport.abort()
            self._server = None

    # Pages

    def _status(self, request: Request) -> Answer:
        return Answer(HTTPStatus.OK, JSON, msgspec.json.encode(status(self._node)) + b"\n")

    def _metrics(self, request: Request) -> Answer:
        try:
            content_type, body = exposition(self._node, request.headers.get("accept", ""))
        except EpicastError as error:
            return _said(HTTPStatus.NOT_IMPLEMENTED, str(error))
        return Answer(HTTPStatus.OK, content_type, body)

    def _healthz(self, request: Request) -> Answer:
        code = HTTPStatus.OK if joined(self._node) else HTTPStatus.SERVICE_UNAVAILABLE
        return _said(code, self._node._readiness.words())

    # Connections

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= CONNECTIONS_MAX:
            writer.transport.abort()
            return
        self._open[writer] = None
        try:
            async with asyncio.timeout(DEADLINE_S):
                writer.write(_encoded(await self._answer(reader)))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, OSError, EOFError):  # too slow, or gone
            pass
        finally:
            del self._open[writer]
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader) -> Answer:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _said(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"more than {HEAD_BYTES_MAX} bytes")
        try:
            return self.answer(parse(head))
        except BadRequest as error:
            return _said(error.code, str(error))
        except Exception:
            log.exception("an admin page could not be made")
            return _said(HTTPStatus.INTERNAL_SERVER_ERROR, "see the log of the node")

    def answer(self, request: Request) -> Answer:
        if self._listen.loopback and not _names_this_machine(request.headers.get("host", "")):
            raise BadRequest(HTTPStatus.FORBIDDEN, "ask for 127.0.0.1 or localhost")
        if request.method != "GET":
            raise BadRequest(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is served here")
        page = self.pages.get(request.path)
        if page is None:
            raise BadRequest(HTTPStatus.NOT_FOUND, f"there are {', '.join(self.pages)}")
        return page(request)


def _names_this_machine(host: str) -> bool:
    try:
        return parse_address(host + ":80" if host.endswith("]") else host, default_port=80).loopback
    except EpicastError:
        return False


def parse(head: bytes) -> Request:
    """A request's line and headers, up to the empty line."""
    try:
        first, *rest = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
    except UnicodeDecodeError:
        raise BadRequest(HTTPStatus.BAD_REQUEST, "only ASCII is expected here") from None
    words = first.split(" ")
    if len(words) != 3 or not words[1].startswith("/") or words[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadRequest(HTTPStatus.BAD_REQUEST, "expected a line like GET /status HTTP/1.1")
    headers: dict[str, str] = {}
    for line in rest:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name != name.strip() or (name == "host" and name in headers):
            raise BadRequest(HTTPStatus.BAD_REQUEST, "a bad header")
        headers[name] = value.strip()
    return Request(words[0], words[1].partition("?")[0], headers)


def _said(code: HTTPStatus, text: str) -> Answer:
    return Answer(code, TEXT, text.encode() + b"\n")


def _encoded(answer: Answer) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.code.value} {answer.code.phrase}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(answer.body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
    ]
    if answer.code is HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append("Allow: GET")
    return "\r\n".join([*lines, "", ""]).encode() + answer.body
