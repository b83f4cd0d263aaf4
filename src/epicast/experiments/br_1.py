"""Flooding over HyParView: how many copies of a message a process gets that it does not need (BR-1)."""

from __future__ import annotations

from epicast.experiments import pictures, wording
from epicast.experiments.claims import (
    Claim,
    Finding,
    NotMeasured,
    judged,
    labels_of,
    rising,
    stat,
)
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

NEAR = 0.05
SHARE = 0.01
PROTOTYPE = {"4": "2", "6": "4 to 5", "8": "7", "10": "9"}


def evaluate(material: Material) -> Evaluation:
    results = material.results
    return Evaluation(
        checks=judged(CLAIMS, results),
        figures=_figures(results),
        tables=(_table(results),),
        notes=(
            "HyParView as published changes its views for failures and joins only. Epicast's also adds a link now and "
            "then and gives up surplus ones, so the number of links here is a mean over pictures of the overlay.",
        ),
    )


def _median(view: int, published: int) -> Claim:
    return Claim(
        f"br-1.median-view-{view}",
        f"With views of {view}, half the processes get more than {published} duplicate{'s' * (published > 1)} of a "
        "message.",
        f"median > {published}",
        lambda results: _judge_median(results, view, published),
    )


def _judge_median(results: Results, view: int, published: int) -> Finding:
    found = stat(results, "duplicates_per_process_p50", view=view)
    degree = stat(results, "overlay_degree_mean", view=view)
    reason = (
        "The text prints a bound, not the median itself. A process with d links gets d - 2 duplicates on average, "
        f"and here d is {wording.amount(degree.mean)}; a prototype on regular graphs had a median of "
        f"{PROTOTYPE[str(view)]}."
    )
    return Finding(f"median {wording.mean(found)}", found.mean > published, reason)


def _judge_growth(results: Results) -> Finding:
    found = {view: stat(results, "duplicates_per_process_p50", view=view) for view in labels_of(results, "view")}
    texts = {f"view {view}": wording.mean(each) for view, each in found.items()}
    return Finding(f"medians: {wording.each(texts)}", rising([each.mean for each in found.values()]))


def _links(results: Results, view: str) -> float:
    """Mean over the pictures and the seeds."""
    found = results.series("overlay_edges", view=view)
    if found is None or not len(found[1]):
        raise NotMeasured(f"No run with view {view} has a series of overlay_edges")
    return float(found[1].mean())


def _judge_equation(results: Results) -> Finding:
    """Copies that are still under way when the last process has the last message are duplicates too: count what was
    sent, not what arrived before the run ended."""
    texts, near = {}, True
    for view in labels_of(results, "view"):
        messages, processes = (stat(results, name, view=view).mean for name in ("messages", "processes"))
        spare = stat(results, "sent_payload_messages", view=view).mean / messages - (processes - 1)
        expected = 2 * _links(results, view) - 2 * (processes - 1)
        near = near and abs(spare - expected) <= SHARE * expected
        texts[f"view {view}"] = f"{spare:,.2f} against {expected:,.2f}"
    reason = (
        f"Taken as equal within {100 * SHARE:.0f} %: links come and go between the pictures. Counted are copies sent, "
        "less one for each process but the source. So copies of the last message count that were still under way when "
        "everybody had it and the run ended."
    )
    return Finding(wording.each(texts), near, reason)


def _judge_mean(results: Results) -> Finding:
    texts, near = {}, True
    for view in labels_of(results, "view"):
        found = stat(results, "duplicates_per_process_mean", view=view)
        degree = 2 * _links(results, view) / stat(results, "processes", view=view).mean
        near = near and abs(found.mean - (degree - 2)) <= NEAR
        texts[f"view {view}"] = f"{wording.mean(found)} against {degree - 2:.3f}"
    reason = (
        f"Taken as equal within {NEAR}. The source needs no copy at all, which adds 2/N to the mean; the mean degree d "
        "lies a little above the view that is aimed at, since views may grow to twice that (expansion factor 2)."
    )
    return Finding(wording.each(texts), near, reason)


CLAIMS = (
    _median(4, 1),
    _median(10, 7),
    Claim("br-1.grows", "Duplicates grow with the view.", "more with each larger view", _judge_growth),
    Claim(
        "br-1.equation",
        "A message costs 2E - 2(N - 1) duplicates in all, with E links and N processes.",
        "2E - 2(N - 1)",
        _judge_equation,
    ),
    Claim("br-1.mean", "The mean is the mean degree less two.", "d - 2", _judge_mean),
)


def _figures(results: Results) -> tuple[FigureBlock, ...]:
    views = {f"view {view}": {"view": view} for view in labels_of(results, "view")}
    shown = pictures.cdfs(
        results,
        "duplicates",
        views,
        "duplicates of a message at a process",
        y_label="share of messages and processes",
        quantiles=(0.5,),
    )
    caption = (
        "Figure 4.3: for each message and process, how many copies came besides the first. The published text says "
        "that at the half the curve of view 4 lies above 1 and that of view 10 above 7."
    )
    return (pictures.block("duplicates", "Duplicates of a message", caption, shown),)


def _table(results: Results) -> TableBlock:
    rows = []
    for view in labels_of(results, "view"):
        found = results.distribution("duplicates", view=view)
        rows.append(
            (
                view,
                wording.mean_or_nothing(results.stat("overlay_degree_mean", view=view)),
                wording.mean_or_nothing(results.stat("duplicates_per_process_p50", view=view)),
                wording.UNKNOWN if found is None else wording.amount(found.quantile(0.5)),
                wording.mean_or_nothing(results.stat("copies_per_delivery", view=view)),
                PROTOTYPE.get(view, wording.UNKNOWN),
            )
        )
    return TableBlock(
        "duplicates",
        "Duplicates by view",
        "Means over seeds with 95 % intervals. The last column is a prototype's, on regular graphs; it is not "
        "published.",
        (
            "view",
            "mean degree",
            "median over processes",
            "median over messages",
            "copies per delivery",
            "prototype's median",
        ),
        tuple(rows),
    )
