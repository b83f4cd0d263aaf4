"""Figures and tables of `clon_overlay.py`."""

from __future__ import annotations

from collections.abc import Mapping

from epicast.experiments import pictures, wording
from epicast.experiments.clon_words import OVERLAYS
from epicast.pipeline.metrics import drops
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

AREAS = 5
VANISHED = "processes that vanish (%)"
Curves = dict[str, dict[float, tuple[str, dict[str, str]]]]


def _curves(whats: Mapping[str, str], strategy: drops.Strategy = drops.UNIFORM) -> Curves:
    """For each overlay a curve of each quantity, by what is added to its name; x is the share of all processes."""
    part = strategy.areas / AREAS if strategy.areas else 1.0
    return {
        f"{name}{added}": {
            percent * part: (drops.name_of(strategy, percent, what), {"overlay": overlay})
            for percent in strategy.percents
        }
        for overlay, name in OVERLAYS.items()
        for added, what in whats.items()
    }


def figures(results: Results) -> tuple[FigureBlock, ...]:
    points = {name: {"overlay": overlay} for overlay, name in OVERLAYS.items()}
    return (
        *_connectivity(results),
        pictures.block(
            "clustering",
            "Clustering",
            "Figures 5.3 and 5.8. Published in numbers: 0.28 for CLON without drops, below 0.22 after balancing.",
            pictures.against(
                results,
                _curves({"": "clustering"}),
                VANISHED,
                "clustering",
                published={OVERLAYS["clon"]: [(0, 0.28)], OVERLAYS["balanced"]: [(0, 0.22)]},
            ),
        ),
        pictures.block(
            "ways",
            "Ways between survivors",
            "Figures 5.4 and 5.9: mean length of the shortest ways along links, to those that can be reached. Ways "
            "become shorter again where hardly anybody can be reached.",
            pictures.against(results, _curves({"": "path_mean"}), VANISHED, "links, mean"),
        ),
        pictures.block(
            "degrees",
            "Degrees",
            "Figures 5.5 and 5.6: links of a process, all seeds together. Published for CLON: 15 % have 9 links and "
            "45 % from 8 to 10; after balancing more than half have 8 to 10.",
            pictures.shares(results, "degree", points, "links of a process", "share of the processes"),
        ),
        pictures.block(
            "far-degrees",
            "Links to other areas",
            "Links of a process to processes of other areas, all seeds together.",
            pictures.cdfs(results, "far_degree", points, "far links of a process", y_label="share of the processes"),
        ),
    )


def _connectivity(results: Results) -> tuple[FigureBlock, ...]:
    shown = {
        "weak": ("weak_share", "Survivors that hang together", "figures 5.2 and 5.7, links taken without direction"),
        "strong": ("strong_share", "Survivors that can all reach each other", "the same with directions"),
        "reached": ("reached_share", "Survivors reached from one", "the mean over survivors, with directions"),
    }
    uniform = [
        pictures.block(
            key,
            title,
            f"Processes vanish anywhere: {told}. Means and 95 % intervals over seeds.",
            pictures.against(results, _curves({"": what}), VANISHED, "share of the survivors"),
        )
        for key, (what, title, told) in shown.items()
    ]
    areas = [
        pictures.block(
            strategy.name.replace("_", "-"),
            f"Drops in {called}",
            f"Figure 5.2: processes vanish in {called} of five only, up to all of them. Weakly and strongly connected.",
            pictures.against(
                results,
                _curves({", weakly": "weak_share", ", strongly": "strong_share"}, strategy),
                VANISHED,
                "share of the survivors",
            ),
        )
        for strategy, called in ((drops.ONE_AREA, "one area"), (drops.TWO_AREAS, "two areas"))
    ]
    return (*uniform, *areas)


def tables(results: Results) -> tuple[TableBlock, ...]:
    return _overlays(results), _drops(results)


def _overlays(results: Results) -> TableBlock:
    rows = {
        "links of a process, mean": ("overlay_degree_mean", 1.0),
        "of them near": ("near_degree_mean", 1.0),
        "of them far": ("far_degree_mean", 1.0),
        "fewest links": ("overlay_degree_min", 1.0),
        "most links": ("overlay_degree_max", 1.0),
        "processes with 8 to 10 links (%)": ("overlay_about_mean_share", 100.0),
        "links without one in return (%)": ("overlay_asymmetric_share", 100.0),
        "clustering": (drops.name_of(drops.UNIFORM, 0, "clustering"), 1.0),
        "mean way along links": (drops.name_of(drops.UNIFORM, 0, "path_mean"), 1.0),
        "mean way, links taken without direction": ("overlay_path_mean", 1.0),
        "delivered share of 20 messages (%)": ("delivery_ratio", 100.0),
    }
    return _table(results, "overlays", "The overlays", "Means over seeds with 95 % intervals.", rows)


def _drops(results: Results) -> TableBlock:
    rows = {
        f"{percent} % vanish, {called}": (drops.name_of(drops.UNIFORM, percent, what), 1.0)
        for percent in (30, 50, 60, 70, 80)
        for what, called in (("weak_share", "weakly connected"), ("strong_share", "strongly connected"))
    }
    caption = "Shares of the survivors in the largest part. Means over seeds with 95 % intervals."
    return _table(results, "drops", "After uniform drops", caption, rows)


def _table(results: Results, key: str, title: str, caption: str, rows: dict[str, tuple[str, float]]) -> TableBlock:
    cells = [
        (name, *(wording.mean_or_nothing(results.stat(metric, overlay=overlay), scale) for overlay in OVERLAYS))
        for name, (metric, scale) in rows.items()
    ]
    return TableBlock(key, title, caption, ("", *OVERLAYS.values()), tuple(cells))
