"""Links between processes of one machine: Unix sockets, which take an eighth to a third less time than TCP does.

Who listens at an address also listens under its name in the system's own table of such sockets (Linux calls these names
abstract: nothing appears among the files). Names are those of one network namespace, as addresses are, so whoever is
found under a name is who would be found at the address. Who dials looks there first.

Anybody on the machine may take a name that is free. So a process of another user is not spoken to here, but by TCP.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Callable
from ipaddress import ip_address

from epicast.live.ids import Address

HERE = "this machine"
"""What stands for the address of the other side."""
_CREDENTIALS = struct.Struct("3i")  # process, user, group


def listen(address: Address, backlog: int) -> socket.socket | None:
    """None: there are no such sockets here, or the name is taken, or it is no address of one machine."""

    def take(link: socket.socket, name: bytes) -> None:
        link.bind(name)
        link.listen(backlog)

    return _open(address, take)


def dial(address: Address) -> socket.socket | None:
    """Connected to the process of our user that listens there; None: there is none."""
    link = _open(address, socket.socket.connect)
    if link is not None and not is_of_our_user(link):
        link.close()
        return None
    return link


def is_of_our_user(link: socket.socket) -> bool:
    """The process at the other end."""
    told = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(told)
    return bool(user == os.getuid())


def remote_of(peer_name: object) -> str:
    """The address of the other side, from what the system calls it."""
    if isinstance(peer_name, tuple):
        return str(peer_name[0])
    return HERE if isinstance(peer_name, (str, bytes)) else ""


def _open(address: Address, use: Callable[[socket.socket, bytes], None]) -> socket.socket | None:
    if sys.platform != "linux" or not _is_of_one_machine(address):
        return None
    try:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError:  # services may be forbidden to
        return None
    link.setblocking(False)
    try:
        use(link, f"\0epicast/{address}".encode())
    except OSError:
        link.close()
        return None
    return link


def _is_of_one_machine(address: Address) -> bool:
    try:
        return not ip_address(address.host).is_unspecified
    except ValueError:
        return False
