"""What a run comes to, in a few numbers. `as_dict` is plain enough for JSON: no NaN, null where nothing is to be said.

`copies_per_delivery` counts receptions of payloads, duplicates included, for each delivery that is not the publisher's
own. A payload that a process receives is either new, and delivered, or one that it had: then its handler says so, and
the engine counts a duplicate at any level of tracing. So receptions are deliveries, less the own ones, plus duplicates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from epicast.core.message import Message
from epicast.core.records import Kind, Level
from epicast.sim.collector import Collector
from epicast.sim.engine import Engine
from epicast.sim.histogram import Histogram
from epicast.sim.population import Population
from epicast.sim.tree import TreeShape


@dataclass(frozen=True, kw_only=True)
class Summary:
    complete: bool  # it came to its end
    interrupted: bool
    stack: str
    seed: int
    messages: int  # published
    deliveries: int
    owed: int | None  # pairs of message and process; None at trace level off
    missing: int | None
    delivery_ratio: float | None
    repeated: int | None  # deliveries of what was delivered before, or never published: always 0 if all is well
    copies_per_delivery: float | None
    duplicates_per_delivery: float | None
    latency_ms: dict[str, float | None]
    hops: dict[str, float | None]
    tree: dict[str, float | None] | None
    repairs: dict[str, int]
    gaps: int
    nodes: dict[str, int]
    messages_by_layer: dict[str, int]
    bytes_by_layer: dict[str, int]
    messages_by_type: dict[str, int]
    drops: dict[str, int]  # by reason
    in_flight: int
    virtual_s: float
    events: int
    events_per_second: int | None
    engine: str
    trace_digest: str | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def summarise(
    *,
    collector: Collector,
    engine: Engine,
    population: Population,
    stack: str,
    seed: int,
    tree: TreeShape | None,
    in_flight: int,
    digest: str | None,
    seconds: float | None,
    interrupted: bool,
) -> Summary:
    counts = engine.counts
    traced = engine.level != Level.OFF
    owed, missing = collector.owed_and_missing() if traced else (None, None)
    others = counts[Kind.DELIVER] - counts[Kind.PUBLISH]
    return Summary(
        complete=not interrupted,
        interrupted=interrupted,
        stack=stack,
        seed=seed,
        messages=counts[Kind.PUBLISH],
        deliveries=counts[Kind.DELIVER],
        owed=owed,
        missing=missing,
        delivery_ratio=_ratio(owed - missing, owed) if owed is not None and missing is not None else None,
        repeated=collector.repeated() + collector.strays if traced else None,
        copies_per_delivery=_ratio(others + counts[Kind.DUPLICATE], others),
        duplicates_per_delivery=_ratio(counts[Kind.DUPLICATE], others),
        latency_ms=_latency_ms(collector.latency_us),
        hops={"mean": _rounded(collector.hops.mean()), "max": collector.hops.maximum()},
        tree=None if tree is None else {key: _rounded(value) for key, value in tree._asdict().items()},
        repairs={
            "soft": collector.repairs.get("soft", 0),
            "hard": collector.repairs.get("hard", 0),
            "parents_lost": collector.parents_lost,
        },
        gaps=counts[Kind.GAP],
        nodes=_nodes(population),
        messages_by_layer=_by_layer(engine.sent, 0),
        bytes_by_layer=_by_layer(engine.sent, 1),
        messages_by_type=dict(sorted((kind.__name__, tally[0]) for kind, tally in engine.sent.items())),
        drops=dict(sorted(engine.describer.drops.items())),
        in_flight=in_flight,
        virtual_s=engine.now / 1e6,
        events=engine.events,
        events_per_second=round(engine.events / seconds) if seconds else None,
        engine="compiled" if engine.compiled else "pure",
        trace_digest=digest,
    )


def _ratio(part: int, whole: int) -> float | None:
    return _rounded(part / whole) if whole else None


def _rounded(value: float | None) -> float | None:
    return round(value, 6) if isinstance(value, float) else value


def _latency_ms(latency_us: Histogram) -> dict[str, float | None]:
    values: dict[str, float | None] = {"mean": latency_us.mean()}
    values |= {f"p{percent}": latency_us.percentile(percent) for percent in (50, 90, 99)}
    values["max"] = latency_us.maximum()
    return {key: None if us is None else _rounded(us / 1000) for key, us in values.items()}


def _nodes(population: Population) -> dict[str, int]:
    return {
        "started": len(population),
        "up_at_end": len(population.up),
        "crashed": population.how.count("crash"),
        "left": population.how.count("leave"),
    }


def _by_layer(sent: Mapping[type[Message], list[int]], which: int) -> dict[str, int]:
    totals: dict[str, int] = {}
    for kind, tally in sent.items():
        totals[kind.layer] = totals.get(kind.layer, 0) + tally[which]
    return dict(sorted(totals.items()))
