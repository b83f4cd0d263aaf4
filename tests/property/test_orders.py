"""Random histories of processes that publish and receive, in any order, with losses, delays and late joiners.

What comes before what is recomputed from what the publishers delivered; headers are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from epicast.core.ids import MsgId
from epicast.core.ordered import Ordered
from epicast.ordering import trailer
from tests.support.ordering import Process

SECOND = 1_000_000
PATIENCE, SETTLE, STABLE = 10 * SECOND, SECOND, 1_000 * SECOND
NAMES = ("A", "B", "C", "D")
CLOCKS = ("barrier", "vector")

# A process publishes; receives what it has not had yet, the one at that place; loses it; time passes; or one joins.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(0, 4), st.just(0)),
        st.tuples(st.just("receive"), st.integers(0, 4), st.integers(0, 7)),
        st.tuples(st.just("receive"), st.integers(0, 4), st.integers(0, 7)),
        st.tuples(st.just("lose"), st.integers(0, 4), st.integers(0, 7)),
        st.tuples(st.just("wait"), st.integers(1, 12), st.just(0)),
        st.tuples(st.just("join"), st.just(0), st.just(0)),
    ),
    max_size=60,
)
CAPS = st.sampled_from(
    [{}, {}, {"ahead_max": 2}, {"waiting_max": 1}, {"waiting_max": 3}, {"waiting_bytes_max": 40}, {"streams_max": 2}]
)


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

    def play(self, steps: list[tuple[str, int, int]]) -> None:
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
        self.wait(3 * PATIENCE)

    def act(self, what: str, who: int, which: int) -> None:
        process, inbox = self.processes[who], self.inbox[who]
        if what == "publish":
            before = list(process.got)
            event = process.publish("t" if self.order != "fifo" or process.seq % 3 else "u")
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

    def published(self, source: object) -> list[int]:
        return [seq for name, seq in self.past if name == source]


def bounded(process: Process) -> None:
    room, config = process.room, process.room.config
    assert len(room.waiting) <= config.waiting_max
    assert sum(held.size for held in room.waiting) == room.bytes <= config.waiting_bytes_max
    assert all(len(stream.ahead) <= config.ahead_max for stream in room.streams.values())
    assert len(room.streams) <= config.streams_max
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
    return sum(int(detail.split(" ", 1)[0]) for name, detail in process.gaps if name == source)


@pytest.mark.parametrize("clock", CLOCKS)
@settings(max_examples=400)
@given(steps=STEPS, caps=CAPS)
def test_no_answer_is_delivered_before_its_question(clock: str, steps: list[Any], caps: dict[str, int]) -> None:
    history = History(clock, caps)
    history.play(steps)
    for process in history.processes:
        assert len(set(process.got)) == len(process.got)
        wrong = [pair for pair in inversions(history, process)]
        if clock == "barrier":
            wrong = [(earlier, later) for earlier, later in wrong if not excused(history, process, earlier, later)]
        assert not wrong, (process.env.me, wrong, process.got)
