"""Copies that the driver does not let in: they are asked for elsewhere, less and less often, and given up aloud."""

from __future__ import annotations

from epicast.core.message import Position
from epicast.core.recording import Record, Send
from epicast.core.records import Kind
from epicast.dissemination.brisa_messages import UPWARD, Activate, Data, Deactivate, Recover, Whereabouts
from epicast.dissemination.refused import TERM_MAX_US, TERM_US, Refused
from tests.support.neighbours import Tree, data

FLOW = (0, 0)
OTHER = (9, 0)
WATCH_US = 1_000_000


def tree_with_hole() -> Tree:
    """Message 1 is missing, and all neighbours claim to have it."""
    tree = Tree(watch_us=WATCH_US).attached()
    tree.brisa.start()
    tree.brisa.on_data(1, data(2, (0, 1)))
    return tree


def claimed(tree: Tree, *peers: int) -> None:
    for peer in peers:
        tree.hears(peer, (0, peer), last=2)


def asked(tree: Tree) -> list[object]:
    return [each.to for each in tree.take() if isinstance(each, Send) and type(each.msg) is Recover]


def looks(tree: Tree, count: int, *peers: int) -> list[object]:
    """Whom it asks in so many watch periods."""
    found: list[object] = []
    for _ in range(count):
        claimed(tree, *peers)
        tree.env.advance(WATCH_US)
        found += asked(tree)
    return found


def bad(seq: int, source: int = 0, flow: tuple[int, int] = FLOW, flags: int = 0) -> Data:
    return data(seq, (flow[0],), source=source, flow=flow, flags=flags)


# A relay brings it


def test_a_neighbour_that_brought_a_bad_copy_is_not_asked_again() -> None:
    tree = tree_with_hole()
    assert set(looks(tree, 3, 2)) == {2}
    tree.brisa.on_rejected(2, bad(1), blamed=True)
    assert set(looks(tree, 3, 2, 3)) == {3}
    tree.brisa.on_data(3, data(1, (0, 3)))
    assert tree.got[-1] == (0, 1)


def test_a_parent_that_brings_bad_copies_is_left_for_a_while() -> None:
    tree = Tree(watch_us=WATCH_US).attached()
    tree.told(2, (0, 2))
    tree.take()
    tree.brisa.on_rejected(1, bad(1), blamed=True)
    assert Send(1, Deactivate(FLOW)) in tree.take()
    tree.told(2, (0, 2))
    assert tree.brisa.parents()[FLOW] == 2
    tree.brisa.neighbour_down(2, True)
    tree.told(1, (0, 1))
    assert tree.brisa.parents()[FLOW] is None, "its term has not ended"
    tree.env.advance(TERM_US)
    tree.told(1, (0, 1))
    tree.told(1, (0, 1))
    assert tree.brisa.parents()[FLOW] == 1


def test_a_relay_is_no_worse_a_parent_for_a_certificate_that_has_ended() -> None:
    tree = Tree().attached()
    tree.brisa.on_rejected(1, bad(1), blamed=False)
    assert tree.brisa.parents()[FLOW] == 1
    assert tree.take() == []


def test_a_hole_that_only_bad_copies_would_fill_is_given_up_aloud() -> None:
    tree = tree_with_hole()
    for peer in (1, 2, 3):
        tree.brisa.on_rejected(peer, bad(1), blamed=True)
    looks(tree, 2, 1, 2, 3)
    tree.brisa.on_rejected(0, bad(1), blamed=False)  # the source, which is no neighbour, has no other
    looks(tree, 3, 1, 2, 3)
    gaps = [record for record in tree.env.records if record.kind == Kind.GAP]
    assert gaps == [Record(Kind.GAP, source=0, seq=2, detail="1 bad signature")]
    assert looks(tree, 5, 1, 2, 3) == []


def test_no_bad_copy_brings_about_a_gap_of_what_was_never_missing() -> None:
    tree = Tree(watch_us=WATCH_US).attached()
    tree.brisa.start()
    for seq in (0, 10**12):
        tree.brisa.on_rejected(2, bad(seq), blamed=True)
    looks(tree, 5, 1, 3)
    tree.brisa.on_data(1, data(1, (0, 1)))
    tree.brisa.on_data(3, data(2, (0, 3)))
    assert tree.got[-1] in ((0, 1), (0, 2))
    assert [record for record in tree.env.records if record.kind == Kind.GAP] == []
    assert tree.flow().windows[0].next == 3


def test_neighbours_that_go_on_are_told_again_but_not_with_every_message() -> None:
    tree = Tree(watch_us=WATCH_US).attached()
    for seq in range(1, 100):
        tree.brisa.on_rejected(2, bad(seq, 9, OTHER), blamed=True)
    assert tree.take() == [Send(2, Deactivate(OTHER))]
    tree.env.advance(WATCH_US)
    tree.brisa.on_rejected(2, bad(100, 9, OTHER), blamed=True)
    assert tree.take() == [Send(2, Deactivate(OTHER))]
    tree.brisa.on_rejected(99, bad(101, 9, OTHER), blamed=True)
    assert tree.take() == [], "it is no neighbour"


# The publisher brings it


def test_what_a_publisher_does_not_sign_is_given_up_and_said_once_a_watch_period() -> None:
    tree = Tree(watch_us=WATCH_US)
    tree.brisa.start()
    for seq in (0, 1, 2, 2, 1):
        tree.brisa.on_rejected(1, bad(seq, 1, (1, 0)), blamed=True)
    tree.env.advance(3 * WATCH_US)
    assert tree.env.records == [Record(Kind.GAP, source=1, seq=3, detail="3 bad signature")]
    assert tree.take() == [Send(1, Deactivate((1, 0)))]


def test_the_flow_of_a_publisher_that_does_not_sign_is_forgotten_and_not_met_again() -> None:
    tree = Tree(watch_us=WATCH_US)
    tree.brisa.start()
    flow = (1, 0)
    here = Position(flow, (1,), ((1, 50),))
    tree.brisa.on_whereabouts(1, Whereabouts(here))
    tree.brisa.on_whereabouts(1, Whereabouts(here))
    tree.brisa.on_activate(2, Activate(flow))
    assert tree.brisa.parents() == {flow: 1}
    tree.take()
    tree.brisa.on_rejected(1, bad(50, 1, flow), blamed=True)
    assert tree.brisa.flows == {}
    sent = tree.take()
    assert Send(1, Deactivate(flow)) in sent
    assert Send(2, Whereabouts(Position(flow, ()))) in sent, "the child looks elsewhere"
    for _ in range(30):
        tree.brisa.heard(1, (here,), tree.env.now_us())
        tree.brisa.on_whereabouts(2, Whereabouts(here))
        tree.env.advance(WATCH_US)
    assert tree.brisa.flows == {}
    assert tree.take() == []


def test_a_good_message_ends_the_term_of_its_publisher() -> None:
    tree = Tree()
    tree.brisa.on_rejected(1, bad(0, 1, (1, 0)), blamed=True)
    tree.brisa.on_data(1, data(1, (1,), source=1, flow=(1, 0)))
    assert tree.got == [(1, 1)]
    assert tree.brisa.parents() == {(1, 0): 1}


def test_a_publisher_that_does_not_sign_may_relay_what_others_sign() -> None:
    tree = Tree().attached()
    tree.brisa.on_rejected(1, bad(0, 1, FLOW, UPWARD), blamed=True)
    assert tree.brisa.parents()[FLOW] == 1
    assert tree.take() == []


def test_the_tables_are_bounded() -> None:
    tree = Tree(watch_us=WATCH_US).attached()
    for number in range(5000):
        tree.brisa.on_rejected(2, bad(0, 9, (9, number)), blamed=True)
        tree.brisa.on_rejected(9, bad(0, 9, (9, number)), blamed=True)
        tree.brisa.on_rejected(2, bad(0, 100 + number), blamed=True)
    refused = tree.brisa.table.refused
    assert len(refused) == len(refused._spoilt) == 1024
    assert list(tree.brisa.flows) == [FLOW]


def test_terms_double() -> None:
    refused, now = Refused(), 0
    lengths = []
    for _ in range(9):
        refused.add(FLOW, 1, now)
        since = now
        while refused.holds(FLOW, 1, now):
            refused.add(FLOW, 1, now)
            now += 1_000_000
        lengths.append(now - since)
    assert lengths == [min(TERM_US << number, TERM_MAX_US) for number in range(9)]
    refused.good(FLOW, 1)
    assert not refused.holds(FLOW, 1, now)
