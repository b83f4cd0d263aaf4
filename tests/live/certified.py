"""Clusters with keys for the tests, and certificates that `epicast keys` would never make."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import NameOID

from epicast.live import keys
from epicast.live.tls import Tls

HOST = "127.0.0.1"
LONG_AGO = datetime.now(UTC) - timedelta(days=400)


def make_cluster(folder: Path, *names: str, cluster: str = "prices") -> Path:
    """An authority that has been there for some time, and nodes on the loopback address."""
    keys.init(folder, cluster=cluster, now=LONG_AGO)
    for name in names:
        keys.issue(folder, name, hosts=[HOST])
    return folder


def make_odd(
    folder: Path,
    name: str,
    *,
    uris: tuple[str, ...] = (),
    dns: tuple[str, ...] = (),
    curve: ec.EllipticCurve | None = None,
    ca: bool = False,
) -> Tls:
    """A certificate by the authority in the folder, with whatever in it."""
    authority = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    secret: Any = load_pem_private_key((folder / "ca.key").read_bytes(), None)
    key = ec.generate_private_key(curve) if curve else Ed25519PrivateKey.generate()
    hosts = [x509.IPAddress(ip_address(HOST)), *map(x509.DNSName, dns)]
    usage = [False] * 9
    usage[0], usage[5] = True, ca
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca, None), critical=True)
        .add_extension(x509.KeyUsage(*usage), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(secret.public_key()), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([*hosts, *map(x509.UniformResourceIdentifier, uris)]), critical=False
        )
        .sign(secret, None)
    )
    tls = Tls.from_folder(folder, name)
    Path(tls.certificate).write_bytes(certificate.public_bytes(Encoding.PEM))
    Path(tls.key).write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    Path(tls.key).chmod(0o600)
    return tls


def stubborn(side: Any, tls: Tls) -> ssl.SSLContext:
    """A context as a peer might make it who does not look at its own files first."""
    context = ssl.SSLContext(side)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(tls.ca)
    context.load_cert_chain(tls.certificate, tls.key)
    return context


def der(tls: Tls) -> bytes:
    return ssl.PEM_cert_to_DER_cert(Path(tls.certificate).read_text())
