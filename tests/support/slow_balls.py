"""EpTO's algorithms 4 and 5, corrected, for one event: message by message, and sharing nothing with the bulk kernel.

Written to be compared with it: a heap of ticks and arrivals, and processes that hold what the algorithms hold.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random

# The latencies with which EpTO was evaluated: quantiles, and milliseconds at them.
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
DELAYS_MS = (1, 15, 80, 125, 205, 305, 366, 580, 800)
TICK, ARRIVAL = 0, 1  # at one instant ticks come first


@dataclass
class Process:
    next_ball: int | None = None  # the event's ttl, if it is to be passed on
    late_set: int | None = None  # its ttl, if that has reached the number of rounds
    received: int | None = None  # the ttl that ordering has for it
    first_us: int | None = None
    global_us: int | None = None
    logical_us: int | None = None

    @property
    def idle(self) -> bool:
        waits = self.received is not None and self.logical_us is None
        return self.next_ball is None and self.late_set is None and not waits


class SlowBalls:
    def __init__(self, nodes: int, fanout: int, rounds: int, period_us: int, loss: float, seed: int, go_on: bool):
        self.fanout, self.rounds, self.period_us, self.loss, self.go_on = fanout, rounds, period_us, loss, go_on
        self.rng = Random(seed)
        self.processes = [Process() for _ in range(nodes)]
        self.processes[0].next_ball = self.processes[0].first_us = 0
        self.sent = self.lost = self.under_way = 0
        self._order = 0
        self._heap: list[tuple[int, int, int, int, int]] = []
        for process in range(nodes):
            self._push(self.rng.randrange(period_us) if process else 0, TICK, process)

    def play(self) -> SlowBalls:
        while self._heap:
            now_us, what, _, process, ttl = heappop(self._heap)
            if what == ARRIVAL:
                self._on_ball(self.processes[process], ttl, now_us)
            else:
                self._on_tick(process, now_us)
                if self.under_way or not all(each.idle for each in self.processes):
                    self._push(now_us + self.period_us, TICK, process)
        return self

    def _push(self, at_us: int, what: int, process: int, ttl: int = 0) -> None:
        self._order += 1
        heappush(self._heap, (at_us, what, self._order, process, ttl))

    def _on_ball(self, process: Process, ttl: int, now_us: int) -> None:
        self.under_way -= 1
        if process.first_us is None:
            process.first_us = now_us
        if ttl < self.rounds:
            process.next_ball = ttl if process.next_ball is None else max(process.next_ball, ttl)
        else:
            process.late_set = ttl

    def _on_tick(self, number: int, now_us: int) -> None:
        process = self.processes[number]
        if process.late_set is not None and not self.go_on:
            process.next_ball = None
        if process.next_ball is not None:
            process.next_ball += 1
            self._throw(number, process.next_ball, now_us)
        ball = [ttl for ttl in (process.next_ball, process.late_set) if ttl is not None]
        self._order_events(process, ball, now_us)
        process.next_ball = process.late_set = None

    def _throw(self, sender: int, ttl: int, now_us: int) -> None:
        for other in self.rng.sample(range(len(self.processes) - 1), self.fanout):
            target = other + (other >= sender)
            self.sent += 1
            if self.rng.random() < self.loss:
                self.lost += 1
            else:
                self.under_way += 1
                self._push(now_us + self._delay_us(), ARRIVAL, target, ttl)

    def _order_events(self, process: Process, ball: list[int], now_us: int) -> None:
        if process.received is not None:
            process.received += 1
        for ttl in ball:
            process.received = ttl if process.received is None else max(process.received, ttl)
        if process.received is None:
            return
        if process.global_us is None and process.received > self.rounds:
            process.global_us = now_us
        if process.logical_us is None and process.received > 2 * self.rounds:
            process.logical_us = now_us

    def _delay_us(self) -> int:
        share = self.rng.random()
        at = bisect_right(QUANTILES, share) - 1
        along = (share - QUANTILES[at]) / (QUANTILES[at + 1] - QUANTILES[at])
        return round(1000 * (DELAYS_MS[at] + along * (DELAYS_MS[at + 1] - DELAYS_MS[at])))
