"""A first look: flooding and a tree in the same trouble."""

from __future__ import annotations

from matplotlib.figure import Figure

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, judged, labels_of, stat
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

COPIES_MAX = 1.1
NAMES = {"flood": "flooding", "brisa": "BRISA tree"}


def evaluate(material: Material) -> Evaluation:
    results = material.results
    return Evaluation(checks=judged(CLAIMS, results), figures=_figures(material), tables=(_table(results),))


def _judge_flood(results: Results) -> Finding:
    found = stat(results, "duplicates_p50", stack="flood")
    reason = "The text prints a bound. The experiment br-1 looks at this closely, without churn."
    return Finding(f"median {wording.mean(found)}", found.mean > 1, reason)


def _judge_tree(results: Results) -> Finding:
    found = stat(results, "copies_per_delivery", stack="brisa")
    reason = (
        f"One copy is what a tree at rest costs; up to {COPIES_MAX} is allowed under churn. What is above 1 is the "
        "flood of the first message, links of newcomers until they are told that they are not needed, and messages "
        "sent again."
    )
    return Finding(f"{wording.mean(found)} copies per delivery", found.mean <= COPIES_MAX, reason)


def _judge_complete(results: Results) -> Finding:
    missing, owed = (stat(results, name, stack="brisa") for name in ("missing", "owed"))
    return Finding(f"{missing.max:,.0f} of {owed.mean:,.0f} deliveries missing in the worst run", missing.max == 0)


CLAIMS = (
    Claim("demo.flood", "Flooding sends half the processes more than one copy too many.", "median > 1", _judge_flood),
    Claim("demo.tree", "A tree sends each process one copy.", "1.00 copies, at rest", _judge_tree),
    Claim(
        "demo.complete", "Processes that stay miss no message of the tree.", "none lost, with recovery", _judge_complete
    ),
)


def _figures(material: Material) -> tuple[FigureBlock, ...]:
    results = material.results
    points = {NAMES.get(stack, stack): {"stack": stack} for stack in labels_of(results, "stack")}
    groups = {"": points}
    return (
        pictures.block(
            "copies",
            "Copies of a message",
            "How often a process receives the payload of a message that it delivers once. 95 % intervals over seeds.",
            pictures.means(results, "copies_per_delivery", groups, "copies per delivery"),
        ),
        pictures.block(
            "latency",
            "Latency",
            "From publication to delivery, at processes that were up then. A tree keeps the quickest ways of its first "
            "message; flooding finds the quickest way for each message anew.",
            pictures.cdfs(results, "latency_ms", points, "latency (ms)", log_x=True, quantiles=(0.5, 0.99)),
        ),
        pictures.block(
            "upload",
            "Upload of a process",
            "Percentiles over the processes that stayed, everything included. Leaves of the tree send keep-alives "
            "only.",
            pictures.loads(results, "upload_bytes", groups, "sent by a process (KB/s)"),
        ),
        pictures.block(
            "repairs",
            "Parents lost and found again",
            "In a tree the failure of a process orphans its children: how long each had no parent.",
            pictures.cdfs(
                results,
                "repair_delay_ms",
                {"time without a parent": {"stack": "brisa"}},
                "time without a parent (ms)",
                y_label="share of the orphans",
                log_x=True,
                quantiles=(0.5, 0.9),
            ),
        ),
        pictures.block(
            "losses",
            "Failures and lost parents",
            "Means over seeds: processes that crash, and processes that lose their parent thereby.",
            _losses(results),
        ),
        pictures.block(
            "tree",
            "The tree at the end",
            "Of the first seed, after all the failures and repairs.",
            pictures.drawn_trees({"": material.sample_tree(results.find(stack="brisa")[0])}),
        ),
    )


def _losses(results: Results) -> Figure:
    return pictures.several_over_time(
        results,
        {"crashes": "crashes_per_minute", "parents lost": "parents_lost_per_minute"},
        {"stack": "brisa"},
        "in a minute",
    )


def _table(results: Results) -> TableBlock:
    rows = {
        "copies per delivery": ("copies_per_delivery", 1.0),
        "latency, median (ms)": ("latency_ms_p50", 1.0),
        "latency, 99th percentile (ms)": ("latency_ms_p99", 1.0),
        "links crossed, mean": ("hops_mean", 1.0),
        "upload, mean (KB/s)": ("upload_bytes_per_second", 1e-3),
        "of it payload (KB/s)": ("upload_payload_bytes_per_second", 1e-3),
        "share of the bytes that is no payload": ("control_bytes_share", 1.0),
        "deliveries missing": ("missing", 1.0),
        "crashes": ("crashes", 1.0),
        "parents lost": ("parents_lost", 1.0),
        "soft repairs": ("soft_repairs", 1.0),
        "hard repairs": ("hard_repairs", 1.0),
        "time without a parent, median (ms)": ("repair_delay_ms_p50", 1.0),
    }
    stacks = labels_of(results, "stack")
    cells = [
        (name, *(wording.mean_or_nothing(results.stat(metric, stack=stack), scale) for stack in stacks))
        for name, (metric, scale) in rows.items()
    ]
    header = ("", *(NAMES.get(stack, stack) for stack in stacks))
    return TableBlock("side-by-side", "Side by side", "Means over seeds with 95 % intervals.", header, tuple(cells))
