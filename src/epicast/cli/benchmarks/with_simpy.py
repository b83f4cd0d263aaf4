"""The same work as SimPy programs, written for speed: a callback on a timeout for each arrival, no process for any.

The parameters of an arrival travel as the value of its timeout, which is quicker than a closure for each, and are taken
from the attribute behind the property `value`, which is quicker than a call.
"""

from __future__ import annotations

from random import Random

import simpy
from simpy.events import Event

from epicast.cli.benchmarks.job import DEGREE, DELAY_MAX_US, DELAY_MIN_US, SEED, Job, Result
from epicast.cli.benchmarks.stopwatch import stopwatch
from epicast.cli.benchmarks.timers import PERIOD_US
from epicast.core import chance
from epicast.sim import graph

LOW_S, SPREAD_S = DELAY_MIN_US / 1e6, (DELAY_MAX_US - DELAY_MIN_US) / 1e6


def flood(job: Job) -> Result:
    env = simpy.Environment()
    neighbours = graph.directed(job.nodes, DEGREE, chance.stream(SEED, "world"))
    seen: list[dict[int, None]] = [{} for _ in neighbours]
    timeout, random = env.timeout, Random(SEED).random
    events = 0

    def arrive(event: Event) -> None:
        nonlocal events
        events += 1
        node, sender, message = event._value
        known = seen[node]
        if message in known:
            return
        known[message] = None
        for peer in neighbours[node]:
            if peer != sender:
                timeout(LOW_S + SPREAD_S * random(), (peer, node, message)).callbacks.append(arrive)

    with stopwatch() as watch:
        for message in range(job.amount):
            seen[0][message] = None
            for peer in neighbours[0]:
                timeout(LOW_S + SPREAD_S * random(), (peer, 0, message)).callbacks.append(arrive)
            env.run()
    return Result(events, watch.seconds, watch.cpu_seconds)


def timers(job: Job) -> Result:
    env = simpy.Environment()
    neighbours = graph.directed(job.nodes, DEGREE, chance.stream(SEED, "world"))
    rng = Random(SEED)
    timeout, random, period_s = env.timeout, rng.random, PERIOD_US / 1e6
    answers = [0] * job.nodes
    events = 0

    def tick(event: Event) -> None:
        nonlocal events
        events += 1
        node = event._value
        timeout(period_s, node).callbacks.append(tick)
        peer = neighbours[node][int(random() * DEGREE)]
        timeout(LOW_S + SPREAD_S * random(), (peer, node)).callbacks.append(ask)

    def ask(event: Event) -> None:
        nonlocal events
        events += 1
        _, sender = event._value
        timeout(LOW_S + SPREAD_S * random(), sender).callbacks.append(answer)

    def answer(event: Event) -> None:
        nonlocal events
        events += 1
        answers[event._value] += 1

    for node in range(job.nodes):
        timeout(random() * period_s, node).callbacks.append(tick)
    with stopwatch() as watch:
        env.run(until=job.amount * period_s)
    return Result(events, watch.seconds, watch.cpu_seconds)
