"""What the documents say of the pipeline is what the code has. EPICAST_REWRITE=1 writes docs/metrics.md anew."""

import os

from epicast.experiments import catalog
from epicast.pipeline.check import HERE_ROWS_MAX, HERE_RUNS_MAX
from epicast.pipeline.guarantees import GUARANTEES
from epicast.pipeline.metrics import HISTOGRAMS, METRICS, SERIES
from epicast.pipeline.small_runs import LARGE_ROWS
from epicast.pipeline.tables import TABLES
from tests.tidy.source import ROOT
from tests.tidy.test_docs import table

INTRODUCTION = """# Metrics

What is measured of every run. A number that does not exist in a run (no tree, no areas, no duplicates because the trace
holds deliveries only) is left out; so are those named `drop_...`, unless the experiment asks for them. Those about
the order of deliveries are of runs whose messages have times of their own, or of experiments that ask for them. Reports
show means over the seeds with 95 % intervals of Student's t.
"""
PARTS = (
    ("Numbers", "One per run.", METRICS),
    ("Distributions", "Values and how often each came in a run; reports add them up over the seeds.", HISTOGRAMS),
    ("Time series", "From the first publication on; reports show the mean over the seeds.", SERIES),
)


def written() -> str:
    text = INTRODUCTION
    for title, what, names in PARTS:
        rows = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in names.items())
        text += f"\n## {title}\n\n{what}\n\n| name | meaning |\n|---|---|\n{rows}\n"
    return text


def test_every_metric_is_documented() -> None:
    path = ROOT / "docs" / "metrics.md"
    if os.environ.get("EPICAST_REWRITE"):
        path.write_text(written(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == written()


def test_every_guarantee_is_documented() -> None:
    text = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    for guarantee in GUARANTEES:
        assert f"| `{guarantee.name}` | {guarantee.statement} |" in text


def test_every_derived_table_is_documented_with_its_columns() -> None:
    text = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    documented = {
        name: (key.split(", "), columns.split(", ")) for name, _, key, columns in rows_after(text, "derived tables")
    }
    assert documented == {each.name: (list(each.key), each.schema.names) for each in TABLES}


def rows_after(text: str, name: str) -> list[list[str]]:
    return [[cell.replace("`", "") for cell in row] for row in table(text, name)]


def test_the_limits_of_the_engines_are_documented() -> None:
    text = " ".join((ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8").split())
    assert f"up to {HERE_ROWS_MAX // 1_000_000} million rows in up to {HERE_RUNS_MAX} runs" in text
    assert f"(above {LARGE_ROWS // 1_000_000} million rows)" in text


def test_every_experiment_is_documented() -> None:
    text = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    for name in catalog.names():
        assert f"`epicast run {name}`" in text
