"""Messages as applications get them, made of what came in. `_messages.pyx` is the same compiled."""

from __future__ import annotations

import msgspec

from epicast.live.envelope import PLAIN, PLAIN_BYTES, TIME_MAX
from epicast.wire.frames import Run


class Message(msgspec.Struct, frozen=True, gc=False):
    topic: str
    payload: bytes
    source: str  # the id of the process that published it
    seq: int  # its number at the source
    published_us: int  # by the publisher's clock, Unix time
    received_us: int  # by ours
    headers: dict[str, str] = {}
    signer: str | None = None  # whose signature it has: the name in the certificate of the source, once it was verified

    @property
    def size(self) -> int:
        """Bytes of the payload."""
        return len(self.payload)

    @property
    def id(self) -> tuple[str, int]:
        return self.source, self.seq

    @property
    def latency(self) -> float:
        """Seconds from publication to reception, as far as the two clocks agree."""
        return max(0, self.received_us - self.published_us) / 1e6


def plain_messages(run: Run, topic: str, source: str, received_us: int) -> list[Message]:
    """Of events that are nothing but a time and a payload, up to the first that is more."""
    data, starts, ends = run.places()
    facts, seq, messages = PLAIN.unpack_from, run.seq, []
    for start, end in zip(starts, ends, strict=True):
        if end - start < PLAIN_BYTES:
            break
        flags, published_us = facts(data, start)
        if flags or published_us > TIME_MAX:
            break
        messages.append(Message(topic, data[start + PLAIN_BYTES : end], source, seq, published_us, received_us))
        seq += 1
    return messages
