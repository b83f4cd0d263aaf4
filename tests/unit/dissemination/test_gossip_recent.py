"""The last payloads: how many, how large, and which of them."""

from __future__ import annotations

from epicast.dissemination.gossip_messages import Rumor
from epicast.dissemination.recent import Recent, RecentConfig


def kept(*sizes: int, **settings: int) -> Recent:
    """One message a microsecond, the first at 0."""
    recent = Recent(RecentConfig(**settings))
    for seq, size in enumerate(sizes):
        recent.add((9, seq), seq, Rumor(9, seq, 0, "t", bytes(size)))
    return recent


def numbers(events: object) -> list[int]:
    return [event.seq for event in events]  # type: ignore[attr-defined]


def test_what_was_added_is_found() -> None:
    recent = kept(1, 2)
    assert recent.get((9, 1)) == Rumor(9, 1, 0, "t", bytes(2))
    assert recent.get((9, 2)) is None
    assert recent.get((8, 1)) is None


def test_of_too_many_the_oldest_go() -> None:
    recent = kept(1, 1, 1, 1, recent_messages=3)
    assert [seq for _, seq in recent.events] == [1, 2, 3]


def test_of_too_many_bytes_the_oldest_go() -> None:
    recent = kept(10, 10, 10, recent_bytes=25)
    assert [seq for _, seq in recent.events] == [1, 2]
    recent.add((9, 9), 9, Rumor(9, 9, 0, "t", bytes(26)))
    assert not recent.events, "it would not fit alone"
    recent.add((9, 10), 10, Rumor(9, 10, 0, "t", bytes(25)))
    assert len(recent) == 1


def test_sources_are_counted() -> None:
    recent = kept(1, 1, recent_messages=2)
    recent.add((8, 0), 3, Rumor(8, 0, 0, "t", b""))
    assert recent.sources == {9: 1, 8: 1}
    recent.add((8, 1), 4, Rumor(8, 1, 0, "t", b""))
    assert recent.sources == {8: 2}


def test_those_of_a_time_come_newest_first() -> None:
    recent = kept(1, 1, 1, 1, 1)
    assert numbers(recent.between(1, 3)) == [3, 2, 1]


def test_those_of_certain_numbers_are_found_by_either_way() -> None:
    recent = kept(*[1] * 10)
    few, many = {9: [(2, 3), (7, 7)]}, {9: [(2, 3), (7, 1 << 62)], 8: [(0, 1 << 62)]}
    assert numbers(recent.among(few, 0, 9)) == [2, 3, 7]
    assert numbers(recent.among(few, 3, 9)) == [3, 7]
    assert numbers(recent.among(few, 0, 6)) == [2, 3]
    assert numbers(recent.among(many, 0, 9)) == [2, 3, 7, 8, 9]
    assert numbers(recent.among(many, 3, 8)) == [3, 7, 8]
