"""`epicast compare`: two ways to spread the same messages through the same trouble, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from epicast.cli.comparison import Outcome

STACKS = ("flood", "brisa")
CHURN = "const churn 3% each 10s"


def compare(
    nodes: Annotated[int, typer.Option(metavar="N", help="How many processes.")] = 512,
    messages: Annotated[int, typer.Option(metavar="N", help="How many are published, 5 a second.")] = 100,
    seed: Annotated[int, typer.Option(metavar="N", help="Same seed, same run.")] = 7,
    engine: Annotated[str, typer.Option(metavar="NAME", help="auto, pure or compiled.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Compare flooding with a BRISA tree under churn.

    The same messages, crashes and joins for both: 3 % of the processes are replaced every ten seconds.
    """
    from epicast.cli import comparison
    from epicast.cli.output import console, print_json

    settings: dict[str, Any] = {
        "nodes": nodes,
        "seed": seed,
        "churn": CHURN,
        "workload": {"messages": messages, "rate": 5, "payload_bytes": 1000},
    }
    outcomes = [_outcome({"stack": stack, **settings}, engine, quiet=quiet) for stack in STACKS]
    if as_json:
        print_json(comparison.as_dict(outcomes, settings))
    else:
        console().print(comparison.view(outcomes, settings))


def _outcome(settings: dict[str, Any], engine: str, *, quiet: bool) -> Outcome:
    from epicast.cli import runs
    from epicast.cli.comparison import Outcome
    from epicast.cli.progress import progress
    from epicast.sim.scenario import Scenario
    from epicast.sim.world import World

    world = World(Scenario.load(settings), engine=engine, replay=runs.replay_command())
    with progress(world.stack.name, quiet=quiet) as report:
        summary = runs.play(world, report)
    if summary.interrupted:  # half a comparison tells nothing
        raise KeyboardInterrupt
    return Outcome(summary, dict(world.engine.sent))
