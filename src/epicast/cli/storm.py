"""`epicast storm`: runs under random faults, each decided by one number, judged against what the stack promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from epicast.cli import completion as names

if TYPE_CHECKING:
    from epicast.sim.storm import Verdict


def storm(
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The number of the (first) storm.")] = 0,
    runs: Annotated[
        int, typer.Option(metavar="N", min=1, max=1_000_000, help="How many, with seeds from there on.")
    ] = 1,
    stack: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="A named stack that promises agreement or an order.", autocompletion=names.stormy
        ),
    ] = "brisa",
    engine: Annotated[str, typer.Option(metavar="NAME", help="auto, pure or compiled.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the scenario of the storm and do not run it.")] = False,
) -> None:
    """Play storms: churn, crashes, partitions, loss and pauses, then heal and check what the stack promises.

    Exits with 1 if a promise was broken. The same seed plays the same storm again.
    """
    from epicast.cli.output import print_json
    from epicast.sim.storm import Storm, draw

    if show:
        print(draw(seed, stack).to_toml(), end="")
        return
    failed = 0
    for number in range(seed, seed + runs):
        verdict = Storm(number, stack, engine).play()
        failed += not verdict.passed
        if as_json:
            print_json(as_dict(verdict))
        else:
            print(in_words(verdict), flush=True)
    if runs > 1 and not as_json:
        print(f"{runs - failed} of {runs} storms passed")
    if failed:
        raise typer.Exit(1)


def in_words(verdict: Verdict) -> str:
    scenario, faults = verdict.scenario, ", ".join(fault.kind for fault in verdict.scenario.fault)
    head = f"storm {verdict.seed}: {scenario.nodes} nodes, {scenario.network.transport}, {faults}"
    if scenario.churn:
        head += f", {scenario.churn}"
    if verdict.passed:
        return f"{head}: passed, at rest {verdict.rest_us / 1e6:.0f} s after the last fault"
    return "\n".join([f"{head}: FAILED", *(f"  {violation}" for violation in verdict.violations)])


def as_dict(verdict: Verdict) -> dict[str, Any]:
    return {
        "seed": verdict.seed,
        "passed": verdict.passed,
        "violations": verdict.violations,
        "rest_s": verdict.rest_us / 1e6,
        "scenario": verdict.scenario.as_dict(),
        "summary": verdict.summary.as_dict() if verdict.summary is not None else None,
    }
