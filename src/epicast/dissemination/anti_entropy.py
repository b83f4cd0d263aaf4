"""Pulling: now and then a process asks a random neighbour for what it lacks (Demers et al., PODC 1987; documents 000
and 001). Pushing reaches nearly everyone quickly; this reaches the rest, however it was missed.

    eager     A --Pull: I have these--> B --Copy, Copy, ...--> A
    lazy      A --Pull: I have these--> B --Digest: I have more--> A --Want--> B --Copy, ...--> A
    exchange  the same, and B asks A for what B lacks: --Want--> A --Copy, ...--> B. This is anti-entropy.

Where nothing lacks, a pull is one small message. A copy is delivered and kept, and not pushed on: most have it. But
a relay may say of any event that it was pulled: when it is pushed to us after all, it is pushed on.

What a process says it has is which numbers of each source are old news to it, for the sources of which it still keeps
something. A process that is new is owed what was published since it came, so it tells how long it has been there, and
is offered nothing much older than that. What is younger than `grace_us` may still be on its way to others: it is not
offered, and the other side is told not to ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Literal

import msgspec

from epicast.core.config import Duration, PositiveDuration
from epicast.core.env import Env
from epicast.core.ids import NodeId
from epicast.core.message import HOPS_MAX, LIST_LENGTH_MAX, Count, Event, Hops, Message, Payload, Topic
from epicast.core.periodic import Periodic
from epicast.core.roles import Deliver, Membership
from epicast.dissemination.lazy import LazyPush
from epicast.dissemination.requests import LazyMessage, RequestsConfig
from epicast.dissemination.spans import Span, merged, minus, of_window

SLACK_US = 2_000_000  # a pull takes a while to get there, and what it asks for recedes meanwhile

Have = Annotated[tuple[tuple[NodeId, Count, Count], ...], msgspec.Meta(max_length=LIST_LENGTH_MAX)]
"""Source, first and last number."""


class Pull(LazyMessage, tag=46):
    """This is what I have: what do you have that I lack, of what came within `age_us`? `eager`: send it at once.
    `mutual`: and ask me for what you lack, unless it is among the `young`."""

    have: Have
    age_us: Count
    eager: bool = False
    mutual: bool = False
    young: Have = ()


class Digest(LazyMessage, tag=47):
    """Answers a pull: you may lack these."""

    have: Have


class Want(LazyMessage, tag=48):
    """Send me these."""

    wanted: Have


class Copy(LazyMessage, tag=49):
    """An event that was pulled."""

    source: NodeId
    seq: Count
    hops: Hops
    topic: Topic
    payload: Payload


class PullConfig(RequestsConfig):
    pull: Literal["none", "eager", "lazy", "exchange"] = "none"
    pull_interval_us: PositiveDuration = 1_000_000  # our guess
    grace_us: Duration = 0  # what came so lately is not spoken of: it may be on its way to others
    digest_max: Annotated[int, msgspec.Meta(ge=1, le=LIST_LENGTH_MAX)] = (
        256  # our guess; spans told or asked for at once
    )
    answers_max: Annotated[int, msgspec.Meta(ge=1, le=LIST_LENGTH_MAX)] = 64  # our guess; payloads sent for one request


class AntiEntropy(LazyPush):
    """A disseminator that also pulls."""

    __slots__ = ("_pull", "started_us")

    handles: ClassVar[tuple[type[Message], ...]] = (*LazyPush.handles, Pull, Digest, Want, Copy)
    config: PullConfig

    def __init__(self, env: Env, config: PullConfig, members: Membership, deliver: Deliver) -> None:
        super().__init__(env, config, members, deliver)
        self.started_us = env.now_us()
        self._pull = Periodic(env, config.pull_interval_us, self._on_pull_due) if config.pull != "none" else None

    @property
    def pulls(self) -> bool:
        return self._pull is not None

    def start(self) -> None:
        if self._pull is not None:
            self._pull.start()

    def leave(self) -> None:
        if self._pull is not None:
            self._pull.stop()
        super().leave()

    def _on_pull_due(self) -> None:
        how = self.config.pull
        age_us = self.env.now_us() - self.started_us + SLACK_US
        peers = self.members.sample(1)
        if peers:
            young = self._flat(self._young()) if how == "exchange" else ()
            self.env.send(peers[0], Pull(self._told(), age_us, how == "eager", how == "exchange", young))

    def on_pull(self, sender: NodeId, msg: Pull) -> None:
        theirs = _by_source(msg.have)
        offered = self._not_among(theirs, msg.age_us)
        if offered and msg.eager:
            self._send_copies(sender, offered)
        elif offered:
            self.env.send(sender, Digest(self._flat(_by_source([(e.source, e.seq, e.seq) for e in offered]))))
        if msg.mutual:
            young = _by_source(msg.young)
            self._ask_for(
                sender, {source: self._due(source, theirs[source], young.get(source, ())) for source in theirs}
            )

    def _due(self, source: NodeId, spans: list[Span], young: Sequence[Span]) -> list[Span]:
        """What we may ask for unbidden. Nobody has said how old it is, so it must be above where we began."""
        window = self.seen.get(source)
        return [] if window is None else minus(spans, merged([(0, window.first - 1), *young]))

    def on_digest(self, sender: NodeId, msg: Digest) -> None:
        self._ask_for(sender, _by_source(msg.have))

    def on_want(self, sender: NodeId, msg: Want) -> None:
        self._send_copies(sender, self.recent.among(_by_source(msg.wanted), 0, self.env.now_us()))

    def on_copy(self, sender: NodeId, msg: Copy) -> bool:
        if not self._is_new(msg.source, msg.seq):
            return True
        event = self._kept(msg)
        askers = self._keep(event)
        self.deliver(msg, sender)
        for asker, distance in askers:
            self.answer(asker, event, distance)
        if self.pushes:
            self._hold_back((msg.source, msg.seq), self.pushes)
        return False

    @property
    def pushes(self) -> int:
        """To which sorts of neighbours; 0: to none."""
        return 0

    def _kept(self, copy: Copy) -> Event:
        """As what we keep it."""
        return copy

    def _ask_for(self, peer: NodeId, theirs: dict[NodeId, list[Span]]) -> None:
        lacking = {}
        for source, spans in theirs.items():
            window = self.seen.get(source)
            if window is None:
                lacking[source] = spans if spans and not self._too_many(source, spans[0][0]) else []
            elif source != self.env.me:
                lacking[source] = minus(spans, of_window(window))
        wanted = self._flat(lacking)
        if wanted:
            self.env.send(peer, Want(wanted))

    def _send_copies(self, peer: NodeId, events: list[Event]) -> None:
        for event in events[: self.config.answers_max]:
            hops = min(event.hops + 1, HOPS_MAX)
            self.env.send(peer, Copy(event.source, event.seq, hops, event.topic, event.payload))

    # What to tell

    def _told(self) -> tuple[tuple[NodeId, int, int], ...]:
        sources: Iterable[NodeId] = self.recent.sources
        if len(self.recent.sources) > self.config.digest_max:  # those that were heard last
            sources = dict.fromkeys(source for source, _ in reversed(self.recent.events))
        return self._flat({source: of_window(self.seen[source]) for source in sources})

    def _not_among(self, theirs: dict[NodeId, list[Span]], age_us: int) -> list[Event]:
        """What we keep and they do not name, neither too young nor too old for them."""
        news = {}
        for source in self.recent.sources:
            spans = minus(of_window(self.seen[source]), theirs.get(source, ()))
            if spans:
                news[source] = spans
        now_us = self.env.now_us()
        return self.recent.among(news, now_us - age_us, now_us - self.config.grace_us) if news else []

    def _young(self) -> dict[NodeId, list[Span]]:
        if not self.config.grace_us:
            return {}
        now_us = self.env.now_us()
        young = self.recent.between(now_us - self.config.grace_us + 1, now_us)
        return _by_source([(event.source, event.seq, event.seq) for event in young])

    def _flat(self, spans: dict[NodeId, list[Span]]) -> tuple[tuple[NodeId, int, int], ...]:
        return tuple([(source, a, b) for source, each in spans.items() for a, b in each][: self.config.digest_max])


def _by_source(have: Iterable[tuple[NodeId, int, int]]) -> dict[NodeId, list[Span]]:
    spans: dict[NodeId, list[Span]] = {}
    for source, first, last in have:
        spans.setdefault(source, []).append((first, last))
    return {source: found for source, each in spans.items() if (found := merged(each))}
