"""A report as one HTML text: nothing is fetched from anywhere, and no text of the data can become markup.

Everything is escaped but the figures, which are our own. The page's policy allows no script and no connection; so even
markup that slipped through could neither run nor call home.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from epicast.core.errors import EpicastError
from epicast.pipeline.figures.inline_svg import embedded
from epicast.pipeline.report.data import FigureBlock, GuaranteeRow, ReportData, TableBlock
from epicast.pipeline.report.summary import counted, summary
from epicast.trace.files import one_line, write_text

TEMPLATE, STYLE = "report.html.jinja", "report.css"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_WIDE_FROM = 450  # points: such a figure takes the whole width of the page
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Also with an interval or a published value beside it, and a unit: "2.6 (2.3)", "24.9 [21.8, 27.3] ms", "< 5 %".
_NUMBER = re.compile(
    r"[-+±<>≤≥~≈\u2212]?\s?\d[\d.,;\s()\[\]%±+\u2212\u2013-]*(?:[kKMG]?B|[mµn]?s|min|x|\u00d7)?|[-\u2013\u2014]?"
)
_VIEW_BOX = re.compile(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ')


def write(data: ReportData, path: Path) -> None:
    """The whole file or, after a crash, none."""
    text = render(data)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    except OSError as error:
        raise EpicastError(f"cannot write {path}: {one_line(error)}") from None


def render(data: ReportData) -> str:
    names = Anchors()
    context = {
        "data": data,
        "summary": summary(data),
        "checks": [(check, names.of("check", check.id)) for check in data.checks],
        "figures": [_figure(figure, names.of("figure", figure.id)) for figure in data.figures],
        "tables": [_table(table, names.of("table", table.id)) for table in data.tables],
        "guarantees": [(title, rows) for title, rows in _by_promise(data.guarantees) if rows],
    }
    page = _environment().get_template(TEMPLATE).render(context)
    return _NOT_TEXT.sub("\ufffd", page)


class Anchors:
    """Names that links lead to: plain letters, and each once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, kind: str, text: str) -> str:
        plain = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower()
        base = f"{kind}-{plain}" if plain else kind
        name, more = base, 2
        while name in self._taken:
            name, more = f"{base}-{more}", more + 1
        self._taken.add(name)
        return name


@cache
def _environment() -> Environment:
    texts = {name: (files(__package__) / name).read_text(encoding="utf-8") for name in (TEMPLATE, STYLE)}
    environment = Environment(
        autoescape=True,
        keep_trailing_newline=True,
        loader=DictLoader(texts),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["counted"] = counted
    environment.globals["style"] = Markup("\n" + texts[STYLE])
    environment.globals["policy"] = POLICY
    return environment


def _figure(block: FigureBlock, anchor: str) -> dict[str, Any]:
    box = _VIEW_BOX.search(block.svg)
    wide = box is not None and float(box[1]) > _WIDE_FROM
    return {"block": block, "anchor": anchor, "svg": Markup(embedded(block.svg, anchor)), "wide": wide}


def _table(block: TableBlock, anchor: str) -> dict[str, Any]:
    """Columns of numbers stand to the right."""
    numeric = [_numeric([row[column] for row in block.rows]) for column in range(len(block.header))]
    return {"block": block, "anchor": anchor, "numeric": numeric}


def _numeric(cells: Sequence[str]) -> bool:
    return any(cells) and all(_NUMBER.fullmatch(cell.strip()) for cell in cells)


def _by_promise(rows: Sequence[GuaranteeRow]) -> list[tuple[str, list[GuaranteeRow]]]:
    return [
        ("Promised", [row for row in rows if row.promised]),
        ("Not promised, watched all the same", [row for row in rows if not row.promised]),
    ]
