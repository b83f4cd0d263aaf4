"""`epicast sim`: play one scenario and tell how it went."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from epicast.sim.scenario import Scenario
    from epicast.sim.summary import Summary

SCENARIO, NETWORK, RUN, OUTPUT = "Scenario", "Network", "Run", "Output"
INTERRUPTED = 130


def sim(
    scenario: Annotated[Path | None, typer.Argument(help="A scenario file; the options below win over it.")] = None,
    stack: Annotated[
        str | None,
        typer.Option(help="A named stack (see `epicast stacks`) or a stack's TOML file.", rich_help_panel=SCENARIO),
    ] = None,
    nodes: Annotated[int | None, typer.Option(help="How many processes.", rich_help_panel=SCENARIO)] = None,
    messages: Annotated[int | None, typer.Option(help="How many are published.", rich_help_panel=SCENARIO)] = None,
    rate: Annotated[
        float | None, typer.Option(help="Messages a second, of all sources together.", rich_help_panel=SCENARIO)
    ] = None,
    payload: Annotated[int | None, typer.Option(help="Bytes of a message.", rich_help_panel=SCENARIO)] = None,
    pattern: Annotated[str | None, typer.Option(help="rate, burst or poisson.", rich_help_panel=SCENARIO)] = None,
    sources: Annotated[int | None, typer.Option(help="How many processes publish.", rich_help_panel=SCENARIO)] = None,
    churn: Annotated[
        str | None,
        typer.Option(help='A script, like "const churn 3% each 60s".', rich_help_panel=SCENARIO),
    ] = None,
    warmup: Annotated[
        str | None, typer.Option(help='Between the last join and the first message: "15s".', rich_help_panel=SCENARIO)
    ] = None,
    drain: Annotated[
        str | None, typer.Option(help='At most so long after the last message: "20s".', rich_help_panel=SCENARIO)
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other setting, of the stack's roles (membership.active_size=5) or of the scenario "
            "(network.duplication=0.01). May be repeated.",
            rich_help_panel=SCENARIO,
        ),
    ] = None,
    latency: Annotated[
        str | None, typer.Option(help='Of a message: "uniform 10ms 100ms".', rich_help_panel=NETWORK)
    ] = None,
    loss: Annotated[float | None, typer.Option(help="Share of transmissions lost.", rich_help_panel=NETWORK)] = None,
    transport: Annotated[str | None, typer.Option(help="tcp or datagram.", rich_help_panel=NETWORK)] = None,
    seed: Annotated[
        int | None, typer.Option(help="Same scenario and seed, same run.", rich_help_panel=RUN)
    ] = None,
    engine: Annotated[str, typer.Option(help="auto, pure or compiled.", rich_help_panel=RUN)] = "auto",
    codec_check: Annotated[
        bool, typer.Option("--codec-check", help="Encode and decode every message.", rich_help_panel=RUN)
    ] = False,
    trace: Annotated[
        Path | None, typer.Option(help="Write a run folder: all that happened.", rich_help_panel=OUTPUT)
    ] = None,
    trace_level: Annotated[
        str,
        typer.Option(
            help="deliveries: what applications see; full: every message sent and received as well.",
            rich_help_panel=OUTPUT,
        ),
    ] = "deliveries",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a complete run in the folder.", rich_help_panel=OUTPUT)
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=OUTPUT)] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Play one scenario in the simulator and tell how it went.

    What neither the file nor an option says has its default: 256 nodes of the stack brisa, 500 messages of 1 KB at 5 a
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
        return runs.play_into(folder, world, report, overwrite=overwrite)


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
