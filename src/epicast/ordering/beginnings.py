"""Where a newcomer's duty begins: it learns that from its neighbours and from the layer below, and need not wait.

A newcomer meets most streams in mid-stream. The first message that it gets of one may have overtaken another that is
owed to it, so it holds what comes until it knows better, or for `settle_us` (`waiting.py`). There are two ways to know:

    the layer below says so    BRISA asks for all that was published since we came up, and knows when that is here:
                               the stream begins with the lowest number that came (`core.roles.Settling`)
    neighbours say so          flooding and gossip send nothing again: what a neighbour delivered before it answered
                               need not come any more, and what it delivers later it sends to us too

So a process asks a few neighbours how far each stream has come. Their answers only ever shorten the wait. A stream
begins early once the lowest number that any of them named is here, or the one before it: there, or with what is at hand
in one piece below. Otherwise it waits for `settle_us`, as if nobody had been asked. So a neighbour that names a wrong
number makes us wait no longer than we would without answers, and one honest neighbour outweighs any that name higher
numbers.

Causal order also needs to know that a message which others name came before its beginning. That takes a *cut*: a number
for each stream, such that whatever comes before a message of the cut is in the cut too. What one process has delivered
at one moment is a cut, and so is what several cuts have in common. Answers also tell which messages came lately
(`recent`): these may be owed to us. Once they are here, or are known not to come, we have *begun*.

    asking --an answer of one who knows--> over --what is recent is here--> begun
    asking --time is up--> over, and streams begin as if nobody had been asked

Neighbours that are newcomers themselves speak for what they publish, and for no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol

from epicast.core.env import Env, Timer
from epicast.core.ids import MsgId, NodeId
from epicast.core.message import LIST_LENGTH_MAX
from epicast.core.ordered import Ordered
from epicast.core.roles import Disseminator, Membership, Settling
from epicast.ordering.standing import PAGE, PAGES_MAX, AskStanding, Place, Standing

LOOK_US = 20_000  # our guess: between two looks while something is not known
LOOK_ALONE_US = 200_000  # likewise, with nobody to ask for a while
ASKED_MAX = 3  # neighbours in one round
ROUND_US = 500_000  # our guess: an answer takes no longer; it is also what BRISA's own allowance for that bears
ENOUGH_US = 100_000  # so long we wait for other answers once there is one; our guess
HASTEN_US, HASTEN_MAX_US = 20_000, 1_000_000  # between two requests to hurry; doubles
CLAIMS_MAX = PAGE * PAGES_MAX
ANSWERED_A_SECOND = PAGE * PAGES_MAX  # streams told to all who ask: so much of our time, at most
STOOD_STILL_US = 1_000_000  # so late is a look, at least
NUMBER_MAX = (1 << 63) - 1

Key = tuple[NodeId, str]


class Standings(Protocol):
    """What a waiting room says of its streams."""

    @property
    def streams(self) -> Mapping[Any, Any]: ...

    @property
    def settling(self) -> Mapping[Any, Any]: ...

    def places(self, *, own_only: bool) -> Iterator[Place]:
        """Where they stand, those with news first; those that have not begun are left out."""

    def recent(self, since_us: int) -> list[MsgId]:
        """The last message of each source, if it came since then."""

    def look(self) -> bool:
        """Begin the streams that can; are there others?"""

    def know(self, cut: dict[NodeId, int], reach: dict[NodeId, int] | None) -> None:
        """Whatever has a number below that of the cut is from before our beginning, and all of it that is owed to us is
        here. Whatever nobody whom we asked had reached yet is owed to us, and comes; None: it may not come."""


def _ignore(source: NodeId, seq: int) -> None: ...


class Answer:
    """What one neighbour says."""

    __slots__ = ("knows", "pages", "recent", "streams", "whole")

    def __init__(self) -> None:
        self.streams: dict[Key, int] = {}
        self.recent: list[MsgId] = []  # those that are not here yet
        self.pages = 0
        self.knows = self.whole = False


class Beginnings:
    __slots__ = (
        "_answered_us",
        "_answers",
        "_ask",
        "_asked_us",
        "_cuts",
        "_cuts_until_us",
        "_hasten_us",
        "_hastened_us",
        "_left",
        "_look_due_us",
        "_members",
        "_patience_us",
        "_reach",
        "_room",
        "_settling",
        "_speaks_us",
        "_started_us",
        "_timer",
        "_told",
        "_until_us",
        "_was_alone",
        "answered",
        "begun",
        "begun_us",
        "claims",
        "cuts",
        "env",
        "on_begin",
        "order",
        "over",
        "settle_us",
    )

    def __init__(
        self,
        env: Env,
        order: int,
        waits_us: tuple[int, int],
        members: Membership,
        room: Standings,
        *,
        cuts: bool,
    ) -> None:
        """`waits_us`: settle_us and patience_us. `cuts`: does the order need one?"""
        self.env, self.order, self.cuts = env, order, cuts
        self.settle_us, self._patience_us = waits_us
        self._members, self._room = members, room
        self._settling: Settling | None = None
        self._started_us = env.now_us()
        self.on_begin: Callable[[NodeId, int], None] = _ignore  # a source's messages are owed to us from this number on
        self.claims: dict[Key, int] = {}  # the lowest number that anybody says
        self.answered = False  # have those whom we asked answered, whatever they said?
        self.over = False  # we do not ask any more
        self.begun = False
        self.begun_us = -1  # since when we have had a cut
        self._until_us = -1  # for how long we ask; -1: there was nobody to ask yet
        self._was_alone = False  # for long, before there was anybody to ask
        self._speaks_us = -1  # from when on we speak for others too, whatever we have learned
        self._ask = 0  # rounds
        self._asked_us = 0  # the last one
        self._answers: dict[NodeId, Answer] = {}  # of those asked in this round
        self._reach: dict[NodeId, int] = {}  # the highest number that anybody says
        self._cuts: list[Answer] = []  # whose recent messages are to be here before we have begun
        self._cuts_until_us = 0
        self._look_due_us = 0
        self._hasten_us, self._hastened_us = HASTEN_US, 0
        self._told, self._answered_us = 0, 0  # streams told in answers, since when
        self._timer: Timer | None = None
        self._left = False

    def attach(self, dissemination: Disseminator) -> None:
        found: Any = dissemination
        self._settling = found if hasattr(dissemination, "complete") else None
        if self._settling is not None and not self.cuts:
            self.over = True  # the layer below knows all that we need

    def start(self, *, first: bool = False) -> None:
        """`first`: there is nobody whom we could ask."""
        if first:
            self.over = self.begun = True
            self._room.know({}, None if self._settling is None else self._reach)
        if not self.over:
            self._arm(LOOK_US)

    def leave(self) -> None:
        self._left = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # For the waiting room

    def first_of(self, source: NodeId, topic: str, ahead: Mapping[int, Any]) -> int | None:
        """Where a stream begins of which these are at hand; None: nobody knows yet."""
        if self._settling is not None and not self.cuts:
            lowest = min(ahead)
            return lowest if self._settling.complete(source, ahead[lowest].event.seq) else None
        if 0 in ahead and self.begins_with(source, topic):
            return 0
        claim = None if self.cuts and not self.begun else self.claims.get((source, topic))
        if claim is None or not (claim in ahead or claim - 1 in ahead):
            return None
        first = claim
        while first - 1 in ahead:
            first -= 1
        return first

    def begins_with(self, source: NodeId, topic: str) -> bool:
        """Number 0 has come: do all others come, too? Those that neighbours had delivered before need not."""
        if self._settling is not None and not self.cuts:
            return True
        if self.begun or (self.over and not self.cuts):
            return not self.claims.get((source, topic))
        return (self.begun_us < 0 and (self.answered or self.over)) or not self._members.peers()

    def likely_first_of(self, source: NodeId, topic: str, ahead: Mapping[int, Any]) -> int:
        """Where a stream begins of which nobody knew in time."""
        claim = self.claims.get((source, topic), 0) if self.begun or not self.cuts else 0
        return min((number for number in ahead if number >= claim), default=min(ahead))

    def is_on_its_way(self, event: Ordered, number: int) -> bool:
        """Does the layer below still ask for what comes before this message, the first at hand of its stream?"""
        if self._settling is None:
            return False
        if self.begun and number > self._reach.get(event.source, 0):
            return True  # nobody had delivered as much when we came: the messages before it are owed to us
        waits = bool(self._cuts) or (self._ask > 0 and not self.over)
        return waits or not self._settling.complete(event.source, event.seq)

    @property
    def layer_asks(self) -> bool:
        """Does the layer below ask for what is owed to us?"""
        return self._settling is not None

    def age_us(self, now_us: int) -> int:
        return now_us - self._started_us

    def wake(self) -> None:
        """A stream was met in mid-stream."""
        if self._settling is not None and self._timer is None and not self._left:
            self._arm(LOOK_US)

    def settled(self) -> bool:
        """Will what is published from now on have its turn when it comes? Or is there nobody who could say so?"""
        now_us = self.env.now_us()
        if not self.over:
            if not self._members.peers():
                return True
            self._keep_asking(now_us)
        elif self._speaks_us < 0:
            self._speaks_us = now_us + self.settle_us // 2
        if 0 <= self._speaks_us <= now_us - self.settle_us:
            return True
        self._look_for_recent(now_us)
        return (self.over or self.answered) and not self._cuts and not self._room.look()

    # Looks

    def _arm(self, after_us: int) -> None:
        self._look_due_us = self.env.now_us() + after_us
        self._timer = self.env.after(after_us, self._on_look)

    def _on_look(self) -> None:
        self._timer = None
        now_us = self.env.now_us()
        if now_us - self._look_due_us > STOOD_STILL_US and self._until_us >= 0:
            self._ask_from(now_us)
            self._cuts_until_us = now_us + self._patience_us
        alone = not self.over and self._keep_asking(now_us)
        self._look_for_recent(now_us)
        unsettled = self._room.look()
        if (unsettled or self._cuts) and self._settling is not None:
            self._hasten(now_us, self._settling)
        else:
            self._hasten_us = HASTEN_US
        if self._left or self._timer is not None:
            return
        if not self.over or self._cuts or (unsettled and self._settling is not None):
            self._arm(LOOK_ALONE_US if alone else LOOK_US)

    def _hasten(self, now_us: int, settling: Settling) -> None:
        if now_us - self._hastened_us >= self._hasten_us:
            self._hastened_us = now_us
            self._hasten_us = min(2 * self._hasten_us, HASTEN_MAX_US)
            settling.hasten(unheard=bool(self._cuts))

    # Asking

    def _keep_asking(self, now_us: int) -> bool:
        """Have we been alone for long?"""
        peers = self._members.peers()
        if self._until_us < 0:
            self._was_alone = now_us - self._started_us >= self.settle_us // 2
            if not peers:
                return self._was_alone
            self._ask_from(now_us)
        if now_us >= self._until_us:
            self._conclude()
            self.over = self.answered = True
        elif now_us - self._asked_us >= ENOUGH_US and any(each.whole and each.knows for each in self._answers.values()):
            self._conclude()  # the others may be gone
        elif not self._ask or now_us - self._asked_us >= ROUND_US:
            if self._ask:
                self._conclude()
            if not self.over and peers:
                self._begin_round(now_us)
        return False

    def _ask_from(self, now_us: int) -> None:
        """Where nothing is sent again, an answer that comes late would make us drop what is owed to us by now."""
        self._speaks_us = now_us + self.settle_us // 2
        self._until_us = self._speaks_us if self._settling is None else now_us + self._patience_us // 4

    def _begin_round(self, now_us: int) -> None:
        peers = self._members.peers()
        first = ASKED_MAX * self._ask % len(peers)
        asked = [*peers[first:], *peers[:first]][:ASKED_MAX]  # others in the next round
        self._ask += 1
        self._asked_us = now_us
        self._answers = {peer: Answer() for peer in asked}
        self.env.send_many(asked, AskStanding(self.order, self._ask, 0, self._age_us(now_us)))

    def _age_us(self, now_us: int) -> int:
        """Where the layer below sends what we have missed since we came up, that may be owed to us. The request takes
        a while to get there, and what it asks for recedes meanwhile."""
        return 0 if self._settling is None else now_us - self._started_us + ROUND_US

    def on_standing(self, sender: NodeId, msg: Standing) -> None:
        answer = self._answers.get(sender)
        if answer is None or msg.ask != self._ask or msg.page != answer.pages or answer.whole or self.over:
            return  # nobody asked for it, or it comes too late
        if self._settling is not None and self.env.now_us() - self._asked_us > ROUND_US:
            return
        if not msg.page:
            answer.knows, answer.recent = msg.knows, list(msg.recent)
        answer.pages += 1
        ours = type(self.env.me)
        answer.streams.update(((name, topic), number) for name, topic, number in msg.streams if type(name) is ours)
        answer.whole = not msg.more or self.cuts or answer.pages == PAGES_MAX
        if not answer.whole:
            self.env.send(sender, AskStanding(self.order, self._ask, answer.pages, self._age_us(self._asked_us)))
        elif all(each.whole for each in self._answers.values()):
            self._conclude()
            self._room.look()

    def _conclude(self) -> None:
        """Of this round's answers, whether or not all have come."""
        answers, self._answers = [each for each in self._answers.values() if each.pages], {}
        knowing = [each for each in answers if each.knows]
        if answers:
            self.answered = True
        if self.cuts and knowing:
            self._take_cut(knowing)
        for each in answers if not self.cuts else ():
            for key, number in each.streams.items():
                if key in self.claims or len(self.claims) < CLAIMS_MAX:
                    self.claims[key] = min(number, self.claims.get(key, number))
        if knowing:
            self.over = True
        self._look_for_recent(self.env.now_us())

    def _take_cut(self, knowing: list[Answer]) -> None:
        for each in knowing:
            for (source, _), number in each.streams.items():
                self._reach[source] = max(number, self._reach.get(source, 0))
        self._cuts = knowing
        self.begun_us = self.env.now_us()
        self._cuts_until_us = self.begun_us + self._patience_us

    def _look_for_recent(self, now_us: int) -> None:
        """Have we begun? An answer whose recent messages do not come is left aside if there is another one: nobody can
        keep us from beginning by naming what does not exist."""
        if not self._cuts:
            return
        late = now_us >= self._cuts_until_us - self._patience_us + self.settle_us
        usable = [each for each in self._cuts if self._is_here(each)]
        if len(usable) == len(self._cuts) or (late and usable):
            first, *others = (each.streams for each in usable)
            common = {key: number for key, number in first.items() if all(key in other for other in others)}
            self.claims = {key: min([number, *(other[key] for other in others)]) for key, number in common.items()}
            self._cuts, self.begun = [], True
            cut = {source: number for (source, _), number in self.claims.items()}
            self._room.know(cut, None if self._settling is None else self._reach)
        elif now_us >= self._cuts_until_us:
            self._cuts = []

    def _is_here(self, answer: Answer) -> bool:
        if self._settling is None:
            return True
        while answer.recent and self._settling.complete(*answer.recent[-1]):
            answer.recent.pop()
        return not answer.recent

    # Answering

    def on_ask_standing(self, sender: NodeId, msg: AskStanding) -> None:
        now_us = self.env.now_us()
        if now_us - self._answered_us >= 1_000_000:
            self._told, self._answered_us = 0, now_us
        if self._told >= ANSWERED_A_SECOND or self._left:
            return
        uptime_us = now_us - self._started_us
        old = msg.age_us <= uptime_us + ROUND_US or not (self._room.streams or any(self.claims.values()))
        knows = old and self._speaks_for_others(now_us)
        since_us = now_us - msg.age_us
        recent = self._room.recent(since_us) if msg.age_us and knows and not msg.page else []
        if len(recent) > LIST_LENGTH_MAX:
            knows, recent = False, []
        places = self._places(since_us, own_only=not knows)
        found = list(islice(places, msg.page * PAGE, (msg.page + 1) * PAGE + 1))
        self._told += PAGE if len(found) > PAGE else len(found) + 1
        page = tuple(found[:PAGE])
        more = len(found) > PAGE
        self.env.send(sender, Standing(self.order, msg.ask, msg.page, knows, more, page, tuple(recent)))

    def _speaks_for_others(self, now_us: int) -> bool:
        """Is what we have delivered a cut, or are we no newcomer at least, if no cut is wanted?"""
        if self.begun or (self._was_alone and not self._room.streams):
            return True
        if not self.cuts:
            return self.over or 0 <= self._speaks_us <= now_us
        return self.over and not self._room.settling and now_us - self._started_us >= self._patience_us

    def _places(self, since_us: int, *, own_only: bool) -> Iterable[Place]:
        met: set[Key] = set()
        for source, topic, number in self._room.places(own_only=own_only):
            met.add((source, topic))
            if number <= NUMBER_MAX:
                yield source, topic, number
        if own_only or self.begun_us >= since_us:
            return
        for (source, topic), number in self.claims.items():  # of which we have heard nothing ourselves
            if (source, topic) not in met:
                yield source, topic, number
