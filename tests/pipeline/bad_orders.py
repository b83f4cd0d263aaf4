"""Messages delivered in a wrong order."""

from __future__ import annotations

from tests.pipeline.cases import Case, bad
from tests.pipeline.histories import History, Post

# FIFO, which causal order includes


@bad
def two_messages_of_one_publisher_swapped() -> Case:
    h = History(2)
    a, b = h.publish(0), h.publish(0)
    early = h.deliver(1, b)
    late = h.deliver(1, a)
    own = (a.row + 1, b.row + 1)
    return Case(
        h,
        {"fifo": 1, "causal": 1, "total": 2},
        {"fifo": [(early, late)], "causal": [(a.row, b.row, early, late)], "total": [(*own, early, late)]},
        {"fifo": "process 1 delivered message 0 of process 0 after message 1"},
        inversions=1,
    )


@bad
def two_late_messages_of_one_that_crashed() -> Case:
    """Nobody else delivers any of them, so there is one order, but a wrong one."""
    h = History(2)
    a, b, c = (h.publish(0, own=False) for _ in range(3))
    h.crash(0)
    first = h.deliver(1, c)
    rows = [h.deliver(1, a), h.deliver(1, b)]
    return Case(
        h,
        {"fifo": 2, "causal": 1},
        {"fifo": [(first, rows[0]), (first, rows[1])], "causal": [(b.row, c.row, first, rows[1])]},
    )


# Causal order


@bad
def an_answer_before_the_question() -> Case:
    h = History(3)
    question = h.publish(0)
    heard = h.deliver(1, question)
    answer = h.publish(1)
    early = h.deliver(2, answer)
    late = h.deliver(2, question)
    h.deliver(0, answer)
    proof = (question.row, heard, answer.row, early, late)
    says = {
        "causal": "process 2 delivered message 0 of process 1 before message 0 of process 0, which its publisher knew"
    }
    total = (heard, answer.row + 1, early, late)
    return Case(h, {"causal": 1, "total": 2}, {"causal": [proof], "total": [total]}, says, inversions=1)


@bad
def an_answer_before_the_question_where_nobody_contradicts() -> Case:
    h = History(3)
    question = h.publish(0, own=False)
    h.crash(0)
    heard = h.deliver(1, question)
    answer = h.publish(1, own=False)
    h.crash(1)
    early, late = h.deliver(2, answer), h.deliver(2, question)
    return Case(h, {"causal": 1}, {"causal": [(question.row, heard, answer.row, early, late)]})


@bad
def two_topics_of_one_publisher_swapped() -> Case:
    """No FIFO: that is per topic."""
    h = History(2)
    a, b = h.publish(0, "one", own=False), h.publish(0, "two", own=False)
    h.crash(0)
    early, late = h.deliver(1, b), h.deliver(1, a)
    return Case(h, {"causal": 1}, {"causal": [(a.row, b.row, early, late)]})


def _chain(length: int) -> tuple[History, list[Post], list[int]]:
    """Process i + 1 hears the message of i and nothing else, then publishes its own. All crash; one more looks on."""
    h = History(length + 1)
    posts, heard = [h.publish(0, own=False)], []
    for node in range(1, length):
        heard.append(h.deliver(node, posts[-1]))
        posts.append(h.publish(node, own=False))
    for node in range(length):
        h.crash(node)
    return h, posts, heard


@bad
def through_a_message_that_the_process_lacks() -> Case:
    h, (a, b, c), heard = _chain(3)
    early, late = h.deliver(3, c), h.deliver(3, a)
    wrong = "process 3 delivered message 0 of process 2 before message 0 of process 0"
    proof = tuple(sorted((a.row, b.row, c.row, *heard, early, late)))
    return Case(h, {"causal": 1}, {"causal": [proof]}, {"causal": f"{wrong}, on which it depends through 1 message"})


@bad
def through_a_message_that_the_publisher_delivered_too() -> Case:
    h = History(4)
    a = h.publish(0, own=False)
    heard = [h.deliver(1, a)]
    b = h.publish(1, own=False)
    h.deliver(2, a)
    heard.append(h.deliver(2, b))
    c = h.publish(2, own=False)
    for node in range(3):
        h.crash(node)
    early, late = h.deliver(3, c), h.deliver(3, a)
    return Case(h, {"causal": 1}, {"causal": [tuple(sorted((a.row, b.row, c.row, *heard, early, late)))]})


@bad
def through_six_messages_that_the_process_lacks() -> Case:
    h, posts, heard = _chain(8)
    early, late = h.deliver(8, posts[-1]), h.deliver(8, posts[0])
    rows = [post.row for post in posts]
    return Case(h, {"causal": 1}, {"causal": [tuple(sorted((*rows, *heard, early, late)))]})


@bad
def across_an_earlier_publication_of_the_same_process() -> Case:
    """What was heard before the last publication but one still comes before the last."""
    h = History(3)
    a = h.publish(0, own=False)
    h.crash(0)
    heard = h.deliver(1, a)
    b, c = h.publish(1, own=False), h.publish(1, own=False)
    h.crash(1)
    early, late = h.deliver(2, c), h.deliver(2, a)
    return Case(h, {"causal": 1}, {"causal": [(a.row, heard, b.row, c.row, early, late)]})


# Total order


@bad
def two_processes_swap_two_messages() -> Case:
    h = History(4)
    a, b = h.publish(0), h.publish(1)
    h.deliver(0, b)
    h.deliver(1, a)
    h.everywhere(a, b, nodes=[2])
    h.everywhere(b, a, nodes=[3])
    first, second = (a.row + 1, b.row + 2), (b.row + 1, b.row + 3)
    order = "process 0 delivered message 0 of process 0 before message 0 of process 1"
    says = {"total": f"{order}, process 1 the other way round"}
    return Case(h, {"total": 2}, {"total": [tuple(sorted((*first, *second)))]}, says, inversions=1)


@bad
def a_circle_of_three_where_no_two_disagree() -> Case:
    """Publishers are gone and nobody stays, so nothing is owed."""
    h = History(6)
    a, b, c = (h.publish(node, own=False) for node in range(3))
    rows = [h.deliver(3, a), h.deliver(3, b), h.deliver(4, b), h.deliver(4, c), h.deliver(5, c), h.deliver(5, a)]
    for node in range(6):
        h.crash(node)
    says = (
        "3 messages in a circle: process 3 delivered message 0 of process 0 before message 0 of process 1,"
        " process 4 delivered message 0 of process 1 before message 0 of process 2,"
        " process 5 delivered message 0 of process 2 before message 0 of process 0"
    )
    return Case(h, {"total": 3}, {"total": [tuple(rows)]}, {"total": says})


@bad
def two_knots_apart() -> Case:
    h = History(6)
    posts = [h.publish(node, own=False) for node in range(4)]
    for node in range(4):
        h.crash(node)
    one = [h.deliver(4, posts[0]), h.deliver(4, posts[1]), h.deliver(5, posts[1]), h.deliver(5, posts[0])]
    two = [h.deliver(4, posts[2]), h.deliver(4, posts[3]), h.deliver(5, posts[3]), h.deliver(5, posts[2])]
    return Case(h, {"total": 4}, {"total": [tuple(one), tuple(two)]}, inversions=2)


@bad
def a_swap_around_a_message_that_one_of_them_lacks() -> Case:
    h = History(5)
    a, b, c = (h.publish(node, own=False) for node in range(3))
    for node in range(3):
        h.crash(node)
    rows = [h.deliver(3, a), h.deliver(3, b), h.deliver(3, c), h.deliver(4, c), h.deliver(4, a)]
    h.crash(3)
    h.crash(4)
    # The one in between has no place either, though no two processes disagree about it.
    return Case(h, {"total": 3}, {"total": [(rows[0], rows[2], rows[3], rows[4])]}, inversions=1)


@bad
def two_topics_each_swapped() -> Case:
    """Four messages, but no pair across the topics counts."""
    h = History(6)
    one = [h.publish(node, "one", own=False) for node in range(2)]
    two = [h.publish(node, "two", own=False) for node in (2, 3)]
    for node in range(4):
        h.crash(node)
    rows = [h.deliver(4, post) for post in (one[0], two[0], one[1], two[1])]
    rows += [h.deliver(5, post) for post in (one[1], two[1], one[0], two[0])]
    proof = [(rows[0], rows[2], rows[4], rows[6]), (rows[1], rows[3], rows[5], rows[7])]
    return Case(h, {"total": 4}, {"total": proof}, inversions=2)


@bad
def a_swap_and_a_hole_are_told_apart() -> Case:
    h = History(5)
    a, b, c = (h.publish(node, own=False) for node in range(3))
    for node in range(3):
        h.crash(node)
    rows = [h.deliver(3, a), h.deliver(3, b), h.deliver(3, c), h.deliver(4, b), h.deliver(4, a)]
    return Case(
        h,
        {"agreement": 1, "total": 2},
        {"agreement": [(c.row, rows[2])], "total": [(rows[0], rows[1], rows[3], rows[4])]},
        inversions=1,
        holes=1,
    )


@bad
def a_reversal_of_four() -> Case:
    """One knot, in which every pair is swapped."""
    h = History(6)
    posts = [h.publish(node, own=False) for node in range(4)]
    for node in range(4):
        h.crash(node)
    h.deliver(4, *posts)
    h.deliver(5, *posts[::-1])
    return Case(h, {"total": 4}, inversions=6)
