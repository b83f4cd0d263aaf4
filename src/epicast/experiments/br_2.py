"""How deep BRISA's trees are (BR-2)."""

from __future__ import annotations

from math import log

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, judged, labels_of, of_dags, rising, stat
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

PROTOTYPE = {"4": "7 to 12", "8": "4.4 to 8.8"}


def evaluate(material: Material) -> Evaluation:
    results = material.results
    return Evaluation(checks=judged(CLAIMS, results), figures=_figures(results), tables=(_table(results),))


def _judge_deepest(results: Results) -> Finding:
    narrow, wide = (stat(results, "tree_depth_max", view=view) for view in (4, 8))
    reason = (
        "The text gives the relation and no depths. A prototype on regular graphs had "
        f"{PROTOTYPE['4']} for view 4 and {PROTOTYPE['8']} for view 8."
    )
    texts = {"view 4": wording.mean(narrow), "view 8": wording.mean(wide)}
    return Finding(wording.each(texts), wide.mean < narrow.mean, reason)


def _judge_every_step(results: Results) -> Finding:
    found = {view: stat(results, "tree_depth_max", view=view) for view in labels_of(results, "view")}
    falls = rising([-each.mean for each in found.values()])
    why_not = (
        "Larger views stop paying off: a process takes the parent whose copy came first, and delays differ from link "
        "to link. With many links the quickest way often has a link more, but quicker ones: see the column that "
        "compares depth with the shortest way."
    )
    return Finding(
        wording.each({f"view {view}": wording.mean(each) for view, each in found.items()}), falls, why_not=why_not
    )


def _judge_bound(results: Results) -> Finding:
    texts, within = {}, True
    for view in labels_of(results, "view"):
        deepest, processes = stat(results, "tree_depth_max", view=view), stat(results, "processes", view=view)
        bound = 4 * log(processes.mean) / log(float(view))
        within = within and deepest.max <= bound
        texts[f"view {view}"] = f"{wording.amount(deepest.max)} of at most {bound:.1f}"
    reason = "The text says that curves are steep, that is, trees are balanced and have no chains; the bound is ours."
    return Finding(f"deepest of all seeds: {wording.each(texts)}", within, reason)


CLAIMS = (
    Claim(
        "br-2.view-8-shallower", "Trees over views of 8 are less deep than over views of 4.", "smaller", _judge_deepest
    ),
    Claim(
        "br-2.every-step",
        "Each larger view gives a smaller maximum depth.",
        "smaller with each view",
        _judge_every_step,
    ),
    Claim("br-2.balanced", "Trees have no chains: at most 4 log_view(N) deep.", "no chains", _judge_bound),
    of_dags("br-2.dag-deeper", "The longest ways in a DAG are longer than those in a tree.", "DAG deeper than tree"),
)


def _figures(results: Results) -> tuple[FigureBlock, ...]:
    views = {f"view {view}": {"view": view} for view in labels_of(results, "view")}
    shown = pictures.cdfs(results, "depth", views, "links from the source", y_label="share of the processes")
    caption = "Figure 4.7, without its DAGs: a steep curve is a balanced tree. All seeds together."
    return (pictures.block("depth", "Depth of processes in the tree", caption, shown),)


def _table(results: Results) -> TableBlock:
    columns = {
        "mean depth": "tree_depth_mean",
        "deepest process": "tree_depth_max",
        "over shortest way": "tree_stretch_mean",
        "links crossed, mean": "hops_mean",
        "latency, median (ms)": "latency_ms_p50",
    }
    rows = [
        (view, *(wording.mean_or_nothing(results.stat(metric, view=view)) for metric in columns.values()))
        for view in labels_of(results, "view")
    ]
    caption = (
        "Means over seeds with 95 % intervals. Over shortest way: depth in the tree divided by the distance from the "
        "source in the overlay, in links."
    )
    return TableBlock("depth", "Depth by view", caption, ("view", *columns), tuple(rows))
