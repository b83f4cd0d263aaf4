"""`epicast cluster`: many nodes on this machine, with one command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epicast.cli import completion as names
from epicast.cli import live_options as live
from epicast.cli.options import option
from epicast.core.errors import EpicastError

if TYPE_CHECKING:
    from epicast.live.cluster import Cluster, Outcome, Summary
    from epicast.live.member import Member

NOT_DELIVERED = 1


Stack = Annotated[
    str, option("Cluster", "NAME", "See `epicast stacks`; or a stack's TOML file.", autocompletion=names.stacks)
]
Order = Annotated[
    list[str] | None, option("Cluster", "ORDER", "Of all topics: fifo, causal, total; or PATTERN=ORDER, repeated.")
]
BasePort = Annotated[int | None, option("Cluster", "P", "Listen at ports from here on. Default: free ones.")]
Tls = Annotated[bool, option("Cluster", None, "Make keys, and encrypt.", "--tls")]
Areas = Annotated[int, option("Cluster", "K", "Deal the nodes to so many areas, in turn.", min=1)]
FarDelay = Annotated[str, option("Cluster", "TIME", "Between areas, one way. Default: 25ms, if there are areas.")]
Seconds = Annotated[float | None, option("Cluster", "S", "End so long after all is ready. Default: on Ctrl-C.", min=0)]
Messages = Annotated[
    int | None, option("Workload", "N", "So many are published by the first node; all shall deliver them.", min=1)
]
Publishers = Annotated[int, option("Workload", "K", "The first K nodes publish, each its share.", min=1)]
Rate = Annotated[float, option("Workload", "R", "So many a second; 0: as fast as it goes.", min=0)]
Payload = Annotated[int, option("Workload", "BYTES", "The size of a message.", min=1, max=1 << 18)]
KillEvery = Annotated[
    float | None,
    option(
        "Turmoil", "SECONDS", "Kill a process with SIGKILL, again and again, but for the first half and publishers."
    ),
]
AddEvery = Annotated[float | None, option("Turmoil", "SECONDS", "Add a process, again and again, up to twice as many.")]
Trace = Annotated[Path | None, option("Output", "FOLDER", "Each node writes down what happens; see `epicast check`.")]
TraceLevel = Annotated[str, option("Output", "LEVEL", "deliveries, or full: every message sent and received as well.")]


def cluster(
    context: typer.Context,
    nodes: Annotated[int, typer.Argument(metavar="N", help="How many processes, up to 200.")],
    stack: Stack = "brisa",
    order: Order = None,
    settings: live.Set = None,
    base_port: BasePort = None,
    tls: Tls = False,
    areas: Areas = 1,
    far_delay: FarDelay = "25ms",
    seconds: Seconds = None,
    messages: Messages = None,
    publishers: Publishers = 1,
    rate: Rate = 100.0,
    payload: Payload = 1000,
    kill_every: KillEvery = None,
    add_every: AddEvery = None,
    trace: Trace = None,
    trace_level: TraceLevel = "full",
    as_json: live.Json = False,
    quiet: live.Quiet = False,
) -> None:
    """Start N nodes on this machine, the first of which is the seed of the others, until Ctrl-C.

    It ends with a summary: messages, latency, losses. Exit code 1: a node that was there all the time did not deliver
    all messages of the workload.
    """
    from epicast.live.cluster import Plan
    from epicast.live.conduct import Workload, conduct
    from epicast.live.running import run

    if messages is None:
        _require_unset(context, "publishers", "rate", "payload")
    command = [sys.executable, "-m", "epicast.cli.main", "node"]
    plan = Plan(
        nodes,
        command,
        stack,
        trace,
        trace_level,
        base_port,
        tls,
        areas,
        far_delay,
        order=order or (),
        settings=settings or (),
        kill_every_s=kill_every,
        add_every_s=add_every,
    )
    workload = None if messages is None else Workload(messages, rate, payload, min(publishers, nodes))
    audience = _Audience(as_json=as_json, quiet=quiet, lasting=seconds is None)
    run(conduct(plan, workload, seconds, audience))
    if audience.failed:
        raise typer.Exit(NOT_DELIVERED)


def _require_unset(context: typer.Context, *names: str) -> None:
    """Options of a workload say nothing without one."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise EpicastError(f"--{name}: there is no workload; add --messages N")


class _Audience:
    def __init__(self, *, as_json: bool, quiet: bool, lasting: bool) -> None:
        from epicast.cli.progress import LINE_EVERY_S, Every

        self._as_json, self._quiet, self._lasting = as_json, quiet, lasting
        self._due = Every(LINE_EVERY_S)
        self._due()  # a small cluster needs no line
        self.failed = False

    def starting(self, how_far: str) -> None:
        if self._due():
            self._note(f"{how_far} nodes have started")

    def ready(self, cluster: Cluster, seconds: float) -> None:
        from epicast.cli import cluster_view as view

        self._print(view.ready_dict(cluster, seconds), view.ready_view, cluster, seconds, self._lasting)

    def played(self, outcome: Outcome) -> None:
        from epicast.cli import cluster_view as view

        self.failed = bool(outcome.missing)
        self._print(view.outcome_dict(outcome), view.outcome_view, outcome)

    def changed(self, member: Member, what: str) -> None:
        from epicast.cli import cluster_view as view

        if self._as_json:
            self._print(view.changed_dict(member, what), None)
        else:
            self._note(f"node {member.number} ({member.address}) {what}")

    def summed_up(self, summary: Summary) -> None:
        from epicast.cli import cluster_view as view

        self._print(view.summary_dict(summary), view.summary_view, summary)

    def ended_early(self, what: str) -> None:
        self._note(what)

    def _print(self, table: dict[str, Any], view: Any, *what: Any) -> None:
        from epicast.cli.output import print_json, show

        if self._as_json:
            print_json(table)
        else:
            show(view(*what))
        sys.stdout.flush()

    def _note(self, text: str) -> None:
        from epicast.cli.output import note

        if not self._quiet:
            note(text)
