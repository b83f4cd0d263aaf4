"""The rule by which a node is the first process of its cluster, step by step, with a clock of the test's own."""

from __future__ import annotations

from random import Random

from epicast.live.ids import Address, parse_address
from epicast.live.reasons import CLOSED, NO_ANSWER, REFUSED
from epicast.live.search import NAMES_PATIENCE, SHOWN_MAX, Search
from epicast.live.seeds import Lookup

ME, OTHER, THIRD = (Address(f"10.0.0.{number}", 7946) for number in (1, 2, 3))
NOBODY = "Connection refused"


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def named(entry: str, *found: Address, why: str = "", temporary: bool = False) -> Lookup:
    return Lookup(entry, parse_address(entry, default_port=7946), found, why, temporary)


def alone(*lookups: Lookup, mine: Address = ME) -> tuple[Search, Clock]:
    """A search that has looked up its seeds, whose patience is over, and that has asked nobody yet."""
    clock = Clock()
    search = Search([mine], 5.0, clock)
    search.begin()
    search.looked_up(list(lookups), [])
    clock.now_s += 5.0
    return search, clock


def numbers(*addresses: Address) -> list[Lookup]:
    return [named(str(address), address) for address in addresses]


def test_a_node_whose_only_seed_is_itself_is_the_first_after_its_patience() -> None:
    search, clock = alone(*numbers(ME))
    assert search.is_first()
    clock.now_s -= 0.001
    assert not search.is_first()


def test_a_node_that_is_not_among_its_seeds_is_never_the_first() -> None:
    search, _ = alone(*numbers(OTHER))
    search.answered(OTHER, NOBODY)
    assert not search.is_first()


def test_every_other_address_is_asked_first() -> None:
    search, _ = alone(*numbers(ME, OTHER, THIRD))
    assert set(search.targets(Random(1), 8)) == {OTHER, THIRD}
    search.answered(OTHER, NOBODY)
    assert not search.is_first()
    assert search.targets(Random(1), 1) == [THIRD], "those first that have not been asked"
    search.answered(THIRD, NO_ANSWER)
    assert search.is_first()


def test_a_process_that_answers_or_refuses_us_is_there() -> None:
    for why in (
        "",
        f"{REFUSED}: another stack or order",
        CLOSED,
        "TLS: certificate",
        "nonsense: x",
        "no greeting in time",
    ):
        search, _ = alone(*numbers(ME, OTHER))
        search.answered(OTHER, why)
        assert not search.is_first(), why
        search.answered(OTHER, NOBODY)  # it has gone
        assert search.is_first()


def test_a_node_recognises_itself_by_its_name_or_by_its_own_answer() -> None:
    pod = Address("n0.example", 7946)
    search, _ = alone(named("n0.example", why="no such name"), mine=pod)
    assert search.is_first(), "its own name, which does not resolve yet"
    search, _ = alone(named("nodes.example", OTHER, THIRD), mine=pod)
    search.answered(THIRD, NOBODY)
    assert not search.is_first()
    search.found_us(OTHER)
    assert search.is_first()
    assert search.targets(Random(1), 8) == [THIRD], "it does not ask itself again"


def test_a_process_that_connects_to_us_starts_our_patience_anew() -> None:
    search, clock = alone(*numbers(ME))
    search.heard()
    clock.now_s += 4.9
    assert not search.is_first()
    clock.now_s += 0.1
    assert search.is_first()


def test_what_was_answered_before_we_were_alone_does_not_count() -> None:
    search, clock = alone(*numbers(ME, OTHER))
    search.answered(OTHER, NOBODY)
    search.end()
    assert not search.is_first()
    search.begin()
    clock.now_s += 5.0
    assert not search.is_first()
    search.answered(OTHER, NOBODY)
    assert search.is_first()


def test_an_address_that_is_listed_no_more_does_not_count() -> None:
    search, _ = alone(*numbers(ME, OTHER))
    search.answered(OTHER, "")
    search.looked_up(numbers(ME), [])
    assert search.is_first()
    search.looked_up(numbers(ME), [OTHER])  # discovered now
    assert not search.is_first()


def test_a_name_server_that_fails_is_waited_for_but_not_forever() -> None:
    search, clock = alone(*numbers(ME), named("n1.example", why="Temporary failure", temporary=True))
    clock.now_s = 100.0 + NAMES_PATIENCE * 5.0 - 0.001
    assert not search.is_first()
    clock.now_s += 0.001
    assert search.is_first()
    search, _ = alone(*numbers(ME), named("n1.example", why="no such name"))
    assert search.is_first()


def test_why_names_every_obstacle_once_and_not_too_many() -> None:
    search, _ = alone(named("n1.example:1", why="no such name"), *numbers(OTHER))
    assert search.why() == "n1.example:1: no such name; 10.0.0.2:7946: no answer yet"
    search.answered(OTHER, "")
    assert search.why().endswith("it answers, but we are no neighbours yet")
    search.answered(OTHER, f"{REFUSED}: \x1b[31mred")
    assert search.why().endswith("10.0.0.2:7946: refused: ?[31mred")
    many = [Address("10.0.1.1", port) for port in range(1, SHOWN_MAX + 5)]
    search, _ = alone(*numbers(*many))
    assert search.why().split("; ")[SHOWN_MAX:] == ["4 more"]
    assert "itself among its seeds" in alone(*numbers(ME))[0].why()
    assert Search([ME], 5.0, Clock()).why() == "the seeds are still being looked up"
