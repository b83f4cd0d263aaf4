"""One event spread by balls and bins, as EpTO does, among up to millions of processes (document 000, section 5.2).

Every process ticks once in a period, at a phase of its own. The first one broadcasts at its tick. At a tick, a process
that has received the event since its previous tick passes it on to a fresh uniform sample of the others, with one more
than the largest ttl that came. If that is the number of rounds, the event stays (erratum E-E6: it counts as received).

    ttl   0 at the first process --K others--> 1 --K others each--> 2 ... --> as many as there are rounds

Ordering is computed as well: an event ages by one at each tick, or becomes as old as the oldest copy that came, and is
delivered once it is older than the number of rounds. That is the rule for a global clock. With a logical clock it must
be older than twice that number; as no copy carries a larger ttl than once, these are so many further ticks.

Left out: other events, for which an event may have to wait and which make a late one be dropped; views that are not
uniform; processes that join, leave, crash or drift. Processes are numbered by their phases: nothing else tells them
apart. Delays are whole microseconds, which the event engine rounds to the ticks of its network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epicast.core.config import DAY_US
from epicast.core.errors import ConfigError
from epicast.sim.latency import PRESETS, ConstantLatency, LatencyConfig, QuantileLatency, UniformLatency

if TYPE_CHECKING:
    from epicast.sim.bulk.balls_kernel import Processes, Setting

NODES_MAX = 100_000_000
ROUNDS_MAX = 127  # a ttl has seven bits
POINTS_MAX = 256  # of a latency table: each copy looks at all of them
BYTES_MAX = 8 << 30

PERIOD_US = 125_000  # the document's: the median latency
LATENCY = QuantileLatency(table=PRESETS["planetlab-epto"])

NEVER = np.iinfo(np.int64).max

Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]
OnRound = Callable[[int, int], None]
"""Is told how many rounds were played and how many copies were sent so far."""


@dataclass(frozen=True)
class Spread:
    """Times count from the broadcast; -1 stands for never. The first process is the one that broadcasts."""

    first_us: Int64s  # when each process received its first copy
    global_us: Int64s  # when it delivers with a global clock
    logical_us: Int64s  # and with a logical one
    sent_by_round: tuple[int, ...]  # copies
    received: int
    lost: int

    @property
    def sent(self) -> int:
        return sum(self.sent_by_round)

    @property
    def holes(self) -> int:
        """Processes that never got it."""
        return int((self.first_us < 0).sum())


def spread(
    nodes: int,
    fanout: int,
    rounds: int,
    period_us: int = PERIOD_US,
    latency: LatencyConfig = LATENCY,
    loss: float = 0.0,
    seed: int = 0,
    *,
    go_on: bool = False,
    lock_step: bool = False,
    on_round: OnRound | None = None,
) -> Spread:
    """Until the last copy has come and everyone who has the event has delivered it. Decided by its arguments alone.

    With `go_on` a copy of the last round stops nothing: what else came in the same round is passed on, as algorithm 4
    has it. In `lock_step` all processes tick at once, as in the analysis of balls and bins, where no copy takes longer
    than a round.
    """
    from epicast.sim.bulk.balls_kernel import LAST_TICK, LOST, RECEIVED, SENT, TALLIED, WAITING, Setting, play_round

    _check(nodes, fanout, rounds, period_us, loss, seed)
    of_phases, of_copies = np.random.SeedSequence(seed).spawn(2)
    quantiles, delays_us = _table(latency)
    setting = Setting(fanout, rounds, period_us, loss, go_on, quantiles, delays_us)
    columns = _columns(nodes, setting)
    processes = _processes(columns, _phases_us(nodes, 1 if lock_step else period_us, of_phases))
    tally, chance = np.zeros(TALLIED, np.int64), of_copies.generate_state(1, np.uint64).astype(np.uint64)
    sent: list[int] = []  # so far, after each round
    while len(sent) <= tally[LAST_TICK] or tally[WAITING]:
        play_round(len(sent), setting, processes, tally, chance)
        sent.append(int(tally[SENT]))
        if on_round is not None:
            on_round(len(sent), sent[-1])
    first_us, global_us = processes.first_us, processes.delivered_us
    return Spread(
        first_us=np.where(first_us == NEVER, -1, first_us),
        global_us=global_us,
        logical_us=np.where(global_us < 0, -1, global_us + rounds * period_us),
        sent_by_round=tuple(np.diff(sent, prepend=0).tolist()),
        received=int(tally[RECEIVED]),
        lost=int(tally[LOST]),
    )


def _check(nodes: int, fanout: int, rounds: int, period_us: int, loss: float, seed: int) -> None:
    limits: dict[str, tuple[float, float, float]] = {
        "nodes": (nodes, 2, NODES_MAX),
        "fanout": (fanout, 1, nodes - 1),
        "rounds": (rounds, 1, ROUNDS_MAX),
        "period_us": (period_us, 1, DAY_US),
        "loss": (loss, 0.0, 1.0),
        "seed": (seed, 0, 2**64 - 1),
    }
    for name, (value, low, high) in limits.items():
        if not low <= value <= high:
            raise ConfigError(f"{name}: expected from {low:,} to {high:,}, got {value:,}")


def _table(latency: LatencyConfig) -> tuple[Float64s, Float64s]:
    """Quantiles, and the delay at each."""
    if isinstance(latency, ConstantLatency):
        points: Sequence[tuple[float, int]] = [(0.0, latency.delay_us), (1.0, latency.delay_us)]
    elif isinstance(latency, UniformLatency):
        points = [(0.0, latency.low_us), (1.0, latency.high_us)]
    elif isinstance(latency, QuantileLatency) and len(latency.table) <= POINTS_MAX:
        points = latency.table
    else:
        takes = f"constant, uniform, and quantiles of up to {POINTS_MAX} points"
        raise ConfigError(f"latency: the bulk kernel takes {takes}, not {latency.to_text()[:60]!r}")
    table = np.array(points, np.float64)
    return table[:, 0].copy(), table[:, 1].copy()


def _phases_us(nodes: int, period_us: int, chance: np.random.SeedSequence) -> Int64s:
    """Time begins at the first process's tick. The others' are anywhere in the period that follows."""
    others = np.random.default_rng(chance).integers(0, period_us, nodes - 1)
    return np.concatenate([[0], np.sort(others)])


def _columns(nodes: int, setting: Setting) -> int:
    """Of coming ticks: up to the one that takes up the copy that is longest under way, as a power of two."""
    longest_us = setting.period_us - 1 + int(setting.delays_us[-1])  # from the begin of a round to an arrival
    columns = 1 << (longest_us // setting.period_us + 1).bit_length()
    if nodes * columns > BYTES_MAX:
        raise ConfigError(f"period_us: expected fewer than {columns:,} rounds in the longest delay of so many nodes")
    return columns


def _processes(columns: int, phases_us: Int64s) -> Processes:
    from epicast.sim.bulk.balls_kernel import Processes

    nodes = len(phases_us)
    # Side by side in memory, as every copy that arrives needs these three.
    near = np.zeros(nodes, [("heard", np.uint8, columns), ("phase_us", np.int64), ("first_us", np.int64)])
    near["phase_us"] = phases_us
    near["first_us"][1:] = NEVER
    near["heard"][0, 0] = 1  # the broadcast: at the first tick it goes out with ttl 1
    age, delivered_us = np.zeros(nodes, np.uint8), np.full(nodes, -1, np.int64)
    return Processes(near["phase_us"], near["heard"], near["first_us"], age, delivered_us)
