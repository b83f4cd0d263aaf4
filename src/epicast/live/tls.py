"""Links that only members of a cluster can open and read: TLS 1.3, with a certificate on either side.

`ssl` proves that the peer holds a key for which our authority has signed; it does not check names. Who the peer is says
`peer_identity`, and whether it may call itself by the node id of its greeting says `require_host`.

A client learns late that it is not wanted: in TLS 1.3 its handshake is over before the server has looked at its
certificate. A peer has joined only once it has answered a greeting.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from epicast.core.errors import ConfigError, EpicastError
from epicast.live.identity import Identity, require_host, require_name

__all__ = ["ClusterContext", "Identity", "Tls", "peer_identity", "require_host", "require_own"]


class ClusterContext(ssl.SSLContext):
    """Knows of which cluster a peer must be."""

    cluster: str


@dataclass(frozen=True)
class Tls:
    """Where the files of a node are."""

    ca: str | Path
    certificate: str | Path
    key: str | Path

    def __post_init__(self) -> None:
        for name in ("ca", "certificate", "key"):
            _require_path(name, getattr(self, name))

    @classmethod
    def from_folder(cls, folder: str | Path, name: str) -> Tls:
        """As `epicast keys issue` leaves them."""
        _require_path("folder", folder)
        folder, name = Path(folder), require_name("name", name)
        return cls(folder / "ca.pem", folder / f"{name}.pem", folder / f"{name}.key")

    def identity(self) -> Identity:
        """Who we are; raises if a file is missing, has expired or does not belong to the others."""
        from epicast.live import certificates as read

        now = read.now_utc()
        authority = read.load_authority(self.ca, now)
        certificate, _ = read.load_pair(self.certificate, self.key)
        try:
            return authority.check(certificate, now)
        except EpicastError as error:
            raise EpicastError(f"{self.certificate}: {error}") from None

    def server_context(self) -> ssl.SSLContext:
        context = self._context(ssl.PROTOCOL_TLS_SERVER)
        # A resumed session would not show its certificate again, and might outlive it.
        context.num_tickets = 0
        return context

    def client_context(self) -> ssl.SSLContext:
        return self._context(ssl.PROTOCOL_TLS_CLIENT)

    def _context(self, side: ssl._SSLMethod) -> ClusterContext:
        identity = self.identity()
        context = ClusterContext(side)
        context.cluster = identity.cluster
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        try:
            context.load_verify_locations(self.ca)
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise EpicastError(f"{self.certificate} cannot be used for TLS: {error}") from None
        return context


def _require_path(name: str, given: object) -> None:
    if not isinstance(given, str | PathLike):
        raise ConfigError(f"{name}: expected a path, got {given!r}"[:200])


def peer_identity(ssl_object: ssl.SSLObject | ssl.SSLSocket) -> Identity:
    """Who is at the other end of a link whose handshake is over and whose context is one of ours."""
    from epicast.live import certificates as read

    context = ssl_object.context
    assert isinstance(context, ClusterContext), "the link was not made with a context of Tls"
    shown = ssl_object.getpeercert(binary_form=True)
    if shown is None:
        raise EpicastError("the peer showed no certificate")
    identity = read.identity_of(read.parse_der(shown))
    if identity.cluster != context.cluster:
        raise EpicastError(f"the peer is of cluster {identity.cluster}, expected {context.cluster}")
    return identity


def require_own(tls: Tls, node_id: str, cluster: str) -> None:
    """Others would refuse a node whose keys are for another host or cluster: better to say so here."""
    identity = tls.identity()
    require_host(identity, node_id)
    if identity.cluster != cluster:
        raise EpicastError(f"the keys are for cluster {identity.cluster}, this node is of {cluster}")
