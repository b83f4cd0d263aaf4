"""Trees that are none, and messages that come of nothing or vanish."""

from __future__ import annotations

from epicast.core.ids import NOBODY
from tests.pipeline.cases import Case, bad
from tests.pipeline.histories import History

# Trees


def _tree(processes: int, edges: dict[int, int]) -> tuple[History, dict[int, int]]:
    """A tree that was built, and rests; also the rows in which each process found its parent."""
    h = History(processes)
    rows = {node: h.parent(node, parent) for node, parent in edges.items()}
    h.wait(11)
    return h, rows


@bad
def two_parents() -> Case:
    h, rows = _tree(3, {1: 0, 2: 0})
    h.picture([(1, 0), (2, 0), (2, 1)])
    says = {"tree": "in flow 0/0 process 2 has several parents: process 0, process 1"}
    return Case(h, {"tree": 1}, {"tree": [(rows[2],)]}, says)


@bad
def a_cycle_of_parents() -> Case:
    h, rows = _tree(6, {1: 0, 2: 4, 3: 2, 4: 3, 5: 4})
    h.picture({1: 0, 2: 4, 3: 2, 4: 3, 5: 4})
    return Case(h, {"tree": 1}, {"tree": [(rows[2], rows[3], rows[4])]})


@bad
def an_orphan_with_children() -> Case:
    h, _ = _tree(5, {1: 0, 2: 1, 3: 2, 4: 3})
    lost = h.parent(2, NOBODY)
    h.wait(11)
    h.picture({1: 0, 3: 2, 4: 3})
    says = {"tree": "in flow 0/0 process 2 has no parent, and cuts off 2 below it"}
    return Case(h, {"tree": 1}, {"tree": [(lost,)]}, says)


@bad
def one_that_never_had_a_parent() -> Case:
    h, _ = _tree(3, {1: 0})
    h.picture({1: 0})
    return Case(h, {"tree": 1}, {"tree": [()]}, {"tree": "in flow 0/0 process 2 has no parent"})


@bad
def a_parent_that_is_gone() -> Case:
    h, rows = _tree(4, {1: 0, 2: 1, 3: 2})
    end = h.crash(1)
    h.wait(11)
    h.picture({2: 1, 3: 2})
    says = {"tree": "in flow 0/0 process 2 has process 1 for parent, which is gone, and cuts off 1 below it"}
    return Case(h, {"tree": 1}, {"tree": [(rows[2], end)]}, says)


@bad
def a_source_with_a_parent() -> Case:
    """It closes a cycle too."""
    h, rows = _tree(3, {1: 0, 2: 0})
    own = h.parent(0, 2)
    h.wait(11)
    h.picture({0: 2, 1: 0, 2: 0})
    says = {"tree": "in flow 0/0 process 0 is the source and has a parent, process 2"}
    return Case(h, {"tree": 2}, {"tree": [(own,), (rows[2], own)]}, says)


@bad
def a_flow_that_is_in_no_picture_any_more() -> Case:
    h, _ = _tree(3, {1: 0, 2: 0})
    rows = [h.parent(node, NOBODY) for node in (1, 2)]
    h.wait(11)
    h.neighbours((1, 2))
    return Case(h, {"tree": 2}, {"tree": [(rows[0],), (rows[1],)]})


@bad
def one_broken_flow_of_two() -> Case:
    h, _ = _tree(3, {1: 0, 2: 0})
    h.picture({1: 0, 2: 0})
    h.picture({0: 1}, "2/0")
    says = {"tree": "in flow 2/0 process 1 has no parent, and cuts off 1 below it"}
    return Case(h, {"tree": 1}, {"tree": [()]}, says)


# Accounting


@bad
def more_received_than_sent() -> Case:
    """On the link, and so over all links too."""
    h = History(2)
    h.send(0, 1)
    h.receive(1, 0)
    row = h.receive(1, 0)
    says = {"accounting": "1 message sent and 0 copied, 2 received and 0 dropped, 0 under way: 1 too many"}
    return Case(h, {"accounting": 2}, {"accounting": [(), (row,)]}, says)


@bad
def received_from_one_that_did_not_send() -> Case:
    h = History(3)
    h.send(0, 1)
    row = h.receive(1, 2)
    says = {"accounting": "from process 2 to process 1: 0 messages sent and 0 copied, but 1 received and 0 dropped"}
    return Case(h, {"accounting": 1}, {"accounting": [(row,)]}, says)


@bad
def received_by_the_sender() -> Case:
    h = History(2)
    h.send(0, 1)
    row = h.receive(0, 1)
    return Case(h, {"accounting": 1}, {"accounting": [(row,)]})


@bad
def dropped_and_received() -> Case:
    h = History(2, in_flight=None)
    h.send(0, 1)
    h.drop(0, 1)
    row = h.duplicate(1, 0)
    return Case(h, {"accounting": 1}, {"accounting": [(row,)]})


@bad
def a_message_that_vanished() -> Case:
    h = History(2)
    h.send(0, 1)
    h.send(1, 0)
    h.receive(0, 1)
    says = {"accounting": "2 messages sent and 0 copied, 1 received and 0 dropped, 0 under way: 1 too few"}
    return Case(h, {"accounting": 1}, {"accounting": [()]}, says)


@bad
def one_too_many_under_way() -> Case:
    h = History(2, in_flight=2)
    h.send(0, 1)
    h.copy(0, 1)
    h.receive(1, 0)
    return Case(h, {"accounting": 1}, {"accounting": [()]})
