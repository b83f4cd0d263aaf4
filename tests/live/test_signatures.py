"""A signature is good for one message of one source, once; and whoever is not known is not believed."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import assume, given
from hypothesis import strategies as st

from epicast.core.errors import EpicastError
from epicast.dissemination.flood import Gossip
from epicast.live import keys
from epicast.live.blame import BAD_CERTIFICATE, BLAMED, CROWDED, EXPIRED, FORGED, OTHER_NAME
from epicast.live.certificates import DER_BYTES_MAX
from epicast.live.envelope import pack_plain
from epicast.live.guard import Guard
from epicast.live.signatures import SIGNATURE_BYTES, ReplayWindow, Signer, Verifier, signed_bytes
from epicast.live.tls import Tls
from tests.live.certified import HOST, LONG_AGO, der, make_cluster, make_odd

NODE = f"{HOST}:7946/k3f9a2c1"
REBORN = f"{HOST}:7946/x0x0x0x0"
DAY_S = 86_400.0

texts = st.text(max_size=12)
numbers = st.integers(0, 2**64 - 1)
payloads = st.binary(max_size=64)
messages = st.tuples(texts, texts, numbers, payloads, texts)  # topic, source, number, payload, context


def signer_of(tls: Tls) -> Signer:
    return Signer(tls.certificate, tls.key)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cluster(tmp_path_factory.mktemp("signatures") / "keys", "n1", "n2")


class Pair(NamedTuple):
    signer: Signer
    verifier: Verifier


@cache
def pair() -> Pair:
    """One for all examples; it keeps nothing on disk."""
    with TemporaryDirectory() as temporary:
        folder = make_cluster(Path(temporary) / "keys", "n1")
        verifier, signer = Verifier(folder / "ca.pem"), signer_of(Tls.from_folder(folder, "n1"))
    for node_id in (NODE, REBORN):
        verifier.learn(signer.certificate_der, node_id)
    return Pair(signer, verifier)


# What is signed


@given(texts, messages, texts, messages)
def test_no_two_messages_give_the_same_bytes(
    cluster: str, message: tuple[str, str, int, bytes, str], other_cluster: str, other: tuple[str, str, int, bytes, str]
) -> None:
    same = signed_bytes(cluster, *message) == signed_bytes(other_cluster, *other)
    assert same == ((cluster, message) == (other_cluster, other))


@given(st.lists(texts, min_size=4, max_size=4), st.data(), numbers, payloads)
def test_text_cannot_move_from_field_to_field(fields: list[str], data: st.DataObject, seq: int, payload: bytes) -> None:
    """Other cuts of the same text: what a signature without lengths would confuse."""
    text = "".join(fields)
    first, second, third = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 3)))
    other = text[:first], text[first:second], text[second:third], text[third:]
    assume(other != tuple(fields))

    def signed(cluster: str, topic: str, source: str, context: str) -> bytes:
        return signed_bytes(cluster, topic, source, seq, payload, context)

    assert signed(*fields) != signed(*other)


def test_the_format_does_not_change_unnoticed() -> None:
    signed = signed_bytes("prices", "eur", NODE, 7, b"1.08", "0 n")
    assert signed.startswith(b"epicast message 2\n\0\0\0\6prices\0\0\0\3eur\0\0\0\x17" + NODE.encode())
    assert signed.endswith(
        b"\0\0\0\x030 n\0\0\0\x08\0\0\0\0\0\0\0\x07\0\0\0\x20"
        + bytes.fromhex("9bf9cb6cafb838f81fbcda96ab16e8810a79cddb35d3eca5f83a00be19b16044")
    )


def test_nothing_of_tls_can_pass_for_a_message() -> None:
    """TLS 1.3 signs 64 blanks, a text and a hash, with the same key."""
    assert not signed_bytes("", "", "", 0, b"").startswith(b" ")


# Verifying


@given(texts, numbers, payloads)
def test_a_message_is_verified(topic: str, seq: int, payload: bytes) -> None:
    signature = pair().signer.sign(topic, NODE, seq, payload)
    assert len(signature) == SIGNATURE_BYTES
    assert pair().verifier.verify(topic, NODE, seq, payload, signature)


@given(texts, numbers, payloads, st.data())
def test_a_flipped_bit_is_noticed(topic: str, seq: int, payload: bytes, data: st.DataObject) -> None:
    signature = pair().signer.sign(topic, NODE, seq, payload)
    both = bytearray(payload + signature)
    bit = data.draw(st.integers(0, 8 * len(both) - 1))
    both[bit // 8] ^= 1 << bit % 8
    changed, altered = bytes(both[: len(payload)]), bytes(both[len(payload) :])
    assert not pair().verifier.verify(topic, NODE, seq, changed, altered)


@given(texts, texts, numbers, numbers, payloads, texts)
def test_a_signature_is_good_for_nothing_else(
    topic: str, other_topic: str, seq: int, other_seq: int, payload: bytes, context: str
) -> None:
    signer, verifier = pair()
    signature = signer.sign(topic, NODE, seq, payload)
    assert verifier.verify(topic, NODE, seq, payload, signature, context) == (not context)
    assert verifier.verify(other_topic, NODE, seq, payload, signature) == (topic == other_topic)
    assert verifier.verify(topic, NODE, other_seq, payload, signature) == (seq == other_seq)
    assert not verifier.verify(topic, REBORN, seq, payload, signature)
    assert not verifier.verify(topic, NODE, seq, payload + b"\0", signature)


@given(st.binary(max_size=80))
def test_random_bytes_are_no_signature(signature: bytes) -> None:
    assert not pair().verifier.verify("eur", NODE, 7, b"1.08", signature)


@pytest.mark.parametrize(("topic", "seq"), [("\ud800", 0), ("eur", -1), ("eur", 2**64)])
def test_what_cannot_be_sent_is_not_believed(topic: str, seq: int) -> None:
    assert not pair().verifier.verify(topic, NODE, seq, b"", bytes(SIGNATURE_BYTES))


def test_another_member_cannot_sign_for_a_source(folder: Path) -> None:
    verifier = Verifier(folder / "ca.pem")
    one, two = signer_of(Tls.from_folder(folder, "n1")), signer_of(Tls.from_folder(folder, "n2"))
    verifier.learn(one.certificate_der, NODE)
    assert not verifier.verify("eur", NODE, 7, b"1.08", two.sign("eur", NODE, 7, b"1.08"))


def test_a_message_of_another_cluster_is_not_believed(folder: Path, tmp_path: Path) -> None:
    """Even if it was signed with the same key."""
    verifier = Verifier(folder / "ca.pem")
    own = Tls.from_folder(folder, "n1")
    verifier.learn(der(own), NODE)
    signer = signer_of(own)
    signer.cluster = "other"
    assert not verifier.verify("eur", NODE, 7, b"1.08", signer.sign("eur", NODE, 7, b"1.08"))


# Objections


def objection(verifier: Verifier, by: Signer, certificate: bytes, *, altered: bool = False, context: str = "") -> str:
    """To a message of NODE that one has signed, with a certificate that a relay may have put there."""
    signature = by.sign("eur", NODE, 7, b"1.08")
    return verifier.objection(certificate, "eur", NODE, 7, b"9.99" if altered else b"1.08", signature, context)


def test_a_message_brings_its_certificate(folder: Path) -> None:
    verifier, one = Verifier(folder / "ca.pem"), signer_of(Tls.from_folder(folder, "n1"))
    assert objection(verifier, one, one.certificate_der, altered=True) == FORGED
    assert objection(verifier, one, one.certificate_der, context="another flow") == FORGED
    assert objection(verifier, one, b"") == BAD_CERTIFICATE
    assert len(verifier) == 0, "nothing is learned of what does not fit"
    assert objection(verifier, one, one.certificate_der) == ""
    assert objection(verifier, one, b"") == BAD_CERTIFICATE, "others may not know the source yet"
    assert objection(verifier, one, b"", altered=True) == BAD_CERTIFICATE
    assert objection(verifier, one, one.certificate_der, altered=True) == FORGED


def test_a_relay_binds_no_source_to_another_name(folder: Path) -> None:
    """On one host two names may stand for one id: the first that signed has it, not the first that was shown."""
    verifier = Verifier(folder / "ca.pem")
    one, two = (signer_of(Tls.from_folder(folder, name)) for name in ("n1", "n2"))
    assert objection(verifier, one, two.certificate_der) == FORGED
    assert objection(verifier, one, one.certificate_der) == ""
    assert objection(verifier, two, two.certificate_der) == OTHER_NAME
    assert objection(verifier, two, one.certificate_der) == FORGED
    assert objection(verifier, one, one.certificate_der) == ""


def test_who_knows_a_source_judges_its_messages_as_who_does_not(folder: Path, tmp_path: Path) -> None:
    keys.issue(folder, "n1", hosts=[HOST], out=tmp_path)
    one, two = (signer_of(Tls.from_folder(folder, name)) for name in ("n1", "n2"))
    renewed = signer_of(Tls.from_folder(tmp_path, "n1"))
    flipped = bytes((*one.certificate_der[:40], one.certificate_der[40] ^ 1, *one.certificate_der[41:]))
    for shown in (b"", flipped, two.certificate_der, renewed.certificate_der, bytes(4096)):
        knows = Verifier(folder / "ca.pem")
        assert objection(knows, one, one.certificate_der) == ""
        said = objection(knows, one, shown)
        assert said == objection(Verifier(folder / "ca.pem"), one, shown)
        assert said in BLAMED
        assert objection(knows, one, one.certificate_der) == "", "the true message is good all the same"


def test_relays_are_not_blamed_for_the_date(folder: Path, tmp_path: Path) -> None:
    now = time.time()
    verifier = Verifier(folder / "ca.pem", clock=lambda: now)
    one = signer_of(Tls.from_folder(folder, "n1"))
    assert objection(verifier, one, one.certificate_der) == ""
    now += 366 * DAY_S
    assert objection(verifier, one, one.certificate_der) == EXPIRED
    assert EXPIRED not in BLAMED
    assert OTHER_NAME not in BLAMED


# Learning keys


def test_an_unknown_source_is_not_believed(folder: Path) -> None:
    verifier, signer = Verifier(folder / "ca.pem"), signer_of(Tls.from_folder(folder, "n1"))
    signature = signer.sign("eur", NODE, 7, b"1.08")
    assert not verifier.knows(NODE)
    assert not verifier.verify("eur", NODE, 7, b"1.08", signature)
    verifier.learn(signer.certificate_der, NODE)
    assert verifier.knows(NODE)
    assert verifier.verify("eur", NODE, 7, b"1.08", signature)


def test_a_certificate_is_learned_for_its_hosts_alone(folder: Path) -> None:
    verifier = Verifier(folder / "ca.pem")
    with pytest.raises(EpicastError, match=r"not for 10\.0\.0\.9"):
        verifier.learn(der(Tls.from_folder(folder, "n1")), "10.0.0.9:7946/k3f9a2c1")
    with pytest.raises(EpicastError, match="not a node id"):
        verifier.learn(der(Tls.from_folder(folder, "n1")), HOST)
    assert len(verifier) == 0


def test_a_node_id_stays_with_the_name_that_had_it_first(folder: Path) -> None:
    verifier = Verifier(folder / "ca.pem")
    one, two = Tls.from_folder(folder, "n1"), Tls.from_folder(folder, "n2")
    verifier.learn(der(one), NODE)
    with pytest.raises(EpicastError, match=f"{NODE} is n1, not n2"):
        verifier.learn(der(two), NODE)
    assert verifier.verify("eur", NODE, 7, b"1.08", signer_of(one).sign("eur", NODE, 7, b"1.08"))


def test_a_renewed_certificate_takes_the_place_of_the_old_one(folder: Path, tmp_path: Path) -> None:
    verifier, old = Verifier(folder / "ca.pem"), Tls.from_folder(folder, "n1")
    keys.issue(folder, "n1", hosts=[HOST], out=tmp_path)
    new = Tls.from_folder(tmp_path, "n1")
    verifier.learn(der(old), NODE)
    verifier.learn(der(new), NODE)
    assert verifier.verify("eur", NODE, 7, b"", signer_of(new).sign("eur", NODE, 7, b""))
    assert not verifier.verify("eur", NODE, 7, b"", signer_of(old).sign("eur", NODE, 7, b""))


def test_certificates_that_prove_nothing_are_refused(folder: Path, tmp_path: Path) -> None:
    verifier = Verifier(folder / "ca.pem")
    stranger = make_cluster(tmp_path / "stranger", "n1")
    keys.issue(folder, "late", hosts=[HOST], days=1, out=tmp_path / "late", now=LONG_AGO)
    wrong = {
        "not issued by": Tls.from_folder(stranger, "n1"),
        "the certificate expired on": Tls.from_folder(tmp_path / "late", "late"),
        "is of cluster other, expected prices": make_odd(folder, "a", uris=("epicast://other/n9",)),
        "does not name a cluster": make_odd(folder, "b"),
        "an authority's": make_odd(folder, "c", uris=("epicast://prices/c",), ca=True),
        "expected a node's": make_odd(folder, "d", uris=("epicast://prices",)),
        "no Ed25519 key": make_odd(folder, "e", uris=("epicast://prices/e",), curve=ec.SECP256R1()),
        "expected an IP address or a DNS name": make_odd(folder, "f", uris=("epicast://prices/f",), dns=("*.example",)),
    }
    for reason, tls in wrong.items():
        with pytest.raises(EpicastError, match=reason):
            verifier.learn(der(tls), NODE)
    assert len(verifier) == 0


@given(st.binary(max_size=200))
def test_random_bytes_are_no_certificate(data: bytes) -> None:
    with pytest.raises(EpicastError):
        pair().verifier.learn(data, NODE)


def test_a_certificate_with_any_bit_flipped_is_refused() -> None:
    good = pair().signer.certificate_der
    unsigned = len(good) - SIGNATURE_BYTES - 1  # the one byte that says how many bits at the end do not count
    for bit in range(8 * len(good)):
        if bit // 8 == unsigned:
            continue
        changed = bytearray(good)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(EpicastError):
            pair().verifier.learn(bytes(changed), NODE)


def test_a_certificate_of_any_length_is_refused_unread() -> None:
    with pytest.raises(EpicastError, match=f"expected up to {DER_BYTES_MAX}"):
        pair().verifier.learn(bytes(DER_BYTES_MAX + 1), NODE)


def test_a_key_ends_with_its_certificate(folder: Path) -> None:
    now = time.time()
    verifier = Verifier(folder / "ca.pem", clock=lambda: now)
    signer = signer_of(Tls.from_folder(folder, "n1"))
    verifier.learn(signer.certificate_der, NODE)
    signature = signer.sign("eur", NODE, 7, b"1.08")
    now += 364 * DAY_S
    assert verifier.verify("eur", NODE, 7, b"1.08", signature)
    now += 2 * DAY_S
    assert not verifier.verify("eur", NODE, 7, b"1.08", signature)
    assert not verifier.knows(NODE)
    with pytest.raises(EpicastError, match="expired"):
        verifier.learn(signer.certificate_der, NODE)


def test_the_key_that_was_used_least_makes_room(folder: Path) -> None:
    verifier, signer = Verifier(folder / "ca.pem", sources_max=2), signer_of(Tls.from_folder(folder, "n1"))
    ids = [f"{HOST}:{port}/k3f9a2c1" for port in (1, 2, 3)]
    for node_id in ids[:2]:
        verifier.learn(signer.certificate_der, node_id)
    assert verifier.verify("eur", ids[0], 7, b"", signer.sign("eur", ids[0], 7, b""))
    verifier.learn(signer.certificate_der, ids[2])
    assert [verifier.knows(node_id) for node_id in ids] == [True, False, True]
    assert len(verifier) == 2


def test_a_key_that_cannot_sign_is_refused(folder: Path) -> None:
    odd = make_odd(folder, "elliptic", uris=("epicast://prices/elliptic",), curve=ec.SECP256R1())
    with pytest.raises(EpicastError, match="expected an Ed25519 key"):
        signer_of(odd)
    one, two = Tls.from_folder(folder, "n1"), Tls.from_folder(folder, "n2")
    with pytest.raises(EpicastError, match="is not the key of"):
        Signer(one.certificate, two.key)


# Replay


def ids(count: int, host: str = HOST) -> list[str]:
    return [f"{host}:{port}/k3f9a2c1" for port in range(1, count + 1)]


@given(st.lists(st.integers(0, 60), max_size=200), st.integers(1, 20))
def test_a_number_is_accepted_once(numbers: list[int], width: int) -> None:
    """And whenever it is new and no farther below the highest than the window is wide."""
    window, accepted = ReplayWindow(width=width), set[int]()
    for seq in numbers:
        new = seq not in accepted and seq > max(accepted, default=seq) - width
        assert window.accept(NODE, seq, 0) == new
        if new:
            accepted.add(seq)


def test_a_number_of_any_size_costs_nothing() -> None:
    window = ReplayWindow()
    assert window.accept(NODE, 0, 0)
    assert window.accept(NODE, 2**63, 0)
    assert not window.accept(NODE, 0, 0)
    assert not window.accept(NODE, -1, 0)
    assert window.accept(NODE, 2**63 - 1, 0)


def test_incarnations_do_not_share_numbers() -> None:
    window = ReplayWindow()
    assert window.accept(NODE, 7, 0)
    assert window.accept(REBORN, 7, 0)


def test_a_source_that_may_be_alive_is_never_forgotten() -> None:
    window = ReplayWindow(sources_max=2, quiet_us=100)
    one, two, three = ids(3)
    assert window.accept(one, 1, 0)
    assert window.accept(two, 1, 50)
    assert not window.accept(three, 1, 99)
    assert window.refused == 1
    assert not window.accept(one, 1, 99)
    assert window.accept(three, 1, 100)  # one has been silent for so long
    assert not window.accept(two, 1, 100)
    assert len(window) == 2


def test_a_sign_of_life_keeps_a_source_that_publishes_nothing() -> None:
    window = ReplayWindow(sources_max=2, quiet_us=100)
    one, two, three = ids(3)
    assert window.accept(one, 1, 0)
    assert window.accept(two, 1, 50)
    window.heard(one, 99)
    window.heard(three, 99)  # not known
    assert window.accept(three, 1, 150)
    assert not window.accept(one, 1, 150)
    assert len(window) == 2


def test_a_recording_is_no_sign_of_life() -> None:
    window = ReplayWindow(sources_max=1, quiet_us=100)
    one, two = ids(2)
    assert window.accept(one, 1, 0)
    assert not window.accept(one, 1, 99)
    assert window.accept(two, 1, 100)


def test_a_member_that_invents_incarnations_shuts_out_its_own_host_alone() -> None:
    window = ReplayWindow(sources_max=10, per_host_max=3, quiet_us=100)
    quiet = ids(1, "10.0.0.2")[0]
    assert window.accept(quiet, 1, 0)
    assert [window.accept(source, 1, 200) for source in ids(5)] == [True] * 3 + [False] * 2
    assert not window.accept(quiet, 1, 200)  # its flood pushed nobody out
    assert window.accept(ids(1, "10.0.0.3")[0], 1, 200)
    assert window.accept(ids(4)[3], 1, 300)  # its first one is silent by now
    assert len(window) == 5


def test_no_host_fills_the_table_alone() -> None:
    window = ReplayWindow()
    accepted = sum(window.accept(f"{NODE}s{stream}", 0, 0) for stream in range(20_000))
    assert accepted == window.per_host_max
    assert window.accept(ids(1, "10.0.0.2")[0], 0, 0)


def test_a_stack_never_sees_sources_for_which_there_is_no_room(folder: Path) -> None:
    """Its tables know nothing of hosts: one member could fill them with sources that it invents."""
    guard, signer = Guard(Tls.from_folder(folder, "n1"), "prices"), Guard(Tls.from_folder(folder, "n2"), "prices")
    guard._replay = ReplayWindow(per_host_max=3, quiet_us=100)

    def published(source: str, seq: int = 0) -> Gossip:
        return Gossip(source, seq, 1, "eur", signer.sign("eur", source, seq, pack_plain(1, b"1.08"), ""))

    for source in ids(3):
        event = published(source)
        assert guard.objection(event, 0) == ""
        assert guard.fresh(event, 0)
    assert guard.objection(published(ids(4)[3]), 50) == CROWDED
    assert guard.objection(published(ids(1)[0], 7), 50) == "", "it is known"
    assert guard.objection(published(ids(4)[3]), 200) == "", "the first one is silent by now"
    assert CROWDED not in BLAMED


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 30), st.integers(0, 40)), max_size=150), st.integers(1, 6))
def test_no_number_of_a_source_heard_lately_is_accepted_twice(steps: list[tuple[int, int, int]], cap: int) -> None:
    """Whatever is forgotten in between; and the tables stay within their caps."""
    window, now, accepted = (
        ReplayWindow(sources_max=cap, per_host_max=2, width=8, quiet_us=100),
        0,
        dict[str, dict[int, int]](),
    )
    sources = [*ids(4), *ids(4, "10.0.0.2")]
    for which, seq, passed in steps:
        now += passed
        source = sources[which]
        before = accepted.setdefault(source, {})
        if window.accept(source, seq, now):
            assert seq not in before or now - max(before.values()) >= window.quiet_us
            before[seq] = now
        assert len(window) <= cap
