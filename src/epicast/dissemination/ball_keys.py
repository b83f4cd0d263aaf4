"""The key of an event: one byte string that names it and says where it belongs in the total order.

    timestamp (8) | kind of id (1) | source | sequence number (8)

Keys compare like (timestamp, source, number), and no two events share one: a process that publishes twice at one time
has numbers to tell them apart (E-E8). As one byte string a key is hashed once and travels as it is.
"""

from __future__ import annotations

from functools import lru_cache

from epicast.core.errors import WireError
from epicast.core.ids import NODE_ID_LENGTH_MAX, NodeId

TIMESTAMP_MAX = (1 << 62) - 1
SEQ_MAX = (1 << 63) - 1
KEY_BYTES_MAX = 17 + 4 * NODE_ID_LENGTH_MAX
_INT, _TEXT = b"\x00", b"\x01"
_INT_BYTES = 8 + 1 + 8 + 8
_READ_KEYS = 1 << 14  # each is read when it comes and when it is delivered


def make_key(timestamp: int, source: NodeId, seq: int) -> bytes:
    name = _INT + source.to_bytes(8, "big") if isinstance(source, int) else _TEXT + source.encode()
    return timestamp.to_bytes(8, "big") + name + seq.to_bytes(8, "big")


@lru_cache(_READ_KEYS)
def read_key(key: bytes) -> tuple[int, NodeId, int]:
    """Timestamp, source and number. WireError if it is not a key that `make_key` makes."""
    timestamp, seq = int.from_bytes(key[:8], "big"), int.from_bytes(key[-8:], "big")
    if len(key) < 17 or timestamp > TIMESTAMP_MAX or seq > SEQ_MAX:
        raise WireError("not the key of an event")
    if key[8:9] == _INT and len(key) == _INT_BYTES:
        return timestamp, int.from_bytes(key[9:17], "big"), seq
    if key[8:9] != _TEXT:
        raise WireError("not the key of an event")
    try:
        source = key[9:-8].decode()
    except UnicodeDecodeError:
        raise WireError("not the key of an event") from None
    if not 1 <= len(source) <= NODE_ID_LENGTH_MAX:
        raise WireError("not the key of an event")
    return timestamp, source, seq


def timestamp_of(key: bytes) -> int:
    return int.from_bytes(key[:8], "big")
