"""A simulated world: the nodes of one stack on one network, and everything that an operator can do to them.

    world = World(Scenario(stack="brisa", nodes=100), seed=7)
    print(world.run().delivery_ratio)

`run` plays the whole scenario. The single steps (`join`, `crash`, `publish`, `run_until`, ...) are there for tests and
for experiments of one's own. Whatever happens is decided by the scenario and the seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, cast

from epicast.core import chance
from epicast.core.env import Env
from epicast.core.ids import NOBODY
from epicast.core.periodic import Periodic
from epicast.core.records import Kind, Level
from epicast.sim import snapshots
from epicast.sim.checked_env import CheckedEnv
from epicast.sim.collector import Collector
from epicast.sim.engine import DOWN, PAUSED, UP, Timer
from epicast.sim.engines import make_engine
from epicast.sim.interrupt import on_interrupt
from epicast.sim.mishap import explained
from epicast.sim.network import Network
from epicast.sim.population import Ending, Population
from epicast.sim.scenario import Scenario
from epicast.sim.summary import Summary, summarise
from epicast.sim.timetable import Timetable
from epicast.stacks.node import Node, handler_table, message_types
from epicast.trace.batch import Batch, Names
from epicast.trace.digest import TraceDigest
from epicast.wire.codec import Decoder

if TYPE_CHECKING:
    from epicast.trace.tables import Nodes, Snapshot

SLICE = 50_000  # events between two looks at the outside world: a fraction of a second
GRACE_US = 50_000  # in which a leaving process gets its goodbyes out
ROOM_US = 10_000  # how often a publisher that was held back tries again

Progress = Callable[[float, int, int], None]
"""Is told the share of the run that is done, the virtual time in microseconds and the number of events."""


class World:
    def __init__(
        self,
        scenario: Scenario,
        seed: int | None = None,
        engine: str = "auto",
        level: Level = Level.DELIVERIES,
        *,
        replay: str = "",
    ) -> None:
        self.scenario = scenario
        self.seed = scenario.seed if seed is None else seed
        self.replay = replay or f"World(Scenario.load({scenario.as_dict()!r}), {self.seed}).run()"
        self.stack = scenario.build_stack()
        self.given_overlay = self.stack.membership.protocol == "static"  # its neighbours are its contacts
        self.engine = make_engine(engine, scenario.network.tick_us, self.stream("protocol"), level)
        self.engine.use_handlers(handler_table(self.stack))
        self.engine.sink = self._take
        rng, latency = self.stream("network"), scenario.build_latency()
        self.engine.place_of, self.engine.in_earshot = latency.place_of, self._in_earshot
        self.network = Network(self.engine, scenario.network, latency.build(rng), rng)
        self.network.link_notice = self._on_link
        self.chance = self.stream("world")
        self.nodes: dict[int, Node] = {}  # up, paused or leaving
        self.population = Population()
        self._near: dict[str, dict[int, None]] = {}  # the processes of each place
        self.held_back: dict[int, int] = {}  # publications that wait until the process has room for them
        self.protected = frozenset(scenario.source_ids if scenario.protect_sources else ())
        self.interrupted = False
        self.sinks: list[Callable[[Batch], None]] = []  # whoever else wants the rows, such as a trace's writer
        self.on_snapshot: Callable[[Snapshot], None] | None = None  # whoever wants the pictures
        self.collector = Collector(self.names, self.population)
        self._digest = TraceDigest(self.names)
        self._decoder = Decoder(message_types(self.stack)) if scenario.codec_check else None
        self._on_slice: Callable[[], None] = _nothing
        self._pictured_us = -1  # when the last snapshot was taken

    def stream(self, purpose: str) -> Random:
        return chance.stream(self.seed, purpose)

    @property
    def names(self) -> Names:
        """The texts that the rows refer to."""
        return self.engine.describer.names

    @property
    def up(self) -> Sequence[int]:
        """The processes that are up, in the order in which they joined; paused ones too."""
        return self.population.up

    # Processes

    def join(self, contacts: Sequence[int] | None = None) -> int:
        """Start a process; it is told some others that are up."""
        if contacts is None:
            joins = self.scenario.joins
            count = joins.degree if self.given_overlay else joins.contacts
            contacts = self.chance.sample(self.up, min(count, len(self.up)))
        node = self.add_node()
        self.start(node, contacts)
        return node

    def add_node(self) -> int:
        """A process that is up and waits for its start."""
        node = self.engine.add_node()
        env = cast(Env, self.engine.env(node))  # here a NodeId is an int
        if self._decoder is not None:
            env = CheckedEnv(env, self._decoder)
        part = self.nodes[node] = Node(env, self.stack)
        self.population.joins(node, self.engine.now)
        self._near.setdefault(env.place, {})[node] = None
        self.engine.set_state(node, UP, part.parts())
        self._record(node, Kind.JOIN)
        return node

    def start(self, node: int, contacts: Sequence[int]) -> None:
        self.nodes[node].start(contacts, first=not contacts)
        if self.given_overlay and self.network.tcp:
            # Nobody builds this overlay: its links are there from the start.
            for peer in contacts:
                self.network.links.open(node, peer)

    def leave(self, node: int) -> None:
        """It says goodbye (when it wakes, if it is paused) and ends soon after."""
        if self.population.leaves(node):
            self.network.when_awake(node, self._say_goodbye, node)

    def crash(self, node: int) -> None:
        self._end(node, "crash")

    def pause(self, node: int) -> None:
        """It stands still: messages and timers wait for it."""
        if self.engine.state[node] == UP:
            self.engine.set_state(node, PAUSED)
            self._record(node, Kind.PAUSE)

    def resume(self, node: int) -> None:
        if self.engine.state[node] == PAUSED:
            self.engine.set_state(node, UP, self.nodes[node].parts())
            self._record(node, Kind.RESUME)
            self.network.woke(node)

    def set_clock(self, node: int, ahead_us: int) -> None:
        """Its calendar clock jumps; no timer goes by it."""
        self.engine.skews_us[node] = ahead_us

    def publish(self, node: int, topic: str, payload: bytes) -> None:
        """Does nothing if the process is gone, and waits for it if it is paused."""
        self.network.when_awake(node, self._publish, node, topic, payload)

    def _publish(self, node: int, topic: str, payload: bytes) -> None:
        if self.nodes[node].has_room(topic):
            self.nodes[node].publish(topic, payload)
            return
        self.held_back[node] = self.held_back.get(node, 0) + 1
        self.engine.call_at(self.engine.now + ROOM_US, self._publish_again, node, topic, payload)

    def _publish_again(self, node: int, topic: str, payload: bytes) -> None:
        if node in self.nodes:
            self.held_back[node] -= 1
            self.publish(node, topic, payload)

    def _say_goodbye(self, node: int) -> None:
        self.nodes[node].leave()
        self.engine.call_at(self.engine.now + GRACE_US, self._end, node, "leave")

    def _end(self, node: int, how: Ending) -> None:
        part = self.nodes.pop(node, None)
        if part is None:
            return
        self._record(node, Kind.LEAVE if how == "leave" else Kind.CRASH)
        del self._near[self.engine.place_of(node)][node]
        self.engine.set_state(node, DOWN)
        if how == "leave":
            self.network.links.exit(node)
        self.network.gone(node)
        self.population.ends(node, self.engine.now, how)
        self.held_back.pop(node, None)
        # Not now: it may be one of its own handlers that led here.
        self.engine.call_at(self.engine.now, _take_apart, part)

    def _on_link(self, node: int, peer: int, up: bool) -> None:
        part = self.nodes.get(node)
        if part is not None:
            (part.on_link_up if up else part.on_link_down)(peer)

    def _in_earshot(self, node: int) -> list[int]:
        return [peer for peer in self._near[self.engine.place_of(node)] if peer != node]

    def _record(self, node: int, kind: Kind) -> None:
        self.engine.record(node, kind, NOBODY, NOBODY, -1, 0, "", "")

    # Time

    @property
    def now_us(self) -> int:
        return self.engine.now

    def run_until(self, time_us: int) -> None:
        """Or until `stop` is called."""
        while not self.interrupted:
            with explained(lambda: self.engine.now, self.replay):
                reached = self.engine.run(time_us, SLICE)
            self._on_slice()
            if reached:
                return

    def run_while(self, predicate: Callable[[], bool], step_us: int, limit_us: int) -> bool:
        """Step by step, as long as the predicate holds; False if it still does at `limit_us`."""
        while predicate():
            if self.interrupted or self.engine.now >= limit_us:
                return False
            self.run_until(min(self.engine.now + step_us, limit_us))
        return True

    def stop(self) -> None:
        """End the run at the next opportunity."""
        self.interrupted = True

    def call_at(self, at_us: int, fn: Callable[..., None], *args: Any) -> Timer:
        """For whoever drives the world: called at that time, whatever becomes of any process."""
        return self.engine.call_at(at_us, fn, *args)

    def run(self, clock: Callable[[], float] | None = None, on_progress: Progress | None = None) -> Summary:
        """Play the whole scenario. `clock` gives seconds, for the speed of the run."""
        start_s = clock() if clock is not None else 0.0
        timetable = Timetable(self)
        if on_progress is not None:
            self._on_slice = lambda: on_progress(timetable.fraction(), self.engine.now, self.engine.events)
        try:
            with on_interrupt(self.stop):
                timetable.play()
        except KeyboardInterrupt:
            self.interrupted = True
        self._on_slice = _nothing
        seconds = clock() - start_s if clock is not None else None
        if self.on_snapshot is not None and self._pictured_us != self.engine.now:
            self.snapshot_overlay()
        if on_progress is not None and not self.interrupted:
            on_progress(1.0, self.engine.now, self.engine.events)
        return self.summary(seconds)

    # What comes of it

    def all_delivered(self) -> bool:
        """Does every process that is up have all that was published since it joined? Asks for a trace of deliveries."""
        self.engine.flush()
        return self.collector.all_delivered()

    def summary(self, seconds: float | None = None) -> Summary:
        """Of the run so far."""
        self.engine.flush()
        return summarise(
            collector=self.collector,
            engine=self.engine,
            population=self.population,
            stack=self.stack.name,
            seed=self.seed,
            tree=snapshots.first_tree(self.nodes),
            in_flight=self.network.in_flight(),
            digest=None if self.engine.level == Level.OFF else self._digest.hexdigest(),
            seconds=seconds,
            interrupted=self.interrupted,
        )

    def snapshot_overlay(self) -> list[Snapshot]:
        """The views of all processes, and the trees where there are any; `on_snapshot` gets them too."""
        now_us = self.engine.now
        pictures = [snapshots.views(now_us, self.nodes), *snapshots.trees(now_us, self.nodes)]
        if self.on_snapshot is not None:
            self._pictured_us = now_us
            for picture in pictures:
                self.on_snapshot(picture)
        return pictures

    def nodes_table(self) -> Nodes:
        """Every process of the run so far, for the trace."""
        return snapshots.processes(self.population, self.scenario.build_latency(), self.engine.now)

    def _take(self, batch: Batch) -> None:
        self.collector.take(batch)
        self._digest.update(batch)
        for sink in self.sinks:
            sink(batch)


def _take_apart(node: Node) -> None:
    """Free a dead process. Its parts know each other, and the collector was told to leave them alone."""
    for part in (*node.parts(), node):
        slots = (slot for kind in type(part).__mro__ for slot in getattr(kind, "__slots__", ()))
        for name in [*getattr(part, "__dict__", ()), *slots]:
            value = getattr(part, name, None)
            if isinstance(value, Periodic):
                value.stop()
            if name != "__weakref__" and hasattr(part, name):
                delattr(part, name)


def _nothing() -> None: ...
