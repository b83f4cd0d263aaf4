"""How much of our time the upkeep of one peer may take."""

from epicast.live.effort import (
    BURST_NS,
    COPIES_MAX,
    STRICTER_EVERY_NS,
    TURN_NS,
    UPKEEP_PART,
    UPKEEP_PART_MAX,
    UPKEEP_TURN_NS,
    Effort,
)

SECOND = 1_000_000_000
START = 1_000 * SECOND


def flooded(effort: Effort, seconds: int) -> list[int]:
    """How much of each second a peer gets whose bytes are always there."""
    now, spent = START, []
    for second in range(seconds):
        spent.append(0)
        while now < START + (second + 1) * SECOND:
            turn = effort.turn_ns
            now += turn
            spent[-1] += turn
            now += round(effort.spend(turn, now) * 1e9)
    return spent


def test_a_burst_costs_no_rest() -> None:
    effort = Effort()
    assert effort.spend(BURST_NS - 1, START) == 0.0


def test_what_exceeds_the_credit_is_rested_for_until_it_has_grown_back() -> None:
    effort = Effort()
    assert effort.spend(BURST_NS + 1_000_000, START) == 2 * UPKEEP_PART / 1000, "the first second it is made stricter"
    assert effort.turn_ns == UPKEEP_TURN_NS < TURN_NS


def test_a_flood_gets_its_credit_and_then_an_ever_smaller_share() -> None:
    first, *later = flooded(Effort(), 30)
    assert first <= BURST_NS + SECOND // UPKEEP_PART
    assert max(later[5:]) <= SECOND // UPKEEP_PART_MAX + 2 * UPKEEP_TURN_NS


def test_who_was_quiet_for_long_has_its_usual_share_again() -> None:
    effort = Effort()
    flooded(effort, 10)
    later = START + 10 * SECOND + UPKEEP_PART_MAX * (BURST_NS + SECOND)
    assert effort.spend(0, later) == 0.0
    assert effort.spend(BURST_NS // 2, later + STRICTER_EVERY_NS) == 0.0
    assert effort.turn_ns == TURN_NS


def test_little_upkeep_now_and_then_is_never_held_back() -> None:
    effort = Effort()
    assert all(effort.spend(10_000_000, START + number * SECOND // 4) == 0.0 for number in range(1000))


def test_two_copies_of_each_message_are_nobodys_fault() -> None:
    effort = Effort()
    assert not any(effort.brought_idle(200, 100 * number) for number in range(1, 1000))


def test_more_copies_than_there_are_messages_are_upkeep() -> None:
    effort = Effort()
    assert not effort.brought_idle(COPIES_MAX, 0)
    assert effort.brought_idle(3, 1)
    assert not effort.brought_idle(2, 2)
