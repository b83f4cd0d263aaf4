"""EpTO while half of the system comes and goes (EpTO, figure 5.11), with both clocks."""

from __future__ import annotations

from collections.abc import Iterable

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, NotMeasured, judged, stat
from epicast.experiments.epto_words import (
    ALWAYS,
    CLOCKS,
    DELAYS,
    HOLES,
    cells,
    delay,
    in_order,
    label_of,
    numbers,
    total,
)
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

UNNOTICED = 1.1
VIEWS = (
    "The document draws everybody's targets among those that are up. Here Cyclon's views name many that have gone, "
    "whose balls are lost: at 20 % a round, one of the churning half is up for two and a half rounds. Fewer copies "
    "come, so events do not age as fast, and wait longer until they are stable. A prototype with targets that are up "
    "had 611 and 624 ms at 0 and 10 %."
)


def evaluate(material: Material) -> Evaluation:
    results = material.results
    notes = (
        "Churn is the part of all processes that crash in each round of 125 ms, with as many joining. Half of the "
        "processes are immune; they publish, and all numbers are of them.",
        "The document has a global clock only. With logical clocks a newcomer may publish once it has heard what time "
        "it is (E-E14); here newcomers only listen.",
        ALWAYS,
    )
    return Evaluation(checks=judged(CLAIMS, results), figures=_figures(results), tables=(_table(results),), notes=notes)


def points(results: Results, clocks: Iterable[str], high: float = 1e9) -> list[dict[str, object]]:
    """With churn of up to so many percent."""
    rates = [rate for rate in numbers(results, "churn") if rate <= high]
    return [{"clock": clock, "churn": label_of(results, "churn", rate)} for clock in clocks for rate in rates]


def slower(results: Results, clock: str, churn: int) -> float:
    """Than without churn, by median delay."""
    calm, troubled = (delay(results, clock=clock, churn=rate).mean for rate in (0, churn))
    if not calm:
        raise NotMeasured("Nothing takes any time")
    return troubled / calm


def _judge_unnoticed(results: Results) -> Finding:
    found = {clock: slower(results, clock, 10) for clock in CLOCKS}
    medians = ", ".join(
        f"{rate} %: {wording.amount(delay(results, clock='global', churn=rate).mean)} ms" for rate in (0, 5, 10, 20, 30)
    )
    text = f"{wording.each({clock: f'{ratio:.2f} times' for clock, ratio in found.items()})}; global clock {medians}"
    reason = f"Taken as met up to {UNNOTICED} times the median delay without churn, at 10 %."
    return Finding(text, all(ratio <= UNNOTICED for ratio in found.values()), reason, VIEWS)


def _judge_complete(results: Results) -> Finding:
    texts, complete = {}, True
    for clock in CLOCKS:
        where = points(results, (clock,), 20)
        holes, messages = total(results, "holes_staying", where), total(results, "messages", where)
        staying = stat(results, "processes_staying", **where[0]).mean
        complete = complete and holes == 0 and in_order(results, where)
        texts[clock] = f"{holes:,} holes among {messages:,} events at {wording.amount(staying)} or fewer processes each"
    return Finding(wording.each(texts), complete, "Up to 20 % a round, at processes that stay.", VIEWS)


def _judge_order(results: Results) -> Finding:
    everywhere = points(results, CLOCKS)
    ordered = in_order(results, everywhere)
    return Finding(f"{'all' if ordered else 'not all'} in one order, at {len(everywhere)} points", ordered)


CLAIMS = (
    Claim(
        "ep-6.delay",
        "Up to 10 % churn in a round, the delay hardly changes.",
        "almost unnoticeable",
        _judge_unnoticed,
    ),
    Claim(
        "ep-6.complete",
        "Up to 20 % churn in a round, all that stay deliver everything in one order.",
        "all events to all stable processes",
        _judge_complete,
    ),
    Claim("ep-6.order", "Whatever the churn, there is one order.", "never an inversion", _judge_order),
)


def _figures(results: Results) -> tuple[FigureBlock, ...]:
    shown = {f"{label} %": {"clock": "global", "churn": label} for label in ("0", "5", "10", "20", "30")}
    curves: dict[str, dict[float, tuple[str, pictures.Labels]]] = {
        f"{clock} clock{'s' if clock == 'logical' else ''}": {
            float(str(labels["churn"])): ("delay_ms_p50", labels) for labels in points(results, (clock,))
        }
        for clock in CLOCKS
    }
    return (
        pictures.block(
            "delay",
            "Delay of deliveries with a global clock",
            "Figure 5.11: from publication to delivery, at processes that stay. All seeds together.",
            pictures.cdfs(results, "delay_ms", shown, "delay (ms)", quantiles=(0.5,)),
        ),
        pictures.block(
            "median",
            "Median delay",
            "Means with 95 % intervals over seeds.",
            pictures.against(results, curves, "churn (% of the system in a round)", "delay, median (ms)"),
        ),
    )


def _table(results: Results) -> TableBlock:
    columns = {**HOLES, **DELAYS, "crashes": ("crashes", 1.0), "processes that stay": ("processes_staying", 1.0)}
    rows = [
        (str(labels["churn"]), str(labels["clock"]), *cells(results, columns, **labels))
        for labels in points(results, CLOCKS)
    ]
    caption = (
        "At processes that were up from the first event to the end; late are events dropped at any process. Means over "
        "seeds with 95 % intervals."
    )
    return TableBlock("churn", "By churn", caption, ("churn (%)", "clock", *columns), tuple(rows))
