"""Signed messages: signs what we publish, and lets nothing in whose signature is not good.

A message is judged before the stack sees it, so that a forgery can take nobody's place. Every signed message brings its
publisher's certificate, some 500 bytes: whoever gets it can judge it, however late it joined. What was accepted once is
not delivered again, even after the stack has forgotten it.
"""

from __future__ import annotations

from typing import Any

from epicast.core.errors import EpicastError, WireError
from epicast.live import envelope
from epicast.live.blame import CROWDED, UNSIGNED
from epicast.live.signatures import ReplayWindow, Signer, Verifier
from epicast.live.tls import Tls

_STREAM_SHIFT = 40  # publishers number the messages of each of their streams from a multiple of this power of two
_IN_STREAM = (1 << _STREAM_SHIFT) - 1


class Guard:
    def __init__(self, tls: Tls, cluster: str) -> None:
        self._signer, self._verifier = Signer(tls.certificate, tls.key), Verifier(tls.ca)
        for whose in (self._signer.cluster, self._verifier.cluster):
            if whose != cluster:
                raise EpicastError(f"the keys are for cluster {whose}, this node is of {cluster}")
        self._replay = ReplayWindow()
        self._me = ""  # our id, once we have signed something

    def sign(self, topic: str, source: str, seq: int, packed: bytes, context: str) -> bytes:
        self._me = source
        covered = envelope.covered_by_signature(packed)
        signature = self._signer.sign(topic, source, seq, covered, context)
        return envelope.add_signature(packed, self._signer.certificate_der, signature)

    def objection(self, event: Any, now_us: int) -> str:
        """Why it may not be let in; empty if it may. What `fresh` would refuse for want of room must not get into the
        stack either: a member that invents sources would fill its tables, where hosts do not count."""
        source = event.source
        try:
            signed = envelope.split_signature(event.payload)
        except WireError:
            return UNSIGNED
        if signed is None or not isinstance(source, str):
            return UNSIGNED
        certificate, signature, covered = signed
        verifier, seq = self._verifier, event.seq
        said = verifier.objection(certificate, event.topic, source, seq, covered, signature, event.context)
        return said or ("" if self._replay.has_room(_stream_of(event), now_us) else CROWDED)

    def signer_of(self, event: Any) -> str | None:
        """The name in the certificate that the signature of an event fits, which was let in before; None if so many
        sources have come since that its key is forgotten."""
        source = event.source
        return self._signer.name if source == self._me else self._verifier.name_of(source)

    def fresh(self, event: Any, now_us: int) -> bool:
        """Once for each message. Each stream of a publisher has numbers of its own."""
        return self._replay.accept(_stream_of(event), event.seq & _IN_STREAM, now_us)


def _stream_of(event: Any) -> str:
    return f"{event.source}s{event.seq >> _STREAM_SHIFT}"
