"""The inner loop of `balls.py`: one round of all processes, as machine code.

What a process has heard and not yet taken up is one byte for each of its coming ticks. The lower bits hold the ttl with
which it will pass the event on, zero for not at all; the upper bit says that a copy of the last round has come, which
is delivered but not passed on (erratum E-E6).

Chance is splitmix64 (Steele, Lea and Flood, OOPSLA 2014). Its state is one word that the caller owns: a run is decided
by the seed alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epicast.sim.bulk.compiled import compiled

TTL_BITS, LATE = 0x7F, 0x80
AGELESS = 0xFF  # the event has been delivered

# Places in the tally: copies, processes, and the last tick at which something is taken up.
SENT, RECEIVED, LOST, WAITING, DELIVERED, LAST_TICK = range(6)
TALLIED = 6

GAMMA, MIX_1, MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
SHIFT_1, SHIFT_2, SHIFT_3, TO_53_BITS = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


class Setting(NamedTuple):
    """What stays as it is."""

    fanout: int
    rounds: int  # the documents' TTL
    period_us: int
    loss: float
    go_on: bool
    quantiles: NDArray[np.float64]  # from 0 to 1
    delays_us: NDArray[np.float64]  # at these quantiles, straight lines in between


class Processes(NamedTuple):
    """An entry for every process, in the order of their phases."""

    phase_us: NDArray[np.int64]
    heard: NDArray[np.uint8]  # a column for each coming tick; as many as a power of two, used in turn
    first_us: NDArray[np.int64]  # of the first copy
    age: NDArray[np.uint8]  # the ttl that ordering has for the event, zero before it has come
    delivered_us: NDArray[np.int64]


@compiled
def play_round(
    tick: int, setting: Setting, processes: Processes, tally: NDArray[np.int64], chance: NDArray[np.uint64]
) -> None:
    """Every process ticks once, in the order of time."""
    nodes, column = len(processes.phase_us), tick & (processes.heard.shape[1] - 1)
    for process in range(nodes):
        heard = processes.heard[process, column]
        processes.heard[process, column] = 0
        ttl = heard & TTL_BITS if heard < LATE or setting.go_on else 0
        if ttl:
            kept = _draw_kept(setting.fanout, setting.loss, chance)
            tally[SENT] += setting.fanout
            tally[RECEIVED] += kept
            tally[LOST] += setting.fanout - kept
            # Where nothing stops an event, most copies are of the last round, with nobody left to tell.
            if ttl < setting.rounds or tally[DELIVERED] < nodes or not setting.go_on:
                _send(process, kept, tick, ttl, setting, processes, tally, chance)
        if processes.age[process] != AGELESS:
            _order(process, tick, setting.rounds if heard & LATE else ttl, setting, processes, tally)


@compiled
def _send(
    sender: int,
    count: int,
    tick: int,
    ttl: int,
    setting: Setting,
    processes: Processes,
    tally: NDArray[np.int64],
    chance: NDArray[np.uint64],
) -> None:
    heard, phase_us, first_us = processes.heard, processes.phase_us, processes.first_us
    targets = _draw_targets(sender, len(phase_us), count, chance)
    delays_us = _draw_delays_us(setting, count, chance)
    mask, period_us, late = heard.shape[1] - 1, setting.period_us, ttl == setting.rounds
    last_tick = tally[LAST_TICK]
    # No branch depends on what is read of a target: its place in memory is far from the last one's, and the processor
    # fetches several at once as long as it need not guess what follows.
    for at in range(count):
        target = targets[at]
        arrival_us = phase_us[sender] + delays_us[at]  # since the round began
        # The first tick after the arrival: one of the same instant has been.
        taken_up = tick + 1 + (arrival_us - phase_us[target]) // period_us
        column = taken_up & mask
        before = heard[target, column]
        heard[target, column] = before | LATE if late else max(before & TTL_BITS, ttl + 1) | (before & LATE)
        first_us[target] = min(first_us[target], tick * period_us + arrival_us)
        last_tick = max(last_tick, taken_up)
    tally[LAST_TICK] = last_tick


@compiled
def _order(process: int, tick: int, ttl: int, setting: Setting, processes: Processes, tally: NDArray[np.int64]) -> None:
    """What is known ages by one at each tick, or becomes as old as the oldest copy that came; zero for none."""
    age = processes.age[process]
    if age == 0 and ttl == 0:
        return
    if age == 0:
        tally[WAITING] += 1
        age = ttl
    else:
        age = max(age + 1, ttl)
    if age > setting.rounds:
        processes.delivered_us[process] = tick * setting.period_us + processes.phase_us[process]
        tally[WAITING] -= 1
        tally[DELIVERED] += 1
        age = AGELESS
    processes.age[process] = age


@compiled
def _draw_kept(fanout: int, loss: float, chance: NDArray[np.uint64]) -> int:
    """How many of a ball's copies are not lost. Which ones does not matter: any part of a uniform sample is one."""
    kept = fanout
    if loss > 0.0:
        for _ in range(fanout):
            kept -= _uniform(chance) < loss
    return kept


@compiled
def _draw_targets(sender: int, nodes: int, count: int, chance: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Distinct others, uniformly. By R. Floyd's method, which rejects no draw."""
    targets = np.empty(count, np.int64)
    for at in range(count):
        last = nodes - 1 - count + at  # others are numbered as if the sender were not there
        other = int(_uniform(chance) * (last + 1))
        taken = False
        for before in range(at):
            taken |= targets[before] == other
        targets[at] = last if taken else other
    for at in range(count):
        targets[at] += targets[at] >= sender
    return targets


@compiled
def _draw_delays_us(setting: Setting, count: int, chance: NDArray[np.uint64]) -> NDArray[np.int64]:
    quantiles, delays_us = setting.quantiles, setting.delays_us
    drawn_us = np.empty(count, np.int64)
    for each in range(count):
        share, at = _uniform(chance), 0
        for inner in range(1, len(quantiles) - 1):
            at += quantiles[inner] <= share
        slope = (delays_us[at + 1] - delays_us[at]) / (quantiles[at + 1] - quantiles[at])
        drawn_us[each] = int(delays_us[at] + slope * (share - quantiles[at]) + 0.5)
    return drawn_us


@compiled
def _uniform(chance: NDArray[np.uint64]) -> float:
    """From 0 to below 1."""
    chance[0] += GAMMA
    word = chance[0]
    word = (word ^ (word >> SHIFT_1)) * MIX_1
    word = (word ^ (word >> SHIFT_2)) * MIX_2
    word ^= word >> SHIFT_3
    return float(word >> TO_53_BITS) * 2.0**-53
