"""Which measurements the benchmark of live messaging is made of, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from epicast.cli.benchmarks.live_job import Job
from epicast.cli.benchmarks.live_systems import OTHERS, OURS, SYSTEMS, VARIANTS, WITH_KEYS
from epicast.core.errors import EpicastError

SUBSCRIBERS, PAYLOADS = (8, 32, 64), (100, 1_000, 10_000)
QUICK_SUBSCRIBERS, QUICK_PAYLOADS = (8, 32), (1_000,)
WITH_KEYS_AT = 32  # subscribers: what TLS and signatures cost is told at one size


class Plan(msgspec.Struct, frozen=True):
    systems: tuple[str, ...]  # those that are here
    missing: dict[str, str]  # the others, and why
    rounds: int = 3
    quick: bool = False
    subscribers: tuple[int, ...] = SUBSCRIBERS
    payloads: tuple[int, ...] = PAYLOADS

    def jobs(self) -> list[Job]:
        """Of one round. Those of one cell, which are compared, come one after the other."""
        return [
            Job(system, subscribers, payload)
            for subscribers in self.subscribers
            for payload in self.payloads
            for system in self.systems
            if system not in WITH_KEYS or subscribers == WITH_KEYS_AT
        ]


def make_plan(chosen: Sequence[str], rounds: int, *, quick: bool) -> Plan:
    for name in chosen:
        if name not in SYSTEMS:
            raise EpicastError(f"--systems: unknown system {name!r}; there are {', '.join(SYSTEMS)}")
    wanted = [name for name in (OURS, *OTHERS, *VARIANTS) if name in chosen or not chosen]
    missing = {name: why for name in wanted if (why := SYSTEMS[name].missing())}
    here = tuple(name for name in wanted if name not in missing)
    if quick:
        return Plan(here, missing, rounds, quick, QUICK_SUBSCRIBERS, QUICK_PAYLOADS)
    return Plan(here, missing, rounds)
