"""The publishing process of a measurement: does what it is told on stdin."""

from __future__ import annotations

import asyncio
import sys
from time import monotonic_ns

import msgspec

from epicast.cli.benchmarks.live_job import Job, Task
from epicast.cli.benchmarks.live_lines import Flood, Halt, Passed, Probe, Published, Rate, Ready, orders, say
from epicast.cli.benchmarks.live_loop import run
from epicast.cli.benchmarks.live_payload import LAST, MARK, PROBE, TIMED, Payloads, first_of
from epicast.cli.benchmarks.live_systems import SYSTEMS, Publisher

PROBE_EVERY_S = 0.005
MARKS_PER_WINDOW = 8
LEAD = 5  # messages at the start of a phase that are not timed
PATIENCE_S = 20.0  # with subscribers that do not get on


class Source:
    def __init__(self, job: Job, publisher: Publisher) -> None:
        self.job, self.publisher = job, publisher
        self.payloads = Payloads(job.payload_bytes)
        self.halted = False
        self.passed = 0  # messages of the flood that every subscriber has
        self.advance = asyncio.Event()

    async def probe(self) -> None:
        number = first_of(PROBE)
        while not self.halted or number - first_of(PROBE) < self.job.probes:
            await self.publisher.publish([self.payloads.one(number)])
            number += 1
            await asyncio.sleep(PROBE_EVERY_S)
        say(Published(number - first_of(PROBE), 0))

    async def at_rate(self, order: Rate) -> None:
        """By the clock and not by pauses: who is late catches up. How a phase begins and ends is not timed: after a
        pause caches are cold, and who has the last message is busy with its report while others wait for theirs."""
        started, messages = monotonic_ns(), LEAD + order.messages + 1
        for number in range(messages):
            wait_ns = started + number * 1_000_000_000 // order.per_second - monotonic_ns()
            if wait_ns > 0:
                await asyncio.sleep(wait_ns / 1e9)
            flags = LAST if number == messages - 1 else TIMED if number >= LEAD else 0
            await self.publisher.publish([self.payloads.one(first_of(order.phase) + number, flags)])
        say(Published(messages, started))

    async def flood(self, order: Flood) -> None:
        batch, base = self.job.batch, first_of(order.phase)
        self.passed = 0
        mark_every = max(1, (order.window or 0) // (batch * MARKS_PER_WINDOW))
        started = monotonic_ns()
        end, sent, batches = started + int(order.seconds * 1e9), 0, 0
        while monotonic_ns() < end and await self._may_send(sent, order.window):
            batches += 1
            flags = MARK if order.window and batches % mark_every == 0 else 0
            await self.publisher.publish(self.payloads.many(base + sent, base + sent + batch, flags))
            sent += batch
            await asyncio.sleep(0)  # a loop turn for whatever else there is to do
        await self.publisher.publish(self.payloads.many(base + sent, base + sent + 1, LAST))
        say(Published(sent + 1, started))

    async def _may_send(self, sent: int, window: int | None) -> bool:
        """Once there is room in the window; never if the subscribers are stuck."""
        while window is not None and sent + self.job.batch - self.passed > window:
            self.advance.clear()
            try:
                await asyncio.wait_for(self.advance.wait(), PATIENCE_S)
            except TimeoutError:
                return False
        return True

    def on_passed(self, order: Passed) -> None:
        self.passed = order.messages
        self.advance.set()


async def publish(task: Task) -> None:
    adapter = SYSTEMS[task.job.system].adapter()
    async with adapter.publisher(task) as publisher, asyncio.TaskGroup() as work:
        source = Source(task.job, publisher)
        say(Ready(publisher.address))
        async for order in orders():
            match order:
                case Probe():
                    work.create_task(source.probe())
                case Halt():
                    source.halted = True
                case Rate():
                    work.create_task(source.at_rate(order))
                case Flood():
                    work.create_task(source.flood(order))
                case Passed():
                    source.on_passed(order)
                case _:
                    raise AssertionError(f"not for a publisher: {order}")


if __name__ == "__main__":
    run(publish(msgspec.json.decode(sys.argv[1], type=Task)))
