"""Storms: runs whose size, network and faults are all drawn from one number, for every stack that promises agreement or
an order.

A storm has three phases: faults (crashes, joins and leaves, partitions, loss, clogs, pauses, resets), then everything
heals, then the run must come to rest within a bound. Safety is checked all along, the rest at the end: whatever the
stack promises, and nothing else (`storm_judge.py`). `epicast storm --stack NAME --seed N` plays one again, event by
event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from epicast.core.records import Level
from epicast.sim import checks
from epicast.sim.scenario import Scenario
from epicast.sim.storm_draw import draw, playable
from epicast.sim.storm_judge import MOMENT_US, Judge
from epicast.sim.summary import Summary
from epicast.sim.world import World

__all__ = ["Storm", "Verdict", "draw", "playable"]

LOOK_US = 1_000_000  # between two checks of safety
SEEDS_US = 20_000_000  # between two looks at seeds
REST_US = 150_000_000  # within which everything must be in order after the faults
SEEDS = {"clon": "seeds", "cyclon": "contacts"}  # by membership: where it keeps the processes that its driver asks for


@dataclass
class Verdict:
    """What a storm left behind."""

    seed: int
    scenario: Scenario
    violations: list[str] = field(default_factory=list)
    summary: Summary | None = None
    rest_us: int = 0  # how long it took to come to rest after the last fault

    @property
    def passed(self) -> bool:
        return not self.violations


class Storm:
    """Plays one storm and judges it."""

    def __init__(self, seed: int, stack: str = "brisa", engine: str = "auto") -> None:
        self.verdict = Verdict(seed, draw(seed, stack))
        self.world = World(
            self.verdict.scenario, seed, engine, Level.DELIVERIES, replay=f"epicast storm --stack {stack} --seed {seed}"
        )
        self.judge = Judge(self.world)

    def play(self, on_progress: Callable[[float, int, int], None] | None = None) -> Verdict:
        world, verdict, judge = self.world, self.verdict, self.judge
        world.call_at(LOOK_US, self._look)
        if world.stack.membership.protocol in SEEDS:
            world.call_at(SEEDS_US, self._look_up_seeds)
        world.run(on_progress=on_progress)
        healed_us = world.now_us
        world.network.heal()
        for node in checks.stranded(world):  # as its operator would: it knows nobody who is alive
            world.crash(node)
        verdict.rest_us = self._come_to_rest(healed_us + REST_US) - healed_us
        verdict.violations += judge.unrest()
        verdict.summary = world.summary()
        verdict.violations += judge.broken()
        return verdict

    def _come_to_rest(self, limit_us: int) -> int:
        """Until everything is in order, and stays so for long enough to tell a lasting disagreement from a link that is
        being made. Returns since when."""
        world, judge = self.world, self.judge
        while True:
            in_time = world.run_while(lambda: bool(judge.unrest()), LOOK_US, limit_us)
            since_us = world.now_us
            troubled = not in_time or world.interrupted
            while not troubled and world.now_us < since_us + 2 * MOMENT_US:
                world.run_until(world.now_us + LOOK_US)
                troubled = bool(judge.unrest()) or world.interrupted
            if not troubled or world.now_us >= limit_us or world.interrupted:
                return since_us

    def _look(self) -> None:
        self.verdict.violations += [f"{self.world.now_us} us: {v}" for v in self.judge.unsafe()][:5]
        if len(self.verdict.violations) < 20:
            self.world.call_at(self.world.now_us + LOOK_US, self._look)

    def _look_up_seeds(self) -> None:
        """As the driver of a live node does: it asks a seed whether it is there, and tells the membership."""
        where = SEEDS[self.world.stack.membership.protocol]
        for node in self.world.up:
            members: Any = self.world.nodes[node].membership
            alive = [seed for seed in getattr(members, where) if seed in self.world.nodes]
            if alive:
                members.meet(self.world.chance.choice(alive))
        self.world.call_at(self.world.now_us + SEEDS_US, self._look_up_seeds)
