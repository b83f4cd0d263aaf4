"""How many processes a ball goes to, and for how many rounds, so that it hits everybody (document 000, section 5.2.3).

Throwing c n lg n balls into n bins leaves no bin empty with high probability, for c > 1. Gossip throws that many when
every process that holds an event sends it to K = ceil(2 e ln n / ln ln n) others in each of ceil(c lg n) rounds.
Erratum obeyed: the printed number of rounds leaves c out (E-E7).
"""

from __future__ import annotations

from math import ceil, e, log, log2

NODES_MIN = 3  # ln ln n is not positive below


def fanout(nodes: float) -> int:
    """Of each ball. The formula has its minimum of 15 near n = 15: no more than there are others."""
    if nodes < NODES_MIN:
        return max(1, ceil(nodes) - 1)
    wanted = 2 * e * log(nodes) / log(log(nodes))
    return max(1, min(ceil(wanted), ceil(nodes) - 1))


def rounds(nodes: float, c: float = 1.0) -> int:
    """For which an event is passed on: the documents' TTL."""
    return max(1, ceil(round(c * log2(max(nodes, 2.0)), 9)))  # not one more for a rounding error


def unreached(nodes: float, fanout: int, rounds: int, loss: float = 0.0) -> list[float]:
    """By the number of rounds: the share of the other processes that an event has not reached then, on average.

    For rounds in step: those that got it in a round, new or again, throw it in the next. A mean over many runs, which
    an event that dies out early, or views that are not uniform, make larger."""
    others = max(nodes - 1.0, 1.0)
    thrown, missing = 1.0, 1.0  # processes that throw now; share that lacks it
    shares = [missing]
    for _ in range(rounds):
        missed = (1.0 - (1.0 - loss) / others) ** (fanout * thrown) if others > 1 else loss ** (fanout * thrown)
        missing *= missed
        thrown = nodes * (1.0 - missed)
        shares.append(missing)
    return shares
