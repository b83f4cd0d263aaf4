"""Two versions of epicast at the same moment: both clusters are up, and they are flooded in turn, a second each.

What else the machine does changes from one second to the next, and processor time with it: caches are shared, and who
waits longer takes more messages at once. So the turns are short, and each version's turns count together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from epicast.cli.benchmarks.against import Sample
from epicast.cli.benchmarks.live_job import Job
from epicast.cli.benchmarks.live_lines import Flood
from epicast.cli.benchmarks.live_measure import Processes, end_in_good_order, probe, run_phase, start_processes
from epicast.cli.benchmarks.live_payload import FLOOD, WARM
from epicast.cli.benchmarks.live_processes import processor_seconds
from epicast.cli.benchmarks.live_slices import Phase
from epicast.core.errors import EpicastError

TURN_S, TURNS = 1.0, 4
WARM_TURNS = 2  # so long to begin with: memory and socket buffers grow


class _Turn(NamedTuple):
    version: str
    phase: Phase
    cpu_seconds: float


def measure_pair(jobs: Mapping[str, Job], *, turns: int = TURNS, seconds: float = TURN_S) -> dict[str, Sample]:
    """By version; the first of them begins."""
    try:
        with TemporaryDirectory(prefix="epicast-bench-") as folder:
            return asyncio.run(_measure(jobs, Path(folder), turns, seconds))
    except (EpicastError, TimeoutError) as error:
        return dict.fromkeys(jobs, Sample(None, str(error) or "it took too long"))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _measure(jobs: Mapping[str, Job], folder: Path, turns: int, seconds: float) -> dict[str, Sample]:
    end_in_good_order()
    async with AsyncExitStack() as stack:
        clusters: dict[str, Processes] = {}
        for version, job in jobs.items():
            (folder / version).mkdir()
            clusters[version] = await start_processes(job, folder / version, stack)
            await probe(clusters[version])
        for processes in clusters.values():
            warm_s = WARM_TURNS * seconds
            await run_phase(processes, Flood(WARM, warm_s, None), WARM, warm_s)
        found = []
        for number in range(turns):
            for version in list(clusters) if number % 2 == 0 else reversed(clusters):
                found.append(await _turn(version, clusters[version], FLOOD + number, seconds))
    return {version: _sample(job, [each for each in found if each.version == version]) for version, job in jobs.items()}


async def _turn(version: str, processes: Processes, phase: int, seconds: float) -> _Turn:
    before = processor_seconds(processes.pids)
    flood = await run_phase(processes, Flood(phase, seconds, None), phase, seconds)
    after = processor_seconds(processes.pids)
    if before is None or after is None:
        raise EpicastError("this system does not tell the processor time of processes")
    return _Turn(version, flood, after - before)


def _sample(job: Job, turns: list[_Turn]) -> Sample:
    lost = sum(turn.phase.lost(job.subscribers) for turn in turns)
    duplicates = sum(each.duplicates for turn in turns for each in turn.phase.done)
    if lost or duplicates:
        return Sample(None, f"{lost:,} lost, {duplicates:,} twice")
    return Sample(sum(turn.cpu_seconds for turn in turns) * 1e6 / sum(turn.phase.received for turn in turns))
