"""Names of live processes: `host:port/incarnation`.

The incarnation is new at every start: a process that comes back is another one, and whatever is still on its way to or
about the old one concerns nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from ipaddress import ip_address
from typing import NamedTuple

from epicast.core.errors import EpicastError
from epicast.core.ids import NODE_ID_LENGTH_MAX

PORT_MAX, PORT_DIGITS_MAX = 65_535, 5
_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
INCARNATION_LENGTH = 8


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str, *, default_port: int | None = None) -> Address:
    """Of "host:port" or "[v6]:port"."""
    host, colon, port = text.rpartition(":")
    if not colon and default_port is not None:
        host, port = text, str(default_port)
    host = host.removeprefix("[").removesuffix("]")
    digits = port.isascii() and port.isdigit() and len(port) <= PORT_DIGITS_MAX
    if not host or not digits or int(port) > PORT_MAX or _spaced(host):
        raise EpicastError(f"expected an address like 127.0.0.1:7946, got {text!r}"[:200])
    return Address(host, int(port))


def _spaced(host: str) -> bool:
    return not host.isprintable() or any(letter in " /@" for letter in host)


def new_incarnation(draw: Callable[[int], int]) -> str:
    """`draw(n)` gives a number below n."""
    return "".join(_LETTERS[draw(len(_LETTERS))] for _ in range(INCARNATION_LENGTH))


def make_id(address: Address, incarnation: str) -> str:
    return f"{address}/{incarnation}"


def address_of(node_id: object) -> Address | None:
    """Where a process listens; None if this is not an id of a live process."""
    if not isinstance(node_id, str) or len(node_id) > NODE_ID_LENGTH_MAX:
        return None
    endpoint, slash, incarnation = node_id.partition("/")
    if not slash or not incarnation.isalnum() or not incarnation.isascii():
        return None
    try:
        address = parse_address(endpoint)
    except EpicastError:
        return None
    return address if address.port else None


def number(node_id: str) -> int:
    """What stands for the process in a trace: 63 bits, the same wherever they are computed."""
    return int.from_bytes(blake2b(node_id.encode(), digest_size=8).digest(), "big") >> 1
