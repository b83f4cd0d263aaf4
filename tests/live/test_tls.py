"""Members meet over TLS 1.3; nobody else gets in, and nobody else is let in by a member."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvloop
from cryptography.hazmat.primitives.asymmetric import ec

from epicast.core.errors import EpicastError
from epicast.live import keys
from epicast.live.tls import Identity, Tls, peer_identity, require_host
from tests.live.certified import HOST, LONG_AGO, make_cluster, make_odd, stubborn

WELCOME = b"welcome"
TIMEOUT_S = 20
SERVER, CLIENT = ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cluster(tmp_path_factory.mktemp("tls") / "keys", "n1", "n2")


class Listener:
    """Greets whoever has got through the handshake, and remembers who that was."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context
        self.greeted: list[Identity] = []
        self.errors: list[str] = []

    async def __aenter__(self) -> Listener:
        self.server = await asyncio.start_server(self._greet, HOST, 0, ssl=self.context)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        await self.server.wait_closed()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.greeted.append(peer_identity(writer.get_extra_info("ssl_object")))
            writer.write(WELCOME)
            await writer.drain()
        except EpicastError as error:
            self.errors.append(str(error))
        finally:
            writer.close()


class Meeting(NamedTuple):
    listener: Listener
    link: ssl.SSLObject | None  # as the client has it, if there was a handshake
    received: bytes
    error: OSError | None  # of the client


async def dial(listener: Listener, context: ssl.SSLContext | None) -> Meeting:
    """Connect, and take what comes until the end."""
    try:
        reader, writer = await asyncio.open_connection(HOST, listener.port, ssl=context)
    except OSError as error:
        return Meeting(listener, None, b"", error)
    try:
        if context is None:
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
        link = writer.get_extra_info("ssl_object")
        return Meeting(listener, link, await reader.read(), None)
    except OSError as error:
        return Meeting(listener, link, b"", error)
    finally:
        writer.close()


def meet(
    server: ssl.SSLContext, client: ssl.SSLContext | None, loop: Callable[[], Any] = asyncio.new_event_loop
) -> Meeting:
    async def run() -> Meeting:
        async with Listener(server) as listener:
            return await asyncio.wait_for(dial(listener, client), TIMEOUT_S)

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(run())


def assert_refused(server: ssl.SSLContext, client: ssl.SSLContext | None) -> Meeting:
    """The client is not greeted: it sees an alert, a reset, or nothing before the end."""
    meeting = meet(server, client)
    assert (meeting.listener.greeted, meeting.listener.errors) == ([], [])  # not even a handshake
    assert WELCOME not in meeting.received
    return meeting


def shake(server: ssl.SSLContext, client: ssl.SSLContext) -> tuple[ssl.SSLSocket, ssl.SSLSocket]:
    """Both ends of a link of plain sockets, in turns as bytes come: there is no need of threads."""
    ours, theirs = socket.socketpair()
    left = server.wrap_socket(ours, server_side=True, do_handshake_on_connect=False)
    right = client.wrap_socket(theirs, do_handshake_on_connect=False)
    for side in (left, right):
        side.setblocking(False)
    waiting = [right, left]
    while waiting:
        side = waiting.pop(0)
        try:
            side.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            waiting.append(side)
    return left, right


# Members


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_two_members_know_each_other(folder: Path, loop: Callable[[], Any]) -> None:
    server, client = Tls.from_folder(folder, "n1"), Tls.from_folder(folder, "n2")
    listener, link, received, _ = meet(server.server_context(), client.client_context(), loop)
    assert received == WELCOME
    assert listener.greeted == [client.identity()]
    assert link is not None
    assert link.version() == "TLSv1.3"
    assert peer_identity(link) == server.identity()
    assert (server.identity().cluster, server.identity().name, server.identity().hosts) == ("prices", "n1", (HOST,))


def test_a_member_speaks_for_its_hosts_alone(folder: Path) -> None:
    server, client = Tls.from_folder(folder, "n1"), Tls.from_folder(folder, "n2")
    link = meet(server.server_context(), client.client_context()).link
    assert link is not None
    require_host(peer_identity(link), f"{HOST}:7946/k3f9a2c1")
    with pytest.raises(EpicastError, match=r"not for 10\.0\.0\.9"):
        require_host(peer_identity(link), "10.0.0.9:7946/k3f9a2c1")


def test_plain_sockets_give_identities_too(folder: Path) -> None:
    contexts = Tls.from_folder(folder, "n1").server_context(), Tls.from_folder(folder, "n2").client_context()
    left, right = shake(*contexts)
    with left, right:
        assert [peer_identity(side).name for side in (left, right)] == ["n2", "n1"]


def test_old_and_new_authority_meet_while_both_are_trusted(tmp_path: Path) -> None:
    old, new = make_cluster(tmp_path / "old", "n1"), make_cluster(tmp_path / "new", "n2")
    both = (old / "ca.pem").read_bytes() + (new / "ca.pem").read_bytes()
    for each in (old, new):
        (each / "ca.pem").write_bytes(both)
    server, client = Tls.from_folder(old, "n1"), Tls.from_folder(new, "n2")
    assert meet(server.server_context(), client.client_context()).received == WELCOME
    assert meet(client.server_context(), server.client_context()).received == WELCOME


def test_no_session_outlives_its_link(folder: Path) -> None:
    server, client = Tls.from_folder(folder, "n1"), Tls.from_folder(folder, "n2")
    link = meet(server.server_context(), client.client_context()).link
    assert link is not None
    assert link.session is None or not link.session.has_ticket


# Strangers


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another authority that calls its cluster by the same name."""
    return make_cluster(tmp_path_factory.mktemp("stranger") / "keys", "n1", "n2")


def test_a_certificate_of_another_authority_is_refused(folder: Path, stranger: Path) -> None:
    # It trusts our authority, so that it is the listener who refuses.
    odd = Tls(folder / "ca.pem", stranger / "n2.pem", stranger / "n2.key")
    assert_refused(Tls.from_folder(folder, "n1").server_context(), stubborn(CLIENT, odd))


def test_a_listener_of_another_authority_is_refused(folder: Path, stranger: Path) -> None:
    odd = Tls(folder / "ca.pem", stranger / "n1.pem", stranger / "n1.key")
    meeting = assert_refused(stubborn(SERVER, odd), Tls.from_folder(folder, "n2").client_context())
    assert isinstance(meeting.error, ssl.SSLCertVerificationError)


def test_an_expired_certificate_is_refused_on_either_side(folder: Path, tmp_path: Path) -> None:
    keys.issue(folder, "late", hosts=[HOST], days=1, out=tmp_path, now=LONG_AGO)
    late, member = Tls.from_folder(tmp_path, "late"), Tls.from_folder(folder, "n1")
    assert_refused(member.server_context(), stubborn(CLIENT, late))
    meeting = assert_refused(stubborn(SERVER, late), member.client_context())
    assert isinstance(meeting.error, ssl.SSLCertVerificationError)
    assert "expired" in str(meeting.error)


def test_a_client_without_a_certificate_is_refused(folder: Path) -> None:
    """Its own handshake succeeds: only the end of the stream tells."""
    anonymous = ssl.SSLContext(CLIENT)
    anonymous.check_hostname = False
    anonymous.load_verify_locations(folder / "ca.pem")
    meeting = assert_refused(Tls.from_folder(folder, "n1").server_context(), anonymous)
    assert meeting.link is not None
    assert meeting.link.version() == "TLSv1.3"


def test_a_listener_without_tls_hears_no_word_of_ours(folder: Path) -> None:
    async def run() -> bytes:
        heard: list[bytes] = []

        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await reader.read(64))
            writer.write(b"hello\n")
            writer.close()

        server = await asyncio.start_server(listen, HOST, 0)
        with pytest.raises(ssl.SSLError):
            await asyncio.open_connection(
                *server.sockets[0].getsockname(), ssl=Tls.from_folder(folder, "n1").client_context()
            )
        server.close()
        await server.wait_closed()
        return heard[0]

    assert asyncio.run(run()).startswith(b"\x16\x03")  # a TLS handshake


def test_plain_text_to_a_tls_port_is_refused(folder: Path) -> None:
    assert_refused(Tls.from_folder(folder, "n1").server_context(), None)


def test_older_versions_are_refused_on_either_side(folder: Path) -> None:
    member = Tls.from_folder(folder, "n1")
    client, server = stubborn(CLIENT, member), stubborn(SERVER, member)
    client.maximum_version = server.maximum_version = ssl.TLSVersion.TLSv1_2
    for side in shake(server, client):  # they can do it
        with side:
            assert side.version() == "TLSv1.2"
    for meeting in (assert_refused(member.server_context(), client), assert_refused(server, member.client_context())):
        assert meeting.error is not None
        assert meeting.link is None


# Certificates by our authority that are not a member's


def test_a_certificate_of_a_foreign_cluster_is_refused(folder: Path) -> None:
    foreign = make_odd(folder, "foreign", uris=("epicast://other/n9",))
    listener, _, received, _ = meet(Tls.from_folder(folder, "n1").server_context(), stubborn(CLIENT, foreign))
    assert received == b""
    assert listener.errors == ["the peer is of cluster other, expected prices"]


@pytest.mark.parametrize(
    "uris", [(), ("https://prices/n9",), ("epicast://prices",), ("epicast://prices/a", "epicast://prices/b")]
)
def test_a_certificate_that_names_no_member_is_refused(folder: Path, uris: tuple[str, ...]) -> None:
    odd = make_odd(folder, "odd", uris=uris)
    listener, _, received, _ = meet(Tls.from_folder(folder, "n1").server_context(), stubborn(CLIENT, odd))
    assert received == b""
    (error,) = listener.errors
    assert error.startswith("the certificate ")


def test_a_member_cannot_name_others(folder: Path, tmp_path: Path) -> None:
    """A certificate that a member has signed with its own key is worth nothing."""
    for end in (".pem", ".key"):
        (tmp_path / f"ca{end}").write_bytes((folder / f"n2{end}").read_bytes())
    (tmp_path / "ca.key").chmod(0o600)
    odd = make_odd(tmp_path, "odd", uris=("epicast://prices/odd",))
    chain = Path(odd.certificate).read_bytes() + (folder / "n2.pem").read_bytes()
    Path(odd.certificate).write_bytes(chain)
    assert_refused(
        Tls.from_folder(folder, "n1").server_context(),
        stubborn(CLIENT, Tls(folder / "ca.pem", odd.certificate, odd.key)),
    )


def test_keys_of_another_kind_work_for_links(folder: Path) -> None:
    odd = make_odd(folder, "elliptic", uris=("epicast://prices/elliptic",), curve=ec.SECP256R1())
    listener, _, received, _ = meet(Tls.from_folder(folder, "n1").server_context(), odd.client_context())
    assert received == WELCOME
    assert [identity.name for identity in listener.greeted] == ["elliptic"]


# Files


def both_contexts(tls: Tls) -> str:
    """The one line with which either context is refused."""
    lines = []
    for make in (tls.server_context, tls.client_context):
        with pytest.raises(EpicastError) as caught:
            make()
        lines.append(str(caught.value))
    assert lines[0] == lines[1]
    assert "\n" not in lines[0]
    return lines[0]


def test_files_that_are_missing_or_cannot_be_read_are_named(folder: Path, tmp_path: Path) -> None:
    letter = tmp_path / "letter"
    letter.write_text("mine")
    letter.chmod(0o600)
    good = Tls.from_folder(folder, "n1")
    assert (
        both_contexts(Tls.from_folder(folder, "nobody"))
        == f"cannot read {folder}/nobody.pem: No such file or directory"
    )
    assert "cannot read" in both_contexts(Tls(folder, good.certificate, good.key))
    assert "cannot read" in both_contexts(Tls(good.ca, good.certificate, folder))
    assert "is not a private key" in both_contexts(Tls(good.ca, good.certificate, letter))
    with pytest.raises(EpicastError, match=r"name: expected"):
        Tls.from_folder(folder, "../n1")


def test_files_that_do_not_belong_together_are_refused(folder: Path, stranger: Path) -> None:
    one, two = Tls.from_folder(folder, "n1"), Tls.from_folder(folder, "n2")
    assert "is not the key of" in both_contexts(Tls(one.ca, one.certificate, two.key))
    assert "was not issued by" in both_contexts(Tls(stranger / "ca.pem", one.certificate, one.key))
    assert "is not an authority" in both_contexts(Tls(two.certificate, one.certificate, one.key))
    assert "expected a node's" in both_contexts(Tls(one.ca, one.ca, folder / "ca.key"))
    foreign = make_odd(folder, "foreign2", uris=("epicast://other/n9",))
    assert "is of cluster other, expected prices" in both_contexts(foreign)


def test_files_that_have_expired_are_refused(folder: Path, tmp_path: Path) -> None:
    keys.issue(folder, "late", hosts=[HOST], days=1, out=tmp_path, now=LONG_AGO)
    assert "late.pem: the certificate expired on 20" in both_contexts(Tls.from_folder(tmp_path, "late"))
    keys.init(tmp_path / "old", cluster="prices", days=1, now=LONG_AGO)
    keys.issue(tmp_path / "old", "n1", hosts=[HOST], now=LONG_AGO)
    assert "ca.pem expired on 20" in both_contexts(Tls.from_folder(tmp_path / "old", "n1"))
