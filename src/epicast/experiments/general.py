"""What can be shown of any experiment: the usual numbers of every point, and the figures for which there is data."""

from __future__ import annotations

from collections.abc import Callable

from epicast.experiments import pictures, wording
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

CURVES_MAX = 10  # more cannot be told apart
ROWS_MAX = 200
ONLY = "all runs"

Points = dict[str, dict[str, object]]

COLUMNS = {
    "delivered share": ("delivery_ratio", 1.0),
    "deliveries missing": ("missing", 1.0),
    "latency, median (ms)": ("latency_ms_p50", 1.0),
    "latency, 99th percentile (ms)": ("latency_ms_p99", 1.0),
    "links crossed, mean": ("hops_mean", 1.0),
    "copies per delivery": ("copies_per_delivery", 1.0),
    "upload, mean (KB/s)": ("upload_bytes_per_second", 1e-3),
    "upload, 90th percentile (MB)": ("upload_bytes_p90", 1e-6),
    "share of the bytes that is no payload": ("control_bytes_share", 1.0),
    "crashes": ("crashes", 1.0),
    "parents lost a minute": ("parents_lost_per_minute", 1.0),
    "soft repairs, share": ("soft_repair_share", 1.0),
    "tree depth, mean": ("tree_depth_mean", 1.0),
    "tree depth, largest": ("tree_depth_max", 1.0),
    "leaves, share": ("tree_leaf_share", 1.0),
    "links of a process, mean": ("overlay_degree_mean", 1.0),
    "of them to other areas": ("far_degree_mean", 1.0),
    "payloads from other areas for each message": ("far_copies_per_message", 1.0),
    "largest part of the overlay": ("overlay_largest_weak_share", 1.0),
}


def evaluate(material: Material) -> Evaluation:
    results = material.results
    points = _points(results)
    shown = dict(list(points.items())[:CURVES_MAX])
    notes = []
    if len(points) > len(shown):
        notes.append(f"Figures show the first {len(shown)} of {len(points):,} points.")
    if len(points) > ROWS_MAX:
        notes.append(f"The table shows the first {ROWS_MAX} of {len(points):,} points.")
    figures = tuple(make(results, shown) for make, kind, name in _FIGURES if _any(results, kind, name, shown))
    return Evaluation(figures=figures + _tree(material), tables=_table(results, points), notes=tuple(notes))


def _points(results: Results) -> Points:
    """By a name that tells their labels."""
    return {
        ", ".join(f"{axis} {label}" for axis, label in labels.items()) or ONLY: dict(labels)
        for labels in results.points
    }


def _any(results: Results, kind: str, name: str, points: Points) -> bool:
    """Has any point something of this name?"""
    reads: dict[str, Callable[..., object]] = {
        "stat": results.stat,
        "distribution": results.distribution,
        "series": results.series,
    }
    return any(reads[kind](name, **labels) is not None for labels in points.values())


def _table(results: Results, points: Points) -> tuple[TableBlock, ...]:
    rows = dict(list(points.items())[:ROWS_MAX])
    columns = {title: column for title, column in COLUMNS.items() if _any(results, "stat", column[0], rows)}
    if not columns:
        return ()
    cells = [
        (name, *(wording.mean_or_nothing(results.stat(metric, **labels), scale) for metric, scale in columns.values()))
        for name, labels in rows.items()
    ]
    caption = (
        "Means over seeds with 95 % intervals. Megabytes are of the time from the first message to the last delivery."
    )
    return (TableBlock("numbers", "Every point", caption, ("point", *columns), tuple(cells)),)


def _latency(results: Results, points: Points) -> FigureBlock:
    caption = "From publication to delivery, at processes that were up then. All seeds together."
    shown = pictures.cdfs(results, "latency_ms", points, "latency (ms)", log_x=True, quantiles=(0.5, 0.99))
    return pictures.block("latency", "Latency", caption, shown)


def _copies(results: Results, points: Points) -> FigureBlock:
    caption = "How often a process receives the payload of a message that it delivers once. 95 % intervals over seeds."
    shown = pictures.means(results, "copies_per_delivery", {"": points}, "copies per delivery")
    return pictures.block("copies", "Copies of a message", caption, shown)


def _upload(results: Results, points: Points) -> FigureBlock:
    caption = "Percentiles over the processes that stayed, everything included."
    return pictures.block(
        "upload",
        "Upload of a process",
        caption,
        pictures.loads(results, "upload_bytes", {"": points}, "sent by a process (KB/s)"),
    )


def _repairs(results: Results, points: Points) -> FigureBlock:
    caption = "How long processes had no parent, from when they noticed to the next one. All seeds together."
    shown = pictures.cdfs(results, "repair_delay_ms", points, "time without a parent (ms)", log_x=True)
    return pictures.block("repairs", "Orphans", caption, shown)


def _depth(results: Results, points: Points) -> FigureBlock:
    shown = pictures.cdfs(results, "depth", points, "links from the source", y_label="share of the processes")
    return pictures.block("depth", "Depth of processes in the tree", "At the end. All seeds together.", shown)


def _pace(results: Results, points: Points) -> FigureBlock:
    shown = pictures.over_time(results, "latency_ms_mean", points, "latency, mean (ms)")
    return pictures.block("pace", "Latency over time", "Means over seeds, by the time of publication.", shown)


def _deliveries(results: Results, points: Points) -> FigureBlock:
    shown = pictures.over_time(results, "deliveries_per_second", points, "deliveries a second")
    return pictures.block("deliveries", "Deliveries over time", "Means over seeds.", shown)


_FIGURES: tuple[tuple[Callable[[Results, Points], FigureBlock], str, str], ...] = (
    (_latency, "distribution", "latency_ms"),
    (_copies, "stat", "copies_per_delivery"),
    (_upload, "stat", "upload_bytes_p50"),
    (_repairs, "distribution", "repair_delay_ms"),
    (_depth, "distribution", "depth"),
    (_pace, "series", "latency_ms_mean"),
    (_deliveries, "series", "deliveries_per_second"),
)
"""A figure, and what there must be for it."""


def _tree(material: Material) -> tuple[FigureBlock, ...]:
    edges = material.sample_tree(0) if material.results.points else ()
    if not edges:
        return ()
    caption = f"Of the first seed: {next(iter(_points(material.results)))}."
    return (pictures.block("tree", "The tree at the end", caption, pictures.drawn_trees({"": edges})),)
