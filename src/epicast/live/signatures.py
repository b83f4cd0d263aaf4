"""Signed messages: who published, whatever way the message took.

TLS protects one link; a message crosses many, and each relay could change it. A signature binds the payload to cluster,
topic, source, sequence number and context, so that it proves nothing anywhere else. The source is a node id: with its
incarnation, a number of an earlier life is no number of this one. The context is what else the publisher decides, as
the message's type names it: for BRISA the flow.

    "epicast message 2\\n" | cluster | topic | source | context | number (8 bytes) | BLAKE2b-256 of the payload

Every field is preceded by its length, so no two messages give the same bytes. Whatever a subscriber gets (headers too)
must be in `payload`.

A message is judged in this order: `Verifier.objection`, then `ReplayWindow.accept`. The other way round a forgery would
take the place of the true message. A certificate is kept only once it has verified a message: a relay that puts another
one into a message binds nobody to it. Every message is judged with the certificate that it brings: so all processes
judge it alike, whomever they know already.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from epicast.core.errors import EpicastError
from epicast.live import certificates as read
from epicast.live.blame import BAD_CERTIFICATE, EXPIRED, FORGED, OTHER_NAME
from epicast.live.certificates import NotNow
from epicast.live.identity import require_host
from epicast.live.replay import ReplayWindow

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
except ImportError:
    raise EpicastError("certificates and signatures are not installed: pip install 'epicast[live]'") from None

__all__ = ["SIGNATURE_BYTES", "ReplayWindow", "Signer", "Verifier", "signed_bytes"]

SIGNATURE_BYTES = 64
_PREFIX = b"epicast message 2\n"


def signed_bytes(cluster: str, topic: str, source: str, seq: int, payload: bytes, context: str = "") -> bytes:
    """What is signed. Raises ValueError or OverflowError for what cannot be sent."""
    digest = blake2b(payload, digest_size=32).digest()
    fields = (cluster.encode(), topic.encode(), source.encode(), context.encode(), seq.to_bytes(8, "big"), digest)
    return _PREFIX + b"".join(len(field).to_bytes(4, "big") + field for field in fields)


class Signer:
    """Signs for one node. Others learn its key from `certificate_der`."""

    def __init__(self, certificate: str | Path, key: str | Path) -> None:
        own, secret = read.load_pair(certificate, key)
        if not isinstance(secret, Ed25519PrivateKey):
            raise EpicastError(f"{key} cannot sign messages: expected an Ed25519 key, as epicast keys issue makes")
        identity = read.identity_of(own)
        self.cluster, self.name = identity.cluster, identity.name
        self.certificate_der = read.as_der(own)
        self._key = secret

    def sign(self, topic: str, source: str, seq: int, payload: bytes, context: str = "") -> bytes:
        return self._key.sign(signed_bytes(self.cluster, topic, source, seq, payload, context))


class _Known(NamedTuple):
    name: str
    key: Ed25519PublicKey
    until: float  # Unix seconds
    certificate: bytes


class Verifier:
    """Knows the keys of sources, and judges their signatures.

    At `sources_max` the key that was not used for longest is forgotten: its source must be learned again.
    """

    def __init__(self, ca: str | Path, *, sources_max: int = 65_536, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._authority = read.load_authority(ca, self._now())
        self._sources_max = sources_max
        self._known: dict[str, _Known] = {}  # the one used last at the end
        self.cluster = self._authority.cluster

    def __len__(self) -> int:
        return len(self._known)

    def knows(self, source: str) -> bool:
        return source in self._known

    def name_of(self, source: str) -> str | None:
        known = self._known.get(source)
        return None if known is None else known.name

    def learn(self, certificate_der: bytes, node_id: str) -> None:
        """Take the key of a source from its certificate, or raise why not.

        A node id stays with the name that had it first: two certificates may be for one host.
        """
        self._keep(node_id, self._read(certificate_der, node_id))

    def verify(self, topic: str, source: str, seq: int, payload: bytes, signature: bytes, context: str = "") -> bool:
        """False also if the source is not known, or its certificate has ended."""
        known = self._known.pop(source, None)
        if known is None or self._clock() > known.until:
            return False
        self._known[source] = known
        return self._is_by(known, topic, source, seq, payload, signature, context)

    def objection(
        self, certificate_der: bytes, topic: str, source: str, seq: int, payload: bytes, signature: bytes, context: str
    ) -> str:
        """Why the message may not be let in; empty if it may. Its certificate is learned if it has to be, and then only
        if it fits the signature.

        A key that is known already does not make up for another certificate in the message: a process that does not
        know the source yet would refuse the message, and blame us for passing it on."""
        known = self._known.get(source)
        if known is not None and certificate_der == known.certificate:
            if self.verify(topic, source, seq, payload, signature, context):
                return ""
            if source in self._known:
                return FORGED
        try:
            offered = self._read(certificate_der, source)
        except NotNow:
            return EXPIRED
        except EpicastError:
            return BAD_CERTIFICATE
        if not self._is_by(offered, topic, source, seq, payload, signature, context):
            return FORGED
        try:
            self._keep(source, offered)
        except EpicastError:
            return OTHER_NAME
        return ""

    def _is_by(
        self, known: _Known, topic: str, source: str, seq: int, payload: bytes, signature: bytes, context: str
    ) -> bool:
        try:
            known.key.verify(signature, signed_bytes(self.cluster, topic, source, seq, payload, context))
        except (InvalidSignature, ValueError, OverflowError):
            return False
        return True

    def _read(self, certificate_der: bytes, node_id: str) -> _Known:
        certificate = read.parse_der(certificate_der)
        identity = self._authority.check(certificate, self._now())
        require_host(identity, node_id)
        key = certificate.public_key()
        if not isinstance(key, Ed25519PublicKey):
            raise EpicastError(f"the certificate of {identity.name} holds no Ed25519 key")
        return _Known(identity.name, key, identity.not_after.timestamp(), certificate_der)

    def _keep(self, node_id: str, new: _Known) -> None:
        old = self._known.pop(node_id, None)
        if old is not None and old.name != new.name:
            self._known[node_id] = old
            raise EpicastError(f"{node_id} is {old.name}, not {new.name}")
        self._known[node_id] = new
        if len(self._known) > self._sources_max:
            del self._known[next(iter(self._known))]

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)
