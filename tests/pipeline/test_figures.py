"""Figures show what they are given, look the same every time, and leave nothing behind."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from epicast.pipeline.figures import style
from epicast.pipeline.figures.comparison import Bar, Line, bars, lines
from epicast.pipeline.figures.distributions import Box, Shades, boxes, cdf, percentile_bars
from epicast.pipeline.figures.heat_map import heat_map
from epicast.pipeline.figures.inline_svg import SVG, embedded, svg
from epicast.pipeline.figures.time_series import time_series
from epicast.pipeline.figures.tree_drawing import tree, trees
from epicast.pipeline.figures.tree_layout import children_of, depths, tidy

ROOT = Path(__file__).resolve().parents[2]
NAN = math.nan
BOXES = {"tree": [Box("view 4", 1, 2, 3, 4, 5, 10), Box("view 8", 0, 1, 2, 3, 4, 10)]}
SHADES = {kind: [Shades("1 KB", 1, 2, 3, 4, 5), Shades("10 KB", 2, 4, 6, 8, 10)] for kind in ("tree", "dag")}
EDGES = [(0, 1), (0, 2), (1, 3), (1, 4), (4, 5)]

FIGURES: dict[str, Callable[[], Figure]] = {
    "cdf": lambda: cdf([("view 4", [1, 2], [3, 1]), ("view 8", [3, 5], [1, 1])], "duplicates", quantiles=(0.5,)),
    "cdf_log": lambda: cdf([("flood", [0, 1, 10, 900], [1, 1, 1, 1])], "delay (ms)", log_x=True),
    "bars": lambda: bars(
        {"tree": [("3 %", 2, 1, 3)], "dag": [("3 %", 4, 4, 4)]}, "lost", published={"dag": {"3 %": 5}}
    ),
    "boxes": lambda: boxes(BOXES, "depth", x_label="view", published={"tree": {"view 4": 3.5}}),
    "percentile_bars": lambda: percentile_bars(SHADES, "download (KB/s)"),
    "time_series": lambda: time_series([Line("soft", [0, 1, 2], [1, 2, 1], [0, 1, 0], [2, 3, 2])], "repairs"),
    "heat_map": lambda: heat_map(["4", "8"], ["64"], [[1.5, None]], value_label="copies"),
    "tree": lambda: tree(EDGES, 0),
    "trees": lambda: trees([("view 4", EDGES, 0), ("view 8", EDGES[:2], 0)]),
    "rings": lambda: tree([(0, child) for child in range(1, 400)], 0),
    "lines": lambda: lines([Line("tree", [64, 512], [3, 5], [2, 4], [4, 6])], "N", "depth", log_x=True),
}
EMPTY: dict[str, Callable[[], Figure]] = {
    "cdf": lambda: cdf([("none", [], [])], "delay"),
    "bars": lambda: bars({}, "lost"),
    "boxes": lambda: boxes({"tree": []}, "depth"),
    "percentile_bars": lambda: percentile_bars({}, "download"),
    "time_series": lambda: time_series([Line("soft", [], [])], "repairs"),
    "heat_map": lambda: heat_map(["4"], ["64"], [[None]]),
    "trees": lambda: trees([]),
    "lines": lambda: lines([], "N", "depth"),
}
kinds = pytest.mark.parametrize("kind", FIGURES)


@cache
def drawn(kind: str) -> str:
    return svg(FIGURES[kind]())


def axes_of(figure: Figure) -> Axes:
    return figure.axes[0]


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


# Every kind


@kinds
def test_a_figure_is_a_picture_with_a_name_that_fits_into_a_page(kind: str) -> None:
    text = drawn(kind)
    root = parsed(text)
    assert text.startswith("<svg ")
    assert root.get("role") == "img"
    assert root.get("width") == "100%"
    assert root.get("height") is None
    assert root[0].tag == f"{{{SVG}}}title"
    assert root[0].text


@kinds
def test_a_figure_is_drawn_in_lines_and_letters_alone(kind: str) -> None:
    """A picture of pixels would blur, and pages refuse it."""
    root = parsed(drawn(kind))
    found = {element.tag.removeprefix(f"{{{SVG}}}") for element in root.iter()}
    assert found <= {"svg", "title", "defs", "g", "path", "use", "text", "clipPath", "rect", "pattern"}
    assert "text" in found


@kinds
def test_the_same_data_give_the_same_text_and_change_no_setting_of_the_process(kind: str) -> None:
    first, before = drawn(kind), dict(matplotlib.rcParams)
    assert svg(FIGURES[kind]()) == first
    assert dict(matplotlib.rcParams) == before


def test_another_process_with_another_hash_seed_gives_the_same_text() -> None:
    program = (
        "from tests.pipeline.test_figures import FIGURES, drawn\n"
        "import sys; sys.stdout.write(''.join(map(drawn, FIGURES)))"
    )
    told = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONIOENCODING": "utf-8", "PYTHONPATH": str(ROOT)}
    other = subprocess.run([sys.executable, "-c", program], env=told, capture_output=True, check=True)
    assert other.stdout.decode() == "".join(map(drawn, FIGURES))


def test_drawing_needs_neither_pyplot_nor_a_backend() -> None:
    program = (
        "import sys, matplotlib\n"
        "from epicast.pipeline.figures.distributions import cdf\n"
        "from epicast.pipeline.figures.inline_svg import svg\n"
        "svg(cdf([('a', [1], [1])], 'x'))\n"
        "print('matplotlib.pyplot' in sys.modules, matplotlib.get_backend(auto_select=False))"
    )
    told = {key: value for key, value in os.environ.items() if key != "MPLBACKEND"}
    other = subprocess.run([sys.executable, "-c", program], env=told, capture_output=True, text=True, check=True)
    assert other.stdout.split() == ["False", "None"]


def test_settings_of_the_user_do_not_show() -> None:
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.facecolor": "red"}):
        assert svg(FIGURES["cdf"]()) == drawn("cdf")


@pytest.mark.parametrize("draw", EMPTY.values(), ids=EMPTY)
def test_a_figure_without_data_says_so(draw: Callable[[], Figure]) -> None:
    assert "nothing was measured" in svg(draw())


@kinds
def test_the_legend_hides_no_data(kind: str) -> None:
    figure = FIGURES[kind]()
    with style.applied():
        FigureCanvasAgg(figure).draw()
    for legend in figure.legends:
        assert not any(legend.get_window_extent().overlaps(axes.get_window_extent()) for axes in figure.axes)


# Text


def test_labels_are_text_whatever_stands_in_them() -> None:
    labels = ["<script>alert(1)</script>", "$\\frac{1}{2}$", "a & \"b\" 'c'", "日本語"]
    root = parsed(svg(bars({label: [(label, 1, 1, 1)] for label in labels}, labels[0], x_label=labels[1]), labels[0]))
    written = [element.text for element in root.iter(f"{{{SVG}}}text")]
    assert set(labels) <= set(written)
    assert not list(root.iter(f"{{{SVG}}}script"))


def test_bytes_that_no_page_may_hold_are_replaced() -> None:
    text = svg(cdf([("a\x00b\ud800", [1, 2], [1, 1])], "x\x1b"), "t\x01")
    parsed(text)
    assert "a\ufffdb\ufffd" in text
    assert not any(letter in text for letter in "\x00\x01\x1b\ud800")


def test_long_labels_are_cut_and_never_run_into_each_other() -> None:
    figure = bars(
        {"g": [(f"hyparview with brisa on top, view {size}, churn", size, size, size) for size in range(9)]}, "y"
    )
    with style.applied():
        FigureCanvasAgg(figure).draw()
    labels = axes_of(figure).get_xticklabels()
    assert all(len(label.get_text()) <= 40 for label in labels)
    assert all(label.get_rotation() == 40 for label in labels)


def test_short_labels_stand_upright_side_by_side() -> None:
    figure = FIGURES["boxes"]()
    with style.applied():
        FigureCanvasAgg(figure).draw()
    first, second = (label.get_window_extent() for label in axes_of(figure).get_xticklabels())
    assert first.x1 < second.x0


def test_a_legend_of_many_rows_makes_the_figure_higher_not_the_axes_lower() -> None:
    few = cdf([("one", [1, 2], [1, 1])], "x")
    many = cdf([(f"a label that is rather long, number {at}", [at, at + 1], [1, 1]) for at in range(12)], "x")
    for figure in (few, many):
        with style.applied():
            FigureCanvasAgg(figure).draw()
    assert axes_of(many).get_window_extent().height >= 0.9 * axes_of(few).get_window_extent().height


def test_the_first_35_curves_differ_in_more_than_colour_where_colours_come_again() -> None:
    looks = [style.look(at) for at in range(35)]
    assert len({(look.colour, str(look.dashes)) for look in looks}) == 35
    assert len({look.hatch for look in looks[:7]}) == 7


@pytest.mark.parametrize(
    ("value", "written"),
    [(0, "0"), (0.1 + 0.2, "0.3"), (1500, "1,500"), (2_500_000, "2.5 M"), (-3, "\N{MINUS SIGN}3"), (4e9, "4 G")],
)
def test_ticks_are_written_as_people_write_numbers(value: float, written: str) -> None:
    assert style.tick(value) == written


# Ids


def test_ids_that_nothing_refers_to_are_left_out_and_the_others_lead_somewhere() -> None:
    text = drawn("bars")
    root = parsed(text)
    ids = [value for element in root.iter() if (value := element.get("id"))]
    assert ids
    assert len(ids) == len(set(ids))
    assert all(f"#{name}" in text for name in ids)


def test_two_pictures_in_one_page_share_no_id_and_keep_their_looks() -> None:
    text = drawn("bars")
    one, two = embedded(text, "figure-1"), embedded(text, "figure-2")
    assert not {element.get("id") for element in parsed(one).iter() if element.get("id")} & {
        element.get("id") for element in parsed(two).iter() if element.get("id")
    }
    assert one.replace("figure-1-", "") == text


def test_what_is_no_picture_cannot_be_embedded() -> None:
    with pytest.raises(ValueError, match="figure-1 is not an SVG picture"):
        embedded("<svg><p>", "figure-1")


# Distributions


def test_a_cdf_rises_by_the_weight_of_each_value() -> None:
    (line,) = axes_of(cdf([("a", [2, 1, 4], [3, 1, 0])], "x")).get_lines()
    assert [*zip(*line.get_data(), strict=True)] == [(1, 0), (1, 0.25), (2, 1)]


def test_on_a_log_axis_zeros_count_from_the_left_edge() -> None:
    axes = axes_of(cdf([("a", [0, 10, 100], [2, 1, 1])], "x", log_x=True))
    (line,) = axes.get_lines()
    left = axes.get_xlim()[0]
    assert [*zip(*line.get_data(), strict=True)] == [(left, 0), (left, 0.5), (10, 0.75), (100, 1)]
    assert 0 < left < 10


def test_values_that_are_no_numbers_are_left_out_of_a_cdf() -> None:
    (line,) = axes_of(cdf([("a", [NAN, 1, math.inf], [5, 1, 5])], "x")).get_lines()
    assert [*line.get_ydata()] == [0, 1]


def test_marked_quantiles_are_named() -> None:
    assert "90 %" in texts(cdf([("a", [1, 2], [1, 1])], "x", quantiles=(0.9,)))


def test_boxes_stand_where_their_numbers_are() -> None:
    axes = axes_of(boxes({"tree": [Box("view 4", 1, 2, 3, 4, 5, 10)]}, "depth"))
    (box,) = axes.patches
    heights = box.get_path().vertices[:, 1]
    assert (heights.min(), heights.max()) == (2, 4)
    assert {(min(line.get_ydata()), max(line.get_ydata())) for line in axes.get_lines()} >= {(1, 2), (4, 5), (3, 3)}


def test_boxes_say_how_many_values_they_sum_up() -> None:
    assert axes_of(boxes(BOXES, "depth", x_label="view")).get_xlabel() == "view (n = 10 for each box)"
    mixed = {"a": [Box("x", 1, 2, 3, 4, 5, 8), Box("y", 1, 2, 3, 4, 5, 10)]}
    assert axes_of(boxes(mixed, "depth")).get_xlabel() == "n = 8 to 10 for each box"


def test_shades_end_at_the_percentiles_and_grow_lighter() -> None:
    patches = axes_of(percentile_bars({"tree": [Shades("x", 1, 2, 4, 8, 16)]}, "y")).patches
    assert [patch.get_y() + patch.get_height() for patch in patches] == [1, 2, 4, 8, 16]
    light = [sum(to_rgb(patch.get_facecolor())) for patch in patches]
    assert light == sorted(light)


# Comparisons


def test_bars_have_their_heights_and_intervals() -> None:
    axes = axes_of(bars({"tree": [Bar("a", 2, 1, 4), Bar("b", 3, 3, 3)]}, "y"))
    assert [patch.get_height() for patch in axes.patches] == [2, 3]
    (interval,) = [segment for errors in axes.collections for segment in errors.get_segments()]
    assert [y for _, y in interval] == [1, 4]


def test_published_values_stand_beside_the_bar_not_on_it() -> None:
    axes = axes_of(FIGURES["bars"]())
    (marks,) = [line for line in axes.get_lines() if line.get_marker() == "D"]
    ((x,), (y,)) = marks.get_data()
    assert y == 5
    assert all(not patch.get_x() <= x <= patch.get_x() + patch.get_width() for patch in axes.patches)
    assert "published" in texts(FIGURES["bars"]())


def test_a_bar_that_was_not_measured_leaves_a_gap() -> None:
    axes = axes_of(bars({"tree": [("a", NAN, NAN, NAN), ("b", 3, NAN, NAN)]}, "y"))
    assert [patch.get_height() for patch in axes.patches] == [3]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b"]


def test_lines_mark_the_values_that_were_measured() -> None:
    axes = axes_of(lines([Line("a", [64, 128, 512], [1, 2, 3])], "N", "depth", log_x=True))
    assert [*axes.get_xticks()] == [64, 128, 512]


def test_shaded_intervals_end_with_the_data_and_their_names_do_not_overlap() -> None:
    line = Line("a", [0, 100], [1, 2])
    figure = time_series(
        [line], "y", shaded=[(10, 12, "a long name for a short time"), (14, 500, "churn"), (200, 300, "no")]
    )
    with style.applied():
        FigureCanvasAgg(figure).draw()
    named = {text.get_text(): text for text in axes_of(figure).texts}
    assert set(named) == {"a long name for a short time", "churn"}
    one, two = (text.get_window_extent() for text in named.values())
    assert not one.overlaps(two)
    assert axes_of(figure).get_xlim() == (0, 100)


def test_cells_hold_their_numbers_in_ink_that_can_be_read() -> None:
    values = [[step / 20 for step in range(21)]]
    axes = axes_of(heat_map([str(step) for step in range(21)], ["row"], values))
    assert [text.get_text() for text in axes.texts][:3] == ["0", "0.05", "0.1"]
    (mesh,) = axes.collections
    mesh.update_scalarmappable()
    for text, cell in zip(axes.texts, mesh.get_facecolors(), strict=True):
        assert contrast(to_rgb(text.get_color()), tuple(cell[:3])) >= 3.5


def contrast(one: tuple[float, ...], two: tuple[float, ...]) -> float:
    """By the rule of the Web Content Accessibility Guidelines."""
    low, high = sorted(luminance(colour) for colour in (one, two))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: tuple[float, ...]) -> float:
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_cell_that_was_not_measured_says_nothing() -> None:
    assert [text.get_text() for text in axes_of(FIGURES["heat_map"]()).texts] == ["1.5", style.UNKNOWN]


# Trees


@st.composite
def random_trees(draw: st.DrawFn) -> dict[int, list[int]]:
    """Each node hangs below an earlier one."""
    parents = [draw(st.integers(0, at)) for at in range(draw(st.integers(0, 60)))]
    return children_of([(parent, at + 1) for at, parent in enumerate(parents)], 0)


@given(random_trees(), st.sampled_from([lambda depth: 1.0, lambda depth: 1.0 / max(depth, 1)]))
def test_no_two_subtrees_overlap_and_parents_stand_above_their_children(
    children: dict[int, list[int]], gap: Callable[[int], float]
) -> None:
    depth, place = depths(children, 0), tidy(children, 0, gap)
    levels: dict[int, list[float]] = {}
    for node in depth:  # breadth first: along each level from left to right
        levels.setdefault(depth[node], []).append(place[node])
    for level, row in levels.items():
        assert all(right - left >= gap(level) - 1e-9 for left, right in pairwise(row))
    for node, row in children.items():
        if row:
            assert place[node] == pytest.approx((place[row[0]] + place[row[-1]]) / 2)
    assert min(place.values()) == 0


def test_a_chain_longer_than_the_stack_can_be_laid_out() -> None:
    chain = children_of([(at, at + 1) for at in range(1500)], 0)
    assert set(tidy(chain, 0, lambda depth: 1.0).values()) == {0.0}


def test_circles_and_second_parents_do_not_confuse_the_layout() -> None:
    assert children_of([(0, 1), (0, 2), (1, 2), (2, 0), (2, 3), (3, 2), (7, 8)], 0) == {0: [1, 2], 1: [], 2: [3], 3: []}


def test_a_tree_tells_how_many_stand_at_each_depth_and_what_has_no_way() -> None:
    figure = tree([*EDGES, (2, 4), (8, 9)], 0)
    assert texts(figure).count("2") >= 2  # two at depth 1, two at depth 2, and process 2
    assert "2 more without a way from the root" in texts(figure)
    assert "further parent" in texts(figure)
    assert figure.get_label() == "Dissemination trees: tree with 6 processes and depth 3"


def test_a_broad_tree_goes_in_rings_and_a_slim_one_from_the_top_down() -> None:
    assert axes_of(FIGURES["rings"]()).get_aspect() == 1
    assert axes_of(FIGURES["tree"]()).get_aspect() == "auto"


def test_trees_side_by_side_share_the_scale_of_their_depth() -> None:
    figure = FIGURES["trees"]()
    left, right = figure.axes
    assert left.get_ylim() == right.get_ylim()


def test_512_processes_can_be_told_apart() -> None:
    """Each mark has a place of its own, further from the others than a mark is broad."""
    figure = tree([((at - 1) // 3, at) for at in range(1, 512)], 0)
    axes = axes_of(figure)
    with style.applied():
        FigureCanvasAgg(figure).draw()
    marks = [line for line in axes.get_lines() if line.get_marker() in {"o", "s", "D"}]
    points = [tuple(point) for line in marks for point in axes.transData.transform(line.get_xydata())]
    assert len(points) == 512
    closest = min(math.dist(one, two) for at, one in enumerate(points) for two in points[:at])
    broadest = max(line.get_markersize() for line in marks if line.get_marker() != "D")
    assert closest * style.POINTS_PER_IN / figure.dpi >= 0.95 * broadest
