"""EpTO while half of the system comes and goes (EpTO, figure 5.11), with both clocks."""

from __future__ import annotations

from collections.abc import Iterable

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, judged, quotient, stat
from epicast.experiments.epto_words import (
    ALWAYS,
    CLOCKS,
    DELAYS,
    HOLES,
    all_in_order,
    cells,
    delay,
    in_order,
    label_of,
    numbers,
    total,
)
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.guarantees.verdict import counted
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

UNNOTICED = 1.1
K, TWICE = 17, 34
VIEWS = (
    "The document draws everybody's targets among those that are up. Here Cyclon's views name many that have gone, and "
    "balls thrown at them are lost: at 20 % a round, one of the churning half is up for two and a half rounds. Fewer "
    "copies come, so events do not age as fast, and first copies come later. With twice the balls this is gone: see "
    "ep-6.reach. A prototype with targets that are up had 611 and 624 ms at 0 and 10 %."
)


def evaluate(material: Material) -> Evaluation:
    results = material.results
    notes = (
        "Churn is the part of all processes that crash in each round of 125 ms, with as many joining. Half of the "
        "processes are immune, and publish. Those that stay are they and whoever else was spared: up from the first "
        "publication to the end.",
        "The document has a global clock only. With logical clocks a newcomer may publish once it has heard what time "
        "it is (E-E14); here newcomers only listen.",
        ALWAYS,
    )
    return Evaluation(checks=judged(CLAIMS, results), figures=_figures(results), tables=(_table(results),), notes=notes)


def points(results: Results, clocks: Iterable[str], fanout: int = K, high: float = 1e9) -> list[dict[str, object]]:
    """With churn of up to so many percent."""
    rates = [label_of(results, "churn", rate) for rate in numbers(results, "churn") if rate <= high]
    return [{"clock": clock, "churn": rate, "fanout": fanout} for clock in clocks for rate in rates]


def slower(results: Results, clock: str, churn: int, fanout: int = K) -> float:
    """Than without churn and with the document's K, by median delay."""
    calm = delay(results, clock=clock, churn=0, fanout=K).mean
    return quotient(delay(results, clock=clock, churn=churn, fanout=fanout).mean, calm)


def _slower(results: Results, fanout: int) -> tuple[str, bool]:
    """At 10 %, and the medians at all rates."""
    found = {clock: slower(results, clock, 10, fanout) for clock in CLOCKS}
    medians = {
        f"{labels['churn']} %": f"{stat(results, 'delay_ms_p50', **labels).mean:,.0f} ms"
        for labels in points(results, ("global",), fanout)
    }
    text = wording.each({clock: f"{ratio:.2f} times" for clock, ratio in found.items()})
    return f"{text}; global clock, {wording.each(medians)}", all(ratio <= UNNOTICED for ratio in found.values())


def _complete(results: Results, fanout: int) -> tuple[str, bool]:
    texts, complete = {}, True
    for clock in CLOCKS:
        where = points(results, (clock,), fanout, 20)
        holes = total(results, "holes_staying", where)
        complete = complete and holes == 0 and in_order(results, where)
        events = total(results, "messages", where)
        texts[clock] = f"{counted(holes, 'hole')}, of {events:,} events at each of those that stay"
    return wording.each(texts), complete


def _judge_unnoticed(results: Results) -> Finding:
    text, unnoticed = _slower(results, K)
    reason = f"Taken as met up to {UNNOTICED} times the median delay without churn, at 10 %."
    return Finding(text, unnoticed, reason, VIEWS)


def _judge_complete(results: Results) -> Finding:
    text, complete = _complete(results, K)
    return Finding(text, complete, "Up to 20 % a round, at processes that stay.", VIEWS)


def _judge_reach(results: Results) -> Finding:
    (late, unnoticed), (lacking, complete) = _slower(results, TWICE), _complete(results, TWICE)
    reason = f"Both as above: up to {UNNOTICED} times the delay of K = {K} without churn, and no holes up to 20 %."
    return Finding(f"{late}; {lacking}", unnoticed and complete, reason)


def _judge_order(results: Results) -> Finding:
    everywhere = [*points(results, CLOCKS), *points(results, CLOCKS, TWICE)]
    text, ordered = all_in_order(results, everywhere)
    return Finding(f"{text}, at {len(everywhere)} points", ordered)


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
    Claim(
        "ep-6.reach",
        "Both hold if K balls reach somebody that is up, as the document has it.",
        "a fresh sample of processes that are up",
        _judge_reach,
    ),
    Claim("ep-6.order", "Whatever the churn, there is one order.", "never an inversion", _judge_order),
)


def _figures(results: Results) -> tuple[FigureBlock, ...]:
    shown = {
        f"{labels['churn']} %": {"clock": "global", "churn": labels["churn"], "fanout": K}
        for labels in points(results, ("global",))
    }
    curves: dict[str, dict[float, tuple[str, pictures.Labels]]] = {
        f"{clock} clock{'s' if clock == 'logical' else ''}, K {fanout}": {
            float(str(labels["churn"])): ("delay_ms_p50", labels) for labels in points(results, (clock,), fanout)
        }
        for clock in CLOCKS
        for fanout in (K, TWICE)
    }
    return (
        pictures.block(
            "delay",
            "Delay of deliveries with a global clock and the document's K",
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
        (str(labels["churn"]), str(labels["clock"]), str(fanout), *cells(results, columns, **labels))
        for fanout in (K, TWICE)
        for labels in points(results, CLOCKS, fanout)
    ]
    caption = (
        "At processes that were up from the first event to the end; late are events dropped at any process. Means over "
        "seeds with 95 % intervals."
    )
    return TableBlock("churn", "By churn", caption, ("churn (%)", "clock", "K", *columns), tuple(rows))
