"""What several nodes tell becomes one table: who was asked, who is only known, who is behind."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from epicast.cli.cluster_rows import ClusterLook, Row, rows_of
from epicast.cli.cluster_table import cluster_table, title
from epicast.cli.top_view import Look


def status(name: str, *, reached: int = 0, neighbours: dict[str, float] | None = None, **more: Any) -> dict[str, Any]:
    links = [
        {"id": peer, "up": True, "round_trip_ms": rtt, "received_bytes": 0, "sent_bytes": 0}
        for peer, rtt in (neighbours or {}).items()
    ]
    flow = {"source": "s", "number": 0, "reached": {"s": reached}}
    plain: dict[str, Any] = {
        "id": name,
        "cluster": "c",
        "joined": bool(links),
        "neighbours": links,
        "known": [],
        "flows": [flow],
        "counters": {"delivered": reached},
        "queues": {"peers_bytes": 0},
        "version": "1.0",
        "area": "",
        "uptime_s": 5.0,
    }
    return plain | more


def look(at_s: float, *told: dict[str, Any], silent: dict[str, str] | None = None) -> ClusterLook:
    return ClusterLook({each["id"]: Look(each, at_s) for each in told}, silent or {})


def test_a_node_is_behind_by_what_others_had_at_the_look_before() -> None:
    before = look(0, status("a", reached=100), status("b", reached=40), status("c", reached=100))
    now = look(1, status("a", reached=200), status("b", reached=70), status("c", reached=100))
    found = {row.process: (row.behind, row.delivered_per_s) for row in rows_of(before, now)}
    assert found == {"a": (0, 100.0), "b": (30, 30.0), "c": (0, 0.0)}


def test_a_node_that_is_new_has_no_rates_yet_and_one_without_trees_is_not_compared() -> None:
    before = look(0, status("a", reached=100))
    now = look(1, status("a", reached=100), status("b", flows=[]))
    new = rows_of(before, now)[1]
    assert (new.process, new.delivered_per_s, new.behind) == ("b", None, None)


def test_processes_that_were_not_asked_are_shown_as_others_see_them() -> None:
    told = [
        status("a", neighbours={"x": 3.0, "b": 1.0}, known=["y", "x"]),
        status("b", neighbours={"x": 2.0, "a": 1.0}, known=["z"]),
    ]
    rows = rows_of(look(0, *told), look(1, *told, silent={"h:1": "h:1: Connection refused"}))
    assert [(row.process, row.state) for row in rows] == [
        ("a", "up"),
        ("b", "up"),
        ("h:1", "no answer"),
        ("x", "neighbour"),
        ("y", "known"),
        ("z", "known"),
    ]
    assert rows[2].why == "h:1: Connection refused"
    assert rows[3].round_trip_ms == 2.0
    text = title("c", rows).plain
    assert text == "cluster c · 6 processes · 3 of them asked · 1 node without an answer"


def test_several_versions_are_told() -> None:
    rows = [Row("a", "up", version="1.0"), Row("b", "up", version="1.1")]
    assert title("c", rows).plain == "cluster c · 2 processes · versions 1.0, 1.1"


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_the_table_fits_and_keeps_what_matters(width: int) -> None:
    now = [
        status("node-1.example:7946/abcdefgh", reached=5, neighbours={"b": 1.0}),
        status("b", known=["k[/red]\x1b[2J"]),
    ]
    rows = rows_of(look(0, *now), look(1, *now))
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(cluster_table(rows, 2))
    lines = [line.rstrip() for line in capture.get().splitlines()]
    assert max(map(len, lines)) <= width
    assert lines[0].split()[:2] == ["process", "state"]
    assert "node-1.example:7946" in capture.get()
    assert lines[-1] == "and 1 more"
    assert ("version" in lines[0]) == (width >= 80)
    assert "rtt" not in lines[0], "nobody was asked who would tell it"
    assert "…" not in capture.get()
