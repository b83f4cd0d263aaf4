"""How far apart two processes are, told in four ways."""

from __future__ import annotations

import pytest

from epicast.core.errors import ConfigError
from epicast.core.ids import NodeId
from epicast.membership.distances import host_of, parse_distances

A = "10.1.2.3:7946/aaaaaaaa"


@pytest.mark.parametrize(
    ("mine", "theirs", "distance"),
    [
        ("eu/paris", "eu/paris", 0),
        ("eu/paris", "eu/rome", 1),
        ("eu/paris", "us/paris", 2),
        ("eu/paris/rack-3", "eu/paris/rack-4", 1),
        ("eu/paris/rack-3", "eu/paris", 1),
        ("", "", 0),
        ("", "eu", 1),
        ("4", "14", 1),
    ],
)
def test_places_are_as_far_apart_as_levels_that_they_do_not_share(mine: str, theirs: str, distance: int) -> None:
    labels = parse_distances("labels")
    assert labels.between(1, mine, 2, theirs) == labels.between(2, theirs, 1, mine) == distance


@pytest.mark.parametrize(
    ("other", "distance"),
    [
        ("10.1.2.99:1/b", 0),
        ("10.1.9.9:1/b", 1),
        ("10.2.2.3:1/b", 2),
        ("[2001:db8::1]:1/b", 2),
        ("some.host:1/b", 2),
    ],
)
def test_addresses_are_near_when_they_share_a_prefix(other: str, distance: int) -> None:
    assert parse_distances("prefix 24 16").between(A, "", other, "") == distance


def test_prefixes_of_the_newer_protocol_have_lengths_of_their_own() -> None:
    mine, same_site, same_customer = "[2001:db8:0:1::1]:1/a", "[2001:db8:0:1::2]:1/b", "[2001:db8:0:2::1]:1/c"
    both = parse_distances("prefix 24/64 16/48")
    assert [both.between(mine, "", other, "") for other in (same_site, same_customer)] == [0, 1]
    assert host_of(mine) == "2001:db8:0:1::1"


def test_round_trips_have_bounds_and_must_be_measured() -> None:
    by_rtt = parse_distances("rtt 5ms 50ms")
    assert by_rtt.measures
    assert by_rtt.between(1, "", 2, "") is None
    measured = (0, 4_999, 5_000, 49_999, 50_000)
    assert [by_rtt.between(1, "", 2, "", rtt_us) for rtt_us in measured] == [0, 0, 1, 1, 2]


def difference(me: NodeId, place: str, other: NodeId, other_place: str) -> int:
    return abs(int(place) - int(other_place)) * 10


def test_a_function_of_the_users_decides_within_bounds() -> None:
    mine = parse_distances(f"function {__name__}:difference")
    assert [mine.between(1, "3", 2, other) for other in ("3", "4", "9")] == [0, 10, 16]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "expected one of: labels"),
        ("nearby", "expected one of: labels"),
        ("labels 3", "expected one of: labels"),
        ("prefix", "expected one of: labels"),
        ("prefix 99", "prefix lengths like 24"),
        ("prefix 16 24", "ever shorter prefixes"),
        ("rtt 5", "growing round trips"),
        ("rtt 50ms 5ms", "growing round trips"),
        ("function nowhere:at_all", "cannot use 'nowhere:at_all'"),
        ("function os", "expected a function as module:name"),
    ],
)
def test_what_is_no_way_to_tell_is_refused(text: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        parse_distances(text)
