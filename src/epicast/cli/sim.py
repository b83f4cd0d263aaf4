"""`epicast sim`: play one scenario and tell how it went."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epicast.cli import completion as names
from epicast.cli.options import option

if TYPE_CHECKING:
    from epicast.sim.scenario import Scenario
    from epicast.sim.summary import Summary

INTERRUPTED = 130


def sim(
    scenario: Annotated[
        Path | None, typer.Argument(metavar="SCENARIO.toml", help="A scenario file; options win over it.")
    ] = None,
    stack: Annotated[
        str | None,
        option("Scenario", "NAME", "See `epicast stacks`; or a stack's TOML file.", autocompletion=names.stacks),
    ] = None,
    nodes: Annotated[int | None, option("Scenario", "N", "How many processes.")] = None,
    messages: Annotated[int | None, option("Scenario", "N", "How many are published.")] = None,
    rate: Annotated[float | None, option("Scenario", "R", "Messages a second, of all sources together.")] = None,
    payload: Annotated[int | None, option("Scenario", "BYTES", "The size of a message.")] = None,
    pattern: Annotated[str | None, option("Scenario", "NAME", "rate, burst or poisson.")] = None,
    sources: Annotated[int | None, option("Scenario", "N", "How many processes publish.")] = None,
    churn: Annotated[str | None, option("Scenario", "SCRIPT", 'Like "const churn 3% each 60s".')] = None,
    warmup: Annotated[str | None, option("Scenario", "TIME", "From the last join to the first message.")] = None,
    drain: Annotated[str | None, option("Scenario", "TIME", "At most so long after the last message.")] = None,
    latency: Annotated[str | None, option("Network", "MODEL", 'Like "uniform 10ms 100ms".')] = None,
    loss: Annotated[float | None, option("Network", "SHARE", "Of transmissions that are lost.")] = None,
    transport: Annotated[str | None, option("Network", "NAME", "tcp or datagram.")] = None,
    settings: Annotated[
        list[str] | None,
        option(
            "Any other setting",
            "NAME=VALUE",
            "Of the stack's roles (membership.active_size=5) or of the scenario (network.duplication=0.01); repeat it.",
            "--set",
        ),
    ] = None,
    seed: Annotated[int | None, option("Run", "N", "Same scenario and seed, same run.")] = None,
    engine: Annotated[str, option("Run", "NAME", "auto, pure or compiled.")] = "auto",
    codec_check: Annotated[bool, option("Run", None, "Encode and decode every message.", "--codec-check")] = False,
    trace: Annotated[Path | None, option("Output", "FOLDER", "Keep what happened in a run folder.")] = None,
    trace_level: Annotated[
        str, option("Output", "LEVEL", "deliveries, or full: every message sent and received as well.")
    ] = "deliveries",
    overwrite: Annotated[bool, option("Output", None, "Replace a complete run in the folder.", "--overwrite")] = False,
    as_json: Annotated[bool, option("Output", None, "Print one JSON object.", "--json")] = False,
    quiet: Annotated[bool, option("Output", None, "No progress.", "--quiet", "-q")] = False,
) -> None:
    """Play one scenario in the simulator and tell how it went.

    What neither the file nor an option says has its default: 256 nodes of the stack brisa, 50 messages of 1 KB at 5 a
    second, latencies uniform from 10 to 100 ms, no churn, seed 7.
    """
    from epicast.cli.settings import build_scenario, stack_from

    flags = {
        "stack": None if stack is None else stack_from(stack),
        "nodes": nodes,
        "workload.messages": messages,
        "workload.rate": rate,
        "workload.payload_bytes": payload,
        "workload.pattern": pattern,
        "workload.sources": sources,
        "churn": churn,
        "warmup": warmup,
        "drain": drain,
        "latency": latency,
        "network.loss": loss,
        "network.transport": transport,
        "seed": seed,
        "codec_check": codec_check or None,
    }
    built = build_scenario(scenario, flags, settings or ())
    summary = _play(built, engine, trace, trace_level, overwrite=overwrite, quiet=quiet)
    _print(summary, built, trace, as_json=as_json)
    if summary.interrupted:
        raise typer.Exit(INTERRUPTED)


def _play(
    scenario: Scenario, engine: str, folder: Path | None, level_name: str, *, overwrite: bool, quiet: bool
) -> Summary:
    from epicast.cli import runs
    from epicast.cli.progress import progress
    from epicast.sim.world import World

    level = runs.trace_level(level_name)
    world = World(scenario, engine=engine, level=level, replay=runs.replay_command())
    with progress(f"{world.stack.name}, {scenario.nodes:,} nodes", quiet=quiet) as report:
        if folder is None:
            return runs.play(world, report)
        return runs.record(folder, world, report, overwrite=overwrite)


def _print(summary: Summary, scenario: Scenario, folder: Path | None, *, as_json: bool) -> None:
    from epicast.cli.output import console, note, print_json

    if as_json:
        print_json({**summary.as_dict(), "run_folder": None if folder is None else str(folder)})
    else:
        from epicast.cli.summary_view import summary_view

        console().print(summary_view(summary, scenario, folder))
    if summary.interrupted:
        sys.stdout.flush()
        kept = "" if folder is None else f"; {folder} is marked incomplete"
        note(f"interrupted at {summary.virtual_s:.1f} s of virtual time{kept}")
