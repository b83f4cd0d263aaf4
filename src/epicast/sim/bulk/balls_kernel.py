"""The inner loop of `balls.py`: one round of all processes, as machine code.

What a process has heard and not yet taken up at a tick is one byte in a ring of coming ticks. Its lower bits hold the
ttl that the event will carry if it is passed on, zero if it will not be; the upper bit says that a copy has come which
is not passed on. Keeping the largest ttl is therefore keeping the largest byte of each kind.

Chance is splitmix64 (Steele, Lea, Flood, OOPSLA 2014): one 64-bit word of state, which is passed in and handed on, so
that a run is decided by the seed alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epicast.sim.bulk.compiled import compiled

TTL_BITS = 0x7F
LATE = 0x80  # a copy of the last round: to be delivered, not passed on (erratum E-E6)
DELIVERED = 0xFF  # instead of an age

GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
SHIFT_1, SHIFT_2, SHIFT_3, TO_53_BITS = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


class Setting(NamedTuple):
    """What stays as it is."""

    fanout: int
    rounds: int  # the documents' TTL
    period_us: int
    loss: float
    shares: NDArray[np.float64]  # the latency at each of these quantiles, straight lines in between
    delays_us: NDArray[np.float64]


class Processes(NamedTuple):
    """An array each, with an entry for every process. Processes are numbered in the order of their phases."""

    phase_us: NDArray[np.int64]
    ring: NDArray[np.uint8]  # a row for each process, a column for each coming tick
    age: NDArray[np.uint8]  # the ttl that ordering has for the event; zero before it has come
    first_us: NDArray[np.int64]
    delivered_us: NDArray[np.int64]


class Tally(NamedTuple):
    """Counters, of one entry each so that a kernel can change them."""

    chance: NDArray[np.uint64]
    lost: NDArray[np.int64]
    waiting: NDArray[np.int64]  # processes that have the event and have not delivered it
    last_tick: NDArray[np.int64]  # at which anything is taken up


@compiled
def play_round(tick: int, setting: Setting, processes: Processes, tally: Tally) -> int:
    """Every process ticks once, in the order of time. Returns how many copies were sent."""
    balls = 0
    column = tick & (processes.ring.shape[1] - 1)
    targets = np.empty(setting.fanout, np.int64)
    for process in range(len(processes.phase_us)):
        heard = processes.ring[process, column]
        processes.ring[process, column] = 0
        onward = heard & TTL_BITS
        if onward:
            draw_targets(process, len(processes.phase_us), targets, tally.chance)
            send(process, tick, onward, targets, setting, processes, tally)
            balls += 1
        if processes.age[process] != DELIVERED:
            order(process, tick, setting.rounds if heard & LATE else onward, setting, processes, tally)
    return balls * setting.fanout


@compiled
def send(
    sender: int,
    tick: int,
    ttl: int,
    targets: NDArray[np.int64],
    setting: Setting,
    processes: Processes,
    tally: Tally,
) -> None:
    mask = processes.ring.shape[1] - 1
    late = ttl == setting.rounds
    sent_us = processes.phase_us[sender]  # since the round began
    for target in targets:
        if setting.loss > 0.0 and chance(tally.chance) < setting.loss:
            tally.lost[0] += 1
            continue
        arrival_us = sent_us + draw_delay_us(setting, tally.chance)
        # The first tick after the arrival: a tick of the same instant has been.
        taken_up = tick + (arrival_us - processes.phase_us[target]) // setting.period_us + 1
        column = taken_up & mask
        heard = processes.ring[target, column]
        if late:
            processes.ring[target, column] = heard | LATE
        elif (heard & TTL_BITS) < ttl + 1:
            processes.ring[target, column] = (heard & LATE) | (ttl + 1)
        if taken_up > tally.last_tick[0]:
            tally.last_tick[0] = taken_up
        since_us = tick * setting.period_us + arrival_us
        if since_us < processes.first_us[target]:
            processes.first_us[target] = since_us


@compiled
def order(process: int, tick: int, ttl: int, setting: Setting, processes: Processes, tally: Tally) -> None:
    """The event ages by one at each tick, or becomes as old as the oldest copy that came."""
    age = processes.age[process]
    if age == 0:
        if ttl == 0:
            return
        tally.waiting[0] += 1
        age = ttl
    else:
        age = max(age + 1, ttl)
    if age > setting.rounds:
        processes.delivered_us[process] = tick * setting.period_us + processes.phase_us[process]
        tally.waiting[0] -= 1
        age = DELIVERED
    processes.age[process] = age


@compiled
def draw_targets(process: int, nodes: int, targets: NDArray[np.int64], state: NDArray[np.uint64]) -> None:
    """Distinct others, uniformly (R. Floyd's way: no draw is ever rejected)."""
    count = len(targets)
    for at in range(count):
        last = nodes - 1 - count + at  # others are numbered as if the process itself were not there
        other = int(chance(state) * (last + 1))
        taken = False
        for before in range(at):
            taken |= targets[before] == other
        targets[at] = last if taken else other
    for at in range(count):
        if targets[at] >= process:
            targets[at] += 1


@compiled
def draw_delay_us(setting: Setting, state: NDArray[np.uint64]) -> int:
    share = chance(state)
    at = 1
    while setting.shares[at] <= share:
        at += 1
    low, high = setting.shares[at - 1], setting.shares[at]
    low_us, high_us = setting.delays_us[at - 1], setting.delays_us[at]
    return int(low_us + (high_us - low_us) * (share - low) / (high - low) + 0.5)


@compiled
def chance(state: NDArray[np.uint64]) -> float:
    """Uniform, from 0 to below 1."""
    state[0] += GAMMA
    word = state[0]
    word = (word ^ (word >> SHIFT_1)) * MIX_1
    word = (word ^ (word >> SHIFT_2)) * MIX_2
    word ^= word >> SHIFT_3
    return float(word >> TO_53_BITS) * 2.0**-53
