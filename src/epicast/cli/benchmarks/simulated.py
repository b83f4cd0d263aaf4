"""The measurements that run on our own engines, through the ordinary world, network and stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from epicast.cli.benchmarks.job import DEGREE, LATENCY, PAYLOAD, SEED, TICK_US, Job, Result
from epicast.cli.benchmarks.memory import resident_bytes
from epicast.cli.benchmarks.stopwatch import stopwatch
from epicast.core.records import Level
from epicast.sim import graph
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from epicast.trace.run import OpenRun, RunFolder

QUIET_US = 10_000_000  # after which a flood is over
JOIN_EVERY_US = 1_000  # the overlay's first joins: set-up, so in haste
SETTLE_US = 5_000_000
OVERLAY_JOIN_EVERY_US = 10_000
AREAS = "areas 5 1ms 50ms"
RATE = 5  # messages a second, as in the evaluation of BRISA
DRAIN_US = 2_000_000


def flood(job: Job) -> Result:
    """Infect and die on a random graph, one message after the other, as datagrams."""
    world = _world(job, {"network": {"transport": "datagram", "tick_us": TICK_US}})
    neighbours = graph.directed(job.nodes, DEGREE, world.chance)
    nodes = [world.add_node() for _ in neighbours]
    for node, peers in zip(nodes, neighbours, strict=True):
        world.start(node, peers)

    def work() -> None:
        for _ in range(job.amount):
            world.publish(nodes[0], "stream", PAYLOAD)
            world.run_until(world.now_us + QUIET_US)

    return _measured(world, job, work)


def stream(job: Job) -> Result:
    """Messages at a steady rate over an overlay that is up and settled; its construction is not measured."""
    world, work = settled(job)
    return _measured(world, job, work)


def settled(job: Job) -> tuple[World, Callable[[], None]]:
    """A world whose overlay is up, and the stream that is to be measured."""
    world = _world(job, {"network": {"tick_us": TICK_US}})

    def join() -> None:
        world.join()

    for number in range(job.nodes):
        world.call_at(number * JOIN_EVERY_US, join)
    start_us = job.nodes * JOIN_EVERY_US + SETTLE_US
    world.run_until(start_us)
    for number in range(job.amount):
        world.call_at(start_us + number * 1_000_000 // RATE, world.publish, 0, "stream", PAYLOAD)
    end_us = start_us + job.amount * 1_000_000 // RATE + DRAIN_US
    return world, lambda: world.run_until(end_us)


def overlay(job: Job) -> Result:
    """Joins one after the other, each through a random contact, until all copies have found their place. Heartbeats and
    leases, which cost the same whatever was built, are left out."""
    overrides = {"membership": {"heartbeat_us": 0, "lease_us": 0, "target_degree": DEGREE}}
    world = _world(job, {"latency": AREAS, "network": {"tick_us": TICK_US}, "overrides": overrides})

    def join() -> None:
        world.join()

    for number in range(job.nodes):
        world.call_at(number * OVERLAY_JOIN_EVERY_US, join)
    end_us = job.nodes * OVERLAY_JOIN_EVERY_US + SETTLE_US
    return _measured(world, job, lambda: world.run_until(end_us))


def memory(job: Job) -> Result:
    """What a process costs that is up and does nothing."""
    world = _world(job, {})
    before = resident_bytes()
    for _ in range(job.nodes):
        world.start(world.add_node(), ())
    return Result(bytes_per_node=(resident_bytes() - before) / job.nodes)


def _world(job: Job, settings: dict[str, Any]) -> World:
    scenario = {"stack": job.stack, "nodes": job.nodes, "latency": LATENCY, **settings}
    level = Level.FULL if job.traced else Level.OFF
    return World(Scenario.load(scenario), SEED, job.system, level)


def _measured(world: World, job: Job, work: Callable[[], None]) -> Result:
    world.engine.flush()  # what the set-up left behind
    before = world.engine.events
    with _run_folder(world, job) as run:
        writer = None if run is None else run.events(world.names)
        if writer is not None:
            world.sinks.append(writer.write)
        with stopwatch() as watch:
            work()
            world.engine.flush()
            if run is not None:
                run.finish({})
    events = world.engine.events - before
    return Result(events, watch.seconds, watch.cpu_seconds, rows=None if writer is None else writer.rows)


@contextmanager
def _run_folder(world: World, job: Job) -> Iterator[OpenRun | None]:
    if not job.traced:
        yield None
        return
    with TemporaryDirectory() as folder:
        scenario = world.scenario
        yield RunFolder.create(
            Path(folder) / "run",
            scenario=scenario.as_dict(),
            scenario_text=scenario.to_toml(),
            seed=SEED,
            level=world.engine.level,
            engine=job.system,
            command=[],
        )
