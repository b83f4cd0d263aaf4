"""What small trees look like (BR-4)."""

from __future__ import annotations

from collections.abc import Iterator

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, judged, labels_of, stat
from epicast.experiments.evaluation import Edges, Evaluation, Material
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results


def evaluate(material: Material) -> Evaluation:
    results = material.results
    return Evaluation(checks=judged(CLAIMS, results), figures=(_drawing(material),), tables=(_table(results),))


def _judge_depth(results: Results) -> Finding:
    narrow, wide = (stat(results, "tree_depth_max", view=view) for view in (4, 8))
    texts = {"view 4": wording.mean(narrow), "view 8": wording.mean(wide)}
    reason = (
        "The document shows one tree of each kind; these are means over seeds, and single trees may be the other way."
    )
    return Finding(f"maximum depth: {wording.each(texts)}", wide.mean < narrow.mean, reason)


def _judge_children(results: Results) -> Finding:
    most = {view: stat(results, "tree_out_degree_max", view=view).max for view in labels_of(results, "view")}
    texts = {f"view {view}": f"at most {children:.0f}" for view, children in most.items()}
    return Finding(wording.each(texts), all(children <= float(view) for view, children in most.items()))


CLAIMS = (
    Claim("br-4.view-8-shallower", "The tree over views of 8 is less deep.", "view 8 shallower", _judge_depth),
    Claim("br-4.children", "Nobody has more children than its view has room for.", "at most the view", _judge_children),
)


def _drawing(material: Material) -> FigureBlock:
    results = material.results
    samples = {
        f"view {view}": material.sample_tree(point)
        for view in labels_of(results, "view")
        for point in results.find(view=view)
    }
    depths = {title: str(_depth(edges)) for title, edges in samples.items()}
    caption = (
        "Figure 4.9: the trees of the first seed. Numbers on the left are depths, on the right how many stand there. "
        f"Deepest in these two: {wording.each(depths)}; single trees may be the other way round than their means."
    )
    return pictures.block("trees", "Sample trees", caption, pictures.drawn_trees(samples))


def _depth(edges: Edges) -> int:
    parents = dict(edges)
    return max((sum(1 for _ in _way_up(parents, node)) for node in parents), default=0)


def _way_up(parents: dict[int, int], node: int) -> Iterator[int]:
    """Whoever is passed on the way to the root; a cycle, which no sound tree has, is left where it closes."""
    seen: set[int] = set()
    while node in parents and node not in seen:
        seen.add(node)
        node = parents[node]
        yield node


def _table(results: Results) -> TableBlock:
    columns = {
        "mean depth": "tree_depth_mean",
        "deepest process": "tree_depth_max",
        "share of leaves": "tree_leaf_share",
        "most children": "tree_out_degree_max",
    }
    rows = [
        (view, *(wording.mean_or_nothing(results.stat(metric, view=view)) for metric in columns.values()))
        for view in labels_of(results, "view")
    ]
    return TableBlock(
        "shapes", "Shapes by view", "Means over seeds with 95 % intervals.", ("view", *columns), tuple(rows)
    )
