"""What an application gets: messages, gaps where some are missing, and receipts for what it published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from epicast.core.errors import EpicastError
from epicast.wire.readers import COMPILED

__all__ = ["Correction", "Gap", "Message", "QueueFull", "Receipt", "SlowSubscriber", "Waiting", "plain_messages"]

if TYPE_CHECKING or not COMPILED:
    from epicast.live.plain_messages import Message, plain_messages
else:
    from epicast.live._messages import Message, plain_messages


class Gap(msgspec.Struct, frozen=True):
    """Messages are missing at this place of the stream."""

    lost: int  # how many; at least
    reason: str
    source: str = ""  # whose, where that is known


class Correction(msgspec.Struct, frozen=True):
    """A message whose turn in the total order of its topic was over when it came: it belongs before some of those that
    you have had."""

    message: Message


class Waiting(msgspec.Struct, frozen=True):
    """A message that waits for its turn in the total order of its topic."""

    message: Message
    probability: float  # that nothing will come before it


class Receipt(msgspec.Struct, frozen=True, gc=False):
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
