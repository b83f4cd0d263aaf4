"""From an experiment to its report: sweep, analysis, evaluation."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from epicast.experiments.evaluation import Evaluate, Evaluation, Material
from epicast.pipeline.analyse import analyse_runs
from epicast.pipeline.code_version import code_version
from epicast.pipeline.guarantees import GUARANTEES
from epicast.pipeline.journal import Progress
from epicast.pipeline.judged import Judged
from epicast.pipeline.layout import Layout
from epicast.pipeline.report import data as report
from epicast.pipeline.report.render import write
from epicast.pipeline.results import Results, gather
from epicast.pipeline.session import Spark
from epicast.pipeline.small_runs import Plan
from epicast.pipeline.sweep.experiment import Experiment
from epicast.pipeline.sweep.sample import sample_tree
from epicast.pipeline.sweep.sweep import Swept, runs, sweep

Stage = Callable[[str], Progress | None]
"""Is told the name of each stage as it begins, and gives whoever follows its progress."""


@dataclass(frozen=True)
class Conducted:
    name: str
    experiment: Experiment
    swept: Swept
    results: Results
    evaluation: Evaluation
    report: Path

    @property
    def missing(self) -> int:
        """Runs that could not be played or analysed."""
        return self.swept.failed + len(self.results.unanalysed)

    @property
    def broken(self) -> list[Judged]:
        return [judged for judged in self.results.judged if judged.broken]


def conduct(
    spark: Spark,
    name: str,
    experiment: Experiment,
    evaluate: Evaluate,
    layout: Layout,
    *,
    command: Sequence[str],
    made: str,
    stage: Stage,
) -> Conducted:
    swept = sweep(spark, experiment, layout, list(command), stage("playing"))
    played = runs(spark, layout).where("status <> 'failed'")
    answers = analyse_runs(spark, played, Plan(layout, extra=experiment.extra), stage("analysing"))
    results = gather(answers, played, [point.labels for point in experiment.points()])
    evaluation = evaluate(Material(results, lambda point: sample_tree(played, layout, point)))
    done = Conducted(name, experiment, swept, results, evaluation, layout.report)
    write(_report(done, command, made), layout.report)
    return done


# The report


def _report(done: Conducted, command: Sequence[str], made: str) -> report.ReportData:
    experiment, swept = done.experiment, done.swept
    return report.ReportData(
        experiment=done.name,
        title=experiment.title,
        question=experiment.question,
        answers=experiment.answers,
        setup=_setup(experiment),
        checks=done.evaluation.checks,
        figures=done.evaluation.figures,
        tables=done.evaluation.tables,
        guarantees=tuple(_guarantee(judged) for judged in done.results.judged),
        runs_done=swept.runs - done.missing,
        runs_failed=_missing(done),
        versions=_versions(),
        command=shlex.join(command),
        made=made,
        notes=done.evaluation.notes,
    )


def _setup(experiment: Experiment) -> tuple[tuple[str, str], ...]:
    scenario = experiment.points()[0].scenario
    workload = scenario.workload
    varied = {axis: ", ".join(label for label, _ in choice.choices()) for axis, choice in experiment.axes.items()}
    stack = scenario.stack if isinstance(scenario.stack, str) else "of its own"
    rows = {
        "Stack": stack,
        "Processes": f"{scenario.nodes:,}",
        "Messages": f"{workload.messages:,} of {workload.payload_bytes:,} bytes, {workload.rate:g} a second",
        "Latency": str(scenario.latency),
        "Churn": scenario.churn or "none",
        **{f"Varied: {axis}": labels for axis, labels in varied.items()},
        "Seeds": f"{experiment.seeds}, from {experiment.first_seed}",
        "Runs": f"{len(experiment):,}",
        "Trace": experiment.trace,
    }
    fixed = {"stack": "Stack", "nodes": "Processes", "churn": "Churn", "latency": "Latency"}
    for axis, choice in experiment.axes.items():
        rows.pop(fixed.get(choice.key, ""), None)
        rows.pop(fixed.get(axis, ""), None)
    return tuple(rows.items())


def _guarantee(judged: Judged) -> report.GuaranteeRow:
    statements = {guarantee.name: guarantee.statement for guarantee in GUARANTEES}
    return report.GuaranteeRow(
        name=judged.guarantee,
        statement=statements[judged.guarantee],
        promised=judged.promised,
        runs_judged=judged.runs_judged,
        checked=judged.checked,
        violations=judged.violations,
        runs_broken=judged.runs_broken,
        note=judged.note,
        examples=judged.examples,
    )


def _missing(done: Conducted) -> tuple[report.MissingRun, ...]:
    played = [report.MissingRun(f.run, f"{f.point}, seed {f.seed}", f.reason) for f in done.swept.failures]
    return (*played, *(report.MissingRun(run, "", reason) for run, reason in done.results.unanalysed))


def _versions() -> tuple[tuple[str, str], ...]:
    packages = {name: version(name) for name in ("pyspark", "duckdb", "pyarrow", "numpy")}
    return (("epicast", code_version()), ("Python", platform.python_version()), *packages.items())
