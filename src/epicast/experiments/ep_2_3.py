"""How much of one order processes see by themselves, and what EpTO's order costs (EpTO, figures 5.8 and 5.9)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise, product
from typing import NamedTuple

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, judged, labels_of, quotient, stat
from epicast.experiments.epto_words import ALWAYS, CLOCKS, DELAYS, HOLES, all_in_order, cells, delay, holes_among
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.confidence import Stat
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

ORDERS = {"unordered": "unordered", "epto": "EpTO"}
LAST = "delay_last_ms_p50"
GLOBAL_RANGE, LOGICAL_RANGE = (1.5, 4.0), (1.7, 2.8)
OWN = (
    "An event takes TTL rounds to be stable, or twice as many, but copies of it age faster than one a round: of all "
    "that come the oldest counts. Unordered, a process needs no more than the first copy."
)


class System(NamedTuple):
    processes: int
    rate: float  # probability that a process publishes in a round

    @classmethod
    def of(cls, label: str) -> System:
        processes, _, rate = label.split()
        return cls(int(processes), float(rate))

    def __str__(self) -> str:
        return f"{self.processes} at {self.rate:g}"


def evaluate(material: Material) -> Evaluation:
    results = material.results
    notes = (
        "A system is written as its processes and r, the probability that a process publishes in a round.",
        "The order that is wanted is that of (time, process). How much of it a process saw is the longest common "
        "subsequence of both, divided by the events; the document does not say what its common sequences are.",
        ALWAYS,
    )
    return Evaluation(
        checks=judged(CLAIMS, results),
        figures=(_kept_figure(results), *_delay_figures(results), _growth(results)),
        tables=(_kept_table(results), _delay_table(results)),
        notes=notes,
    )


def systems(results: Results) -> list[System]:
    return [System.of(label) for label in labels_of(results, "system")]


def rates(results: Results) -> list[float]:
    return sorted({system.rate for system in systems(results)})


def sizes(results: Results) -> list[int]:
    return sorted({system.processes for system in systems(results)})


def kept(results: Results, clock: str, system: System, which: str = "mean") -> Stat:
    return stat(results, f"order_kept_{which}", order="unordered", clock=clock, system=system)


# Figure 5.8


def _judge_half(results: Results) -> Finding:
    highest = rates(results)[-1]
    best = {
        rate: max(
            kept(results, clock, system, "max").max
            for clock, system in product(CLOCKS, systems(results))
            if system.rate == rate
        )
        for rate in rates(results)
    }
    texts = {f"r = {rate:g}": wording.percent(share) for rate, share in best.items()}
    reason = (
        f"The best process of all runs; asked is less than half for r = {highest:g}. The text says r above 0.1. A "
        "prototype had up to 49 % for r = 0.1 as well."
    )
    return Finding(wording.each(texts), best[highest] < 0.5, reason)


def _judge_falls(results: Results, rows: dict[str, list[System]]) -> Finding:
    texts, falls = {}, True
    for name, row in rows.items():
        for clock in CLOCKS:
            found = [kept(results, clock, system) for system in row]
            falls = falls and all(a.mean > b.mean for a, b in pairwise(found))
            texts[f"{name}, {clock}"] = ", ".join(wording.percent(each.mean) for each in found)
    return Finding(wording.each(texts), falls, "Means over processes and seeds.")


def _judge_by_rate(results: Results) -> Finding:
    rows = {f"n = {size}": [System(size, rate) for rate in rates(results)] for size in sizes(results)}
    return _judge_falls(results, rows)


def _judge_by_size(results: Results) -> Finding:
    rows = {f"r = {rate:g}": [System(size, rate) for size in sizes(results)] for rate in rates(results)}
    return _judge_falls(results, rows)


def _judge_which(results: Results) -> Finding:
    """What is left at the end of each range, the other kept in its middle."""
    size, rate = sizes(results), rates(results)
    middle = rate[len(rate) // 2]
    texts, more = {}, True
    for clock in CLOCKS:
        by_rate = (
            kept(results, clock, System(size[0], rate[-1])).mean / kept(results, clock, System(size[0], rate[0])).mean
        )
        by_size = (
            kept(results, clock, System(size[-1], middle)).mean / kept(results, clock, System(size[0], middle)).mean
        )
        more = more and by_rate < by_size
        texts[clock] = f"{by_rate:.2f} times along r, {by_size:.2f} times along n"
    reason = (
        f"r spans {rate[-1] / rate[0]:.0f} times here and n {size[-1] / size[0]:.0f} times. What counts is how many "
        "events are under way together, r n of them a round, so a step along either costs about the same."
    )
    return Finding(wording.each(texts), more, reason)


def _judge_clocks(results: Results) -> Finding:
    apart = {
        str(system): (kept(results, "global", system).mean, kept(results, "logical", system).mean)
        for system in systems(results)
    }
    texts = {name: f"{wording.percent(a)} and {wording.percent(b)}" for name, (a, b) in apart.items()}
    worse = all(b <= a + 0.01 for a, b in apart.values())
    return Finding(wording.each(texts), worse, "Global, then logical. A hundredth is let pass.")


def _judge_epto(results: Results) -> Finding:
    points = [{"order": "epto", "clock": clock, "system": system} for clock in CLOCKS for system in systems(results)]
    (lack, holes), (order, ordered) = holes_among(results, points), all_in_order(results, points)
    reason = (
        "A hole is left where the first copy to come was too late: latencies go up to 800 ms, and a round is over "
        "after 125 ms."
    )
    return Finding(f"{lack}; {order}, that of (time, process)", holes == 0 and ordered, "", reason)


# Figure 5.9


def _ratios(results: Results, above: tuple[str, str], below: tuple[str, str], which: str) -> dict[str, float]:
    """By system: the delay with one order and clock, over that with another."""
    found = {}
    for system in systems(results):
        part, whole = (
            delay(results, which, order=order, clock=clock, system=system).mean for order, clock in (above, below)
        )
        found[str(system)] = quotient(part, whole)
    return found


def _span(found: dict[str, float]) -> str:
    return f"{min(found.values()):.2f} to {max(found.values()):.2f}"


def _judge_ranks(results: Results) -> Finding:
    texts, ranked = {}, True
    for system in systems(results):
        three = [
            delay(results, order=order, clock=clock, system=system)
            for order, clock in (("unordered", "global"), ("epto", "global"), ("epto", "logical"))
        ]
        ranked = ranked and three[0].mean < three[1].mean < three[2].mean
        texts[str(system)] = ", ".join(wording.amount(each.mean) for each in three)
    return Finding(wording.each(texts), ranked, f"Medians in ms: unordered, global, logical. {OWN}")


def _judge_global(results: Results) -> Finding:
    each = _ratios(results, ("epto", "global"), ("unordered", "global"), "delay_ms_p50")
    last = _ratios(results, ("epto", "global"), ("unordered", "global"), LAST)
    low, high = GLOBAL_RANGE
    text = f"{_span(each)} times by median, {_span(last)} times until the last process has it"
    reason = f"Taken as met from {low} to {high:.0f} times by median. A prototype had 3.2 and 2.0 times."
    return Finding(text, all(low <= ratio <= high for ratio in each.values()), reason)


def _judge_logical(results: Results) -> Finding:
    each = _ratios(results, ("epto", "logical"), ("epto", "global"), "delay_ms_p50")
    unordered = _ratios(results, ("epto", "logical"), ("unordered", "logical"), "delay_ms_p50")
    last = _ratios(results, ("epto", "logical"), ("unordered", "logical"), LAST)
    low, high = LOGICAL_RANGE
    text = (
        f"{_span(each)} times that of a global clock; {_span(unordered)} times unordered by median, {_span(last)} "
        "times until the last process has it"
    )
    reason = (
        f"Taken as met from {low} to {high} times a global clock. That is more than the doubled wait: the first TTL "
        "rounds are quick, since copies that come age an event faster, and the second TTL rounds take a round each. "
        "Which delay of unordered events the document divides by is not said: a prototype had 8 times by median and "
        "4.9 until the last process."
    )
    return Finding(text, all(low <= ratio <= high for ratio in each.values()), reason)


def _judge_twofold(results: Results, pairs: Iterable[tuple[System, System]], reason: str) -> Finding:
    """The delay in the second system over that in the first."""
    chosen = list(pairs)
    texts, twofold = {}, True
    for way, order, clock in (("unordered", "unordered", "global"), *((clock, "epto", clock) for clock in CLOCKS)):
        found = {}
        for pair in chosen:
            small, large = (delay(results, order=order, clock=clock, system=system).mean for system in pair)
            found[str(pair)] = quotient(large, small)
        twofold = twofold and max(found.values()) <= 2
        texts[way] = f"{_span(found)} times"
    return Finding(wording.each(texts), twofold, reason)


def _judge_size(results: Results) -> Finding:
    size = sizes(results)
    pairs = ((System(size[0], rate), System(size[-1], rate)) for rate in rates(results))
    reason = f"From {size[0]} to {size[-1]}; asked is at most twofold. TTL grows with the logarithm of the size."
    return _judge_twofold(results, pairs, reason)


def _judge_rate(results: Results) -> Finding:
    rate = rates(results)
    pairs = ((System(size, rate[-2]), System(size, rate[-1])) for size in sizes(results))
    reason = (
        f"From r = {rate[-2]:g} to {rate[-1]:g}; asked is at most twofold. More events do not make rounds longer here: "
        "bandwidth and processing take no time, and it is rounds that an event waits for."
    )
    return _judge_twofold(results, pairs, reason)


CLAIMS = (
    Claim(
        "ep-2.half",
        "Without EpTO, where many publish, no process sees more than half of the events in one order.",
        "for r above 0.1, nobody more than half",
        _judge_half,
    ),
    Claim(
        "ep-2.rate",
        "The more is published, the less of one order is seen.",
        "worse with r",
        _judge_by_rate,
    ),
    Claim(
        "ep-2.size",
        "The more processes, the less of one order is seen.",
        "worse with n",
        _judge_by_size,
    ),
    Claim("ep-2.which", "How much is published matters more than how many there are.", "much more r", _judge_which),
    Claim("ep-2.clock", "With logical clocks less of one order is seen.", "both clocks are shown", _judge_clocks),
    Claim(
        "ep-2.epto",
        "With EpTO every process delivers every event in one order.",
        "all processes, all events, both clocks",
        _judge_epto,
    ),
    Claim(
        "ep-3.ranks",
        "Order takes time, and with logical clocks more.",
        "unordered, global, logical",
        _judge_ranks,
    ),
    Claim("ep-3.global", "With a global clock, EpTO takes twice as long as no order.", "2 times", _judge_global),
    Claim("ep-3.logical", "With logical clocks it takes twice as long again.", "4 times", _judge_logical),
    Claim(
        "ep-3.size", "Five times the processes take at most about twice as long.", "two-fold for five-fold", _judge_size
    ),
    Claim(
        "ep-3.rate", "Five times the events take at most about twice as long.", "two-fold for five-fold", _judge_rate
    ),
)


# What is shown


def _kept_figure(results: Results) -> FigureBlock:
    groups = {
        f"{size} processes, {clock} clock": {
            f"r = {rate:g}": {"order": "unordered", "clock": clock, "system": System(size, rate)}
            for rate in rates(results)
        }
        for size in sizes(results)
        for clock in CLOCKS
    }
    return pictures.block(
        "kept",
        "Part of the events in one order, without EpTO",
        "Figure 5.8: the longest common subsequence with the order of (time, process). Mean over processes, with 95 % "
        "intervals over seeds. With EpTO it is all of them.",
        pictures.means(results, "order_kept_mean", groups, "part in order (%)", x_label="publishing", scale=100.0),
    )


def _ways(system: System) -> dict[str, dict[str, object]]:
    return {
        "unordered": {"order": "unordered", "clock": "global", "system": system},
        "EpTO, global clock": {"order": "epto", "clock": "global", "system": system},
        "EpTO, logical clocks": {"order": "epto", "clock": "logical", "system": system},
    }


def _delay_figures(results: Results) -> tuple[FigureBlock, ...]:
    chosen = [System(size, rates(results)[-1]) for size in (sizes(results)[0], sizes(results)[-1])]
    return tuple(
        pictures.block(
            f"delay-{system.processes}",
            f"Delay of deliveries: {system.processes} processes, r = {system.rate:g}",
            "Figure 5.9: from publication to delivery, the publishers' own included. All seeds together.",
            pictures.cdfs(results, "delay_ms", _ways(system), "delay (ms)", quantiles=(0.5,)),
        )
        for system in chosen
    )


def _growth(results: Results) -> FigureBlock:
    rate = rates(results)[-1]
    ways = list(_ways(System(0, rate)))
    groups = {way: {str(size): _ways(System(size, rate))[way] for size in sizes(results)} for way in ways}
    return pictures.block(
        "growth",
        f"Median delay by number of processes, r = {rate:g}",
        "Means with 95 % intervals over seeds.",
        pictures.means(results, "delay_ms_p50", groups, "delay, median (ms)", x_label="processes"),
    )


def _kept_table(results: Results) -> TableBlock:
    columns = {f"{which} (%)": (f"order_kept_{which}", 100.0) for which in ("min", "mean", "max")}
    rows = [
        (str(system), clock, *cells(results, columns, order="unordered", clock=clock, system=system))
        for clock in CLOCKS
        for system in systems(results)
    ]
    header = ("system", "clock", *columns)
    caption = "Over the processes, and means over seeds with 95 % intervals. With EpTO all three are 100."
    return TableBlock("kept", "Part of the events in one order, without EpTO", caption, header, tuple(rows))


def _delay_table(results: Results) -> TableBlock:
    columns = {**DELAYS, **HOLES}
    rows = []
    for system in systems(results):
        for way, labels in _ways(system).items():
            rows.append((str(system), way, *cells(results, columns, **labels)))
    caption = "From publication to delivery, the publishers' own included. Means over seeds with 95 % intervals."
    return TableBlock("delay", "Delays and holes", caption, ("system", "order", *columns), tuple(rows))
