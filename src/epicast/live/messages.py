"""What an application gets: messages, gaps where some are missing, and receipts for what it published."""

from __future__ import annotations

import msgspec

from epicast.core.errors import EpicastError


class Message(msgspec.Struct, frozen=True, gc=False):
    topic: str
    payload: bytes
    source: str  # the id of the process that published it
    seq: int  # its number at the source
    published_us: int  # by the publisher's clock, Unix time
    received_us: int  # by ours
    headers: dict[str, str] = {}

    @property
    def id(self) -> tuple[str, int]:
        return self.source, self.seq

    @property
    def latency(self) -> float:
        """Seconds from publication to reception, as far as the two clocks agree."""
        return max(0, self.received_us - self.published_us) / 1e6


class Gap(msgspec.Struct, frozen=True):
    """Messages are missing at this place of the stream."""

    lost: int  # how many; at least
    reason: str
    source: str = ""  # whose, where that is known


class Receipt(msgspec.Struct, frozen=True):
    """What became of a published message at once; how far it spreads is seen at the subscribers."""

    id: tuple[str, int]
    neighbours: int  # to how many it was sent
    waiting: int  # for how many more it waits until they are connected
    dropped: tuple[tuple[str, str], ...] = ()  # to whom it could not be sent, and why
    fragments: int = 1


class QueueFull(EpicastError):
    """A neighbour cannot take more now, and the publisher did not want to wait."""


class SlowSubscriber(EpicastError):
    """The subscription was ended because its queue ran full."""
