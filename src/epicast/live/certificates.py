"""Reading certificates and keys, and judging what they say.

There are no intermediate authorities: a certificate is good if one of the authorities in `ca.pem` has signed it, both
are within their dates, and both are of one cluster. `ca.pem` may hold several authorities of that cluster, so that a
new one can take over from an old one while nodes run.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from epicast.core.errors import EpicastError
from epicast.live.identity import Identity, as_host, parse_uri
from epicast.trace.files import one_line

try:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
except ImportError:
    raise EpicastError("certificates and signatures are not installed: pip install 'epicast[live]'") from None

DER_BYTES_MAX = 3072
"""Of a node's certificate: it travels in a greeting, and that may have 4 KiB."""
_FILE_BYTES_MAX = 1 << 20
_READABLE_BY_EVERYONE = 0o007


class NotNow(EpicastError):
    """A certificate that is good at another time."""


@dataclass(frozen=True)
class Authority:
    """Whom a cluster trusts to name its nodes."""

    cluster: str
    certificates: tuple[x509.Certificate, ...]

    def check(self, certificate: x509.Certificate, now: datetime) -> Identity:
        """Who it is, if the authority stands for it now. Nothing in it is believed before its signature is good."""
        issuer = self._issuer(certificate)
        require_timely(issuer, now, "its authority")
        require_timely(certificate, now, "the certificate")
        identity = identity_of(certificate)
        if identity.cluster != self.cluster:
            raise EpicastError(f"the certificate is of cluster {identity.cluster}, expected {self.cluster}")
        return identity

    def _issuer(self, certificate: x509.Certificate) -> x509.Certificate:
        for each in self.certificates:
            try:
                certificate.verify_directly_issued_by(each)
            except Exception:  # as below: the library has many ways to say no
                continue
            return each
        raise EpicastError(f"the certificate was not issued by this authority of cluster {self.cluster}")


def load_authority(path: str | Path, now: datetime) -> Authority:
    certificates = load_certificates(path)
    if not all(is_authority(each) for each in certificates):
        raise EpicastError(f"{path} is not an authority of epicast: name the ca.pem that epicast keys init made")
    clusters = sorted({name_in(each, path)[0] for each in certificates})
    if len(clusters) > 1:
        raise EpicastError(f"{path} holds authorities of several clusters: {', '.join(clusters)}; keep those of one")
    if all(untimely(each, now) for each in certificates):
        require_timely(certificates[-1], now, str(path))
    return Authority(clusters[0], tuple(certificates))


def load_pair(certificate: str | Path, key: str | Path) -> tuple[x509.Certificate, PrivateKeyTypes]:
    """A certificate and the key that belongs to it."""
    first, secret = load_certificates(certificate)[0], load_key(key)
    if not is_pair(first, secret):
        raise EpicastError(f"{key} is not the key of {certificate}: name two that were issued together")
    return first, secret


def load_certificates(path: str | Path) -> list[x509.Certificate]:
    data = _read(path)
    if b"PRIVATE KEY-----" in data:
        raise EpicastError(f"{path} holds a private key: name the certificate, which ends in .pem")
    try:
        return x509.load_pem_x509_certificates(data)
    except (ValueError, x509.InvalidVersion):
        raise EpicastError(f"{path} is not a certificate in PEM form") from None


def load_key(path: str | Path) -> PrivateKeyTypes:
    data = _read(path)
    if Path(path).stat().st_mode & _READABLE_BY_EVERYONE:
        raise EpicastError(f"{path} is a private key that is open to everyone: chmod 600 {path}")
    try:
        return load_pem_private_key(data, None)
    except TypeError:
        raise EpicastError(f"{path} is encrypted: store it without a passphrase, readable by its owner alone") from None
    except (ValueError, UnsupportedAlgorithm):
        raise EpicastError(f"{path} is not a private key in PEM form") from None


def parse_der(data: bytes) -> x509.Certificate:
    """What a peer sent."""
    if len(data) > DER_BYTES_MAX:
        raise EpicastError(f"a certificate of {len(data)} bytes; expected up to {DER_BYTES_MAX}")
    try:
        return x509.load_der_x509_certificate(data)
    except Exception:  # whatever the library thinks of a stranger's bytes, it is not our end
        raise EpicastError("not a certificate") from None


def as_der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.DER)


def as_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def identity_of(certificate: x509.Certificate) -> Identity:
    cluster, name = name_in(certificate)
    if not name or is_authority(certificate):
        raise EpicastError("the certificate is an authority's, expected a node's")
    return Identity(cluster, name, hosts_in(certificate), certificate.not_valid_after_utc)


def name_in(certificate: x509.Certificate, where: str | Path = "the certificate") -> tuple[str, str]:
    """Cluster and name; an authority's name is empty."""
    names = _alternative_names(certificate)
    uris = names.get_values_for_type(x509.UniformResourceIdentifier) if names is not None else []
    found = [parsed for uri in uris if (parsed := parse_uri(uri))]
    if len(found) != 1:
        raise EpicastError(f"{where} does not name a cluster: expected one URI like epicast://CLUSTER/NAME")
    return found[0]


def hosts_in(certificate: x509.Certificate) -> tuple[str, ...]:
    names = _alternative_names(certificate)
    if names is None:
        return ()
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    return tuple(as_host(host) for host in [*addresses, *names.get_values_for_type(x509.DNSName)])


def is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return False


def is_pair(certificate: x509.Certificate, key: PrivateKeyTypes) -> bool:
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    return certificate.public_key().public_bytes(*form) == key.public_key().public_bytes(*form)


def require_timely(certificate: x509.Certificate, now: datetime, what: str) -> None:
    if reason := untimely(certificate, now):
        raise NotNow(f"{what} {reason}")


def untimely(certificate: x509.Certificate, now: datetime) -> str:
    """Why it cannot be used now; empty if it can."""
    if now > certificate.not_valid_after_utc:
        return f"expired on {as_text(certificate.not_valid_after_utc)}: issue a new one with epicast keys"
    if now < certificate.not_valid_before_utc:
        return f"is not valid before {as_text(certificate.not_valid_before_utc)}: is the clock of this machine right?"
    return ""


def as_text(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def now_utc() -> datetime:
    return datetime.now(UTC)


def _alternative_names(certificate: x509.Certificate) -> x509.SubjectAlternativeName | None:
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return None


def _read(path: str | Path) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(_FILE_BYTES_MAX)
    except OSError as error:
        raise EpicastError(f"cannot read {path}: {one_line(error)}") from None
