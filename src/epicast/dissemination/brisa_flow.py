"""What one process knows about one flow: which links are active, its parent and path, what it has received."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from typing import Any

from epicast.core.env import Timer
from epicast.core.ids import FlowId, NodeId
from epicast.core.message import AGE_MAX, Payloads, Position
from epicast.core.window import SeqWindow
from epicast.dissemination.brisa_messages import FIRST_IN_STREAM, Data

AGE_UNIT_US = 1_000_000  # in which positions tell how long the source has been silent


class Buffer(deque[tuple[int, Data, Payloads | None]]):
    """The most recent messages with the time of their coming, bounded in number and bytes; the oldest go first.

    Messages that came together are one entry: what they have in common, and the payloads of all."""

    __slots__ = ("_bytes", "_bytes_max", "_messages", "_messages_max")

    def __init__(self, messages_max: int, bytes_max: int) -> None:
        super().__init__()
        self._messages_max, self._bytes_max = messages_max, bytes_max
        self._messages = self._bytes = 0

    def add(self, now_us: int, msg: Data) -> None:
        self.append((now_us, msg, None))
        self._bytes += len(msg.payload)
        self._messages += 1
        if self._messages > self._messages_max or self._bytes > self._bytes_max:
            self._trim()

    def add_run(self, now_us: int, like: Data, payloads: Payloads) -> None:
        self.append((now_us, like, payloads))
        self._bytes += payloads.payload_bytes
        self._messages += len(payloads)
        self._trim()

    def since(self, us: int) -> list[Data]:
        return [msg for entry in self if entry[0] >= us for msg in messages_of(entry)]

    def within(
        self, ranges: Iterable[tuple[NodeId, int, int]], most: int = sys.maxsize
    ) -> tuple[list[Data], dict[NodeId, int]]:
        """The first messages within these ranges, so many or a few more, and the lowest number within them that is
        here of each publisher."""
        wanted: dict[NodeId, tuple[list[int], list[int]]] = {}
        for source, first, last in sorted(ranges, key=lambda each: each[1:]):
            firsts, lasts = wanted.setdefault(source, ([], []))
            if lasts and first <= lasts[-1] + 1:
                lasts[-1] = max(lasts[-1], last)
            elif first <= last:
                firsts.append(first)
                lasts.append(last)
        found: list[Data] = []
        lowest: dict[NodeId, int] = {}
        for entry in self:
            source, first, last = numbers_of(entry)
            spans = wanted.get(source)
            if spans is None:
                continue
            firsts, lasts = spans
            at = bisect_left(lasts, first)
            if at == len(lasts) or firsts[at] > last:
                continue
            lowest[source] = min(lowest.get(source, last), max(first, firsts[at]))
            if len(found) < most:
                found += [msg for msg in messages_of(entry) if _in(firsts, lasts, msg.seq)]
        return found, lowest

    def _trim(self) -> None:
        while self and (self._messages > self._messages_max or self._bytes > self._bytes_max):
            _, msg, payloads = self.popleft()
            self._messages -= 1 if payloads is None else len(payloads)
            self._bytes -= len(msg.payload) if payloads is None else payloads.payload_bytes


def messages_of(entry: tuple[int, Data, Payloads | None]) -> list[Data]:
    _, like, payloads = entry
    if payloads is None:
        return [like]
    flow, source, hops, path, flags, topic = like.flow, like.source, like.hops, like.path, like.flags, like.topic
    return [Data(flow, source, seq, hops, path, flags, topic, each) for seq, each in enumerate(payloads, payloads.seq)]


def numbers_of(entry: tuple[int, Data, Payloads | None]) -> tuple[NodeId, int, int]:
    """The publisher, and the first and last number."""
    _, like, payloads = entry
    if payloads is None:
        return like.source, like.seq, like.seq
    return like.source, payloads.seq, payloads.seq + len(payloads) - 1


def _in(firsts: list[int], lasts: list[int], seq: int) -> bool:
    at = bisect_left(lasts, seq)
    return at < len(lasts) and firsts[at] <= seq


class Repair:
    """A search for a parent: first among neighbours known to be attached (soft), then anyone (hard)."""

    __slots__ = ("asked", "delay_us", "hard", "initial", "since_us", "taint", "timer", "tried", "waited")

    def __init__(self, since_us: int, delay_us: int, *, initial: bool) -> None:
        self.since_us = since_us
        self.delay_us = delay_us  # until the next attempt
        self.initial = initial  # never had a parent: not a repair to be counted
        self.taint: dict[NodeId, None] = {}  # failed or fresh: nobody whose path runs through them will do
        self.tried: dict[NodeId, None] = {}
        self.asked: NodeId | None = None  # the candidate whose answer we await
        self.timer: Timer | None = None
        self.hard = False
        self.waited = False  # for fresh positions, before going hard

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Evidence:
    """What speaks for and against the claims of neighbours: see `brisa_claims.py` and `brisa_lag.py`."""

    __slots__ = (
        "awaited",
        "awaited_since_us",
        "claimed_at_first",
        "false_parent",
        "hollow",
        "hollow_us",
        "parent_told_us",
        "past_asked",
        "probed",
        "proven",
        "questioned",
        "source_begins",
        "tail_again",
        "unanswered",
        "unheard",
        "vouched",
    )

    def __init__(self) -> None:
        self.questioned: NodeId | None = None  # asked for what it claims to have, and has not answered yet
        self.unanswered: dict[NodeId, int] = {}  # such requests in a row, by neighbour
        self.vouched: dict[NodeId, int] = {}  # what neighbours claimed of the source when we asked the source itself
        self.past_asked: dict[NodeId, None] = {}  # for what came before us: nobody else tells us where our duty begins
        self.source_begins = -1  # the lowest number of its own that the source can give us
        self.unheard: dict[NodeId, int] = {}  # claimed at the last watch, of publishers that we never heard
        self.tail_again: dict[NodeId, int] = {}  # the highest number that came because we asked, by publisher
        # Against the parent
        self.parent_told_us = 0  # when it last told where it stands
        self.awaited: dict[NodeId, int] = {}  # a number that another neighbour claims and the parent does not have
        self.awaited_since_us = 0  # since when, or when that was proven
        self.probed: tuple[NodeId, NodeId, int] | None = None  # asked for as proof: neighbour, publisher, number
        self.proven = False  # what is awaited of the parent came from elsewhere
        self.false_parent = False  # it claims what does not exist
        self.claimed_at_first: dict[NodeId, int] = {}  # by the parent, when it became the parent
        self.hollow = 0  # watch periods in which its claims grew and nothing came
        self.hollow_us = 0  # when that was last

    def forget(self, peer: NodeId) -> None:
        self.unanswered.pop(peer, None)
        self.past_asked.pop(peer, None)
        self.vouched.pop(peer, None)
        if self.questioned == peer:
            self.questioned = None
        if self.probed is not None and self.probed[0] == peer:
            self.probed = None


class Stream:
    """What the way of a message through a process touches. The attributes of a base class lie next to each other in
    memory, and reaching for memory is most of what a message costs in a large simulation."""

    __slots__ = (
        "buffer",
        "downstream",
        "id",
        "lost_reported",
        "parent",
        "parent_path",
        "path",
        "rivals",
        "root",
        "root_window",
    )


class FlowState(Stream):
    __slots__ = (
        "asked_for",
        "behind",
        "bytes_again",
        "denied",
        "evidence",
        "first_id",
        "fruitless",
        "heard_next",
        "heard_us",
        "hearsay",
        "helper",
        "in_active",
        "known",
        "mid_stream",
        "onward",
        "onward_of",
        "out_active",
        "past_asks",
        "pruned_us",
        "repair",
        "repairs",
        "root_looks",
        "seen_again",
        "sent_again",
        "siblings",
        "suspect",
        "switch",
        "switch_us",
        "told_us",
        "unsteady_since_us",
        "waiting",
        "windows",
    )

    def __init__(self, flow: FlowId, me: NodeId, neighbours: Iterable[NodeId], buffer: Buffer) -> None:
        self.id = flow
        self.root = flow[0]
        self.in_active: dict[NodeId, None] = dict.fromkeys(neighbours)  # may send us payload
        self.out_active: dict[NodeId, None] = dict(self.in_active)  # we send them payload
        self.parent: NodeId | None = None
        self.parent_path: tuple[NodeId, ...] = ()
        self.path: tuple[NodeId, ...] = (me,) if self.root == me else ()  # from the source to us; empty: no position
        self.downstream: tuple[NodeId, ...] | None = None  # cached: out_active without the parent
        self.known: dict[NodeId, Position] = {}  # last told by each neighbour
        self.told_us: dict[NodeId, int] = {}  # when a neighbour last told, other than on a keep-alive
        self.windows: dict[NodeId, SeqWindow] = {}  # by publisher
        self.root_window: SeqWindow | None = None  # the one of the source
        self.lost_reported = 0  # how many numbers given up are in the trace
        self.heard_us = 0  # the latest time at which the source is known to have been up
        self.heard_next = 0  # the number that was next then
        self.buffer = buffer
        self.hearsay = False  # nothing but a neighbour's word says that it exists
        self.siblings: frozenset[FlowId] = frozenset()
        self.first_id: tuple[NodeId, int] | None = None  # the message with which the tree emerged here
        self.repairs = 0
        self.repair: Repair | None = None
        self.switch: NodeId | None = None  # a better parent that we asked, while we still have the old one
        self.switch_us = 0
        self.waiting: dict[NodeId, None] = {}  # asked us while we had no path: told as soon as we have one
        self.rivals: dict[NodeId, None] = {}  # were faster than the parent, once
        self.pruned_us: dict[NodeId, int] = {}  # when we last sent a Deactivate
        self.onward_of: Data | None = None  # what the last run was like when it came
        self.onward: Data | None = None  # and when it went on
        self.behind = False  # a neighbour has told of messages that we lack
        self.suspect: dict[NodeId, tuple[int, int]] = {}  # what lacked at the last look, by publisher: from, to
        self.denied: dict[NodeId, int] = {}  # neighbours that could not send again what we lack, and their first number
        self.helper: NodeId | None = None  # whom we asked last
        self.fruitless = 0  # looks in a row at which something was overdue and nothing had come of asking
        self.unsteady_since_us = -1  # since when the parent has had no path of its own
        self.evidence = Evidence()
        self.mid_stream = False  # met after its beginning: what is owed to us is not known yet
        self.past_asks = 0
        self.root_looks = 0  # in a row at which the source was the last resort
        self.asked_for = 0  # how many messages the last request may bring
        self.sent_again = self.bytes_again = 0  # came of it so far
        self.seen_again = 0  # of these, at the last look

    def targets(self) -> tuple[NodeId, ...]:
        """Whom to forward to: everyone active but the parent."""
        if self.downstream is None:
            self.downstream = tuple([peer for peer in self.out_active if peer != self.parent])
        return self.downstream

    def add_out(self, peer: NodeId) -> None:
        self.out_active[peer] = None
        self.downstream = None

    def discard_out(self, peer: NodeId) -> None:
        if peer in self.out_active:
            del self.out_active[peer]
            self.downstream = None

    def forget(self, peer: NodeId) -> None:
        """The peer is no neighbour any more. The parent and a pending request are the caller's business."""
        self.discard_out(peer)
        tables: tuple[dict[NodeId, Any], ...] = (self.in_active, self.known, self.told_us, self.waiting)
        for table in (*tables, self.rivals, self.pruned_us, self.denied):
            table.pop(peer, None)
        self.evidence.forget(peer)

    def see_link(self, peer: NodeId, position: Position, me: NodeId) -> None:
        """Make our side of a link agree with where the neighbour says it stands. If we are its parent, it gets our
        copies; if it is attached elsewhere, it needs none. This undoes whatever was lost, late or crossed something
        else: requests on their way to us are newer than the position (`told_us`), so they are not undone."""
        path = position.path
        if peer in self.out_active:
            if path and not position.pending and path[-2:-1] != (me,):
                self.discard_out(peer)
        elif path[-2:-1] == (me,):
            self.add_out(peer)

    def age(self, now_us: int) -> int:
        """Seconds, rounded up, since the last sign of life of the source."""
        return min(AGE_MAX, -((self.heard_us - now_us) // AGE_UNIT_US))

    def hear_source(self, now_us: int) -> None:
        """Has it published anything since we were here last? Messages that take long on their way, or are sent again,
        make a dead source seem younger, but not more often than there are messages."""
        window = self.root_window
        if window is not None and window.next != self.heard_next:
            self.heard_next, self.heard_us = window.next, now_us

    def hear_age(self, age: int, at_us: int) -> None:
        """A neighbour's word. It counts as one unit older than it says: on its way through many processes the same
        sign of life never becomes younger, so that the flow of a dead source ages everywhere."""
        heard_us = at_us - (age + 1) * AGE_UNIT_US
        if heard_us > self.heard_us:
            self.heard_us = heard_us

    def window(self, source: NodeId, seq: int, cap: int) -> SeqWindow:
        """The window of a publisher, made when it is met."""
        window = self.windows.get(source)
        if window is None:
            begins = seq & FIRST_IN_STREAM == 0
            window = SeqWindow(seq, cap, provisional=not begins)
            self.windows[source] = window
            if source == self.root and self.path != (source,):  # of our own numbers we know more than messages tell
                self.root_window = window
            self.mid_stream = self.mid_stream or not begins
        return window

    def progress(self) -> tuple[tuple[NodeId, int], ...]:
        return tuple([(source, w.last if w.ahead else w.next - 1) for source, w in self.windows.items()])

    def position(self, now_us: int, delay: int = 0) -> Position:
        # A process that searches a parent softly keeps its path, and its children, but is not to be adopted.
        pending = self.repair is not None or self.switch is not None
        age = 0 if len(self.path) == 1 else self.age(now_us)  # the source itself is up
        return Position(self.id, self.path, self.progress(), pending, age, delay)
