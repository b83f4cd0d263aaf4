"""When the processes of a scenario join, publish, come and go, fail and are looked at.

joins | warm-up | workload, with churn and faults | drain
      0 ------- start_us ------------------- end_us ----- limit_us at the latest
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from epicast.core.records import Kind, Level
from epicast.sim import graph
from epicast.sim.churn import Action, ChurnDriver, parse_churn
from epicast.sim.engine import NEVER_US, Timer
from epicast.sim.fault_schedule import FaultSchedule
from epicast.sim.rest import collector_at_rest
from epicast.sim.workload import Publication, publications

if TYPE_CHECKING:
    from epicast.sim.world import World

DRAIN_STEP_US = 250_000  # how often to ask whether everyone has everything


class Timetable:
    def __init__(self, world: World) -> None:
        self.world, self.scenario = world, world.scenario
        scenario = self.scenario
        joins_us = 0 if world.given_overlay else (scenario.nodes - 1) * scenario.joins.interval_us
        self.start_us = world.now_us + joins_us + scenario.warmup_us
        faults_us = max((fault.end_us for fault in scenario.fault), default=0)
        script = parse_churn(scenario.churn)
        newcomers_us = scenario.joins.newcomers * scenario.joins.newcomer_interval_us
        self.end_us = self.start_us + max(scenario.workload.end_us, faults_us, newcomers_us, script.end_us)
        self.limit_us = self.end_us + scenario.drain_us
        self.churn = ChurnDriver(script, world.stream("churn"), 0, scenario.workload.end_us, world.protected)
        self._churn_timer: Timer | None = None
        self._churn_at_us = 0
        self._publications: Iterator[Publication] = publications(scenario.workload, world.stream("workload"))
        self._next: Publication | None = next(self._publications, None)

    def fraction(self) -> float:
        """How much of the run is over, as far as one can tell."""
        return min(1.0, self.world.now_us / self.limit_us) if self.limit_us else 1.0

    def play(self) -> None:
        world = self.world
        self._begin()
        world.run_until(self.start_us)
        with collector_at_rest(self.scenario.nodes):
            world.run_until(self.end_us)
            if world.run_while(lambda: self._next is not None, DRAIN_STEP_US, NEVER_US):  # random streams may be late
                limit_us = max(self.limit_us, world.now_us + self.scenario.drain_us)
                world.run_while(self._is_missing_something, DRAIN_STEP_US, limit_us)

    def _begin(self) -> None:
        world, scenario = self.world, self.scenario
        if world.given_overlay:
            self._join_given()
        else:
            self._join_next(1)
        # What falls on one instant happens in this order.
        faults = FaultSchedule(world, world.network, world.stream("faults"), world.call_at, self.start_us)
        for fault in scenario.fault:
            faults.add(fault)
        for number in range(scenario.joins.newcomers):
            world.call_at(self.start_us + number * scenario.joins.newcomer_interval_us, self._join_without_contacts)
        if self._next is not None:
            world.call_at(self.start_us + self._next.time_us, self._publish_due)
        if scenario.snapshot_interval_us:
            world.call_at(self.start_us, self._snapshot)

    # Joining

    def _join_next(self, number: int) -> None:
        self._joined(self.world.join())
        if number < self.scenario.nodes:
            self.world.call_at(self.world.now_us + self.scenario.joins.interval_us, self._join_next, number + 1)

    def _join_without_contacts(self) -> None:
        self._joined(self.world.join(()))

    def _join_given(self) -> None:
        world, joins = self.world, self.scenario.joins
        draw = graph.symmetric if joins.graph == "symmetric" else graph.directed
        neighbours = draw(self.scenario.nodes, joins.degree, world.chance)
        nodes = [world.add_node() for _ in neighbours]
        for node, peers in zip(nodes, neighbours, strict=True):
            world.start(node, [nodes[peer] for peer in peers])
            self._joined(node)

    def _joined(self, node: int, name: int | None = None) -> None:
        self.churn.joined(node, self.world.now_us - self.start_us, name)
        self._arm_churn()

    # Publishing

    def _publish_due(self) -> None:
        world, now_us = self.world, self.world.now_us
        while self._next is not None and self.start_us + self._next.time_us <= now_us:
            due = self._next
            world.publish(self.scenario.source_ids[due.source_index], due.topic, bytes(due.payload_bytes))
            self._next = next(self._publications, None)
        if self._next is not None:
            world.call_at(self.start_us + self._next.time_us, self._publish_due)

    # Coming and going

    def _arm_churn(self) -> None:
        """The driver may want to be asked earlier than it said, for instance because somebody joined."""
        next_us = self.churn.next_us()
        if next_us is None or (self._churn_timer is not None and next_us >= self._churn_at_us):
            return
        if self._churn_timer is not None:
            self._churn_timer.cancel()
        self._churn_at_us = next_us
        self._churn_timer = self.world.call_at(self.start_us + next_us, self._churn_due)

    def _churn_due(self) -> None:
        self._churn_timer = None
        for action in self.churn.pop(self.world.up):
            self._act(action)
        self._arm_churn()

    def _act(self, action: Action) -> None:
        if action.kind == "join":
            self._joined(self.world.join(), action.node)
            return
        assert action.node is not None
        if action.kind == "leave":
            self.world.leave(action.node)
        else:
            self.world.crash(action.node)

    # Looking

    def _snapshot(self) -> None:
        if self.world.on_snapshot is not None:
            self.world.snapshot_overlay()
        self.world.call_at(self.world.now_us + self.scenario.snapshot_interval_us, self._snapshot)

    def _is_missing_something(self) -> bool:
        world = self.world
        if any(world.held_back.values()):
            return True
        if world.engine.level != Level.OFF:
            return not world.all_delivered()
        # Without a trace one can count only while nobody comes and goes.
        counts, everyone = world.engine.counts, len(world.up)
        constant = len(world.population) == everyone == self.scenario.nodes
        return not (constant and counts[Kind.DELIVER] >= counts[Kind.PUBLISH] * everyone)
