"""EpTO as it is, in systems of up to ten thousand processes that are not told how many they are."""

from __future__ import annotations

from math import log2

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, judged, stat
from epicast.experiments.epto_words import (
    ALWAYS,
    DELAYS,
    HOLES,
    all_in_order,
    cells,
    holes_among,
    label_of,
    numbers,
)
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

NOBODY_SAYS = "n up to 500 only"


def evaluate(material: Material) -> Evaluation:
    results = material.results
    notes = (
        "Logical clocks and c = 1.25, the defaults. Few events are published, since each is thrown K TTL times by "
        "everybody.",
        ALWAYS,
    )
    return Evaluation(
        checks=judged(CLAIMS, results), figures=(_figure(results),), tables=(_table(results),), notes=notes
    )


def points(results: Results) -> list[dict[str, object]]:
    return [{"nodes": label_of(results, "nodes", nodes)} for nodes in numbers(results, "nodes")]


def _judge_complete(results: Results) -> Finding:
    (lack, holes), (order, ordered) = holes_among(results, points(results)), all_in_order(results, points(results))
    return Finding(f"{lack}, {order}", holes == 0 and ordered, "Holes are very improbable, not impossible.")


def _judge_delay(results: Results) -> Finding:
    first, *_, last = points(results)
    slow, fast = (stat(results, "delay_ms_p50", **labels) for labels in (last, first))
    expected = log2(float(str(last["nodes"]))) / log2(float(str(first["nodes"])))
    ratio = slow.mean / fast.mean if fast.mean else float("nan")
    text = (
        f"{wording.mean(fast, 'ms')} and {wording.mean(slow, 'ms')}: {ratio:.2f} times; logarithms {expected:.2f} times"
    )
    reason = "From the smallest to the largest system. Asked is no more than 1.3 times what the logarithms say."
    return Finding(text, ratio <= 1.3 * expected, reason)


def _judge_hops(results: Results) -> Finding:
    found = {f"{each['nodes']} processes": stat(results, "hops_mean", **each) for each in points(results)}
    text = wording.each({name: wording.mean(each) for name, each in found.items()})
    few = all(each.mean <= log2(float(name.split()[0])) for name, each in found.items())
    return Finding(
        text, few, "Rounds behind a first copy, on average. Asked is no more than the logarithm of the size."
    )


CLAIMS = (
    Claim(
        "ep-size.complete", "However many there are, all deliver everything in one order.", NOBODY_SAYS, _judge_complete
    ),
    Claim("ep-size.delay", "The delay grows with the logarithm of the size.", NOBODY_SAYS, _judge_delay),
    Claim("ep-size.hops", "First copies need fewer rounds than TTL.", NOBODY_SAYS, _judge_hops),
)


def _figure(results: Results) -> FigureBlock:
    delays: dict[str, dict[float, tuple[str, pictures.Labels]]] = {
        name: {float(str(each["nodes"])): (metric, each) for each in points(results)}
        for name, metric in (("median", "delay_ms_p50"), ("until the last has it", "delay_last_ms_p50"))
    }
    return pictures.block(
        "delay",
        "Delay by size",
        "Means with 95 % intervals over seeds.",
        pictures.against(results, delays, "processes", "delay (ms)"),
    )


def _table(results: Results) -> TableBlock:
    columns = {**HOLES, **DELAYS, "rounds behind a first copy": ("hops_mean", 1.0)}
    rows = [(str(labels["nodes"]), *cells(results, columns, **labels)) for labels in points(results)]
    caption = "Means over seeds with 95 % intervals."
    return TableBlock("size", "By number of processes", caption, ("processes", *columns), tuple(rows))
