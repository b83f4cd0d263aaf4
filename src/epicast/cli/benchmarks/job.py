"""What to measure, and what came of it: plain data, so that it can cross to another process and back."""

from __future__ import annotations

from typing import Literal

import msgspec

System = Literal["pure", "compiled", "simpy"]
Measure = Literal["flood", "stream", "overlay", "timers", "memory"]

SEED = 7
DEGREE = 9  # links of a process in the random graph
DELAY_MIN_US, DELAY_MAX_US, TICK_US = 10_000, 100_000, 100
LATENCY = f"uniform {DELAY_MIN_US}us {DELAY_MAX_US}us"
PAYLOAD = bytes(100)


class Job(msgspec.Struct, frozen=True):
    measure: Measure
    system: System
    nodes: int
    amount: int = 1  # messages, or rounds of timers
    stack: str = "static-flood"
    traced: bool = False  # at the full level, into a run folder

    @property
    def name(self) -> str:
        traced = ", traced" if self.traced else ""
        what = {"stream": self.stack, "overlay": f"building {self.stack}"}.get(self.measure, self.measure)
        return f"{what}, {self.nodes:,} nodes, {self.system}{traced}"


class Result(msgspec.Struct, frozen=True):
    """Of one job, or the middle one of several."""

    events: int = 0
    seconds: float = 0.0  # by the clock on the wall
    cpu_seconds: float = 0.0  # of the processor, whatever else ran on it
    bytes_per_node: float | None = None
    rows: int | None = None  # of the trace

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds if self.seconds else 0.0

    @property
    def events_per_cpu_second(self) -> float:
        return self.events / self.cpu_seconds if self.cpu_seconds else 0.0
