"""The kinds of rows that a trace holds, and from which level on each is kept."""

from __future__ import annotations

from enum import IntEnum


class Level(IntEnum):
    """How much a run writes down: nothing, what applications and operators see, or every message as well."""

    OFF = 0
    DELIVERIES = 1
    FULL = 2


class Kind(IntEnum):
    """What happened. Values are stable: traces of older versions stay readable."""

    # kept at Level.FULL only
    SEND = 0  # node handed a message for `peer` to the network
    RECEIVE = 1  # node got a message from `peer`
    DUPLICATE = 2  # node got a payload from `peer` that it had already
    DROP = 3  # a message from node to `peer` was lost; `detail` says why
    COPY = 4  # the network made a second copy of a message from node to `peer`
    LINK_UP = 5
    LINK_DOWN = 6
    # kept from Level.DELIVERIES on
    PUBLISH = 16  # `detail` is its time, where the order has times of its own
    DELIVER = 17
    JOIN = 18  # the process came up
    LEAVE = 19  # it left in good order
    CRASH = 20
    PAUSE = 21
    RESUME = 22
    PARENT = 23  # node's parent in the flow (source, seq) is now `peer` (NOBODY: it has none)
    REPAIR = 24  # node found a new parent; `detail` is "soft" or "hard"
    SUBSCRIBE = 25
    UNSUBSCRIBE = 26
    GAP = 27  # node gave up on messages: no neighbour has them any more, or their turn in the order is over
    NONSENSE = 28  # a peer's message made no sense and was dropped; `detail` says which
    CONTACT = 29  # node "asked" its local network, or heard of `peer`: "near" or "far", now neighbours, or "left"
    EARLY = 30  # the application took an event before its turn in the order; DELIVER marks the turn
    CORRECTION = 31  # an event reached the application after its turn


FIRST_KEPT = {Level.OFF: 256, Level.DELIVERIES: int(Kind.PUBLISH), Level.FULL: int(Kind.SEND)}
"""Rows of a kind below this value are counted but not kept."""

KIND_CODES = 32  # above the highest kind
