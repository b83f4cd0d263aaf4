"""What the documents say of the pipeline is what the code has. EPICAST_REWRITE=1 writes docs/metrics.md anew."""

import os

from epicast.experiments import catalog
from epicast.pipeline.guarantees import GUARANTEES
from epicast.pipeline.metrics import HISTOGRAMS, METRICS, SERIES
from tests.tidy.source import ROOT

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


def test_every_experiment_is_documented() -> None:
    text = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    for name in catalog.names():
        assert f"`epicast run {name}`" in text
