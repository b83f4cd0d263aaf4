"""One of the subscribing processes of a measurement: opens its share of the subscribers and keeps their books."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack

import msgspec

from epicast.cli.benchmarks.live_job import Task
from epicast.cli.benchmarks.live_lines import Done, Orders, Reached, Ready, Seen, Tell, orders, say
from epicast.cli.benchmarks.live_loop import run
from epicast.cli.benchmarks.live_payload import Tally
from epicast.cli.benchmarks.live_systems import SYSTEMS


class Crowd:
    """The subscribers of this process together: tells when all of them have something."""

    def __init__(self, count: int) -> None:
        loop = asyncio.get_running_loop()

        # Some systems call back from threads of their own.
        def on_event() -> None:
            loop.call_soon_threadsafe(self._on_event)

        self.tallies = [Tally(self._on_mark, on_event) for _ in range(count)]
        self.marks: dict[int, int] = {}  # how many have got so far
        self.seen = False
        self.told = 0  # the latest phase whose outcome was told

    def _on_mark(self, messages: int) -> None:
        """Only in systems that are paced, and those have a single thread."""
        got = self.marks.pop(messages, 0) + 1
        if got == len(self.tallies):
            say(Reached(messages))
        else:
            self.marks[messages] = got

    def _on_event(self) -> None:
        if not self.seen and all(tally.phase for tally in self.tallies):
            self.seen = True
            say(Seen())
        phase = self.tallies[0].phase
        if phase > self.told and all(tally.phase == phase and tally.complete for tally in self.tallies):
            self.tell(phase)

    def tell(self, phase: int) -> None:
        self.told = phase
        tallies = [tally for tally in self.tallies if tally.phase == phase]
        say(
            Done(
                phase,
                sum(tally.received for tally in tallies),
                sum(tally.duplicates for tally in tallies),
                max((tally.last_ns for tally in tallies), default=0),
                [latency // 1000 for tally in tallies for latency in tally.latencies_ns],
            )
        )


async def subscribe(task: Task) -> None:
    adapter = SYSTEMS[task.job.system].adapter()
    crowd = Crowd(task.subscribers)
    async with AsyncExitStack() as subscriptions:
        for tally in crowd.tallies:
            await subscriptions.enter_async_context(adapter.subscriber(task, tally.take))
        say(Ready())
        async for order in orders():
            _obey(order, crowd)


def _obey(order: Orders, crowd: Crowd) -> None:
    if not isinstance(order, Tell):
        raise AssertionError(f"not for subscribers: {order}")
    crowd.tell(order.phase)


if __name__ == "__main__":
    run(subscribe(msgspec.json.decode(sys.argv[1], type=Task)))
