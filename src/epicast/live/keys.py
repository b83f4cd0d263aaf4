"""Making keys: an authority for a cluster, and a certificate with its key for each node.

    ca.pem    the authority's certificate: every node has a copy
    ca.key    its key: whoever holds it can make members of the cluster; no node needs it
    n1.pem    the certificate of node n1: name, cluster, hosts
    n1.key    its key, for TLS and for signatures

All keys are Ed25519. One key serves both purposes safely, since what it signs differs from the first byte on: TLS 1.3
signs texts that begin with 64 blanks, messages begin with our own prefix (`signatures.py`). Keys are not encrypted on
disk: files are readable by their owner alone, and nothing secret is ever an argument of a command.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path

from epicast.core.errors import EpicastError
from epicast.live import certificates as read
from epicast.live.identity import as_host, as_uri, require_name
from epicast.trace.files import one_line

try:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:
    raise EpicastError("certificates and signatures are not installed: pip install 'epicast[live]'") from None

CA = "ca"
CERTIFICATE, KEY = ".pem", ".key"
DAYS_MAX = 36_500
CLOCKS_DIFFER = timedelta(minutes=5)
"""A certificate begins so much earlier: it shall work at once on a machine whose clock is slow."""
_OPEN, _OWNER_ONLY = 0o644, 0o600


@dataclass(frozen=True)
class Card:
    """What a certificate says, for people."""

    kind: str  # "authority" or "node"
    cluster: str
    name: str  # of a node
    hosts: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    fingerprint: str  # SHA-256 of the certificate


def init(folder: str | Path, *, cluster: str, days: int = 3650, now: datetime | None = None) -> Card:
    """Make the authority of a cluster in a new or empty folder."""
    require_name("cluster", cluster)
    start, end = _validity(days, now)
    folder = Path(folder)
    _make_private(folder)
    key = Ed25519PrivateKey.generate()
    # No two authorities share a subject: during a change of authority both are in one ca.pem.
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, cluster),
            x509.NameAttribute(
                NameOID.COMMON_NAME, f"epicast {sha256(key.public_key().public_bytes_raw()).hexdigest()[:16]}"
            ),
        ]
    )
    builder = _builder(subject, subject, key.public_key(), start, end, key.public_key())
    uri: list[x509.GeneralName] = [x509.UniformResourceIdentifier(as_uri(cluster))]
    certificate = (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .add_extension(x509.SubjectAlternativeName(uri), critical=False)
        .sign(key, None)
    )
    _write_new({folder / (CA + KEY): _secret(key), folder / (CA + CERTIFICATE): read.as_pem(certificate)})
    return describe(certificate)


def issue(
    folder: str | Path,
    name: str,
    *,
    hosts: Sequence[str],
    days: int = 365,
    out: str | Path | None = None,
    now: datetime | None = None,
) -> Card:
    """Make a node's certificate and key, signed by the authority in `folder`.

    They are written there, or to `out` with a copy of ca.pem: all that the node's machine needs. A certificate ends
    with its authority at the latest.
    """
    if require_name("name", name).lower() == CA:
        raise EpicastError(f"name: {name!r} is the authority's own; choose another")
    addresses = _as_general_names(hosts)
    start, end = _validity(days, now)
    authority, secret = _load_authority(Path(folder), now or read.now_utc())
    key = Ed25519PrivateKey.generate()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    end = min(end, authority.not_valid_after_utc)
    builder = _builder(subject, authority.subject, key.public_key(), start, end, secret.public_key())
    uri = x509.UniformResourceIdentifier(as_uri(read.name_in(authority)[0], name))
    certificate = (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(authority=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.SubjectAlternativeName([*addresses, uri]), critical=False)
        .sign(secret, None)
    )
    if len(read.as_der(certificate)) > read.DER_BYTES_MAX:
        raise EpicastError(f"host: {len(hosts)} hosts are too many for one certificate; issue several")
    _write_pair(Path(folder), Path(out or folder), name, certificate, key)
    return describe(certificate)


def show(path: str | Path) -> list[Card]:
    """What the certificates in a file say; more than one while a cluster changes its authority."""
    return [describe(each, path) for each in read.load_certificates(path)]


def describe(certificate: x509.Certificate, where: str | Path = "the certificate") -> Card:
    cluster, name = read.name_in(certificate, where)
    return Card(
        kind="authority" if read.is_authority(certificate) else "node",
        cluster=cluster,
        name=name,
        hosts=read.hosts_in(certificate),
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        fingerprint=sha256(read.as_der(certificate)).hexdigest(),
    )


def _load_authority(folder: Path, now: datetime) -> tuple[x509.Certificate, Ed25519PrivateKey]:
    """The one that the key belongs to, and the key."""
    known = read.load_authority(folder / (CA + CERTIFICATE), now)
    key = read.load_key(folder / (CA + KEY))
    own = next((each for each in known.certificates if read.is_pair(each, key)), None)
    if own is None or not isinstance(key, Ed25519PrivateKey):
        raise EpicastError(f"{folder / (CA + KEY)} is not the key of {folder / (CA + CERTIFICATE)}")
    read.require_timely(own, now, str(folder / (CA + CERTIFICATE)))
    return own, key


def _write_pair(home: Path, out: Path, name: str, certificate: x509.Certificate, key: Ed25519PrivateKey) -> None:
    new = {out / (name + KEY): _secret(key), out / (name + CERTIFICATE): read.as_pem(certificate)}
    if out.resolve() != home.resolve():
        authorities = read.load_certificates(home / (CA + CERTIFICATE))
        copy = out / (CA + CERTIFICATE)
        if not copy.exists():
            _make_private(out, empty=False)
            new[copy] = b"".join(map(read.as_pem, authorities))
        elif not set(authorities) <= set(read.load_certificates(copy)):
            raise EpicastError(f"{copy} is of another authority: choose another folder, or append {home / copy.name}")
    _write_new(new)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: Ed25519PublicKey,
    start: datetime,
    end: datetime,
    issuer_key: Ed25519PublicKey,
) -> x509.CertificateBuilder:
    """What the certificates of authorities and of nodes have in common."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _as_general_names(hosts: Sequence[str]) -> list[x509.GeneralName]:
    if not hosts:
        raise EpicastError("host: expected at least one, the address or name by which other nodes reach this one")
    names: list[x509.GeneralName] = []
    for host in dict.fromkeys(map(as_host, hosts)):
        try:
            address = ip_address(host)
        except ValueError:
            names.append(x509.DNSName(host))
            continue
        if address.is_unspecified:
            raise EpicastError(f"host: {host} stands for any address; name the one by which other nodes reach this one")
        names.append(x509.IPAddress(address))
    return names


def _validity(days: int, now: datetime | None) -> tuple[datetime, datetime]:
    if not 1 <= days <= DAYS_MAX:
        raise EpicastError(f"days: expected 1 to {DAYS_MAX}, got {days}")
    moment = (now or read.now_utc()).replace(microsecond=0)
    return moment - CLOCKS_DIFFER, moment + timedelta(days=days)


def _secret(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _make_private(folder: Path, *, empty: bool = True) -> None:
    """A folder that only its owner may enter. One that exists must be empty to become one."""
    try:
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True)
        elif not empty:
            return
        elif (folder / (CA + CERTIFICATE)).exists() or (folder / (CA + KEY)).exists():
            raise EpicastError(f"{folder} holds an authority already: choose another folder")
        elif any(folder.iterdir()):
            raise EpicastError(f"{folder} is not empty: choose a new folder")
        folder.chmod(0o700)
    except OSError as error:
        raise EpicastError(f"cannot write to {folder}: {one_line(error)}") from None


def _write_new(files: Mapping[Path, bytes]) -> None:
    """All of them or none; a file that exists is never replaced."""
    taken = next((path for path in files if path.exists()), None)
    if taken is not None:
        raise EpicastError(f"{taken} exists: choose another folder or name, or move it away")
    made: list[Path] = []
    try:
        for path, data in files.items():
            mode = _OWNER_ONLY if path.suffix == KEY else _OPEN
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            made.append(path)
            with open(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(handle)
    except OSError as error:
        for path in made:
            with suppress(OSError):
                path.unlink()
        raise EpicastError(f"cannot write the keys to {path.parent}: {one_line(error)}") from None
