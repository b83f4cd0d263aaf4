"""A report says what its data say, as sound HTML that fetches nothing and lets no text become markup."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from epicast.core.errors import EpicastError
from epicast.pipeline.figures.comparison import Line, bars
from epicast.pipeline.figures.heat_map import heat_map
from epicast.pipeline.figures.inline_svg import svg
from epicast.pipeline.figures.time_series import time_series
from epicast.pipeline.report.data import (
    CheckRow,
    FigureBlock,
    GuaranteeRow,
    MissingRun,
    ReportData,
    TableBlock,
)
from epicast.pipeline.report.render import Anchors, render, write
from epicast.pipeline.report.summary import summary
from tests.pipeline.browser import Browser, find_browser, running

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;{{ 7 * 7 }}{% endif %}</td></table></style>"
BARS = svg(bars({"tree": [("3 %", 2, 1, 3)], "dag": [("3 %", 4, 3, 5)]}, "lost", published={"dag": {"3 %": 5}}))
CELLS = svg(heat_map(["4", "8"], ["64"], [[1.5, 2.5]]))
SERIES = svg(time_series([Line("soft", [0, 1, 2], [1, 2, 1])], "repairs", shaded=[(1, 2, "churn")]))

HOLDS = CheckRow("BR-1a", "Half get more than 1 duplicate.", "median > 1", "median 2", "holds")
DIFFERS = CheckRow("BR-8a", "22.2 parents are lost.", "22.2", "24.9", "differs", "The printed rows are equal.")
MISSING = CheckRow("BR-17", "Twice as fast as TAG.", "2.0", "nothing", "not measured", "TAG was not played.")
KEPT = GuaranteeRow("integrity", "At most once.", True, 24, 9_728_000, 0, 0)
BROKEN = GuaranteeRow("agreement", "All or none.", True, 24, 1_000, 3, 1, "Seed 7.", ("process 211 lacks (0, 183)",))
SEEN = GuaranteeRow("fifo", "In order.", False, 24, 1_000, 1_211, 12, "", ("(0, 41) before (0, 40)",))
UNJUDGED = GuaranteeRow("total", "One order.", False, 0, 0, 0, 0)

REPORT = ReportData(
    experiment="br-1",
    title="Duplicates of flooding",
    question="How many duplicates does flooding cost?",
    answers="Figure 4.3",
    setup=(("Processes", "512"), ("Churn", "none")),
    checks=(HOLDS, DIFFERS, MISSING),
    figures=(
        FigureBlock("bars", "Parents lost", "Means over ten seeds.", BARS),
        FigureBlock("cells", "Copies", "", CELLS),
        FigureBlock("series", "Repairs", "Bands are intervals.", SERIES),
    ),
    tables=(
        TableBlock("t", "Duplicates", "Per message.", ("View", "Mean"), (("four", "2.03"), ("eight", "6.1 (5.9)"))),
    ),
    guarantees=(KEPT, BROKEN, SEEN, UNJUDGED),
    runs_done=24,
    runs_failed=(MissingRun("br-1/10/3", "view 10, seed 3", "out of memory"),),
    versions=(("epicast", "0.4.0"),),
    command="epicast run br-1 --seeds 10",
    made="16 November 2026",
    notes=("Latencies are drawn.",),
)


# Reading a page strictly

VOID = {"meta", "br", "img", "link", "input", "hr"}


class StrictPage(HTMLParser):
    """Every tag is closed in its turn, no attribute comes twice; collects what tests ask about."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.shown: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "svg" in self.open, f"<{tag} /> outside a picture"
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another tag"

    def handle_data(self, data: str) -> None:
        if data.strip() and not {"style", "svg"} & set(self.open):
            self.shown.append(" ".join(data.split()))

    @property
    def text(self) -> str:
        return " ".join(self.shown)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def page() -> StrictPage:
    return StrictPage(render(REPORT))


def test_the_strict_reader_rejects_unsound_pages() -> None:
    for unsound in ("<p><b></p></b>", "<div>", "</div>", '<p id="a" id="b"></p>', "<br/>"):
        with pytest.raises(AssertionError):
            StrictPage(unsound)


# Sound and self-contained


def test_ids_are_unique_and_links_lead_to_them(page: StrictPage) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [attributes["href"] for _, attributes in page.tags if "href" in attributes]
    assert targets
    assert {str(target) for target in targets} <= {f"#{name}" for name in ids}


def test_nothing_comes_from_outside_and_nothing_runs(page: StrictPage) -> None:
    text = render(REPORT)
    assert set(re.findall(r"\w+://[^\s\"'<)]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in text
    assert not {"script", "link", "iframe", "object", "embed", "img", "form"} & {tag for tag, _ in page.tags}
    assert not any(name == "src" or name.startswith("on") for _, attributes in page.tags for name in attributes)
    (policy,) = [meta["content"] for meta in page.all("meta") if meta.get("http-equiv")]
    assert str(policy).startswith("default-src 'none'; style-src 'unsafe-inline';")


def test_a_page_has_one_main_heading_and_no_level_is_skipped(page: StrictPage) -> None:
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h\d", tag)]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_same_data_give_the_same_page() -> None:
    assert render(REPORT) == render(dataclasses.replace(REPORT))


def test_the_least_report_is_sound_too() -> None:
    page = StrictPage(render(ReportData("x", "Title", "Why?", "Nothing")))
    assert "Nothing was checked." in page.text
    assert "No run has finished." in page.text
    assert not page.all("table")


def test_a_figure_that_comes_twice_keeps_ids_apart() -> None:
    twice = dataclasses.replace(REPORT, figures=(REPORT.figures[0], REPORT.figures[0]))
    found = StrictPage(render(twice)).tags
    ids = [attributes["id"] for _, attributes in found if "id" in attributes]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("texts", "names"),
    [(["BR-1a", "br 1A"], ["check-br-1a", "check-br-1a-2"]), (["", "ü"], ["check", "check-2"])],
)
def test_anchors_are_plain_and_each_once(texts: list[str], names: list[str]) -> None:
    anchors = Anchors()
    assert [anchors.of("check", text) for text in texts] == names


# Hostile text


def filled(data: Any, text: str) -> Any:
    """The same data with the text in the place of every text but verdicts and pictures, and of none where none was."""
    if isinstance(data, str):
        return text if data else data
    if isinstance(data, tuple):
        return tuple(filled(each, text) for each in data)
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        kept = {"verdict", "svg"}
        names = [field.name for field in dataclasses.fields(data) if field.name not in kept]
        return dataclasses.replace(data, **{name: filled(getattr(data, name), text) for name in names})
    return data


def shape(page: StrictPage) -> list[str]:
    return [tag for tag, _ in page.tags]


def test_hostile_text_stays_text_wherever_it_stands(page: StrictPage) -> None:
    attacked = StrictPage(render(filled(REPORT, HOSTILE)))
    assert shape(attacked) == shape(page)
    assert attacked.text.count(HOSTILE) > 60
    assert not any(name.startswith("on") for _, attributes in attacked.tags for name in attributes)


@settings(max_examples=40)
@given(st.text(st.characters(codec=None), max_size=30))
def test_no_text_whatever_changes_the_page_around_it(text: str) -> None:
    small = dataclasses.replace(REPORT, figures=())
    rendered = render(filled(small, f"x{text}"))
    assert shape(StrictPage(rendered)) == shape(StrictPage(render(small)))
    rendered.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f]", rendered)


# What it says


def test_everything_that_was_measured_is_shown(page: StrictPage) -> None:
    expected = [REPORT.title, REPORT.question, REPORT.answers, REPORT.command, "Made 16 November 2026", *REPORT.notes]
    expected += [word for pair in (*REPORT.setup, *REPORT.versions) for word in pair]
    expected += [
        word for check in REPORT.checks for word in (check.claim, check.published, check.measured, check.reason)
    ]
    expected += [
        "Figure 1. Parents lost",
        "Figure 3. Repairs",
        "Means over ten seeds.",
        "Table 1. Duplicates",
        "6.1 (5.9)",
    ]
    expected += ["br-1/10/3", "view 10, seed 3", "out of memory", "24 runs finished", "9,728,000", "Seed 7."]
    assert [text for text in expected if text not in page.text] == []


def test_verdicts_are_words_not_colours_alone(page: StrictPage) -> None:
    words = ["Holds", "Differs", "Not measured", "Kept", "Broken", "Did not hold", "Not judged"]
    assert [word for word in words if word not in page.shown] == []


def test_findings_are_unfolded_where_a_promise_was_broken(page: StrictPage) -> None:
    assert [("open" in details) for details in page.all("details")] == [True, False]
    assert "1 finding of 3" in page.text
    assert "process 211 lacks (0, 183)" in page.text
    headings = ["Promised", "integrity", "agreement", "Not promised, watched all the same", "fifo", "total"]
    assert [text for text in page.shown if text in headings] == headings


def test_columns_of_numbers_stand_to_the_right(page: StrictPage) -> None:
    heads = [head.get("class") for head in page.all("th") if head.get("scope") == "col"]
    assert heads[4:6] == [None, "num"]


def test_broad_figures_take_the_whole_width(page: StrictPage) -> None:
    assert [figure.get("class") for figure in page.all("figure")] == [None, None, "wide"]


def test_complete_runs_are_said_to_be_complete() -> None:
    text = StrictPage(render(dataclasses.replace(REPORT, runs_failed=()))).text
    assert "All 24 runs finished; none is missing." in text


KEPT_LINE = "no promise was broken in 24 runs."
SUMMARIES: list[tuple[dict[str, Any], str, str]] = [
    ({"checks": (HOLDS,) * 8, "guarantees": (KEPT,)}, "good", f"8 of 8 checks hold; {KEPT_LINE}"),
    ({"checks": (HOLDS, DIFFERS), "guarantees": (KEPT, SEEN)}, "mixed", f"1 of 2 checks holds; {KEPT_LINE}"),
    ({"checks": (HOLDS,), "guarantees": ()}, "good", "The only check holds."),
    ({"checks": (DIFFERS,), "guarantees": (KEPT,)}, "mixed", f"The only check differs; {KEPT_LINE}"),
    ({"checks": (HOLDS, HOLDS), "guarantees": (SEEN,)}, "good", "2 of 2 checks hold; no promise was judged."),
    ({"checks": (), "guarantees": (KEPT,)}, "mixed", "No promise was broken in 24 runs."),
    (
        {"checks": (HOLDS, MISSING, DIFFERS), "guarantees": (BROKEN, KEPT), "runs_failed": REPORT.runs_failed},
        "bad",
        "1 of 3 checks holds, 1 was not measured; "
        "1 promise was broken: agreement in 1 of 24 runs; 1 of 25 runs failed.",
    ),
    (
        {"checks": (MISSING,), "guarantees": (BROKEN, dataclasses.replace(BROKEN, name="validity", runs_broken=2))},
        "bad",
        "The only check was not measured; 2 promises were broken: agreement in 1 of 24 runs, validity in 2 of 24 runs.",
    ),
]


@pytest.mark.parametrize(("changes", "tone", "line"), SUMMARIES)
def test_one_line_sums_it_up(changes: dict[str, Any], tone: str, line: str) -> None:
    assert summary(dataclasses.replace(REPORT, **{"runs_failed": (), **changes})) == (tone, line)


# Data that make no sense


def test_a_difference_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="check BR-1 differs, and its reason is not given"):
        CheckRow("BR-1", "claim", "1", "2", "differs", " ")


def test_a_verdict_is_one_of_three() -> None:
    with pytest.raises(ValueError, match="'maybe' is none of holds, differs, not measured"):
        CheckRow("BR-1", "claim", "1", "2", "maybe", "why")  # type: ignore[arg-type]


def test_rows_have_as_many_cells_as_the_header() -> None:
    with pytest.raises(ValueError, match="table t: every row needs 2 cells"):
        TableBlock("t", "title", "", ("a", "b"), (("1",),))


def test_a_guarantee_has_few_examples() -> None:
    with pytest.raises(ValueError, match="at most 5 examples"):
        dataclasses.replace(BROKEN, examples=("x",) * 6)


# The file


def test_a_report_is_written_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "results" / "report.html"
    write(REPORT, path)
    assert path.read_text(encoding="utf-8") == render(REPORT)
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(EpicastError, match=r"cannot write .*report.html: "):
        write(REPORT, tmp_path / "file" / "report.html")


# In a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium is installed: the page was not looked at")
    with running(program, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def report_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    wide = TableBlock("w", "Wide", "", tuple(f"a long heading {at}" for at in range(20)), (("1,000,000",) * 20,) * 3)
    long = dataclasses.replace(HOLDS, claim="word" * 60, measured="1" * 200)
    figures = tuple(dataclasses.replace(figure, id=f"{figure.id}{at}") for at in range(3) for figure in REPORT.figures)
    write(
        dataclasses.replace(REPORT, tables=(*REPORT.tables, wide), checks=(*REPORT.checks, long), figures=figures), path
    )
    return path


@pytest.mark.parametrize(
    ("width", "height", "dark"), [(1280, 800, False), (1280, 800, True), (820, 1100, False), (360, 740, False)]
)
def test_a_browser_shows_it_without_complaint_or_scrolling_sideways(
    browser: Browser, report_file: Path, width: int, height: int, dark: bool
) -> None:
    browser.resize(width, height, dark=dark, phone=width < 500)
    browser.load(report_file)
    assert browser.value("document.querySelectorAll('figure svg').length") == 9
    assert browser.complaints() == []
    assert browser.requests() == [report_file.as_uri()]
    assert browser.value("document.documentElement.scrollWidth") <= width
    picture = Image.open(io.BytesIO(browser.screenshot()))
    assert picture.size == (width, height)
    colours = picture.convert("RGB").getcolors(1 << 20)
    assert colours is None or len(colours) > 50
    ground = sum(picture.convert("RGB").getpixel((width - 3, height // 2)))
    assert ground < 200 if dark else ground > 600


def test_figures_fill_their_cards_and_can_be_read(browser: Browser, report_file: Path) -> None:
    browser.resize(1280, 800)
    browser.load(report_file)
    sizes = browser.value(
        "[...document.querySelectorAll('figure svg text')].map(text => text.getBoundingClientRect().height)"
        ".filter(height => height > 0)"
    )
    assert len(sizes) > 50
    assert min(sizes) >= 9
    outside = browser.value(
        "[...document.querySelectorAll('figure svg')].filter(svg => {"
        " const box = svg.getBoundingClientRect(), card = svg.closest('figure').getBoundingClientRect();"
        " return box.left < card.left || box.right > card.right || box.width < 0.85 * card.width }).length"
    )
    assert outside == 0


def test_links_of_the_contents_lead_to_what_they_name(browser: Browser, report_file: Path) -> None:
    browser.resize(1280, 800)
    browser.load(report_file)
    browser.value("document.querySelector('nav a[href=\"#guarantees\"]').click()")
    assert -5 <= browser.value("document.querySelector('#guarantees').getBoundingClientRect().top") < 400


def test_on_paper_it_has_pages_and_findings_are_unfolded(browser: Browser, report_file: Path) -> None:
    browser.resize(1280, 800, dark=True)
    browser.load(report_file)
    document = browser.pdf()
    assert document.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", document)) > 1
    if not browser.value("CSS.supports('selector(::details-content)')"):
        pytest.skip("this Chromium is older than the rule that unfolds findings on paper")
    seen = "[...document.querySelectorAll('details li')].map(li => li.checkVisibility())"
    assert browser.value(seen) == [True, False]
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.value(seen) == [True, True]
    assert browser.value("getComputedStyle(document.querySelector('nav')).display") == "none"
