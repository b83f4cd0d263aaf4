"""Runs one job in this process and prints its result: clean memory, nothing left over from another measurement."""

from __future__ import annotations

import sys

import msgspec

from epicast.cli.benchmarks.job import Job, Result


def perform(job: Job) -> Result:
    if job.system == "simpy":
        from epicast.cli.benchmarks import with_simpy

        return with_simpy.flood(job) if job.measure == "flood" else with_simpy.timers(job)
    from epicast.cli.benchmarks import simulated
    from epicast.cli.benchmarks.timers import timers

    measures = {
        "flood": simulated.flood,
        "stream": simulated.stream,
        "overlay": simulated.overlay,
        "memory": simulated.memory,
        "timers": timers,
    }
    return measures[job.measure](job)


def main() -> None:
    job = msgspec.json.decode(sys.argv[1], type=Job)
    print(msgspec.json.encode(perform(job)).decode())


if __name__ == "__main__":
    main()
