"""How BRISA sends missed messages again, without letting one peer keep it busy.

Each peer that asks has a line of its own: one request for each flow, the newest counts. An answer leaves in slices, and
other work gets its turn in between. While a peer has credit the slices follow each other quickly. Credit is enough for
two whole buffers, and grows back slowly. A peer that has used it up is still answered, but gets a small share of our
time. So nobody is refused, recovery after a failure is fast, and a peer that never stops asking delays nobody else.

A request that repeats the one just answered is ignored.
"""

from __future__ import annotations

from collections.abc import Callable

from epicast.core.env import Env
from epicast.core.ids import FlowId, NodeId
from epicast.dissemination.brisa_flow import FlowState, messages_of, numbers_of
from epicast.dissemination.brisa_messages import (
    FIRST_IN_STREAM,
    RECOVERED,
    UPWARD,
    Baseline,
    BrisaConfig,
    Data,
    Recover,
)

RANGES_MAX = 64
# Our guesses. Cost is counted in units of some 10 us: a message sent again, a KiB of its payload, or 32 entries of the
# buffer searched.
BYTES_A_UNIT = 1024
ENTRIES_A_UNIT = 32
SLICE = 256  # units in one turn
SLOW_SLICE = 32  # of a peer without credit
TURN_US = 1_000  # between slices
SLOW_US = 200  # and for each unit of the last slice, without credit: it gets a twentieth of our time
ASKERS_MAX = 256

Ranges = tuple[tuple[NodeId, int, int], ...]


class Asker:
    """A peer that asks, what it waits for, and how much it may still cost."""

    __slots__ = ("answered_us", "credit", "credit_us", "last", "timer_on", "todo", "waiting")

    def __init__(self, credit: int, now_us: int) -> None:
        self.credit, self.credit_us = credit, now_us
        self.waiting: dict[FlowId, Recover] = {}  # not begun
        self.todo: list[Data] = []  # of the answer under way, the next message last
        self.last: Recover | None = None  # the request answered last
        self.answered_us = 0
        self.timer_on = False

    @property
    def idle(self) -> bool:
        return not self.waiting and not self.todo


class Answers:
    __slots__ = ("_askers", "_capacity", "_config", "_env", "_flow_for", "_started_us")

    def __init__(
        self, env: Env, config: BrisaConfig, started_us: int, flow_for: Callable[[NodeId, FlowId], FlowState | None]
    ) -> None:
        self._env, self._config, self._started_us = env, config, started_us
        self._flow_for = flow_for  # what a peer may ask for, now
        self._capacity = 2 * (config.buffer_messages + config.recover_max)
        self._askers: dict[NodeId, Asker] = {}

    def take(self, peer: NodeId, request: Recover) -> None:
        now = self._env.now_us()
        asker = self._askers.get(peer) or self._welcome(peer, now)
        if asker is None or (request == asker.last and now - asker.answered_us < self._config.watch_us // 2):
            return
        if request.flow in asker.waiting or len(asker.waiting) < self._config.flows_max:
            asker.waiting[request.flow] = request
        if not asker.timer_on:
            self._turn(peer, asker)

    def _welcome(self, peer: NodeId, now: int) -> Asker | None:
        if len(self._askers) >= ASKERS_MAX:
            idle = next((each for each, asker in self._askers.items() if asker.idle and not asker.timer_on), None)
            if idle is None:
                return None
            del self._askers[idle]
        asker = self._askers[peer] = Asker(self._capacity, now)
        return asker

    def _on_turn(self, peer: NodeId, asker: Asker) -> None:
        asker.timer_on = False
        if not asker.idle:
            self._turn(peer, asker)

    def _turn(self, peer: NodeId, asker: Asker) -> None:
        """Send a slice, then let others have their turn."""
        now = self._env.now_us()
        grown = (now - asker.credit_us) * self._config.recover_max // self._config.watch_us
        if grown > 0:
            asker.credit, asker.credit_us = min(asker.credit + grown, self._capacity), now
        most, spent = SLICE if asker.credit > 0 else SLOW_SLICE, 0
        while spent < most and not asker.idle:
            if asker.todo:
                spent += self._send_slice(peer, asker, most - spent)
            else:
                spent += self._begin(peer, asker, asker.waiting.pop(next(iter(asker.waiting))), now)
        asker.credit -= spent
        if not asker.idle or asker.credit <= 0:
            asker.timer_on = True
            pause_us = TURN_US if asker.credit > 0 else TURN_US + SLOW_US * spent
            self._env.after(pause_us, self._on_turn, peer, asker)

    def _begin(self, peer: NodeId, asker: Asker, request: Recover, now: int) -> int:
        """Find what is asked for, and say first where it begins. Returns the cost."""
        asker.last, asker.answered_us = request, now
        flow = self._flow_for(peer, request.flow)
        if flow is None:
            return 1
        if request.age_us:
            found, firsts = self._past(flow, request)
        else:
            found, firsts = self._ranges(flow, request.ranges[:RANGES_MAX])
        following = self._own_following(flow, request)
        if firsts or following >= 0:
            self._env.send(peer, Baseline(flow.id, tuple(firsts.items()), request.age_us, following))
        asker.todo = self._whole(found)[::-1]
        return 1 + len(flow.buffer) // ENTRIES_A_UNIT

    def _send_slice(self, peer: NodeId, asker: Asker, most: int) -> int:
        flow = self._flow_for(peer, asker.todo[-1].flow)
        if flow is None:
            asker.todo.clear()
            return 1
        spent = 0
        while asker.todo and spent < most:
            data = asker.todo.pop()
            flags = data.flags | RECOVERED
            path = () if flags & UPWARD else flow.path
            hops = data.hops + 1
            self._env.send(peer, Data(flow.id, data.source, data.seq, hops, path, flags, data.topic, data.payload))
            spent += 1 + len(data.payload) // BYTES_A_UNIT
        return spent

    # What is asked for

    def _own_following(self, flow: FlowState, request: Recover) -> int:
        """Our own next number on this flow, for a peer that asks for numbers that we have not published; else -1."""
        me = self._env.me
        wanted = max((last for source, _, last in request.ranges if source == me), default=-1)
        window = flow.windows.get(me)
        following = window.next if window is not None else 0
        return following if wanted >= following and (window is not None or flow.root == me) else -1

    def _past(self, flow: FlowState, request: Recover) -> tuple[list[Data], dict[NodeId, int]]:
        """What came lately, and with which number each publisher begins in it. We cannot speak for a time before our
        own, unless we have the stream from its start, nor for a publisher with which we are catching up ourselves."""
        uptime_us = max(1, self._env.now_us() - self._started_us)
        long_enough = request.anything or request.age_us - self._config.confirm_us <= uptime_us
        wanted = {source for source, _, _ in request.ranges}
        # What we lack ourselves may be owed to the asker as well: it begins there.
        firsts = {
            source: window.next
            for source, window in flow.windows.items()
            if (long_enough or window.first & FIRST_IN_STREAM == 0)
            and (not window.provisional or request.anything)
            and (not wanted or source in wanted)
        }
        since_us = self._env.now_us() - request.age_us
        found: list[Data] = []
        for entry in flow.buffer:
            source, first, _ = numbers_of(entry)
            if entry[0] >= since_us and source in firsts:
                firsts[source] = min(firsts[source], first)
                if len(found) < self._config.recover_max:
                    found += messages_of(entry)
        return found, firsts

    def _ranges(self, flow: FlowState, ranges: Ranges) -> tuple[list[Data], dict[NodeId, int]]:
        """What we have of it, and where we begin if the start of a range has left our buffer. What we lack ourselves
        we may still get: it is not denied."""
        found, lowest = flow.buffer.within(ranges, self._config.recover_max)
        firsts: dict[NodeId, int] = {}
        for source, first, last in ranges:
            window = flow.windows.get(source)
            if window is not None and first in window and source not in firsts:
                begins = lowest.get(source, min(last, window.last) + 1)
                if begins > first:
                    firsts[source] = begins
        return found, firsts

    def _whole(self, found: list[Data]) -> list[Data]:
        """One answer has so many messages, and so many bytes, at most: the peer asks for the rest."""
        room = self._config.recover_bytes
        for at, data in enumerate(found[: self._config.recover_max]):
            room -= len(data.payload)
            if room <= 0:
                return found[: at + 1]
        return found[: self._config.recover_max]
