"""What an order has to say about an event, at the end of the event's payload:

    payload | header | length of the header (2)

The first byte of a header tells which order it belongs to. Behind the payload rather than before it, so that whoever
looks at the beginning of a payload finds there what the application has put there.
"""

from __future__ import annotations

from epicast.core.errors import EpicastError, WireError

FIFO, CAUSAL, TOTAL = 1, 2, 3  # the kinds of order

LENGTH_BYTES = 2
HEADER_BYTES_MAX = (1 << 8 * LENGTH_BYTES) - 1


def add(payload: bytes, header: bytes) -> bytes:
    """The payload as it travels. A header is never empty: it has its kind."""
    if not 0 < len(header) <= HEADER_BYTES_MAX:
        raise EpicastError(f"a header of {len(header):,} bytes does not fit; it may have 1 to {HEADER_BYTES_MAX:,}")
    return b"".join((payload, header, len(header).to_bytes(LENGTH_BYTES, "big")))


def split(dressed: bytes) -> tuple[bytes, bytes]:
    """The payload as it was published, and the header."""
    end = len(dressed) - LENGTH_BYTES
    length = int.from_bytes(dressed[max(0, end) :], "big")
    if not 0 < length <= end:
        raise WireError(f"a trailer of {length} bytes in a payload of {len(dressed)}")
    return dressed[: end - length], dressed[end - length : end]
