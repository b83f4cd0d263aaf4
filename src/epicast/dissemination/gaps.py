"""Every hole is told: one part above all layers turns what is known about numbers into gaps.

Sources number their messages, so that a process sees by the next number that one is missing. The layers keep a window
of numbers for each source anyway (`core/window.py`); they say when a window has a hole, and this part waits for
`grace_us`, in which the message may still come. After that it writes a row `gap` for each range, and the numbers count
as done: a gap is final, and what comes afterwards is old news. So no message is both told as lost and delivered, and
none is told twice.

    number above a hole comes --> hole noted --grace_us--> still missing? --> row `gap`, window moved on

The last messages of a source have no next number. So processes tell each other the *heads*: the highest number of
each source that had news in the last `heads_rounds` intervals, to a few random others in every interval. That is an
epidemic of its own, of a few bytes for each source, which ends soon after a source has fallen silent. Who stood still
or was cut off meanwhile asks: now and then each process sends another one a checksum of all heads, which is answered
only if it differs.

A head that one process alone claims makes nobody miss anything at once. It counts if a second one says so too or the
source itself, who is asked if need be; only where the source does not answer any more is one claim enough. And before
numbers that nothing proves are told as lost, the source has the last word (`head_claims.py`).

A newcomer is owed nothing from before its beginning. For its first `BEGIN_US` it asks some processes for all heads that
they know, and begins above them; of a source that none of them had heard of, it is owed everything. Other newcomers
know no better: their answers alone count after `ALONE_US` only, when all seem to have come up together.

A layer that asks for what it misses, as gossip that pulls does, may get it much later than `grace_us`, where links are
slow or go one way for a while. Then a hole is told after `pulled_us` only.

Disseminators that ask for what they miss until they get it or give it up aloud, as BRISA does, tell their holes
themselves and have no such part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Annotated, ClassVar, Protocol

import msgspec

from epicast.core.config import Config, Duration, PositiveDuration
from epicast.core.env import Env, Timer
from epicast.core.ids import NodeId
from epicast.core.message import LIST_LENGTH_MAX, Count, Message
from epicast.core.periodic import Periodic
from epicast.core.records import Kind
from epicast.core.roles import Membership
from epicast.core.window import SeqWindow
from epicast.dissemination.head_claims import HeadClaims
from epicast.dissemination.seen import Begin, begin_here

__all__ = ["Counting", "Gaps", "GapsConfig", "Heights"]

BEGIN_US = 3_000_000  # our guess: a few processes have answered by then
ALONE_US = 20_000_000  # our guess: so long newcomers wait for the answer of a process that has begun
STOOD_STILL_US = 1_000_000  # a timer that fires so late shows that we stood still: what came meanwhile is behind it
STEPS = 5  # in the grace: so exact is the time at which a hole is told
RANGES_MAX = 64  # told of one source at once; the rest a moment later
WINDOW_CAP = 1_024  # of a source of which nothing has come
ASK_EVERY = 16  # rounds
ASKS = 4  # after we stood still
WORDS_MAX = 4_096

Height = tuple[NodeId, Count]


class Heights(Message, tag=64):
    """The highest number of some sources. `asks`: tell me what you know, unless it has this `checksum`; or your own, if
    there are heads. `answers`: this is the answer, of one who knows where it begins (2) or of a newcomer (1)."""

    layer: ClassVar[str] = "dissemination"
    heads: Annotated[tuple[Height, ...], msgspec.Meta(max_length=LIST_LENGTH_MAX)]
    asks: bool = False
    answers: Annotated[int, msgspec.Meta(ge=0, le=2)] = 0
    checksum: Count = 0


class GapsConfig(Config):
    grace_us: PositiveDuration = 4_000_000  # our guess: what is not here so long after a later number does not come
    pulled_us: PositiveDuration = 30_000_000  # our guess, as the patience of orders: likewise, where it is asked for
    heads_interval_us: Duration = 500_000  # our guess; 0: heads are not told, and last messages not missed
    heads_rounds: Annotated[int, msgspec.Meta(ge=1, le=64)] = 10  # our guess; four times as many know it after each
    heads_fanout: Annotated[int, msgspec.Meta(ge=1, le=64)] = 3  # our guess
    heads_max: Annotated[int, msgspec.Meta(ge=1, le=LIST_LENGTH_MAX)] = 256  # our guess; told at once


class Counting(Protocol):
    """What the windows of a layer say has come, or is over. `Seen` is one; disseminators are that keep their own."""

    begin: Begin
    on_hole: Callable[[NodeId, SeqWindow], None]  # called whenever numbers lack below one that came

    @property
    def pulls(self) -> bool:
        """Does the layer ask for what it misses, again and again?"""

    @property
    def windows(self) -> dict[NodeId, SeqWindow]: ...

    @property
    def held(self) -> Callable[[NodeId], Collection[int]]:
        """Numbers that have come and wait for their turn."""


class Gaps:
    __slots__ = (
        "_alone_until_us",
        "_asks",
        "_beginning",
        "_changed",
        "_claims",
        "_due",
        "_due_us",
        "_found",
        "_found_us",
        "_grace_us",
        "_heard",
        "_last",
        "_own_next",
        "_round",
        "_round_us",
        "_rounds",
        "_step_us",
        "_timer",
        "_words",
        "base",
        "begun",
        "begun_us",
        "config",
        "counting",
        "env",
        "floor",
        "heads",
        "members",
        "sources_max",
        "told",
    )

    handles: ClassVar[tuple[type[Message], ...]] = (Heights,)

    def __init__(
        self,
        env: Env,
        config: GapsConfig,
        members: Membership,
        counting: Counting,
        own_next: Callable[[], int],
    ) -> None:
        """`own_next`: the number of our own next message."""
        self.env, self.config, self.members, self.counting = env, config, members, counting
        self._own_next = own_next
        self.told = 0  # numbers
        self.begun = False  # do we know where sources begin for us?
        self.begun_us = 0
        self.base: dict[NodeId, int] = {}  # the first number of each source that is owed to us; 0 where none is given
        self.floor: dict[NodeId, int] = {}  # below, nothing is owed to us, as an order above says
        self.heads: dict[NodeId, int] = {}  # the highest number of each source, as others say
        self.sources_max = 65_536
        self._claims = HeadClaims(self._ask_source, lambda: counting.windows)
        self._due: dict[tuple[int, NodeId], int] = {}  # by time, in steps: up to which number holes are told
        self._grace_us = max(config.grace_us, config.pulled_us) if counting.pulls else config.grace_us
        self._step_us = -(-self._grace_us // STEPS)
        self._due_us = 0
        self._timer: Timer | None = None
        self._last: dict[NodeId, int] = {}  # the highest number, at the last round
        self._words: dict[NodeId, int] = {}  # what sources said of themselves, lately
        self._changed: dict[NodeId, int] = {}  # sources with news, and for how many rounds they are told
        self._round = 0
        self._round_us = 0  # when the last one was
        self._asks = 0  # rounds in which we ask what we have missed
        self._found: tuple[Height, ...] = ()  # all heads, the last time
        self._found_us = 0
        self._heard = 0  # has anybody answered? 1: newcomers alone
        self._beginning = 0  # rounds until we begin
        self._alone_until_us = 0
        self._rounds = Periodic(env, config.heads_interval_us, self._on_round) if config.heads_interval_us else None
        counting.on_hole = self.notice
        if self._rounds is not None:
            counting.begin = self.begin

    def start(self, *, first: bool = False) -> None:
        """`first`: there is nobody before us, and so nothing from before our beginning."""
        if self._rounds is None:
            return
        self.begun, self.begun_us = first, self.env.now_us()
        self._alone_until_us = self.begun_us + ALONE_US
        self._beginning = -(-BEGIN_US // self.config.heads_interval_us)
        self._rounds.start()

    def leave(self) -> None:
        if self._rounds is not None:
            self._rounds.stop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Holes

    def begin(self, source: NodeId, seq: int, cap: int) -> SeqWindow:
        if not self.begun or source == self.env.me:
            return begin_here(source, seq, cap)
        return SeqWindow(min(seq, self.base.pop(source, 0)), cap)

    def notice(self, source: NodeId, window: SeqWindow) -> None:
        """Numbers lack below one that came."""
        if source != self.env.me:
            self._note(source, window.last)

    def _note(self, source: NodeId, last: int) -> None:
        """What is missing up to this number is told after the grace. Notes of one moment are one."""
        due = (self.env.now_us() + self._grace_us) // self._step_us + 1
        self._due[due, source] = max(last, self._due.get((due, source), -1))
        if self._timer is None:
            self._arm(due)

    def _arm(self, due: int) -> None:
        self._due_us = due * self._step_us
        self._timer = self.env.after(self._due_us - self.env.now_us(), self._on_due)

    def _on_due(self) -> None:
        now_us = self.env.now_us()
        if now_us - self._due_us > STOOD_STILL_US:
            later = (now_us + self._grace_us) // self._step_us + 1
            postponed, self._due = self._due, {}
            for (_, source), last in postponed.items():
                self._due[later, source] = max(last, self._due.get((later, source), -1))
        while self._due:
            (due, source), last = next(iter(self._due.items()))  # they are in the order of their times
            if due * self._step_us > now_us:
                self._arm(due)
                return
            del self._due[due, source]
            self._tell_missing(source, last)
        self._timer = None

    def _tell_missing(self, source: NodeId, last: int) -> None:
        known = self.counting.windows.get(source)
        proven = max(-1 if known is None else known.last, self._words.get(source, -1))
        claimed = last > proven
        if claimed and self._claims.is_to_be_asked(source, last):
            last, claimed = proven, False
        window = self._window(source) if last >= 0 else None
        if window is None:
            return
        before = window.last
        held = self.counting.held(source)
        upto = min((number - 1 for number in held if number <= last), default=last)  # it has come: its turn will
        ranges = window.missing(upto, RANGES_MAX)
        floor = self.floor.get(source, 0)
        for first, end in ranges:
            if end >= floor:
                self.tell(source, max(first, floor), end)
        if ranges:
            window.skip_to(ranges[-1][1] + 1)
            if claimed and window.last > before:
                self._claims.presume(source, before, window.last, self._round, made=known is None)
        if window.next <= last:
            self._note(source, last)

    def owes_from(self, source: NodeId, seq: int) -> None:
        """An order has learned that lower numbers are from before our beginning: holes among them are no loss."""
        if len(self.floor) < self.sources_max:
            self.floor.setdefault(source, seq)

    def tell(self, source: NodeId, first: int, last: int) -> None:
        """These numbers will not be delivered. As for all rows of lost ranges, the row has the number after them."""
        lost = last - first + 1
        self.told += lost
        self.env.record(Kind.GAP, source=source, seq=last + 1, detail=f"{lost} lost")

    def _window(self, source: NodeId) -> SeqWindow | None:
        """Made here for a source of which nothing has come, if anything of it is owed to us."""
        windows = self.counting.windows
        window = windows.get(source)
        if window is None and self.begun and len(windows) < self.sources_max:
            window = windows[source] = SeqWindow(self.base.pop(source, 0), WINDOW_CAP)
        return window

    # Heads

    def on_heights(self, sender: NodeId, msg: Heights) -> None:
        if self._rounds is None:
            return
        if msg.asks:
            self._answer(sender, msg)
            return
        self._heard = max(self._heard, msg.answers)
        for source, height in msg.heads:
            if type(source) is type(self.env.me) and source != self.env.me:
                self._hear(sender, source, height)
        if msg.answers and not msg.heads:
            self._hear_source(sender, -1)  # it has not published anything

    def _answer(self, sender: NodeId, msg: Heights) -> None:
        answers = 2 if self.begun else 1
        if msg.heads:
            own = self._own_next() - 1
            self.env.send(sender, Heights(((self.env.me, own),) if own >= 0 else (), answers=answers))
            return
        heads = self._all_heads()
        if not msg.checksum:
            self.env.send(sender, Heights(heads[-LIST_LENGTH_MAX:], answers=answers))
        elif msg.checksum != _checksum(heads):
            self.env.send(sender, Heights(heads[-self.config.heads_max :], answers=answers))

    def _hear(self, sender: NodeId, source: NodeId, height: int) -> None:
        if not self.begun:
            if len(self.base) < self.sources_max:
                self.base[source] = max(height + 1, self.base.get(source, 0))
            return
        if sender == source:
            self._hear_source(source, height)
        window = self.counting.windows.get(source)
        if height < self.base.get(source, 0) or (window is not None and height <= window.last):
            return
        if height > self.heads.get(source, -1) and self._claims.confirmed(sender, source, height):
            self._believe(source, height)

    def _hear_source(self, source: NodeId, height: int) -> None:
        """Nobody knows better how far it has got."""
        self._words.pop(source, None)
        self._words[source] = height
        if len(self._words) > WORDS_MAX:
            del self._words[next(iter(self._words))]
        believed, asked = self._claims.heard(source, height)
        if believed > height:
            self.heads[source] = height
        if asked >= 0:
            self._tell_missing(source, min(asked, height))

    def _ask_source(self, source: NodeId, height: int) -> None:
        self.env.send(source, Heights(((source, height),), asks=True))

    def _look_after_claims(self) -> None:
        for source, height in self._claims.old():
            if height > self._height(source):
                self._believe(source, height)
        for source, height in self._claims.unanswered():
            self._tell_missing(source, height)
        self._claims.ask_again(self._round)

    def _believe(self, source: NodeId, height: int) -> None:
        self.heads[source] = height
        if len(self.heads) > self.sources_max:
            del self.heads[next(iter(self.heads))]
        self._changed[source] = self.config.heads_rounds
        self._note(source, height)

    def _height(self, source: NodeId) -> int:
        """The highest number of a source, as far as we know; -1: none."""
        if source == self.env.me:
            return self._own_next() - 1
        window = self.counting.windows.get(source)
        return max(self.heads.get(source, -1), self.base.get(source, 0) - 1, -1 if window is None else window.last)

    def _all_heads(self) -> tuple[Height, ...]:
        """Return all heads. If there are many, reuse the list for one round, since building it takes long."""
        now_us = self.env.now_us()
        if len(self._found) <= self.config.heads_max or now_us - self._found_us >= self.config.heads_interval_us:
            self._found, self._found_us = self._find_heads(), now_us
        return self._found

    def _find_heads(self) -> tuple[Height, ...]:
        sources = dict.fromkeys((*self.base, *self.counting.windows, self.env.me))
        sources.update(dict.fromkeys(self._last))  # those with news come last
        found = [(source, self._height(source)) for source in sources]
        return tuple([each for each in found if each[1] >= 0])

    def _on_round(self) -> None:
        self._round += 1
        now_us, before_us = self.env.now_us(), self._round_us
        self._round_us = now_us
        if before_us and now_us - before_us > self.config.heads_interval_us + STOOD_STILL_US:
            self._asks = ASKS
        self._look_for_news()
        if not self.begun:
            self._ask_where_to_begin()
            return
        if self._changed:
            self._tell_heads()
        if self._claims:
            self._look_after_claims()
        if self._asks or self._round % ASK_EVERY == 0:
            self._asks = max(0, self._asks - 1)
            checksum = _checksum(self._all_heads())
            self.env.send_many(self.members.acquaintances(1), Heights((), asks=True, checksum=checksum))

    def _look_for_news(self) -> None:
        last, changed, rounds = self._last, self._changed, self.config.heads_rounds
        counts = [(source, window.next + len(window.ahead)) for source, window in self.counting.windows.items()]
        for source, count in (*counts, (self.env.me, self._own_next())):
            if count != last.get(source, 0):
                last.pop(source, None)
                last[source] = count
                changed[source] = rounds
        while len(last) > self.sources_max:
            del last[next(iter(last))]

    def _tell_heads(self) -> None:
        peers = self.members.acquaintances(self.config.heads_fanout)
        if not peers:
            return
        chosen = list(self._changed)[: self.config.heads_max]
        for source in chosen:
            left = self._changed.pop(source) - 1
            if left:
                self._changed[source] = left  # behind those that were not told now
        heads = tuple([(source, height) for source in chosen if (height := self._height(source)) >= 0])
        self.env.send_many(peers, Heights(heads))

    # The beginning

    def _ask_where_to_begin(self) -> None:
        told = self._heard == 2 or (self._heard and self.env.now_us() >= self._alone_until_us)
        if self._beginning <= 0 and told:
            self._begin_now()
            return
        peers = self.members.acquaintances(self.config.heads_fanout)
        if peers:
            self._beginning -= 1
            self.env.send_many(peers, Heights((), asks=True))

    def _begin_now(self) -> None:
        self.begun, self.begun_us = True, self.env.now_us()
        for source, window in self.counting.windows.items():
            first = self.base.pop(source, window.first)
            if window.provisional and source != self.env.me:
                window.settle(min(first, window.first))
            if window.ahead:
                self.notice(source, window)


def _checksum(heads: tuple[Height, ...]) -> int:
    """The same for the same heads, in whichever order; never 0."""
    return (sum([height + 1 for _, height in heads]) + len(heads)) % ((1 << 62) - 1) + 1
