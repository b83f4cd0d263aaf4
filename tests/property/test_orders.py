"""Random histories of processes that publish and receive, in any order, with losses, delays and late joiners.

What comes before what is recomputed from what the publishers delivered; headers are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicast.core.ids import MsgId
from epicast.core.ordered import Ordered
from epicast.ordering import trailer
from tests.support.ordering import Process

SECOND = 1_000_000
PATIENCE, SETTLE, STABLE = 10 * SECOND, SECOND, 1_000 * SECOND
NAMES = ("A", "B", "C", "D")
CLOCKS = ("barrier", "vector")

SEEDS = st.integers(0, (1 << 32) - 1)
Steps = list[tuple[str, int, int]]
TOPICS = ("t", "u")


def drawn(seed: int) -> Steps:
    """A process publishes, or receives what it has not had yet, or loses it; time passes; or somebody joins. Histories
    are long: it takes several coincidences until an order is in danger."""
    rng = Random(seed)
    whats = rng.choices(("publish", "receive", "lose", "wait", "join"), (20, 50, 10, 10, 3), k=rng.randint(60, 140))
    return [(what, rng.randint(0, 24), rng.randint(0, 3)) for what in whats]


QUIET_STEPS = [("publish", who, 0) for who in range(4)] + [
    ("receive", who, which) for who in range(4) for which in range(4) for _ in range(2)
]
CAPS = st.sampled_from([{}, {}, {"ahead_max": 2}, {"waiting_max": 1}, {"waiting_max": 3}, {"waiting_bytes_max": 40}])


def topic_of(seq: int) -> str:
    return TOPICS[seq % 3 == 0]


class History:
    """Everything that happened, and what must have come before what."""

    def __init__(self, order: str, caps: dict[str, int]) -> None:
        times = {"patience_us": PATIENCE, "settle_us": SETTLE} | ({} if order == "fifo" else {"stable_us": STABLE})
        self.order, self.settings = order, {**times, **caps}
        self.now_us = 0
        self.processes: list[Process] = []
        self.inbox: list[list[Ordered]] = []  # what each one has not received yet
        self.had: list[dict[MsgId, None]] = []  # what it received
        self.past: dict[MsgId, frozenset[MsgId]] = {}  # all that came before a message
        self.naive: dict[MsgId, None] = {}  # their publishers had not heard of anything
        for name in NAMES:
            self.join(name)
        self.wait(STABLE + PATIENCE)  # old enough to know what was owed to them

    def join(self, name: str) -> None:
        self.processes.append(Process(self.order, name, self.now_us, **self.settings))
        self.inbox.append([])
        self.had.append({})

    def wait(self, us: int) -> None:
        self.now_us += us
        for process in self.processes:
            process.advance(us)

    def play(self, steps: Steps, rest_us: int = 3 * PATIENCE) -> None:
        for what, who, which in steps:
            if what == "wait":
                self.wait(who * SECOND // 2)
            elif what == "join":
                if len(self.processes) == len(NAMES):
                    self.join("E")
            else:
                self.act(what, who % len(self.processes), which)
            for process in self.processes:
                bounded(process)
        self.wait(rest_us)

    def act(self, what: str, who: int, which: int) -> None:
        process, inbox = self.processes[who], self.inbox[who]
        if what == "publish":
            before = list(process.got)
            event = process.publish(topic_of(process.seq))
            key = (event.source, event.seq)
            self.past[key] = frozenset(before).union(*(self.past[each] for each in before))
            if not self.had[who]:
                self.naive[key] = None
            for number, other in enumerate(self.inbox):
                if number != who:
                    other.append(event)
        elif inbox:
            event = inbox.pop(which % len(inbox))
            if what == "receive":
                self.had[who][event.source, event.seq] = None
                process.receive(event)


def bounded(process: Process) -> None:
    room, config = process.room, process.room.config
    assert len(room.waiting) <= config.waiting_max
    assert sum(held.size for held in room.waiting) == room.bytes <= config.waiting_bytes_max
    assert all(len(stream.ahead) <= config.ahead_max for stream in room.streams.values())
    assert len([timer for timer in process.env.timers if timer.live]) <= 1


def inversions(history: History, process: Process) -> Iterator[tuple[MsgId, MsgId]]:
    """Pairs of a message and one that came before it, delivered the wrong way round."""
    for at, later in enumerate(process.got):
        for earlier in process.got[:at]:
            if later in history.past[earlier]:
                yield earlier, later


def excused(history: History, process: Process, earlier: MsgId, later: MsgId) -> bool:
    """Barriers let pass what was published by one who had heard of nothing, and what follows that."""
    at = process.got.index
    known = [key for key in history.naive if key == later or key in history.past[later]]
    return any(key in process.got and at(earlier) < at(key) <= at(later) for key in known)


def told(process: Process, source: object) -> int:
    """How many messages of it were reported as lost."""
    return sum(int(detail.split(" ", 1)[0]) for name, detail in process.gaps if name == source)


@pytest.mark.parametrize("clock", CLOCKS)
@settings(max_examples=400)
@given(seed=SEEDS, caps=CAPS)
def test_no_answer_is_delivered_before_its_question(clock: str, seed: int, caps: dict[str, int]) -> None:
    history = History(clock, caps)
    history.play(drawn(seed))
    for process in history.processes:
        wrong = list(inversions(history, process))
        if clock == "barrier":
            wrong = [pair for pair in wrong if not excused(history, process, *pair)]
        assert not wrong, (process.env.me, wrong, process.got)


@settings(max_examples=200)
@given(seed=SEEDS, caps=CAPS)
def test_a_publisher_is_heard_in_order(seed: int, caps: dict[str, int]) -> None:
    history = History("fifo", caps)
    history.play(drawn(seed))
    for process in history.processes:
        for stream in {(source, topic_of(seq)) for source, seq in process.got}:
            numbers = [seq for source, seq in process.got if (source, topic_of(seq)) == stream]
            assert numbers == sorted(set(numbers)), (process.env.me, stream)


@pytest.mark.parametrize("order", ["fifo", "barrier"])
@settings(max_examples=200)
@given(seed=SEEDS, caps=CAPS)
def test_what_is_not_delivered_is_reported_and_nothing_else(order: str, seed: int, caps: dict[str, int]) -> None:
    """What came, and what lacks between two that were delivered. But who never hears of a message cannot miss it."""
    history = History(order, caps)
    history.play(drawn(seed))
    for who, process in enumerate(history.processes):
        assert process.nonsense == []
        assert len(set(process.got)) == len(process.got)
        for source in {source for source, _ in history.past} - {process.env.me}:
            streams = [t for t in TOPICS if order == "fifo"] or [None]
            missing = sum(len(missed(history, who, source, topic)) for topic in streams)
            lost = len([key for key in history.past if key[0] == source and key not in process.got])
            assert missing <= told(process, source) <= lost, (process.env.me, source)


def missed(history: History, who: int, source: object, topic: str | None) -> list[MsgId]:
    process = history.processes[who]
    stream = [key for key in history.past if key[0] == source and topic in (None, topic_of(key[1]))]
    delivered = [at for at, key in enumerate(stream) if key in process.got]
    between = range(delivered[0], delivered[-1]) if delivered else ()
    return [
        key for at, key in enumerate(stream) if key not in process.got and (key in history.had[who] or at in between)
    ]


@settings(max_examples=200)
@given(seed=SEEDS)
def test_a_publisher_that_cannot_be_read_is_reported_once(seed: int) -> None:
    """With vectors: what is delivered of a publisher has no hole; where something that came is not, there is a gap."""
    history = History("vector", {})
    history.play(drawn(seed))
    for who, process in enumerate(history.processes):
        for source in {source for source, _ in history.past} - {process.env.me}:
            numbers = [seq for name, seq in process.got if name == source]
            assert numbers == list(range(len(numbers)))
            dropped = [key for key in history.had[who] if key[0] == source and key not in process.got]
            silenced = [detail for name, detail in process.gaps if name == source and "all that follow" in detail]
            assert len(silenced) <= 1
            assert not dropped or told(process, source)


@pytest.mark.parametrize("order", ["fifo", *CLOCKS])
@settings(max_examples=200)
@given(steps=st.lists(st.sampled_from(QUIET_STEPS), max_size=60))
def test_where_nothing_is_lost_or_late_everything_is_delivered(order: str, steps: Steps) -> None:
    history = History(order, {})
    history.play(steps, rest_us=0)
    for process, inbox in zip(history.processes, history.inbox, strict=True):
        process.receive(*inbox[::-1])
        assert sorted(process.got) == sorted(history.past)
        assert process.env.records == []


WORDS = st.one_of(st.integers(0, 3), st.sampled_from([(1 << 63) - 1, (1 << 63) - 2, 1 << 63, -1, "A", "B", "Z", None]))
BODIES = st.one_of(
    st.lists(st.one_of(WORDS, st.lists(WORDS, max_size=4)), max_size=5).map(msgspec.msgpack.encode),
    st.builds(
        lambda tag, number, second, third, fourth: msgspec.msgpack.encode([tag, number, second, third, fourth]),
        st.integers(0, 1),
        st.integers(0, 5),
        st.one_of(st.integers(0, 9), st.lists(st.integers(0, 3), max_size=4)),
        st.lists(st.sampled_from(["A", "B", "C", "Z", 7]), max_size=3),
        st.lists(st.one_of(st.integers(0, 9), st.just((1 << 63) - 1)), max_size=3),
    ),
    st.binary(max_size=12),
)


@pytest.mark.parametrize("order", ["fifo", *CLOCKS])
@settings(max_examples=300)
@given(
    events=st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 3), BODIES, st.integers(0, 2)), max_size=40),
    caps=CAPS,
)
def test_hostile_headers_break_nothing(
    order: str, events: list[tuple[str, int, bytes, int]], caps: dict[str, int]
) -> None:
    times = {"patience_us": PATIENCE, "settle_us": SETTLE}
    process = Process(order, "C", **times, **caps)
    for seq, (source, kind, body, seconds) in enumerate(events):
        process.receive(Ordered(source, seq, "t", 1, trailer.add(b"x", bytes([kind]) + body)))
        process.advance(seconds * SECOND)
        bounded(process)
    process.advance(3 * PATIENCE)
    assert process.room.waiting == {}
    assert len(set(process.got)) == len(process.got)
