"""How many children the processes of BRISA's trees have (BR-3)."""

from __future__ import annotations

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, distribution, judged, labels_of, of_dags, stat
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

FEW = 0.10
EXPANSION = 2
PROTOTYPE = {"4": "0.40 to 0.46", "8": "0.52 to 0.64"}


def evaluate(material: Material) -> Evaluation:
    results = material.results
    return Evaluation(checks=judged(CLAIMS, results), figures=_figures(results), tables=(_table(results),))


def _judge_leaves(results: Results) -> Finding:
    narrow, wide = (stat(results, "tree_leaf_share", view=view) for view in (4, 8))
    reason = (
        f"The text gives the relation and no shares. A prototype on regular graphs had {PROTOTYPE['4']} for view 4 and "
        f"{PROTOTYPE['8']} for view 8."
    )
    texts = {"view 4": wording.mean(narrow), "view 8": wording.mean(wide)}
    return Finding(f"share of leaves: {wording.each(texts)}", wide.mean > narrow.mean, reason)


def _judge_above(results: Results, name: str) -> tuple[dict[str, str], bool]:
    shares = {
        view: distribution(results, name, view=view).share_above(float(view)) for view in labels_of(results, "view")
    }
    texts = {f"view {view}": wording.percent(share) for view, share in shares.items()}
    return texts, all(share <= FEW for share in shares.values())


def _judge_children(results: Results) -> Finding:
    texts, few = _judge_above(results, "out_degree")
    reason = "The text says few and gives no share; a tenth is our bound. One link of each process leads to its parent."
    return Finding(f"share of processes: {wording.each(texts)}", few, reason)


def _judge_links(results: Results) -> Finding:
    texts, few = _judge_above(results, "degree")
    reason = (
        "The text says few and gives no share; a tenth is our bound. Views keep being refreshed here: at any time some "
        "processes have just taken in one link more, which they give up again when both ends have one to spare."
    )
    return Finding(f"share of processes: {wording.each(texts)}", few, reason)


def _judge_limit(results: Results) -> Finding:
    texts, within = {}, True
    for view in labels_of(results, "view"):
        children, links = (stat(results, name, view=view).max for name in ("tree_out_degree_max", "overlay_degree_max"))
        within = within and max(children, links) <= EXPANSION * float(view)
        texts[f"view {view}"] = f"{children:.0f} children, {links:.0f} links of at most {EXPANSION * int(view)}"
    return Finding(f"largest of all seeds: {wording.each(texts)}", within)


CLAIMS = (
    Claim("br-3.more-leaves", "Trees over views of 8 have more leaves than over views of 4.", "more", _judge_leaves),
    Claim(
        "br-3.children-above-view",
        "With expansion factor 2, few processes have more children than the view that is aimed at.",
        "few",
        _judge_children,
    ),
    Claim("br-3.links-above-view", "Few have more links in the overlay than that.", "few", _judge_links),
    Claim(
        "br-3.limit", "None has more than the expansion factor times the view.", "at most twice the view", _judge_limit
    ),
    of_dags("br-3.dag-fewer-leaves", "A DAG has fewer leaves than a tree.", "fewer"),
)


def _figures(results: Results) -> tuple[FigureBlock, ...]:
    views = {f"view {view}": {"view": view} for view in labels_of(results, "view")}
    children = pictures.cdfs(results, "out_degree", views, "children", y_label="share of the processes")
    links = pictures.cdfs(results, "degree", views, "links in the overlay", y_label="share of the processes")
    return (
        pictures.block(
            "children",
            "Children of a process",
            "Figure 4.8, without its DAGs. The height at 0 is the share of leaves. All seeds together.",
            children,
        ),
        pictures.block(
            "links", "Links of a process", "What there is to choose from: the overlay under the tree.", links
        ),
    )


def _table(results: Results) -> TableBlock:
    columns = {
        "share of leaves": "tree_leaf_share",
        "children of those that have any": "tree_out_degree_mean",
        "most children": "tree_out_degree_max",
        "mean links": "overlay_degree_mean",
        "most links": "overlay_degree_max",
    }
    rows = [
        (view, *(wording.mean_or_nothing(results.stat(metric, view=view)) for metric in columns.values()))
        for view in labels_of(results, "view")
    ]
    return TableBlock(
        "children", "Children by view", "Means over seeds with 95 % intervals.", ("view", *columns), tuple(rows)
    )
