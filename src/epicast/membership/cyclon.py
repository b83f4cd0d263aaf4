"""Cyclon: a small view of everybody, mixed by exchanging entries with the one known for longest (document 001, section
2.2.1; Voulgaris, Gavidia, van Steen).

Every period a process takes its oldest entry out, sends that process a few entries and a fresh one of itself, and gets
as many back. What is old is either refreshed by that or found dead, so that nobody is remembered for long after its
end: an entry lives for about as many periods as the view has places.

    outside --Enter--> walks end at members, each gives one entry up for the joiner's --> member

Joining keeps everybody's number of incoming arcs: each walk puts the joiner in the place of an entry, which goes to the
joiner. Walks end early where views name the dead, so the contact answers with some entries of its own, too; a joiner
without an answer turns to another contact every period, at last to those that once exchanged entries with it.

Departure: who did not answer is remembered, and an entry of it that is older than our question is not taken back. Where
views are as large as the system every view would get the dead from the others again, and nobody would be forgotten.

Errata obeyed: the partner and what makes room are chosen by age, and the own entry starts at zero (E-CLON-5).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar

import msgspec

from epicast.core.chance import sample
from epicast.core.config import Config, PositiveDuration
from epicast.core.env import Env, Timer
from epicast.core.errors import ConfigError
from epicast.core.ids import NodeId
from epicast.core.message import Message
from epicast.core.periodic import Periodic
from epicast.core.roles import Neighbours
from epicast.membership.hyparview_messages import MembershipMessage, Size

AGE_MAX = (1 << 31) - 1
ENTRIES_MAX = 1024
CONTACTS_MAX = 64
PARTNERS_MAX = 8
SILENT_MAX = 256  # our guess; processes that did not answer; at the cap the one asked first may come back in once

Entries = Annotated[
    tuple[tuple[NodeId, Annotated[int, msgspec.Meta(ge=0, le=AGE_MAX)]], ...], msgspec.Meta(max_length=ENTRIES_MAX)
]


class Enter(MembershipMessage, tag=16):
    """A new process to its contact."""


class EnterWalk(MembershipMessage, tag=17):
    """Looks for a place for the joiner."""

    joiner: NodeId
    hops_left: Annotated[int, msgspec.Meta(ge=0, le=64)]


class Exchange(MembershipMessage, tag=18):
    """Some of my entries, for as many of yours."""

    entries: Entries


class ExchangeReply(MembershipMessage, tag=19):
    entries: Entries


class CyclonConfig(Config):
    view_size: Size = 20  # the Cyclon paper's
    exchange_size: Size = 8  # the Cyclon paper's
    exchange_interval_us: PositiveDuration = 2_000_000  # our guess: the dead are gone within 20 of them
    reply_timeout_us: PositiveDuration = 1_500_000  # our guess: well above a wide-area round trip
    walk_length: Annotated[int, msgspec.Meta(ge=0, le=64)] = 5  # the Cyclon paper's

    def check(self) -> None:
        if self.exchange_size > self.view_size:
            most, got = self.view_size, self.exchange_size
            raise ConfigError(f"exchange_size: expected at most view_size = {most}, got {got}")


class Cyclon:
    __slots__ = (
        *("_exchange", "_timer", "ages", "asked", "config", "contacts", "entering", "env", "left", "listener"),
        *("partners", "period", "sent", "silent", "untried", "_asked_in"),
    )

    handles: ClassVar[tuple[type[Message], ...]] = (Enter, EnterWalk, Exchange, ExchangeReply)
    holds_links: ClassVar[bool] = False  # entries come and go with every exchange: not worth a connection each
    listener: Neighbours

    def __init__(self, env: Env, config: CyclonConfig) -> None:
        self.env, self.config = env, config
        self.ages: dict[NodeId, int] = {}  # the view
        self.contacts: dict[NodeId, None] = {}
        self.partners: dict[NodeId, None] = {}  # who answered us last: they may outlive the contacts
        self.untried: list[NodeId] = []  # of both, in this round of attempts to enter; the next one last
        self.entering: NodeId | None = None  # the contact that was asked, until anybody answers
        self.asked: NodeId | None = None  # whose answer we await
        self.sent: tuple[NodeId, ...] = ()  # what we offered it
        self.silent: dict[NodeId, int] = {}  # who did not answer, and in which of our periods it was asked
        self.period = 0
        self._asked_in = 0
        self.left = False
        self._timer: Timer | None = None
        self._exchange = Periodic(env, config.exchange_interval_us, self._on_exchange_due)

    # Calls

    def start(self, contacts: Sequence[NodeId]) -> None:
        for contact in contacts[:CONTACTS_MAX]:
            if contact != self.env.me:
                self.contacts[contact] = None
        self._exchange.start()
        self._enter()

    def meet(self, contact: NodeId) -> None:
        """It is alive, so it is as good as a fresh entry: that joins two parts which have forgotten each other."""
        if contact == self.env.me or self.left:
            return
        if contact not in self.contacts and len(self.contacts) >= CONTACTS_MAX:
            del self.contacts[next(iter(self.contacts))]
        self.contacts[contact] = None
        if self.ages:
            self._merge(((contact, 0),), ())
        else:
            self._enter()

    def leave(self) -> None:
        """Nobody is told: whoever has us finds out when its turn comes."""
        self.left = True
        self._exchange.stop()
        self._answered()
        for peer in list(self.ages):
            self._remove(peer, gone=False)

    def peers(self) -> Sequence[NodeId]:
        return list(self.ages)

    def sample(self, count: int) -> list[NodeId]:
        return sample(self.env.rng, list(self.ages), count)

    def acquaintances(self, count: int) -> list[NodeId]:
        return self.sample(count)

    def rtt_us(self, peer: NodeId) -> int | None:
        return None

    def distance(self, peer: NodeId) -> int:
        return 0

    def widen(self) -> None:
        """Every exchange brings somebody else."""

    @property
    def news_us(self) -> int:
        return 0

    def sign_of_life(self, peer: NodeId) -> None: ...

    def on_link_up(self, peer: NodeId) -> None: ...

    def on_link_down(self, peer: NodeId) -> None:
        if peer in self.ages:
            self._remove(peer, gone=True)

    # Joining

    def _enter(self) -> None:
        """Through another contact than the last time."""
        if self.left:
            return
        if self.entering in self.ages:
            self._remove(self.entering, gone=True)
        if not self.untried:
            self.untried = [*self.partners, *sample(self.env.rng, list(self.contacts), len(self.contacts))]
        if self.untried:
            self.entering = contact = self.untried.pop()
            self._add(contact, 0)
            self.env.send(contact, Enter())

    def on_enter(self, sender: NodeId, msg: Enter) -> None:
        if self.left:
            return
        others = [peer for peer in self.ages if peer != sender]
        known = sample(self.env.rng, others, self.config.exchange_size)
        self.env.send(sender, ExchangeReply(tuple([(peer, self.ages[peer]) for peer in known])))
        if not others:
            self._add(sender, 0)
            return
        for _ in range(self.config.view_size):
            self.env.send(self._one(others), EnterWalk(sender, self.config.walk_length))

    def on_enter_walk(self, sender: NodeId, msg: EnterWalk) -> None:
        joiner = msg.joiner
        if self.left or joiner == self.env.me:
            return
        others = [peer for peer in self.ages if peer != joiner]
        hops_left = min(msg.hops_left, self.config.walk_length)  # no walk is longer for what its sender says
        if hops_left and others:
            self.env.send(self._one(others), EnterWalk(joiner, hops_left - 1))
        elif joiner not in self.ages:
            given = self._one(others) if others and len(self.ages) >= self.config.view_size else self.env.me
            age = self.ages.get(given, 0)
            if given != self.env.me:
                self._remove(given, gone=False)
            self._add(joiner, 0)
            self.env.send(joiner, ExchangeReply(((given, age),)))

    # Exchanging

    def _on_exchange_due(self) -> None:
        self.period += 1
        if not self.ages or self.entering is not None:
            self._enter()
            return
        for peer in self.ages:
            self.ages[peer] = min(AGE_MAX, self.ages[peer] + 1)
        if self.asked is not None:
            return
        oldest = max(self.ages, key=self.ages.__getitem__)
        others = [peer for peer in self.ages if peer != oldest]
        offered = sample(self.env.rng, others, self.config.exchange_size - 1)
        self.asked, self.sent, self._asked_in = oldest, (oldest, *offered), self.period
        self._timer = self.env.after(self.config.reply_timeout_us, self._on_no_reply, oldest)
        self.env.send(oldest, Exchange(((self.env.me, 0), *((peer, self.ages[peer]) for peer in offered))))

    def on_exchange(self, sender: NodeId, msg: Exchange) -> None:
        if self.left:
            return
        self.silent.pop(sender, None)
        count = min(len(msg.entries), self.config.exchange_size)
        given = sample(self.env.rng, [peer for peer in self.ages if peer != sender], count)
        self.env.send(sender, ExchangeReply(tuple([(peer, self.ages[peer]) for peer in given])))
        self._merge(msg.entries, given)

    def on_exchange_reply(self, sender: NodeId, msg: ExchangeReply) -> None:
        """Or we may enter, or a walk has found us a place: of strangers we take something only while there is room."""
        self.entering = None
        self.untried.clear()
        sent: tuple[NodeId, ...] = ()
        if self.left or (sender != self.asked and len(self.ages) >= self.config.view_size):
            return
        if sender == self.asked:
            sent = self.sent
            self._answered()
            self._remember(sender)
            if len(self.ages) < self.config.view_size:
                self._add(sender, 0)
                self.ages[sender] = 0
            elif sender in self.ages:
                self._remove(sender, gone=False)  # it has a fresh entry of us instead
        self._merge(msg.entries, sent)

    def _on_no_reply(self, peer: NodeId) -> None:
        self._answered()
        self.silent.pop(peer, None)
        self.silent[peer] = self._asked_in
        if len(self.silent) > SILENT_MAX:
            del self.silent[next(iter(self.silent))]
        if peer in self.ages:
            self._remove(peer, gone=True)

    def _answered(self) -> None:
        self.asked, self.sent = None, ()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _remember(self, partner: NodeId) -> None:
        self.partners.pop(partner, None)
        self.partners[partner] = None
        if len(self.partners) > PARTNERS_MAX:
            del self.partners[next(iter(self.partners))]

    def _merge(self, entries: Iterable[tuple[NodeId, int]], sent: Iterable[NodeId]) -> None:
        """In a full view they take the places of what the other side has now, then of the oldest. One message brings no
        more than an exchange: the rest of the view stays whatever it names."""
        spare = [peer for peer in sent if peer in self.ages]
        for peer, age in tuple(entries)[: self.config.exchange_size]:
            if peer == self.env.me or peer in self.ages or self._is_old_news(peer, age):
                continue
            if len(self.ages) >= self.config.view_size:
                victim = spare.pop() if spare else max(self.ages, key=self.ages.__getitem__)
                self._remove(victim, gone=False)
            self._add(peer, age)

    def _is_old_news(self, peer: NodeId, age: int) -> bool:
        """It was made before we asked this process and got no answer."""
        asked_in = self.silent.get(peer)
        return asked_in is not None and age >= self.period - asked_in

    # The view

    def _add(self, peer: NodeId, age: int) -> None:
        if peer != self.env.me and peer not in self.ages:
            self.ages[peer] = age
            self.silent.pop(peer, None)
            self.listener.neighbour_up(peer)

    def _remove(self, peer: NodeId, *, gone: bool) -> None:
        del self.ages[peer]
        self.listener.neighbour_down(peer, gone)

    def _one(self, peers: Sequence[NodeId]) -> NodeId:
        return peers[int(self.env.rng.random() * len(peers))]
