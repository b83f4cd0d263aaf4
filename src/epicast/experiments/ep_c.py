"""What EpTO's constant c is worth on a network where messages take much less than a round."""

from __future__ import annotations

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, judged
from epicast.experiments.epto_words import (
    ALWAYS,
    DELAYS,
    HOLES,
    all_in_order,
    cells,
    holes_among,
    label_of,
    numbers,
    total,
)
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

THROWS = {"everybody": "everybody throws", "document": "as in the document"}
NOBODY_SAYS = "c > 1"
DEFAULT = 1.25
RATE_MAX = 1e-4  # of holes among deliveries, with the default settings
BYTES = {"MB sent": ("sent_bytes", 1e-6)}


def evaluate(material: Material) -> Evaluation:
    results = material.results
    notes = (
        "Everybody throws: a process throws an event that is new to it once, also when the copy has TTL rounds behind "
        "it. That and c = 1.25 are the defaults.",
        ALWAYS,
    )
    return Evaluation(
        checks=judged(CLAIMS, results), figures=(_figure(results),), tables=(_table(results),), notes=notes
    )


def points(results: Results, throws: str, c: float) -> list[pictures.Labels]:
    """One for each size."""
    label = label_of(results, "c", c)
    sizes = [label_of(results, "nodes", size) for size in numbers(results, "nodes")]
    return [{"throws": throws, "c": label, "nodes": nodes} for nodes in sizes]


def rate(results: Results, throws: str, c: float) -> float:
    """Of holes, over all sizes and seeds."""
    where = points(results, throws, c)
    return total(results, "holes_staying", where) / total(results, "owed", where)


def _judge_order(results: Results) -> Finding:
    everywhere = [each for throws in THROWS for c in numbers(results, "c") for each in points(results, throws, c)]
    text, ordered = all_in_order(results, everywhere)
    return Finding(text, ordered)


def _judge_default(results: Results) -> Finding:
    text, _ = holes_among(results, points(results, "everybody", DEFAULT))
    share = rate(results, "everybody", DEFAULT)
    return Finding(text, share <= RATE_MAX, f"Asked is at most one in {1 / RATE_MAX:,.0f}.")


def _judge_everybody(results: Results) -> Finding:
    found = {called: holes_among(results, points(results, throws, DEFAULT)) for throws, called in THROWS.items()}
    text = wording.each({called: words for called, (words, _) in found.items()})
    everybody, document = (holes for _, holes in found.values())
    reason = "With c = 1.25. A process whom the few that throw have missed gets the event from all others."
    return Finding(text, everybody <= document, reason)


CLAIMS = (
    Claim("ep-c.order", "Whatever c is, there is one order.", "never an inversion", _judge_order),
    Claim("ep-c.default", "The defaults leave hardly a hole.", NOBODY_SAYS, _judge_default),
    Claim("ep-c.everybody", "If everybody throws once, there are no more holes.", NOBODY_SAYS, _judge_everybody),
)


def _figure(results: Results) -> FigureBlock:
    largest = label_of(results, "nodes", max(numbers(results, "nodes")))
    delays = {
        called: {
            c: ("delay_ms_p50", {"throws": throws, "c": label_of(results, "c", c), "nodes": largest})
            for c in numbers(results, "c")
        }
        for throws, called in THROWS.items()
    }
    figure = pictures.against(results, delays, "c", "delay, median (ms)")
    return pictures.block("delay", "Delay by c", f"{largest} processes. Means with 95 % intervals over seeds.", figure)


def _table(results: Results) -> TableBlock:
    columns = {**HOLES, **DELAYS, **BYTES}
    rows = [
        (str(labels["nodes"]), f"{c:g}", called, *cells(results, columns, **labels))
        for throws, called in THROWS.items()
        for c in numbers(results, "c")
        for labels in points(results, throws, c)
    ]
    header = ("processes", "c", "throws", *columns)
    return TableBlock("c", "By c", "Means over seeds with 95 % intervals.", header, tuple(rows))
