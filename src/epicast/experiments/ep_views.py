"""EpTO's balls over overlays whose views are not uniform samples of everybody: what that costs in holes."""

from __future__ import annotations

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, judged, stat
from epicast.experiments.epto_words import ALWAYS, DELAYS, HOLES, all_in_order, cells, hole_free, holes_among, percents
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

VIEWS = {
    "everybody": "everybody",
    "cyclon": "Cyclon",
    "hyparview": "HyParView, all it knows",
    "neighbours": "HyParView, neighbours",
    "scamp": "Scamp",
}
UNIFORM = ("everybody", "cyclon", "hyparview")  # with fresh samples, or large ones
FEW = ("neighbours", "scamp")
BALLS = {"default": "K 17, TTL 7", "weak": "K 4, TTL 6"}
NOBODY_SAYS = "asked in section 6.1"


def evaluate(material: Material) -> Evaluation:
    results = material.results
    notes = (
        "Cyclon's views are of 40 and change all the time. HyParView has four or five neighbours, and knows some "
        "thirty more; Scamp has about four. A ball goes to as many as there are, where K is more.",
        ALWAYS,
    )
    return Evaluation(
        checks=judged(CLAIMS, results), figures=(_figure(results),), tables=(_table(results),), notes=notes
    )


def missing_share(results: Results, views: str, balls: str) -> float:
    return 1 - stat(results, "delivery_ratio", views=views, balls=balls).mean


def _judge_order(results: Results) -> Finding:
    everywhere = [{"views": views, "balls": balls} for views in VIEWS for balls in BALLS]
    text, ordered = all_in_order(results, everywhere)
    return Finding(f"{text}, whatever the views", ordered)


def _judge_uniform(results: Results) -> Finding:
    points = [{"views": views, "balls": "default"} for views in UNIFORM]
    found = {VIEWS[views]: hole_free(results, views=views, balls="default") for views in UNIFORM}
    text = f"{percents(found)}; {holes_among(results, points)[0]}"
    return Finding(text, all(each.mean >= 0.99 for each in found.values()), "Processes without a hole: 99 % or more.")


def _judge_few(results: Results) -> Finding:
    found = {VIEWS[views]: missing_share(results, views, "default") for views in FEW}
    text = wording.each({name: f"{wording.percent(share)} missing" for name, share in found.items()})
    reason = (
        "K is what counts: of 17 balls a round, four are thrown. So it takes longer to reach everybody, and TTL rounds "
        "do not suffice. A stack that has nothing else should ask for more rounds, or throw to all it knows."
    )
    return Finding(text, all(share > 0.01 for share in found.values()), reason)


def _judge_weak(results: Results) -> Finding:
    """As many balls for all: what is left is the difference of views."""
    found = {views: missing_share(results, views, "weak") for views in VIEWS}
    texts = {VIEWS[views]: wording.percent(share) for views, share in found.items()}
    alike = max(found[views] for views in UNIFORM) <= 2 * min(found[views] for views in UNIFORM)
    worse = min(found[views] for views in FEW) >= 2 * max(found[views] for views in UNIFORM)
    reason = (
        "Missing deliveries, with four balls a round for everybody. Fixed neighbours get the same event from each "
        "other round after round, so fewer of the balls reach anybody new. Asked is that they miss at least twice as "
        "much as the others, which differ by no more than that."
    )
    return Finding(wording.each(texts), alike and worse, reason)


CLAIMS = (
    Claim("ep-views.order", "Whatever the views, there is one order.", "never an inversion", _judge_order),
    Claim("ep-views.uniform", "Views of a real overlay do as well as everybody.", NOBODY_SAYS, _judge_uniform),
    Claim("ep-views.few", "A handful of neighbours do not suffice.", NOBODY_SAYS, _judge_few),
    Claim(
        "ep-views.weak", "With as many balls, fixed neighbours are worse than changing ones.", NOBODY_SAYS, _judge_weak
    ),
)


def _figure(results: Results) -> FigureBlock:
    groups = {
        name: {called: {"views": views, "balls": balls} for views, called in VIEWS.items()}
        for balls, name in BALLS.items()
    }
    return pictures.block(
        "delivered",
        "Deliveries",
        "Share of what was owed. Means with 95 % intervals over seeds.",
        pictures.means(results, "delivery_ratio", groups, "delivered (%)", x_label="balls go to", scale=100.0),
    )


def _table(results: Results) -> TableBlock:
    columns = {
        **HOLES,
        "delivered (%)": ("delivery_ratio", 100.0),
        **DELAYS,
        "neighbours, mean": ("overlay_degree_mean", 1.0),
        "known by, least": ("overlay_in_degree_min", 1.0),
    }
    rows = [
        (called, name, *cells(results, columns, views=views, balls=balls))
        for balls, name in BALLS.items()
        for views, called in VIEWS.items()
    ]
    header = ("balls go to", "balls", *columns)
    return TableBlock("views", "By views", "Means over seeds with 95 % intervals.", header, tuple(rows))
