"""Who a node is: what its certificate calls it, and the hosts on which it may listen.

A certificate names its owner by a URI, `epicast://CLUSTER/NAME`; that of the certificate authority is
`epicast://CLUSTER`. A node id holds a host, a port and an incarnation, but no name: a certificate vouches for every id
on one of its hosts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv6Address, ip_address

from epicast.core.errors import EpicastError
from epicast.live.ids import address_of

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
_URI = re.compile(rf"epicast://({_NAME})(?:/({_NAME}))?")
_LABEL = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
_DNS = re.compile(rf"(?:{_LABEL}\.)*(?!\d+$){_LABEL}")
_DNS_LENGTH_MAX = 253
_SHOWN = 80  # of a text that a peer chose


@dataclass(frozen=True)
class Identity:
    """What the cluster's authority says of a node."""

    cluster: str
    name: str
    hosts: tuple[str, ...]  # as `as_host` writes them
    not_after: datetime


def require_name(what: str, text: str) -> str:
    """The text, if it can be the name of a cluster or a node."""
    if not isinstance(text, str) or not re.fullmatch(_NAME, text):
        raise EpicastError(
            f"{what}: expected up to 63 letters, digits, dots, hyphens and underscores, got {_short(text)}"
        )
    return text


def as_uri(cluster: str, name: str = "") -> str:
    return f"epicast://{cluster}/{name}" if name else f"epicast://{cluster}"


def parse_uri(text: str) -> tuple[str, str] | None:
    """Cluster and name, which is empty for an authority; None if it is not a URI of ours."""
    match = _URI.fullmatch(text)
    return (match[1], match[2] or "") if match else None


def as_host(text: str) -> str:
    """The one way to write an IP address or DNS name, so that hosts can be compared."""
    bare = text.removeprefix("[").removesuffix("]")
    try:
        address = ip_address(bare)
    except ValueError:
        name = text.lower().removesuffix(".")
        if not _DNS.fullmatch(name) or len(name) > _DNS_LENGTH_MAX:
            raise EpicastError(f"host: expected an IP address or a DNS name, got {_short(text)}") from None
        return name
    if isinstance(address, IPv6Address):
        if address.scope_id:
            raise EpicastError(f"host: expected an address without a zone, got {_short(text)}")
        return str(address.ipv4_mapped or address)
    return str(address)


def require_host(identity: Identity, node_id: str) -> None:
    """Raise unless the certificate vouches for the host that the node id claims."""
    address = address_of(node_id)
    if address is None:
        raise EpicastError(f"not a node id: {_short(node_id)}")
    if as_host(address.host) not in identity.hosts:
        raise EpicastError(
            f"the certificate of {identity.name} is for {', '.join(identity.hosts)}, not for {address.host}: "
            f"issue one with --host {address.host}"
        )


def _short(text: object) -> str:
    text = str(text)
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
