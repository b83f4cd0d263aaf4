"""Why a connection failed or ended, in words: for counters, events, and errors that tell an operator what to do."""

from __future__ import annotations

import errno
import os
import socket
import ssl

NO_ANSWER = "no answer"
CLOSED = "closed by the peer"
NO_GREETING = "no greeting in time"
REFUSED = "refused by the peer"
HANDSHAKE_CUT = "TLS: the peer ended the handshake"

_ABSENT = frozenset(
    {
        NO_ANSWER,
        *(
            os.strerror(number)
            for number in (
                errno.ECONNREFUSED,
                errno.EHOSTUNREACH,
                errno.EHOSTDOWN,
                errno.ENETUNREACH,
                errno.ENETDOWN,
                errno.ETIMEDOUT,
                errno.EADDRNOTAVAIL,
                errno.EAFNOSUPPORT,
            )
        ),
    }
)
_CUT = frozenset({CLOSED, os.strerror(errno.ECONNRESET), os.strerror(errno.EPIPE)})


def said(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return NO_ANSWER
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: its certificate is not valid here: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {(error.reason or 'the handshake failed').lower().replace('_', ' ')}"
    if isinstance(error, socket.gaierror):
        return error.strerror or "no such name"
    if isinstance(error, ConnectionResetError) and not error.errno:
        return os.strerror(errno.ECONNRESET)
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


def is_absent(reason: str) -> bool:
    """No process listens at the address, as far as this can be told; otherwise there is one that refuses us."""
    return reason in _ABSENT


def advice(reason: str) -> str:
    """The reason why a dial failed, with what an operator may do about it."""
    sort, _, rest = reason.partition(": ")
    if sort == REFUSED:
        return f"refused: {rest}"
    if reason.removeprefix("broken: ") in _CUT:
        return "it closes connections before it greets; has it no room, or TLS on one side only?"
    if sort == "nonsense":
        return "it speaks another language; TLS on one side only?"
    if reason == HANDSHAKE_CUT:
        return f"{reason}; TLS on one side only?"
    if sort == "TLS":
        return f"{reason}; are the keys of the same authority, and for our addresses?"
    if reason == NO_GREETING:
        return "it takes connections, but does not greet; is the process stuck?"
    return reason
