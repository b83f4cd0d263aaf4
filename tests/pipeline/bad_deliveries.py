"""Messages delivered twice, too early, to the wrong processes, or not at all."""

from __future__ import annotations

from tests.pipeline.cases import Case, bad
from tests.pipeline.histories import History, Post

# Integrity


@bad
def delivered_twice() -> Case:
    h = History(3)
    m = h.publish(0)
    first = h.deliver(1, m)
    h.deliver(2, m)
    second = h.deliver(1, m)
    says = {"integrity": "process 1 delivered message 0 of process 0 2 times"}
    return Case(h, {"integrity": 1}, {"integrity": [(first, second)]}, says)


@bad
def delivered_four_times_out_of_order() -> Case:
    """Repeats count once for each time too many, and the orders look at the first time alone."""
    h = History(2)
    a, b = h.publish(0), h.publish(0)
    first = h.deliver(1, a)
    h.deliver(1, b)
    second = h.deliver(1, a)
    h.deliver(1, a, a)
    return Case(h, {"integrity": 3}, {"integrity": [(first, second)]})


@bad
def never_published() -> Case:
    h = History(2)
    h.publish(0)
    h.deliver(1, Post(0, 0, "t", 0))
    row = h.deliver(1, Post(0, 7, "t", 0))
    says = {"integrity": "process 1 delivered message 7 of process 0, which was never published"}
    return Case(h, {"integrity": 1}, {"integrity": [(row,)]}, says)


@bad
def delivered_before_its_publication() -> Case:
    h = History(2)
    early = h.deliver(1, Post(0, 0, "t", 0))
    m = h.publish(0)
    says = {"integrity": "process 1 delivered message 0 of process 0 before it was published"}
    return Case(h, {"integrity": 1}, {"integrity": [(early, m.row)]}, says)


@bad
def delivered_on_another_topic() -> Case:
    h = History(2)
    m = h.publish(0, "news")
    row = h.deliver(1, m._replace(topic="ads"))
    says = {"integrity": "process 1 delivered message 0 of process 0 on topic 'ads', but it was published on 'news'"}
    return Case(h, {"integrity": 1}, {"integrity": [(m.row, row)]}, says)


# Validity


@bad
def a_publisher_that_nobody_hears_misses_its_own_message() -> Case:
    h = History(3)
    m = h.publish(0, own=False)
    says = {"validity": "process 0 never delivered its own message 0"}
    return Case(h, {"validity": 1}, {"validity": [(m.row,)]}, says)


@bad
def a_publisher_misses_what_others_got() -> Case:
    h = History(3)
    m = h.publish(0, own=False)
    witness = h.deliver(1, m)
    h.deliver(2, m)
    return Case(h, {"validity": 1, "agreement": 1}, {"validity": [(m.row,)], "agreement": [(m.row, witness)]})


@bad
def a_publisher_that_subscribes_misses_its_own_message() -> Case:
    h = History(2)
    h.subscribe(0)
    m = h.publish(0, own=False)
    return Case(h, {"validity": 1}, {"validity": [(m.row,)]})


# Agreement


@bad
def a_hole() -> Case:
    h = History(4)
    m = h.publish(0)
    h.everywhere(m, nodes=[1, 3])
    says = {"agreement": "process 2 never delivered message 0 of process 0, which process 0 did"}
    return Case(h, {"agreement": 1}, {"agreement": [(m.row, m.row + 1)]}, says)


@bad
def holes_of_several_messages_and_processes() -> Case:
    h = History(4)
    a, b, c = (h.publish(0) for _ in range(3))
    h.everywhere(a, b, c, nodes=[3])
    h.deliver(1, a, c)
    proof = [(a.row, a.row + 1), (b.row, b.row + 1), (b.row, b.row + 1), (c.row, c.row + 1)]
    return Case(h, {"agreement": 4}, {"agreement": proof})


@bad
def a_hole_of_one_that_joined_at_the_very_moment() -> Case:
    h = History(2)
    late = h.join()
    m = h.publish(0)
    h.joined_us[late] = h.rows[m.row]["time_us"]
    h.deliver(1, m)
    return Case(h, {"agreement": 1}, {"agreement": [(m.row, m.row + 1)]})


@bad
def a_hole_with_a_reported_gap_is_still_a_hole() -> Case:
    h = History(2)
    m = h.publish(0)
    h.gap(1, m)
    return Case(h, {"agreement": 1}, {"agreement": [(m.row, m.row + 1)]})


@bad
def a_hole_of_a_subscriber() -> Case:
    h = History(4)
    h.subscribe(0, 1, 2)
    m = h.publish(0)
    h.deliver(2, m)
    says = {"agreement": "process 1 never delivered message 0 of process 0, which process 0 did"}
    return Case(h, {"agreement": 1}, {"agreement": [(m.row, m.row + 1)]}, says)


@bad
def a_hole_of_one_that_subscribed_again_in_time() -> Case:
    h = History(2)
    h.subscribe(0, 1)
    h.unsubscribe(1)
    h.subscribe(1)
    m = h.publish(0)
    return Case(h, {"agreement": 1}, {"agreement": [(m.row, m.row + 1)]})


@bad
def a_hole_of_one_that_was_paused_for_a_while() -> Case:
    h = History(2)
    h.pause(1)
    m = h.publish(0)
    h.resume(1)
    return Case(h, {"agreement": 1}, {"agreement": [(m.row, m.row + 1)]})


# Parasites


@bad
def delivered_after_unsubscribing() -> Case:
    h = History(3)
    h.subscribe(0, 1)
    m = h.publish(0)
    left = h.unsubscribe(1)
    row = h.deliver(1, m)
    says = {"no-parasites": "process 1 delivered message 0 of process 0 but no longer subscribes to 't'"}
    return Case(h, {"no-parasites": 1}, {"no-parasites": [(left, row)]}, says)


@bad
def delivered_without_subscribing() -> Case:
    h = History(3)
    h.subscribe(0, 2)
    h.subscribe(1, topic="other")
    m = h.publish(0)
    h.deliver(2, m)
    row = h.deliver(1, m)
    says = {"no-parasites": "process 1 delivered message 0 of process 0 but does not subscribe to 't'"}
    return Case(h, {"no-parasites": 1}, {"no-parasites": [(row,)]}, says)


@bad
def delivered_before_subscribing() -> Case:
    h = History(2)
    h.subscribe(0)
    m = h.publish(0)
    row = h.deliver(1, m)
    h.subscribe(1)
    return Case(h, {"no-parasites": 1}, {"no-parasites": [(row,)]})


@bad
def a_publisher_that_does_not_subscribe_delivers_its_own() -> Case:
    h = History(2)
    h.subscribe(1)
    m = h.publish(0)
    h.deliver(1, m)
    return Case(h, {"no-parasites": 1}, {"no-parasites": [(m.row + 1,)]})
