"""Rounds shorter than messages take: what EpTO's processes miss then (EpTO, figure 5.10(a))."""

from __future__ import annotations

from itertools import pairwise

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, judged
from epicast.experiments.epto_words import (
    ALWAYS,
    CLOCKS,
    DELAYS,
    HOLES,
    by_clock,
    cells,
    hole_free,
    holes_among,
    judge_order,
    numbers,
    percents,
)
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.confidence import Stat
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

MEDIAN_MS, HALF_MS, THIRD_MS = 125, 63, 42
WHY = (
    "What comes after its turn is dropped: after TTL rounds an event is delivered, whether messages needed that long "
    "or not."
)


def evaluate(material: Material) -> Evaluation:
    results = material.results
    notes = (
        "A period is the length of a round in ms; the median latency is 125 ms. Every period has thirty rounds of "
        "publishing, so shorter rounds publish as much in less time.",
        ALWAYS,
    )
    return Evaluation(checks=judged(CLAIMS, results), figures=_figures(results), tables=(_table(results),), notes=notes)


def points(results: Results, clock: str, low: float = 0, high: float = 1e9) -> list[dict[str, object]]:
    """Whose periods are from low to below high."""
    return [{"clock": clock, "period": f"{ms:g}"} for ms in numbers(results, "period") if low <= ms < high]


def _free(results: Results, clock: str, high: float = 1e9) -> dict[str, Stat]:
    return {f"{each['period']} ms": hole_free(results, **each) for each in points(results, clock, high=high)}


def _judge_half(results: Results) -> Finding:
    found = {clock: holes_among(results, points(results, clock, HALF_MS)) for clock in CLOCKS}
    texts = {clock: text for clock, (text, _) in found.items()}
    none = all(holes == 0 for _, holes in found.values())
    return Finding(wording.each(texts), none, f"Asked is none from {HALF_MS} ms on.", WHY)


def _judge_third(results: Results) -> Finding:
    found = {clock: hole_free(results, clock=clock, period=THIRD_MS) for clock in CLOCKS}
    reason = "Taken as met from 85 % of the processes on. A prototype had 91 % with a global clock."
    return Finding(percents(found), all(each.mean >= 0.85 for each in found.values()), reason)


def _judge_worse(results: Results) -> Finding:
    found = _free(results, "global", THIRD_MS + 1)
    worse = all(a.mean <= b.mean for a, b in pairwise(found.values()))
    steep = next(iter(found.values())).mean < 0.5
    reason = "A prototype had 72 % at 25 ms, 33 % at 15 ms, 4 % at 10 ms and none at 5 ms."
    return Finding(percents(found), worse and steep, reason)


def _judge_logical(results: Results) -> Finding:
    short = [labels["period"] for labels in points(results, "global", high=THIRD_MS)]
    found = {f"{ms} ms": [hole_free(results, clock=clock, period=ms) for clock in CLOCKS] for ms in short}
    texts = {ms: f"{wording.percent(a.mean)} and {wording.percent(b.mean)}" for ms, (a, b) in found.items()}
    better = all(b.mean >= a.mean for a, b in found.values()) and any(b.mean > a.mean for a, b in found.values())
    return Finding(wording.each(texts), better, "Global, then logical: the latter wait twice as long.")


CLAIMS = (
    Claim(
        "ep-4.order",
        "However short the rounds, there is one order.",
        "never an inversion",
        judge_order(points, "Also where nearly everything is late."),
    ),
    Claim(
        "ep-4.half", "From half the median latency on, nobody misses anything.", "no holes near the median", _judge_half
    ),
    Claim(
        "ep-4.third",
        "At a third of the median latency few processes miss anything.",
        "important only below a third",
        _judge_third,
    ),
    Claim("ep-4.worse", "Below that, ever more processes miss something.", "degrades quickly", _judge_worse),
    Claim("ep-4.logical", "With logical clocks, rounds may be shorter.", "both clocks are shown", _judge_logical),
)


def _figures(results: Results) -> tuple[FigureBlock, ...]:
    return (
        pictures.block(
            "free",
            "Processes without a hole",
            "Figure 5.10(a). Means with 95 % intervals over seeds.",
            pictures.against(
                results,
                by_clock(results, "hole_free_share", "period", points),
                "length of a round (ms)",
                "processes without a hole (%)",
                scale=100.0,
            ),
        ),
        pictures.block(
            "delay",
            "Median delay",
            "What shorter rounds save. Means with 95 % intervals over seeds.",
            pictures.against(
                results,
                by_clock(results, "delay_ms_p50", "period", points),
                "length of a round (ms)",
                "delay, median (ms)",
            ),
        ),
    )


def _table(results: Results) -> TableBlock:
    columns = {**HOLES, "delivered (%)": ("delivery_ratio", 100.0), **DELAYS}
    rows = [
        (str(labels["period"]), clock, *cells(results, columns, **labels))
        for clock in CLOCKS
        for labels in points(results, clock)
    ]
    caption = "Means over seeds with 95 % intervals."
    return TableBlock("periods", "By length of rounds", caption, ("period (ms)", "clock", *columns), tuple(rows))
