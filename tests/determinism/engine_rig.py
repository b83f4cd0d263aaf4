"""One random program for any engine: processes that send, set timers, hold links and write records, and its outcome.

Every choice is drawn from one generator in the order in which the engine calls, so two engines that once differ in
that order go on to differ in everything.
"""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar

from epicast.core.message import Message
from epicast.core.records import Kind, Level
from epicast.sim.engine import DOWN, PAUSED, UP, Engine
from epicast.trace.batch import Batch

TOPICS = ("", "news", "sport")
FAR_TICKS = (1, 2, 63, 64, 8_191, 8_192, 8_193, 20_000, 1_000_000)
KINDS = (Kind.DELIVER, Kind.PARENT, Kind.LINK_UP, Kind.NONSENSE)


class Rumor(Message, tag=0):
    layer: ClassVar[str] = "dissemination"
    source: int
    seq: int
    hops: int
    topic: str
    payload: bytes
    flags: int = 0


class Nudge(Message, tag=1):
    layer: ClassVar[str] = "membership"
    number: int


class Part:
    """Answers whatever happens to it with something random."""

    __slots__ = ("act", "env", "program", "seen", "timers")

    def __init__(self, program: Program, env: Any) -> None:
        self.program, self.env, self.act = program, env, program.act
        self.seen: dict[int, int] = {}
        self.timers: list[Any] = []

    def on_rumor(self, sender: int, rumor: Rumor) -> bool:
        self.program.note("rumor", self.env.me, sender, rumor)
        had = rumor.seq in self.seen
        self.seen[rumor.seq] = sender
        self.act(self)
        return had

    def on_nudge(self, sender: int, nudge: Nudge) -> None:
        self.program.note("nudge", self.env.me, sender, nudge.number)
        self.act(self)

    def on_timer(self, *args: Any) -> None:
        self.program.note("timer", self.env.me, self.env.now_us(), args)
        self.act(self)


class Program:
    def __init__(
        self, engine: type[Engine], seed: int, level: Level, *, nodes: int = 6, tick_us: int = 100, fuel: int = 0
    ) -> None:
        self.rng = Random(seed)
        self.engine = engine(tick_us, Random(seed + 1), level)
        self.fuel = fuel  # actions left, so that every program ends
        self.log: list[tuple[Any, ...]] = []
        self.batches: list[Batch] = []
        self.asleep: list[tuple[Any, ...]] = []
        self.parts: list[Part] = []
        self.engine.sink = self.batches.append
        self.engine.route = self.route
        self.engine.undeliverable = self.undeliverable
        self.engine.overslept = lambda timer: self.asleep.append((self.engine.arm, timer.node, timer, 0))
        self.engine.on_link = self.open
        self.engine.on_unlink = self.close
        delays = Random(seed + 2)
        self.engine.use_delays(lambda count: [delays.choice((0, 1, 2, 5, 40, 900)) for _ in range(count)])
        self.engine.use_handlers({Rumor: (0, Part.on_rumor), Nudge: (1, Part.on_nudge)})
        for _ in range(nodes):
            self.add()

    def note(self, *what: Any) -> None:
        self.log.append((self.engine.now, self.engine.events, *what))

    def some(self) -> int:
        return self.rng.randrange(len(self.parts))

    # What a process may do

    def act(self, part: Part) -> None:
        for _ in range(self.rng.choice((0, 1, 2, 3))):
            if self.fuel:
                self.fuel -= 1
                self.rng.choice(ACTIONS)(self, part)

    def send(self, part: Part) -> None:
        part.env.send(self.some(), Nudge(self.rng.getrandbits(self.rng.choice((3, 60)))))

    def send_many(self, part: Part) -> None:
        rng = self.rng
        to = [self.some() for _ in range(rng.choice((0, 1, 2, 3, 3, 50)))]
        rumor = Rumor(part.env.me, rng.randrange(6), rng.randrange(9), rng.choice(TOPICS), b"x" * rng.randrange(300))
        part.env.send_many(tuple(to) if rng.random() < 0.5 else to, rumor)

    def set_timer(self, part: Part) -> None:
        delay_us = self.rng.choice((0, 0, 1, 100, 100, 777, 1_000_000, -5))
        args = tuple(range(self.rng.randrange(3)))
        part.timers.append(part.env.after(delay_us, part.on_timer, *args))

    def cancel_timer(self, part: Part) -> None:
        if part.timers:
            self.rng.choice(part.timers).cancel()

    def record(self, part: Part) -> None:
        rng = self.rng
        if rng.random() < 0.5:
            part.env.record(rng.choice(KINDS), self.some(), 3, 4, 5, rng.choice(TOPICS), "so")
        else:
            part.env.record(int(rng.choice(KINDS)), detail=rng.choice(TOPICS))

    def hold(self, part: Part) -> None:
        (part.env.open if self.rng.random() < 0.7 else part.env.close)(self.some())

    def draw(self, part: Part) -> None:
        self.note("draw", self.engine.draw(), self.engine.rng.random(), part.env.rng.random())

    # What the network does

    def open(self, me: int, peer: int) -> None:
        self.engine.link_ready(me, peer, self.engine.now // self.engine.tick_us + self.rng.randrange(50))
        self.note("open", me, peer)

    def close(self, me: int, peer: int) -> None:
        self.note("close", me, peer, self.engine.link_tick(me, peer))
        self.engine.link_gone(me, peer)

    def route(self, src: int, dst: int, msg: Message, size: int, info: int) -> None:
        self.note("route", src, dst, size, info)
        engine, fate = self.engine, self.rng.random()
        soon = -(-engine.now // engine.tick_us)
        if fate < 0.2:
            engine.drop(src, dst, msg, info, self.rng.choice(("loss", "partition")))
        elif fate < 0.4:
            engine.copied(src, dst, info)
            engine.post(src, dst, msg, info, soon + engine.draw())
        if fate >= 0.2:
            engine.post(src, dst, msg, info, soon + (engine.draw() if fate < 0.7 else self.rng.choice(FAR_TICKS)))

    def undeliverable(self, src: int, dst: int, msg: Message, size: int, info: int) -> None:
        self.note("undeliverable", src, dst, size)
        if self.engine.state[dst] == PAUSED:
            self.asleep.append((self.engine.hand_over, dst, src, dst, msg))
        else:
            self.engine.drop(src, dst, msg, info, "down")

    # What an operator does between two runs

    def step(self, name: str, number: int) -> None:
        self.note(name, number)
        getattr(self, f"do_{name}")(number)

    def do_act(self, number: int) -> None:
        self.fuel += number % 100
        self.act(self.parts[number % len(self.parts)])

    def do_run(self, number: int) -> None:
        until_us = self.engine.now + number % 7 * 10_000 + number - 5_000  # now and then before the present
        self.note(self.engine.run(until_us) if number % 3 else self.engine.run(until_us, number))

    def do_jump(self, number: int) -> None:
        self.note(self.engine.run(self.engine.now + number % 100 * 1_000_000, 200))

    def do_call_at(self, number: int) -> None:
        self.engine.call_at(number * 1_000, self.note, "called", number)

    def do_state(self, number: int) -> None:
        self.set_state(number % len(self.parts), (UP, UP, UP, PAUSED, DOWN)[number % 5])

    def set_state(self, node: int, state: int) -> None:
        part = self.parts[node]
        self.engine.set_state(node, state, (part, part) if state == UP else ())
        if state == UP:
            woken = [waiting for waiting in self.asleep if waiting[1] == node]
            self.asleep = [waiting for waiting in self.asleep if waiting[1] != node]
            for call, _, *args in woken:
                call(*args)

    def do_unpost(self, number: int) -> None:
        a, b = number % len(self.parts), number // 7 % len(self.parts)
        self.note(self.engine.unpost(lambda src, dst: src == a or dst == b), self.engine.in_flight())

    def do_post(self, number: int) -> None:
        """In the order of the numbers that descriptions get, as the network does it."""
        engine, nudge = self.engine, Nudge(number)
        info = engine.describe(nudge, 7)
        engine.post(self.some(), self.some(), nudge, info, -(-engine.now // engine.tick_us) + number % 30_000)

    def do_switch(self, number: int) -> None:
        self.engine.plain, self.engine.over_links = number % 3 > 0, number % 2 > 0

    def do_flush(self, number: int) -> None:
        self.engine.flush()

    def add(self) -> None:
        node = self.engine.add_node()
        self.parts.append(Part(self, self.engine.env(node)))
        self.set_state(node, UP)

    def do_add(self, number: int) -> None:
        if len(self.parts) < 12:
            self.add()

    def outcome(self) -> dict[str, Any]:
        """Everything that can be seen from outside."""
        engine = self.engine
        engine.flush()
        ids = range(len(self.parts))
        return {
            "log": self.log,
            "batches": [columns(batch) for batch in self.batches],
            "counters": (engine.now, engine.events, engine.in_flight(), engine.counts, bytes(engine.state)),
            "sent": [(kind.__name__, tally) for kind, tally in engine.sent.items()],
            "links": [engine.link_tick(a, b) for a in ids for b in ids],
            "texts": engine.describer.names.texts,
            "drops": list(engine.describer.drops.items()),
            "chance": (self.rng.random(), engine.rng.random(), engine.draw()),
        }


ACTIONS = (
    Program.send,
    Program.send,
    Program.send_many,
    Program.send_many,
    Program.set_timer,
    Program.set_timer,
    Program.cancel_timer,
    Program.record,
    Program.hold,
    Program.draw,
)
STEPS = sorted(name.removeprefix("do_") for name in vars(Program) if name.startswith("do_"))


def columns(batch: Batch) -> dict[str, tuple[str, bytes]]:
    return {name: (column.dtype.str, column.tobytes()) for name, column in batch.columns()}
