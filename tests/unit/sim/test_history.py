"""The judge of storms rejects bad histories, row by row."""

from __future__ import annotations

from epicast.sim.history import History
from epicast.sim.scenario import Scenario
from epicast.sim.world import World

A, B, C = 0, 1, 2


def history(stack: str = "causal-flood") -> History:
    """Of three processes, the last of which came up at 5 s."""
    world = World(Scenario(stack=stack, nodes=3), 1)
    for _ in range(2):
        world.join()
    world.run_until(5_000_000)
    world.join()
    return History(world)


def published(found: History, *messages: tuple[int, int], at_us: int = 6_000_000) -> None:
    for message in messages:
        found._publish(at_us, message[0], message, 0)
        found._deliver(at_us, message[0], message)


def test_what_is_neither_delivered_nor_told_is_a_silent_hole() -> None:
    found = history()
    published(found, (A, 0), (A, 1), (A, 2))
    found._deliver(0, B, (A, 0))
    found._tell(0, B, A, 2, "1 lost")
    assert found.silent(lambda node: 0 if node == B else 1 << 62) == [
        "node 1 has not got message (0, 2) and does not say so"
    ]
    found._tell(0, B, A, -1, "1 lost")  # which one is not said
    assert found.silent(lambda node: 0 if node == B else 1 << 62) == []


def test_what_is_told_and_delivered_is_a_false_gap_in_either_order() -> None:
    found = history()
    published(found, (A, 0), (A, 1))
    found._tell(0, B, A, 1, "1 lost")
    found._deliver(0, B, (A, 0))
    assert found.wrong == ["node 1 delivered (0, 0), which it had told as lost"]
    assert found.false_gaps() == ["node 1 told (0, 0) as lost, and delivered it"]


def test_nobody_misses_what_was_not_published_nor_a_newcomer_what_is_from_before_it() -> None:
    found = history()
    published(found, (A, 0), at_us=1_000_000)
    found._deliver(2_000_000, B, (A, 0))
    found._tell(0, C, A, 1, "1 lost")
    found._tell(0, C, A, 7, "1 lost")
    assert found.false_gaps() == [
        "node 2 told (0, 0) as lost, which was published before it came up",
        "node 2 told (0, 6) as lost, which nobody published",
    ]


def test_a_newcomer_may_miss_what_was_on_its_way_when_it_came_up_or_follows_what_it_got() -> None:
    on_its_way = history()
    published(on_its_way, (A, 0), at_us=4_900_000)
    on_its_way._deliver(5_100_000, B, (A, 0))
    on_its_way._tell(0, C, A, 1, "1 lost")
    assert on_its_way.false_gaps() == []
    follows = history()
    published(follows, (A, 0), (A, 1), at_us=1_000_000)
    follows._deliver(6_000_000, C, (A, 0))
    follows._tell(0, C, A, 2, "1 lost")
    assert follows.false_gaps() == []


def test_what_follows_a_message_that_was_on_its_way_was_so_too_in_an_order_that_takes_them_in_turn() -> None:
    """A process that delivers number 0 gives number 1 up only after that."""
    for stack, false in (
        ("causal-flood", []),
        ("flood", ["node 2 told (0, 1) as lost, which was published before it came up"]),
    ):
        found = history(stack)
        published(found, (A, 0), (A, 1), at_us=4_900_000)
        found._deliver(5_100_000, B, (A, 0))
        found._tell(0, C, A, 2, "1 lost")
        assert found.false_gaps() == false


def test_more_lost_than_are_missing_is_a_false_gap() -> None:
    found = history("causal-brisa")  # a range tells how many, not which
    published(found, (A, 0), (A, 1))
    found._tell(0, B, A, 2, "3 lost")
    assert found.false_gaps() == ["node 1 told 3 messages of 0 as lost, and can lack 2"]


def test_repetitions_inventions_and_lost_messages_of_ones_own() -> None:
    found = history()
    found._publish(0, A, (A, 0), 0)
    found._deliver(0, B, (A, 0))
    found._deliver(0, B, (A, 0))
    found._deliver(0, B, (A, 9))
    assert found.wrong == ["node 1 delivered (0, 0) again", "node 1 delivered (0, 9), which nobody published"]
    assert found.own_lost() == ["node 0 has not delivered its own message (0, 0)"]


def test_an_answer_before_its_question_is_no_causal_order() -> None:
    found = history()
    published(found, (A, 0))
    found._deliver(0, B, (A, 0))
    published(found, (B, 0))
    assert found.follows((B, 0)) == [(A, 0)]
    found._deliver(0, C, (B, 0))
    found._deliver(0, C, (A, 0))
    assert found.inversions("causal") == ["node 2 delivered (0, 0) after something that follows it"]
    assert found.inversions("fifo") == []


def test_two_orders_of_two_messages_are_no_total_order_and_a_later_number_first_is_not_fifo() -> None:
    found = history()
    published(found, (A, 0), (A, 1))
    found._deliver(0, B, (A, 1))
    found._deliver(0, B, (A, 0))
    assert found.inversions("total") == ["messages [(0, 0), (0, 1)] have no place in one order"]
    assert found.inversions("fifo") == ["node 1 delivered (0, 0) after (0, 1)"]
