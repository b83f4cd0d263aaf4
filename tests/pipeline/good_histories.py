"""Histories that look wrong at first sight and are not, each with the reason that a verdict must give, if any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from epicast.core.ids import NOBODY
from epicast.core.records import Level
from tests.pipeline.histories import History


@dataclass
class Good:
    history: History
    checked: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)  # a part of it
    not_judged: tuple[str, ...] = ("tree",)


GOOD: dict[str, Callable[[], Good]] = {}


def good(make: Callable[[], Good]) -> Callable[[], Good]:
    GOOD[make.__name__] = make
    return make


@good
def nothing_at_all() -> Good:
    return Good(History(0), {"integrity": 0, "agreement": 0})


@good
def one_that_joined_later_misses_the_past() -> Good:
    h = History(2)
    h.deliver(1, h.publish(0))
    h.join()
    return Good(h, {"agreement": 2}, {"agreement": "0 holes among 2 owed deliveries of 1 message"})


@good
def one_that_joined_later_gets_the_past_anyway() -> Good:
    h = History(2)
    m = h.publish(0)
    h.deliver(1, m)
    h.deliver(h.join(), m)
    return Good(h, {"agreement": 2, "integrity": 3})


@good
def those_that_ended_miss_what_they_like() -> Good:
    h = History(4)
    m = h.publish(0)
    h.deliver(1, m)
    h.crash(2)
    h.leave(3)
    return Good(h, {"agreement": 2})


@good
def one_that_is_paused_at_the_end_has_not_had_its_chance() -> Good:
    h = History(3)
    h.pause(2)
    h.deliver(1, h.publish(0))
    return Good(h, {"agreement": 2}, {"agreement": "1 process paused at the end left out"})


@good
def a_publisher_that_crashed_misses_its_own() -> Good:
    h = History(2)
    m = h.publish(0, own=False)
    h.crash(0)
    h.deliver(1, m)
    return Good(h, {"validity": 0, "agreement": 1})


@good
def a_message_that_only_the_dead_delivered() -> Good:
    h = History(3)
    m = h.publish(0)
    h.deliver(1, m)
    h.crash(0)
    h.crash(1)
    return Good(h, {"agreement": 0}, {"agreement": "1 message reached nobody that stayed"})


@good
def numbers_with_gaps() -> Good:
    h = History(2)
    a, b, c = (h.publish(0) for _ in range(3))
    h.deliver(1, a, c)
    h.gap(1, b)
    h.crash(1)
    return Good(h, {"fifo": 5}, {"agreement": "1 gap reported"})


@good
def equal_numbers_of_several_publishers_in_any_order() -> Good:
    """Of those that nobody delivers together, any order will do."""
    h = History(4)
    a, b = h.publish(0, own=False), h.publish(1, own=False)
    h.deliver(2, b, a)
    h.deliver(3, b, a)
    h.crash(0)
    h.crash(1)
    return Good(h, {"fifo": 4})


@good
def two_topics_of_one_publisher_with_numbers_of_their_own() -> Good:
    """The number of the second message is lower than that of the first, as on two flows."""
    h = History(2)
    b = h.publish(0, "b")
    a = h.publish(0, "a")
    for row in (a.row, a.row + 1):
        h.rows[row]["seq"] = -5
    h.deliver(1, b, a._replace(seq=-5))
    return Good(h, {"fifo": 4})


@good
def an_answer_without_the_question() -> Good:
    h = History(3)
    question = h.publish(0)
    h.deliver(1, question)
    answer = h.publish(1)
    h.deliver(2, answer)
    h.deliver(0, answer)
    h.crash(2)
    return Good(h, {"causal": 5})


@good
def two_that_knew_nothing_of_each_other() -> Good:
    """The second is published later but does not follow the first."""
    h = History(3)
    a = h.publish(0, own=False)
    b = h.publish(1, own=False)
    h.crash(0)
    h.crash(1)
    h.deliver(2, b, a)
    return Good(h, {"causal": 2})


@good
def a_question_heard_after_the_answer_was_published() -> Good:
    h = History(3)
    a = h.publish(0, own=False)
    b = h.publish(1, own=False)
    h.deliver(1, a)
    h.crash(0)
    h.crash(1)
    h.deliver(2, b, a)
    return Good(h, {"causal": 3})


@good
def one_order_in_pieces() -> Good:
    """No process delivers all, and the order is not that of publication, but it is one."""
    h = History(7)
    a, b, c, d = (h.publish(node, own=False) for node in range(4))
    for node in range(4):
        h.crash(node)
    h.deliver(6, a, c)
    h.deliver(5, b, d, a)
    h.deliver(4, d, c)
    for node in (4, 5, 6):
        h.crash(node)
    return Good(h, {"total": 4})


@good
def two_topics_in_different_relative_orders() -> Good:
    """Every topic has an order of its own: who delivers one of the other topic first says nothing."""
    h = History(6)
    a, b = h.publish(0, "one", own=False), h.publish(1, "one", own=False)
    c, d = h.publish(2, "two", own=False), h.publish(3, "two", own=False)
    for node in range(4):
        h.crash(node)
    h.deliver(4, a, b, c, d)
    h.deliver(5, c, a, d, b)
    return Good(h, {"total": 4, "agreement": 8}, {"total": "0 inversions and 0 holes"})


@good
def a_circle_that_only_two_topics_together_make() -> Good:
    h = History(6)
    a, b, c = h.publish(0, "one", own=False), h.publish(1, "two", own=False), h.publish(2, "one", own=False)
    for node in range(3):
        h.crash(node)
    h.deliver(3, a, b)
    h.deliver(4, b, c)
    h.deliver(5, c, a)
    for node in range(3, 6):
        h.crash(node)
    return Good(h, {"total": 3})


@good
def those_that_subscribed_too_late_or_not_to_the_end() -> Good:
    h = History(5)
    h.subscribe(0, 1, 2)
    m = h.publish(0)
    h.subscribe(3)
    h.unsubscribe(2)
    h.deliver(1, m)
    return Good(h, {"agreement": 2, "no-parasites": 2})


@good
def one_that_was_away_between_two_subscriptions() -> Good:
    h = History(2)
    h.subscribe(0, 1)
    a = h.publish(0)
    h.deliver(1, a)
    h.unsubscribe(1)
    h.publish(0)
    h.subscribe(1)
    c = h.publish(0)
    h.deliver(1, c)
    return Good(h, {"agreement": 4, "no-parasites": 5})


@good
def a_publisher_that_does_not_subscribe() -> Good:
    h = History(3)
    h.subscribe(1, 2)
    m = h.publish(0, own=False)
    h.everywhere(m, nodes=[1, 2])
    return Good(h, {"validity": 0, "agreement": 2})


@good
def one_that_only_passes_on() -> Good:
    h = History(3)
    h.subscribe(0, 2)
    m = h.publish(0)
    payload = {"source": 0, "seq": 0, "topic": "t"}
    h.send(0, 1, **payload)
    h.receive(1, 0, **payload)
    h.send(1, 2, **payload)
    h.receive(2, 1, **payload)
    h.deliver(2, m)
    h.send(1, 2)
    h.receive(2, 1)
    return Good(h, {}, {"no-parasites": "1 payload received by processes that do not subscribe"})


@good
def without_subscriptions_everyone_is_a_subscriber() -> Good:
    h = History(2)
    h.deliver(1, h.publish(0))
    return Good(h, {"no-parasites": 2}, {"no-parasites": "everyone is a subscriber"})


@good
def a_tree() -> Good:
    h = History(5)
    h.wait(11)
    h.picture({1: 0, 2: 0, 3: 2, 4: 3})
    return Good(h, {"tree": 4}, {"tree": "1 flow"}, ())


@good
def a_broken_tree_in_an_earlier_picture() -> Good:
    h = History(3)
    h.wait(11)
    h.picture({1: 2, 2: 1})
    h.wait(1)
    h.picture({1: 0, 2: 1})
    return Good(h, {"tree": 2}, {}, ())


@good
def a_tree_of_two_flows_one_of_a_dead_source() -> Good:
    h = History(4)
    h.crash(3)
    h.wait(11)
    h.picture({1: 0, 2: 0})
    h.picture({0: 1, 1: 0}, "3/0")
    return Good(h, {"tree": 2}, {}, ())


@good
def a_tree_without_one_that_crashed_while_it_was_paused() -> Good:
    h = History(3)
    h.pause(2)
    h.crash(2)
    h.wait(11)
    h.picture({1: 0})
    return Good(h, {"tree": 1}, {}, ())


@good
def a_source_alone() -> Good:
    h = History(2)
    h.parent(1, 0)
    h.crash(1)
    h.wait(11)
    h.neighbours((0, 1))
    return Good(h, {"tree": 0}, {}, ())


def _unsettled(what: Callable[[History], object], reason: str) -> Good:
    h = History(4)
    h.parent(1, 0)
    h.wait(11)
    what(h)
    h.wait(9.9)
    h.picture({1: 0})
    return Good(h, reasons={"tree": reason})


@good
def a_broken_tree_shortly_after_a_crash() -> Good:
    return _unsettled(lambda h: h.crash(2), "process 2 crashed 9.9 s before the last picture")


@good
def a_broken_tree_shortly_after_a_goodbye() -> Good:
    return _unsettled(lambda h: h.leave(2), "process 2 left 9.9 s before the last picture")


@good
def a_broken_tree_shortly_after_a_join() -> Good:
    return _unsettled(lambda h: h.join(), "process 4 joined 9.9 s before the last picture")


@good
def a_broken_tree_shortly_after_a_process_woke() -> Good:
    h = History(2)
    h.pause(1)
    h.wait(11)
    h.parent(1, NOBODY)
    h.resume(1)
    h.wait(1)
    h.neighbours((0, 1))
    return Good(h, reasons={"tree": "process 1 resumed 1.0 s before the last picture"})


@good
def a_broken_tree_shortly_after_a_partition() -> Good:
    h = History(3)
    h.parent(1, 0)
    h.wait(11)
    h.send(0, 2)
    h.drop(0, 2, "partition")
    h.wait(9.9)
    h.picture({1: 0})
    return Good(h, reasons={"tree": "the network was cut until 9.9 s before the last picture"})


@good
def a_broken_tree_with_one_that_stands_still() -> Good:
    h = History(3)
    h.parent(1, 0)
    h.pause(2)
    h.wait(11)
    h.picture({1: 0})
    return Good(h, reasons={"tree": "1 process paused in the last picture"})


@good
def a_tree_that_is_being_mended() -> Good:
    """An orphan, a cycle and a dead parent, all of them news."""
    h = History(8)
    h.crash(7)
    h.parent(1, 0)
    h.wait(11)
    h.parent(2, NOBODY)
    h.parent(3, 4)
    h.parent(6, 7)
    h.wait(9.9)
    h.picture({1: 0, 3: 4, 4: 5, 5: 3, 6: 7})
    return Good(h, {"tree": 6}, {"tree": "1 flow; 3 flaws being mended left out"}, ())


@good
def what_the_network_copied_dropped_and_still_carries() -> Good:
    h = History(3, in_flight=2)
    for _ in range(3):
        h.send(0, 1)
    h.copy(0, 1)
    h.receive(1, 0)
    h.duplicate(1, 0)
    h.drop(0, 1)
    h.send(1, 2)
    return Good(h, {"accounting": 2})


@good
def nobody_counted_what_is_under_way() -> Good:
    h = History(2, in_flight=None)
    h.send(0, 1)
    return Good(h, {"accounting": 1}, {"accounting": "only links were judged"})


@good
def a_trace_without_messages_on_their_way() -> Good:
    h = History(2, level=Level.DELIVERIES, in_flight=5)
    h.deliver(1, h.publish(0))
    return Good(h, {}, {"accounting": "--trace-level full"}, ("tree", "accounting"))
