"""A cluster as its nodes tell it: one row for each process, whether its admin pages were asked or others know it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from epicast.cli.top_view import Look, rates

UP, ALONE, SILENT, NEIGHBOUR, KNOWN = "up", "alone", "no answer", "neighbour", "known"
"""The first three are of nodes that were asked, the others of processes that those know."""

Place = tuple[str, int, str]
"""A flow, by its source and number, and one who publishes on it."""


@dataclass(frozen=True)
class Row:
    process: str  # its id; of a node that does not answer, the admin address
    state: str
    why: str = ""  # it does not answer
    neighbours: int | None = None
    delivered_per_s: float | None = None
    published_per_s: float | None = None
    received_bytes_per_s: float | None = None
    sent_bytes_per_s: float | None = None
    behind: int | None = None  # messages that another node had at the look before, and this one has not yet
    gaps: int | None = None  # times that messages were given up
    lost: int | None = None  # messages, by slow subscribers
    queue_bytes: int | None = None  # that wait for its peers
    round_trip_ms: float | None = None  # the shortest that a neighbour measured
    version: str = ""
    area: str = ""
    uptime_s: float | None = None

    @property
    def asked(self) -> bool:
        return self.state in (UP, ALONE, SILENT)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class ClusterLook:
    """What the nodes that were asked told at one time."""

    nodes: Mapping[str, Look]  # by process
    silent: Mapping[str, str]  # why, by admin address

    def reached(self) -> dict[Place, dict[str, int]]:
        """By place, up to where each process has all."""
        found: dict[Place, dict[str, int]] = {}
        for process, look in self.nodes.items():
            for place, number in places(look):
                found.setdefault(place, {})[process] = number
        return found


def places(look: Look) -> Iterator[tuple[Place, int]]:
    for flow in look.status["flows"]:
        for publisher, number in flow.get("reached", {}).items():
            yield (flow["source"], flow["number"], publisher), number


def rows_of(before: ClusterLook, now: ClusterLook) -> list[Row]:
    """Those that were asked first, each part by name."""
    had = before.reached()
    told = [_told(before.nodes.get(process), look, had) for process, look in sorted(now.nodes.items())]
    silent = [Row(admin, SILENT, why) for admin, why in sorted(now.silent.items())]
    return told + silent + sorted(_known(now), key=lambda row: (row.state != NEIGHBOUR, row.process))


def _told(before: Look | None, now: Look, had: Mapping[Place, Mapping[str, int]]) -> Row:
    """Without a look before there are no rates yet."""
    status = now.status
    pace: Mapping[str, float] = {} if before is None else rates(before, now)
    return Row(
        process=status["id"],
        state=UP if status["joined"] else ALONE,
        neighbours=sum(each["up"] for each in status["neighbours"]),
        delivered_per_s=pace.get("delivered"),
        published_per_s=pace.get("published"),
        received_bytes_per_s=pace.get("received_bytes"),
        sent_bytes_per_s=pace.get("sent_bytes"),
        behind=_behind(now, had) if status["flows"] else None,
        gaps=now.count("record gap"),
        lost=now.count("lost by subscribers"),
        queue_bytes=status["queues"]["peers_bytes"],
        version=status.get("version", ""),
        area=status.get("area", ""),
        uptime_s=status["uptime_s"],
    )


def _behind(now: Look, had: Mapping[Place, Mapping[str, int]]) -> int:
    """Compared with what others had one look before: what is on its way now does not count."""
    me = now.status["id"]
    return sum(
        max([0, *(other - number for process, other in had.get(place, {}).items() if process != me)])
        for place, number in places(now)
    )


def _known(now: ClusterLook) -> Iterator[Row]:
    """Processes that were not asked, as others see them."""
    neighbours: dict[str, list[float]] = {}
    known: dict[str, None] = {}
    for look in now.nodes.values():
        for each in look.status["neighbours"]:
            found = neighbours.setdefault(each["id"], [])
            if each["round_trip_ms"] is not None:
                found.append(each["round_trip_ms"])
        known.update(dict.fromkeys(look.status["known"]))
    for process, times in neighbours.items():
        if process not in now.nodes:
            yield Row(process, NEIGHBOUR, round_trip_ms=min(times, default=None))
    for process in known:
        if process not in now.nodes and process not in neighbours:
            yield Row(process, KNOWN)
