"""`epicast bench`: how fast the simulator, the pipeline and live nodes are on this machine, and where the time goes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epicast.cli.help import Command, new_app

if TYPE_CHECKING:
    from epicast.cli.benchmarks.profile import Part, Profile

CHECK_FAILED = 1
ROUNDS, ROUNDS_AGAINST = 3, 7

Rounds = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help=f"How often; the median counts. [default: {ROUNDS}; --against: {ROUNDS_AGAINST}]"
    ),
]
Against = Annotated[
    str,
    typer.Option(
        metavar="PYTHON",
        help="Instead: compare with an older epicast, that of this interpreter, by processor time for a delivery.",
    ),
]

app = new_app(help="Measure the simulator, the pipeline and live nodes on this machine.")


@app.command(cls=Command)
def engine(
    quick: Annotated[bool, typer.Option("--quick", help="Smaller and shorter; the ratios are noisier.")] = False,
    nodes: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Sizes instead of 1,000, 10,000 and 100,000; repeat it.")
    ] = None,
    messages: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="So many everywhere, instead of what takes some seconds.")
    ] = None,
    rounds: Rounds = None,
    against: Against = "",
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if a target is missed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Measure both engines and SimPy on one workload, in turns, and what protocols, traces and idle nodes cost.

    Floods a random graph of out-degree 9, then streams over HyParView and BRISA. Every measurement runs in a process of
    its own. Takes some minutes, with --quick about two.

    With --against, whole simulations of both versions alternate. At most 5 % more processor time for a delivery is the
    target; seven rounds take some ten minutes, with --quick five.
    """
    if against:
        _refuse_with_against(nodes=nodes, messages=messages)
        from epicast.cli.benchmarks.against_bench import compare_engine

        with _progress(quiet=quiet) as tell:
            found = compare_engine(against, rounds or ROUNDS_AGAINST, tell, quick=quick)
        _show_comparison(found, check=check, as_json=as_json)
        return
    _require_simpy()
    from epicast.cli.benchmarks import report
    from epicast.cli.benchmarks.plan import make_plan
    from epicast.cli.benchmarks.runner import run_cases
    from epicast.cli.output import console, print_json

    plan = make_plan(nodes or (), messages, rounds or ROUNDS, quick=quick)
    with _progress(quiet=quiet) as tell:
        samples = run_cases(plan.cases(), tell)
    results = report.as_dict(plan, samples)
    if as_json:
        print_json(results)
    else:
        console().print(report.view(results))
    if check and any(target["met"] is False for target in results["targets"].values()):
        raise typer.Exit(CHECK_FAILED)


@app.command(cls=Command)
def pipeline(
    rows: Annotated[int, typer.Option(metavar="N", min=20_000, help="Of the traces that are analysed.")] = 50_000_000,
    rounds: Annotated[int, typer.Option(metavar="N", min=1, help="How often; the median counts.")] = 1,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 if a target is missed or answers differ.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Analyse made-up traces on embedded Spark, and with DuckDB alone: tables, guarantees and metrics.

    Many runs on two cores and on one, and one large run on two. Every measurement has a process of its own; starting
    Spark and warming up are not counted. With 50 million rows it takes some ten minutes and 4 GB on disk.
    """
    from epicast.cli.benchmarks import pipeline_report
    from epicast.cli.benchmarks.pipeline_bench import measure
    from epicast.cli.output import console, print_json

    with _progress(quiet=quiet) as tell:
        results = measure(rows, rounds, tell)
    if as_json:
        print_json(results)
    else:
        console().print(pipeline_report.view(results))
    missed = any(target["met"] is False for target in results["targets"].values())
    if check and (missed or not results["answers_equal"]):
        raise typer.Exit(CHECK_FAILED)


@app.command(cls=Command)
def live(
    quick: Annotated[bool, typer.Option("--quick", help="8 and 32 subscribers, 1 KB only.")] = False,
    systems: Annotated[str, typer.Option(metavar="A,B", help="Only these, instead of all.")] = "",
    rounds: Rounds = None,
    against: Against = "",
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if a target is missed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Compare live nodes with NATS, Redis, mosquitto and zenoh: one publisher, many subscribers of one topic.

    Deliveries a second, latency at a fixed rate, and processor time; nothing may be lost. Every system has the same
    processes, and its server if it needs one. Systems that are not installed are named. Takes fifty minutes,
    with --quick some ten minutes.

    With --against, nodes of both versions are measured in turn, plain, with TLS and with signatures. At most 5 % more
    processor time for a delivery is the target; seven rounds take an hour, with --quick a quarter of it.
    """
    from epicast.cli.benchmarks import live_report
    from epicast.cli.benchmarks.live_bench import measure
    from epicast.cli.benchmarks.live_plan import make_plan
    from epicast.cli.output import console, print_json

    chosen = [name.strip() for name in systems.split(",") if name.strip()]
    if against:
        from epicast.cli.benchmarks.against_bench import compare_live

        with _progress(quiet=quiet) as tell:
            found = compare_live(against, chosen, rounds or ROUNDS_AGAINST, tell, quick=quick)
        _show_comparison(found, check=check, as_json=as_json)
        return
    plan = make_plan(chosen, rounds or ROUNDS, quick=quick)
    with _progress(quiet=quiet) as tell:
        results = measure(plan, tell)
    if as_json:
        print_json(results)
    else:
        console().print(live_report.view(results))
    if check and any(target["met"] is False for target in results["targets"].values()):
        raise typer.Exit(CHECK_FAILED)


@app.command(cls=Command)
def profile(
    stack: Annotated[str, typer.Option(metavar="NAME", help="A named stack.")] = "brisa",
    nodes: Annotated[int, typer.Option(metavar="N", min=1, help="How many processes.")] = 1000,
    messages: Annotated[int, typer.Option(metavar="N", min=1, help="How many are published, 5 a second.")] = 50,
    top: Annotated[int, typer.Option(metavar="N", min=1, help="Rows of each table.")] = 12,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Tell where the time of a stream goes, by module, handler and function, on the pure engine."""
    from epicast.cli.benchmarks.profile import profile
    from epicast.cli.output import console, print_json

    found = profile(stack, nodes, messages)
    if as_json:
        print_json(_profile_dict(found, top))
    else:
        console().print(_profile_view(found, top))


def _refuse_with_against(**given: object) -> None:
    from epicast.core.errors import EpicastError

    for name, value in given.items():
        if value:
            raise EpicastError(f"--{name} and --against do not go together: both versions play the same cells")


def _show_comparison(found: dict[str, Any], *, check: bool, as_json: bool) -> None:
    from epicast.cli.benchmarks import against_report
    from epicast.cli.output import console, print_json

    if as_json:
        print_json(found)
    else:
        console().print(against_report.view(found))
    if check and any(target["met"] is not True for target in found["targets"].values()):
        raise typer.Exit(CHECK_FAILED)


def _require_simpy() -> None:
    from importlib.util import find_spec

    from epicast.core.errors import EpicastError

    if find_spec("simpy") is None:
        raise EpicastError('SimPy is not installed: pip install "epicast[bench]"')


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Any]:
    """Gives whom to tell how many jobs are done, of how many, and the one that was just done with its result."""
    from epicast.cli.output import console, note

    if not quiet and sys.stderr.isatty():
        from rich.progress import Progress

        with Progress(console=console(stderr=True), transient=True) as bar:
            task = bar.add_task("measuring", total=None)
            yield lambda done, total, job, _: bar.update(task, completed=done, total=total, description=job.name)
    elif quiet:
        yield lambda *_: None
    else:
        yield lambda done, total, job, result: note(f"{done}/{total} {job.name}: {_outcome(result)}")


def _outcome(result: Any) -> str:
    """What it says itself, or its time: of the processor where that is what counts."""
    return getattr(result, "outcome", "") or f"{getattr(result, 'cpu_seconds', result.seconds):.2f} s"


def _profile_dict(found: Profile, top: int) -> dict[str, Any]:
    tables = {"modules": found.modules, "handlers": found.handlers, "functions": found.functions}
    return {
        "events": found.events,
        "seconds": found.seconds,
        **{name: [part._asdict() for part in parts[:top]] for name, parts in tables.items()},
    }


def _profile_view(found: Profile, top: int) -> Any:
    from rich.console import Group

    return Group(
        f"{found.events:,} events in {found.seconds:.1f} s under the profiler",
        _parts_table("module, own time", found.modules[:top]),
        _parts_table("handler, with all that it calls", found.handlers[:top]),
        _parts_table("function, own time", found.functions[:top]),
    )


def _parts_table(heading: str, parts: list[Part]) -> Any:
    from rich import box
    from rich.table import Table

    from epicast.cli import formats as f

    table = Table(box=box.SIMPLE_HEAD, header_style="bold cyan")
    table.add_column(heading, min_width=50)
    for name in ("share", "seconds", "calls"):
        table.add_column(name, justify="right")
    for part in parts:
        table.add_row(part.name, f.percent_rounded(part.share), f"{part.seconds:.2f}", f.count(part.calls))
    return table
