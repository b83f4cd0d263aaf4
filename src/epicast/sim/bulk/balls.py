from __future__ import annotations
import numpy as np
from dataclasses import dataclass


def proto(nodes, fanout, rounds, period_us, shares, delays, loss, seed):
    from epicast.sim.bulk import balls_kernel as k

    a, b = np.random.SeedSequence(seed).spawn(2)
    rng = np.random.default_rng(a)
    ph = np.sort(rng.integers(0, period_us, nodes))
    ph[0] = 0
    need = (period_us - 1 + int(delays[-1])) // period_us + 2
    rows = 1 << (need - 1).bit_length()
    s = k.Setting(fanout, rounds, period_us, loss, np.array(shares, float), np.array(delays, float))
    p = k.Processes(
        ph,
        np.zeros((nodes, rows), np.uint8),
        np.zeros(nodes, np.uint8),
        np.full(nodes, np.iinfo(np.int64).max),
        np.full(nodes, -1),
    )
    p.first_us[0] = 0
    p.ring[0, 0] = 1
    one = lambda t=np.int64: np.zeros(1, t)
    t = k.Tally(b.generate_state(1, np.uint64), one(), one(), one())
    sent = []
    tick = 0
    while tick <= t.last_tick[0] or t.waiting[0]:
        sent.append(k.play_round(tick, s, p, t))
        tick += 1
    return p, t, sent
