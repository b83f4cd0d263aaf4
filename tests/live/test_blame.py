"""How many bad messages are borne of one neighbour."""

from __future__ import annotations

from epicast.live.blame import BORNE, PEERS_MAX, REGAINED_PER_S, TERM_MAX_US, TERM_US, Blame

PEER = "127.0.0.1:1/a"
SECOND_US = 1_000_000


def test_so_many_are_borne_and_no_more() -> None:
    blame = Blame()
    assert [blame.brought(PEER, 0) for _ in range(BORNE + 1)] == [False] * BORNE + [True]
    assert blame.left_alone(PEER, TERM_US - 1)
    assert not blame.left_alone(PEER, TERM_US)
    assert not blame.left_alone("127.0.0.1:1/b", 0)


def test_a_few_now_and_then_are_borne_for_ever() -> None:
    blame = Blame()
    assert not any(blame.brought(PEER, number * SECOND_US // REGAINED_PER_S) for number in range(5 * BORNE))


def test_the_terms_double() -> None:
    blame, now, terms = Blame(), 0, []
    for _ in range(9):
        while not blame.brought(PEER, now):
            pass
        since = now
        while blame.left_alone(PEER, now):
            now += SECOND_US
        terms.append(now - since)
    assert terms == [min(TERM_US << number, TERM_MAX_US) for number in range(9)]


def test_the_table_is_bounded() -> None:
    blame = Blame()
    for number in range(3 * PEERS_MAX):
        blame.brought(f"127.0.0.1:1/{number}", number)
    assert len(blame) == PEERS_MAX
    assert blame.knows(f"127.0.0.1:1/{3 * PEERS_MAX - 1}")
