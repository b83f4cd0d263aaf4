"""Balls: the epidemic below EpTO (document 000, algorithm 4), which throws every event at random processes in rounds.

In each round a process puts all events that came since the last one into a ball and throws it to K random processes.
Every event counts the rounds that it has behind it; after TTL of them it is not thrown on. Nobody keeps anything for
longer than a round, and nobody asks for anything.

    broadcast --> ball of this round --K processes, ttl 1--> their balls --ttl 2--> ... --ttl TTL--> the end

By itself this delivers events as they come, each process in its own order: the documents' *spontaneous order*, the
baseline of EpTO. An ordering above is handed the ball of each round instead (`on_round`).

K and TTL follow from the number of processes, which they count themselves (`head_count.py`).

Errata obeyed: an unknown event is added to the ball, of a known one the higher count is kept (E-E1); the clock sees the
time of every event (E-E2); `on_round` is called every round, also when there is no ball (E-E3); events that have all
rounds behind them are handed to the ordering although they go no farther (E-E6); TTL has its constant c (E-E7); balls
are never changed after they were thrown (E-E9); a newcomer publishes nothing before it has heard what time it is
(E-E14). `as_printed` takes E-E6 back, to show what it costs.

Departure: once the fastest copy of an event has all rounds behind it, a process throws slower ones that come in the
same round no farther either. That saves three copies of four and costs little of what the others reach; `go_on` takes
it back.

Departure: a process throws what is new to it once, also when the copy has all rounds behind it. Counts follow the
fastest way through processes whose rounds come one after the other (E-E15): where messages take much less than a round,
an event reaches TTL within one, thrown by few, and whom those few miss would never get it. `everybody_throws = false`
takes it back.

Departure: TTL is 7 at least, since the law of large numbers does not hold for a few; and what finds nobody to be thrown
at stays in the next ball.

Events are kept by count, in one table for each: a ball of a thousand events is taken in by a few updates of tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from epicast.core.balls_and_bins import fanout, rounds
from epicast.core.env import Env, Timer
from epicast.core.errors import EpicastError, WireError
from epicast.core.ids import NOBODY, MsgId, NodeId
from epicast.core.message import Message
from epicast.core.ordered import Ordered
from epicast.core.records import Kind
from epicast.core.roles import Deliver, Membership
from epicast.dissemination.ball_clock import BallClock, make_clock
from epicast.dissemination.ball_keys import make_key, read_key
from epicast.dissemination.ball_messages import TTL_MAX, Ball, BallsConfig, Entry, Heads
from epicast.dissemination.head_count import HeadCount
from epicast.dissemination.indifferent import Indifferent
from epicast.dissemination.memory import Memory
from epicast.dissemination.seen import Seen

__all__ = ["Balls", "BallsConfig"]

Level = dict[bytes, Entry]
OnRound = Callable[[list[tuple[int, Level]]], None]
"""Is handed the events of a round, by how many rounds each has behind it, this one included."""

TTL_MIN = 7  # that many balls hit everybody is a law of large numbers: among three, one of ten events missed somebody
LEVELS = 4  # in so many an event comes within a round, as a rule
SOURCES_MAX = 65_536  # our guess; whose numbers are remembered
FEW = 8  # publishers wait from this part of round_events_max on: all may publish before anybody sees how many did


class Balls(Indifferent):
    __slots__ = (
        "_collected",
        "_events",
        "_known",
        "_last_throw",
        "_timer",
        "clock",
        "config",
        "deliver",
        "env",
        "heads",
        "left",
        "members",
        "met",
        "on_round",
        "round",
        "round_bytes",
        "round_events",
        "seen",
        "seq",
    )

    handles: ClassVar[tuple[type[Message], ...]] = (Ball, Heads)

    def __init__(self, env: Env, config: BallsConfig, members: Membership, deliver: Deliver) -> None:
        self.env, self.config, self.members, self.deliver = env, config, members, deliver
        self.clock: BallClock = make_clock(config.clock, env)
        self.heads = HeadCount(env, config, members, self.clock.reading)
        self.on_round: OnRound | None = None
        self.round = 0
        self.round_events = 0  # in the last round
        self.round_bytes = 0  # of the payloads that were thrown then
        self.seq = 0
        self.met = False  # has anybody told us what time it is?
        self.left = False
        self._collected: dict[int, Level] = {}  # since the last round, by the rounds that each event has behind it
        self._events = 0  # in there; what is in several levels counts in each
        self._known = Memory(env.now_us())  # events that were looked at
        self._last_throw: Level = {}  # new to us in this round, with all rounds behind them
        self.seen = Seen(SOURCES_MAX, config.round_events_max)  # delivered, where no order is above
        self._timer: Timer | None = None

    # Calls

    def start(self) -> None:
        self.heads.start()
        self._timer = self.env.after(1 + int(self.env.rng.random() * self.config.period_us), self._on_round_due)

    def leave(self) -> None:
        """What was published since the last round would be lost."""
        self.left = True
        self.heads.stop()
        if self._timer is not None:
            self._timer.cancel()
        self._throw(self._of_this_round())

    @property
    def ttl(self) -> int:
        """For so many rounds an event is thrown on."""
        return self.config.rounds or min(TTL_MAX, max(TTL_MIN, rounds(self.nodes, self.config.c)))

    @property
    def fanout(self) -> int:
        return self.config.fanout or fanout(self.nodes)

    @property
    def nodes(self) -> float:
        """In the system, as far as we know; ourselves included."""
        return max(self.heads.estimate, 1.0 + len(self.members.peers()))

    def has_room(self) -> bool:
        """May we publish now? Not before we know the time (E-E14), nor when there is much to carry already."""
        if not self.met and self.members.peers():
            return False
        config = self.config
        events = max(self.round_events, len(self._collected.get(0, ())))
        return events < max(1, config.round_events_max // FEW) and self.round_bytes < config.round_bytes_max // 2

    def broadcast(self, topic: str, payload: bytes) -> MsgId:
        me, seq = self.env.me, self.seq
        timestamp = self.clock.take()
        self.add(make_key(timestamp, me, seq), (topic, payload))
        self.seq += 1
        self.env.record(Kind.PUBLISH, me, me, seq, 0, topic, detail=str(timestamp))
        if self.on_round is None:
            self.deliver(Ordered(me, seq, topic, 0, payload), NOBODY)
        return me, seq

    def next_id(self, topic: str) -> MsgId:
        return self.env.me, self.seq

    def counted(self) -> Seen:
        """For `Gaps`, where no order is above."""
        return self.seen

    def add(self, key: bytes, entry: Entry) -> None:
        """Our own event goes into the next ball."""
        if self.left:
            raise EpicastError("the process is leaving: nothing more can be published")
        self._collected.setdefault(0, {})[key] = entry
        self._known.add(key)
        self._events += 1

    # Balls

    def on_ball(self, sender: NodeId, msg: Ball) -> None:
        if self.left:
            return
        if not self.clock.plausible(msg.clock):
            self.env.record(Kind.NONSENSE, sender, detail="a clock far in the future")
            return
        self.met = self.met or self.clock.told_by_events
        self.clock.see(msg.clock)
        if self._events > LEVELS * self.config.round_events_max:
            self.env.record(Kind.NONSENSE, sender, detail="more events in a round than round_events_max")
            return
        collected = self._collected
        for ttl, level in msg.levels:
            if self.on_round is None:
                self._deliver_new(sender, ttl, level)
            mine = collected.get(ttl)
            if mine is None:
                collected[ttl] = level.copy()
                self._events += len(level)
            else:
                size = len(mine)
                mine.update(level)
                self._events += len(mine) - size

    def on_heads(self, sender: NodeId, msg: Heads) -> None:
        if self.left:
            return
        self.met = self.clock.hear(sender, msg.clock) or self.met
        self.heads.on_heads(sender, msg)

    # Rounds

    def _on_round_due(self) -> None:
        config = self.config
        length = config.period_us
        if config.drift:
            length = max(1, round(length * (1 + config.drift * (2 * self.env.rng.random() - 1))))
        self._timer = self.env.after(length, self._on_round_due)
        self.end_round()

    def end_round(self) -> None:
        self.round += 1
        levels = self._of_this_round()
        self._throw(levels)
        if self.on_round is not None:
            ttl = self.ttl
            if self.config.as_printed:
                levels = [(count, level) for count, level in levels if count < ttl]
            self.on_round([(count + (count < ttl), level) for count, level in levels])
        self._known.turn(self.env.now_us())

    def _of_this_round(self) -> list[tuple[int, Level]]:
        """What was collected, from the highest count to the lowest, each event only with its highest. To `go_on`, it is
        kept with its highest count below TTL as well."""
        levels, last, go_on = sorted(self._collected.items(), reverse=True), self.ttl, self.config.go_on
        self._collected, self._events = {}, 0
        seen: Level = {}
        for ttl, level in levels:
            if ttl:
                news = self._forget_nonsense(level)
                if self._has_all_rounds(ttl):
                    self._last_throw.update({key: level[key] for key in news})
            for key in level.keys() & seen.keys():
                del level[key]
            if ttl < last or not go_on:
                seen.update(level)
        self.round_events = sum([len(level) for _, level in levels])
        return [(ttl, level) for ttl, level in levels if level]

    def _throw(self, levels: list[tuple[int, Level]]) -> None:
        ttl = self.ttl
        going = [(count + 1, level) for count, level in levels if count < ttl]
        if self._last_throw:
            going.insert(0, (ttl, self._last_throw))
            self._last_throw = {}
        self.round_bytes = 0
        if going:
            choose = self.members.acquaintances if self.config.targets == "known" else self.members.sample
            peers = choose(self.fanout)
            if not peers and not self.left:
                self._keep(going)
            for frame in self._frames(going):
                self.env.send_many(peers, Ball(self.clock.highest, frame))

    def _has_all_rounds(self, ttl: int) -> bool:
        """May what is new to us be thrown once more all the same?"""
        return self.config.everybody_throws and ttl >= self.ttl

    def _keep(self, levels: list[tuple[int, Level]]) -> None:
        """There is nobody to throw them at just now: as if we had thrown them at ourselves."""
        for count, level in levels:
            self._collected[count] = level.copy()
            self._events += len(level)

    def _frames(self, levels: list[tuple[int, Level]]) -> Iterator[tuple[tuple[int, Level], ...]]:
        """In one message if they fit, else in several."""
        config = self.config
        self.round_bytes = sum([len(entry[1]) for _, level in levels for entry in level.values()])
        count = sum([len(level) for _, level in levels])
        if count <= config.frame_events_max and self.round_bytes <= config.frame_bytes_max:
            yield tuple(levels)
            return
        frame: dict[int, Level] = {}
        events = size = 0
        for ttl, level in levels:
            for key, entry in level.items():
                if events == config.frame_events_max or (events and size + len(entry[1]) > config.frame_bytes_max):
                    yield tuple(frame.items())
                    frame, events, size = {}, 0, 0
                frame.setdefault(ttl, {})[key] = entry
                events, size = events + 1, size + len(entry[1])
        yield tuple(frame.items())

    # Looking at events, each once

    def _forget_nonsense(self, level: Level) -> list[bytes]:
        """Before anything is thrown on. Returns what is new to us."""
        news = []
        for key in self._known.unknown(level):
            if self._is_plausible(key):
                self._known.add(key)
                news.append(key)
            else:
                del level[key]
                self.env.record(Kind.NONSENSE, detail="an event that nobody can have published")
        return news

    def _deliver_new(self, sender: NodeId, ttl: int, level: Level) -> None:
        """Spontaneous order: what came now, whatever else may come."""
        for key in self._known.unknown(level):
            if self._is_plausible(key):
                self._known.add(key)
                _, source, seq = read_key(key)
                if self._has_all_rounds(ttl):
                    self._last_throw[key] = level[key]
                if self.seen.add(source, seq):
                    topic, payload = level[key]
                    self.deliver(Ordered(source, seq, topic, ttl, payload), sender)

    def _is_plausible(self, key: bytes) -> bool:
        try:
            timestamp, source, _ = read_key(key)
        except WireError:
            return False
        # What we published is known, unless it was published long ago; and nobody else publishes in our name.
        return type(source) is type(self.env.me) and source != self.env.me and timestamp <= self.clock.highest
