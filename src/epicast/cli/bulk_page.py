"""What balls and bins did at each size, as one HTML file with figures, laid out like the reports of experiments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from epicast import __version__
from epicast.cli import bulk_view, runs
from epicast.cli import formats as f
from epicast.pipeline.figures import inline_svg
from epicast.pipeline.figures.comparison import Line, lines
from epicast.pipeline.report import render
from epicast.pipeline.report.data import CheckRow, FigureBlock, ReportData, TableBlock
from epicast.sim.bulk.sizes import Size, SizesConfig

DELAYS = {
    "unordered_ms": "received, half of the processes",
    "last_ms": "received, all",
    "global_ms": "delivered, global clock",
    "logical_ms": "delivered, logical clocks",
}
LEFT_OUT = (
    "One event at a time: others would make it wait for its turn, or be dropped if it came after it.",
    "Every ball goes to a fresh uniform sample of all processes; nobody joins, leaves, crashes or drifts.",
)


def write(path: Path, config: SizesConfig, sizes: Sequence[Size]) -> None:
    render.write(page(config, sizes), path)


def page(config: SizesConfig, sizes: Sequence[Size]) -> ReportData:
    return ReportData(
        experiment="bulk",
        title="Balls and bins, by the size of the system",
        question="How long does one event take, and what does each process send for it?",
        answers="",
        setup=_setup(config),
        checks=(_agreement(config, sizes),),
        figures=(_delay_figure(sizes), _bytes_figure(config, sizes)),
        tables=(_table(config, sizes),),
        runs_done=sum(len(size.outcomes) for size in sizes),
        versions=(("epicast", __version__),),
        command=runs.replay_command(),
        notes=LEFT_OUT,
    )


def _setup(config: SizesConfig) -> tuple[tuple[str, str], ...]:
    after = "is passed on all the same" if config.go_on else "stays"
    return (
        ("Rounds", f"{f.ms(config.period_us / 1000)}; an event is passed on for {config.c:g} log2 n of them"),
        ("Latency", config.latency),
        ("Lost", f.percent(config.loss)),
        ("An event", f"{config.payload_bytes:,} bytes and {config.entry_bytes:,} for its entry in a ball"),
        ("With a copy of the last round", f"an event {after}"),
        ("Seeds", f"{config.seeds:,}, from {config.seed} on"),
    )


def _agreement(config: SizesConfig, sizes: Sequence[Size]) -> CheckRow:
    holes = sum(size.holes for size in sizes)
    owed = sum(len(size.outcomes) * (size.nodes - 1) for size in sizes)
    weak = f"{f.percent(config.loss)} of the copies are lost, and events are passed on for {config.c:g} log2 n rounds."
    return CheckRow(
        id="agreement",
        claim="Every process gets every event.",
        published="with high probability",
        measured=f"{f.count(holes)} of {f.count(owed)} were missed",
        verdict="differs" if holes else "holds",
        reason=weak if holes else "",
    )


# A single size has no scale: matplotlib finds no limits for a logarithmic axis with one value.


def _delay_figure(sizes: Sequence[Size]) -> FigureBlock:
    curves = [_line(label, sizes, name) for name, label in DELAYS.items()]
    return FigureBlock(
        id="delay",
        title="Delay by size",
        caption="Since the broadcast; medians over the processes but for the last one. Bars reach from the smallest to "
        "the largest of the seeds.",
        svg=inline_svg.svg(lines(curves, "processes", "delay (ms)", log_x=len(sizes) > 1, log_y=True)),
    )


def _bytes_figure(config: SizesConfig, sizes: Sequence[Size]) -> FigureBlock:
    scale = config.event_bytes / 1000
    nodes = [float(size.nodes) for size in sizes]
    most = Line("fanout times rounds", nodes, [size.fanout * size.rounds * scale for size in sizes])
    curves = [_line("sent", sizes, "copies", scale), most]
    return FigureBlock(
        id="bytes",
        title="Bytes by size",
        caption="Sent by a process for one event, on average; and what it would be if every process sent in as many "
        "rounds as an event has, the number that the analysis of balls and bins counts with.",
        svg=inline_svg.svg(lines(curves, "processes", "KB per process and event", log_x=len(sizes) > 1)),
    )


def _line(label: str, sizes: Sequence[Size], name: str, scale: float = 1.0) -> Line:
    known = [(float(size.nodes), found) for size in sizes if (found := size.over_seeds(name)) is not None]
    means, lows, highs = ([getattr(found, end) * scale for _, found in known] for end in ("mean", "low", "high"))
    return Line(label, [nodes for nodes, _ in known], means, lows, highs)


def _table(config: SizesConfig, sizes: Sequence[Size]) -> TableBlock:
    rows = tuple(tuple(bulk_view.cells(config, size)) for size in sizes)
    return TableBlock("numbers", "Numbers by size", bulk_view.MEANING, bulk_view.HEADER, rows)
