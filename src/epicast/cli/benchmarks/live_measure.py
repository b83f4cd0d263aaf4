"""One measurement: starts the processes of a system, warms up, measures latency at a fixed rate, then floods.

First the publisher probes until every subscriber has received something, since most systems do not tell when a
subscription has reached everyone. Then it floods for a while: what counts is how a system runs, not how it gets its
memory from the machine. Nothing may be lost: each phase ends when every subscriber has every message, or is
given up.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from itertools import chain
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from epicast.cli.benchmarks.live_job import Job, Result, Task
from epicast.cli.benchmarks.live_lines import (
    Done,
    Flood,
    Halt,
    Passed,
    Probe,
    Published,
    Rate,
    Reached,
    Ready,
    Seen,
    Tell,
)
from epicast.cli.benchmarks.live_payload import FLOOD, RATE, WARM
from epicast.cli.benchmarks.live_processes import START_S, Worker, free_port, processor_seconds, server, worker
from epicast.cli.benchmarks.live_slices import Phase, Slices, in_slices
from epicast.cli.benchmarks.live_systems import SYSTEMS
from epicast.core.errors import EpicastError

PATIENCE_S = 120.0  # once everything was published; a queue of signed messages is long


class Processes(NamedTuple):
    publisher: Worker
    subscribers: list[Worker]
    server_pids: list[int]

    @property
    def pids(self) -> list[int]:
        return [*self.server_pids, self.publisher.pid, *(each.pid for each in self.subscribers)]


def run_job(job: Job) -> Result:
    """What cannot be measured is a result too: the others are still to come."""
    try:
        with TemporaryDirectory(prefix="epicast-bench-") as folder:
            return asyncio.run(_measure(job, Path(folder)))
    except EpicastError as error:
        return Result(error=str(error))
    except TimeoutError:
        return Result(error="it took too long")
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _measure(job: Job, folder: Path) -> Result:
    end_in_good_order()
    async with AsyncExitStack() as stack:
        processes = await start_processes(job, folder, stack)
        await probe(processes)
        window = job.window if SYSTEMS[job.system].adapter().PACED else None
        warm_up = await run_phase(processes, Flood(WARM, job.warm_seconds, window), WARM, job.warm_seconds)

        async def at_rate(number: int, seconds: float) -> Phase:
            messages = max(1, int(seconds * job.rate))
            return await run_phase(processes, Rate(RATE + number, messages, job.rate), RATE + number, seconds)

        began = processor_seconds(processes.pids)
        slices = await in_slices(at_rate, job.rate_seconds)
        before = processor_seconds(processes.pids)
        flood = await run_phase(processes, Flood(FLOOD, job.flood_seconds, window), FLOOD, job.flood_seconds)
        after = processor_seconds(processes.pids)
    return _result(job, warm_up, slices, flood, (began, before, after))


def end_in_good_order() -> None:
    """When told to go as well as on Ctrl-C: no process is to be left behind."""
    measuring = asyncio.current_task()
    assert measuring is not None
    with suppress(ValueError, RuntimeError, NotImplementedError):  # not in the main thread, or not on this system
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, measuring.cancel)


async def start_processes(job: Job, folder: Path, stack: AsyncExitStack) -> Processes:
    system = SYSTEMS[job.system]
    address, pids = "", []
    if system.program is not None:
        port = free_port()
        command = [system.program, *system.adapter().server_arguments(folder, port)]
        pids.append(await stack.enter_async_context(server(command, port, folder)))
        address = f"127.0.0.1:{port}"
    task = Task(job, str(folder), address)
    publisher = await stack.enter_async_context(worker("live_publisher", "publisher", task))
    address = (await publisher.hear(Ready, START_S)).address
    subscribers = []
    for number, share in enumerate(job.shares):
        task = Task(job, str(folder), address, share)
        name = f"subscribers-{number}"
        subscribers.append(await stack.enter_async_context(worker("live_subscribers", name, task)))
    await asyncio.gather(*(each.hear(Ready, START_S) for each in subscribers))
    return Processes(publisher, subscribers, pids)


async def probe(processes: Processes) -> None:
    publisher, subscribers, _ = processes
    await publisher.tell(Probe())
    await asyncio.gather(*(each.hear(Seen, START_S) for each in subscribers))
    await publisher.tell(Halt())
    await publisher.hear(Published, START_S)


async def run_phase(processes: Processes, order: Rate | Flood, phase: int, seconds: float) -> Phase:
    publisher, subscribers, _ = processes
    following = _follow(processes, phase)
    try:
        await publisher.tell(order)
        published = await publisher.hear(Published, seconds + START_S)
        _, late = await asyncio.wait(following, timeout=PATIENCE_S)
        for each, task in zip(subscribers, following, strict=True):
            if task in late:
                await each.tell(Tell(phase))
        async with asyncio.timeout(START_S):
            return Phase(published, await asyncio.gather(*following))
    finally:
        for task in following:
            task.cancel()


def _follow(processes: Processes, phase: int) -> list[asyncio.Task[Done]]:
    """One that listens to each subscribing process, and lets the publisher know how far the slowest is."""
    publisher, subscribers, _ = processes
    reached = [0] * len(subscribers)

    async def follow(number: int) -> Done:
        while True:
            report = await subscribers[number].report()
            if isinstance(report, Done) and report.phase == phase:
                return report
            if isinstance(report, Reached):
                before = min(reached)
                reached[number] = report.messages
                if min(reached) > before:
                    await publisher.tell(Passed(min(reached)))

    return [asyncio.create_task(follow(number)) for number in range(len(subscribers))]


def _result(
    job: Job, warm_up: Phase, slices: Slices, flood: Phase, cpu_seconds: tuple[float | None, float | None, float | None]
) -> Result:
    """`cpu_seconds` are those of the processes before the slices, between them and the flood, and after it."""
    phases = (warm_up, *slices.phases, flood)
    deliveries = flood.received
    began, before, after = cpu_seconds
    seconds = [sorted(each.phase.latencies_us()) for each in slices.chosen]
    latencies = sorted(chain.from_iterable(seconds))
    last_ns = max(each.last_ns for each in flood.done)
    return Result(
        messages=flood.published.messages,
        deliveries=deliveries,
        seconds=(last_ns - flood.published.first_ns) / 1e9,
        p50_us=percentile(latencies, 50),
        p99_us=percentile(latencies, 99),
        p99_of_second_us=typical(seconds, 99),
        cpu_ms_per_1000=_per_1000(before, after, deliveries),
        cpu_at_rate_ms_per_1000=_per_1000(began, before, sum(each.received for each in slices.phases)),
        stolen=slices.stolen,
        left_out=slices.left_out,
        lost=sum(phase.lost(job.subscribers) for phase in phases),
        duplicates=sum(each.duplicates for phase in phases for each in phase.done),
    )


def _per_1000(before: float | None, after: float | None, deliveries: int) -> float | None:
    return None if before is None or after is None or not deliveries else (after - before) * 1e6 / deliveries


def typical(slices: Sequence[Sequence[int]], percent: int) -> float | None:
    """The median of what each slice has."""
    found = [value for each in slices if (value := percentile(each, percent)) is not None]
    return median(found) if found else None


def percentile(ordered: Sequence[int], percent: int) -> float | None:
    """The smallest value that so many percent do not exceed."""
    return float(ordered[max(0, -(-len(ordered) * percent // 100) - 1)]) if ordered else None
