"""Several trees at once, what each process tells about them, and the limits of its memory."""

import pytest

from epicast.core.errors import EpicastError
from epicast.core.message import Position
from epicast.core.recording import Record, Send
from epicast.core.records import Kind
from epicast.dissemination.brisa_flow import Buffer
from epicast.dissemination.brisa_messages import UPWARD, Activate, Data, Deactivate, Recover, Whereabouts
from tests.support.neighbours import Tree, data, position

FLOW = (0, 0)
OTHER = (9, 0)


def sets(tree: Tree, flow: tuple[int, int]) -> tuple[object, ...]:
    state = tree.flow(flow)
    return state.parent, state.path, dict(state.in_active), dict(state.out_active)


# Independence (B-I8)


def test_each_flow_has_a_parent_of_its_own() -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(0, (0, 1)))
    tree.brisa.on_data(2, data(0, (9, 2), source=9, flow=OTHER))
    assert tree.brisa.parents() == {FLOW: 1, OTHER: 2}


def test_a_deactivation_concerns_one_flow() -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(0, (0, 1)))
    before = sets(tree, FLOW)
    tree.brisa.on_data(2, data(0, (9, 2), source=9, flow=OTHER))
    tree.brisa.on_data(3, data(0, (9, 3), source=9, flow=OTHER))
    tree.brisa.on_deactivate(1, Deactivate(OTHER, mutual=True))
    tree.brisa.on_activate(3, Activate(OTHER))
    assert sets(tree, FLOW) == before


def test_the_loss_of_a_neighbour_concerns_the_flows_in_which_it_was_the_parent() -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(0, (0, 1)))
    tree.brisa.on_data(2, data(0, (9, 2), source=9, flow=OTHER))
    tree.brisa.neighbour_down(1, True)
    assert tree.brisa.parents() == {FLOW: None, OTHER: 2}


def test_a_new_neighbour_is_told_of_every_flow_and_active_in_none() -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(0, (0, 1)))
    tree.brisa.on_data(2, data(0, (9, 2), source=9, flow=OTHER))
    tree.take()
    tree.brisa.neighbour_up(4)
    assert [effect.to for effect in tree.take()] == [4, 4]  # type: ignore[union-attr]
    for flow in (FLOW, OTHER):
        assert 4 not in tree.flow(flow).in_active
        assert 4 not in tree.flow(flow).out_active


# What neighbours are told


def test_a_process_tells_its_place_in_each_flow() -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(0, (0, 1)))
    tree.brisa.on_data(2, data(0, (9, 2), source=9, flow=OTHER))
    assert tree.brisa.positions() == (position((0, 1, 5)), Position(OTHER, (9, 2, 5), ((9, 0),)))


def test_a_process_tells_how_far_it_is_with_each_publisher() -> None:
    tree = Tree().attached()
    tree.brisa.on_data(1, data(4, (0, 1)))
    tree.brisa.on_data(1, data(0, (), source=8, flags=1))
    assert tree.brisa.positions()[0].progress == ((0, 4), (8, 0))


def test_many_flows_take_turns() -> None:
    tree = Tree(positions_max=2)
    for root in (10, 11, 12):
        tree.brisa.on_data(1, data(0, (root, 1), source=root, flow=(root, 0)))
    told = [[position.flow[0] for position in tree.brisa.positions()] for _ in range(3)]
    assert told == [[10, 11], [12, 10], [11, 12]]


# Which links matter


def test_links_to_the_parent_and_to_children_are_used() -> None:
    tree = Tree().attached()
    tree.hears(2, (0, 1, 5, 2))
    tree.hears(3, (0, 1, 5, 8, 3))
    assert [tree.brisa.uses(peer) for peer in (1, 2, 3)] == [True, True, False]


def test_ones_own_flow_is_told_of_each_time_however_many_there_are() -> None:
    tree = Tree(positions_max=2)
    for root in (7, 8, 9):
        tree.brisa.on_data(1, data(0, (root, 1), source=root, flow=(root, 0)))
    tree.brisa.broadcast("t", b"x")
    told = [[position.flow for position in tree.brisa.positions()] for _ in range(4)]
    own = (tree.env.me, 0)
    assert all(own in each for each in told)
    assert {flow for each in told for flow in each} == {own, (7, 0), (8, 0), (9, 0)}


def test_a_link_that_one_flow_uses_is_used() -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(0, (0, 1)))
    tree.brisa.on_data(2, data(0, (9, 2), source=9, flow=OTHER))
    tree.brisa.heard(3, (position((0, 1, 3)), Position(OTHER, (9, 3))), 0)
    assert [tree.brisa.uses(peer) for peer in (1, 2, 3)] == [True, True, False]


def test_whoever_may_have_become_a_child_is_not_cut_off_before_it_could_tell() -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(0, (0, 1)))
    assert [tree.brisa.uses(peer) for peer in (1, 2, 3)] == [True, True, True]
    tree.brisa.on_deactivate(2, Deactivate(FLOW))
    tree.brisa.heard(3, (position((0, 1, 5, 3)),), 0)
    assert [tree.brisa.uses(peer) for peer in (1, 2, 3)] == [True, False, True]
    tree.brisa.heard(3, (position((0, 1, 3)),), 0)
    assert [tree.brisa.uses(peer) for peer in (1, 2, 3)] == [True, False, False]


def test_whoever_asks_to_become_a_child_is_not_cut_off_for_where_it_stood_before() -> None:
    tree = Tree().attached()
    tree.hears(3, (0, 8, 3))
    assert not tree.brisa.uses(3)
    tree.brisa.on_activate(3, Activate(FLOW))
    assert tree.brisa.uses(3)
    tree.brisa.heard(3, (position((0, 8, 3)),), tree.env.now_us() - 1)  # what it told before it asked
    assert tree.brisa.uses(3)
    tree.env.advance(1)
    tree.brisa.heard(3, (position((0, 8, 3)),), tree.env.now_us())  # it has thought better of it
    assert not tree.brisa.uses(3)


# Limits


def test_flows_above_the_cap_are_dropped_and_counted() -> None:
    tree = Tree(flows_max=1).attached()
    assert tree.brisa.on_data(2, data(0, (9, 2), source=9, flow=OTHER)) is False
    tree.brisa.heard(2, (Position(OTHER, (9, 2)),), tree.env.now_us())
    assert list(tree.brisa.flows) == [FLOW]
    assert tree.got == []
    assert tree.take() == []
    assert tree.env.records == [
        Record(Kind.NONSENSE, detail="too many flows"),
        Record(Kind.NONSENSE, 2, detail="too many flows"),
    ]


def test_publishers_above_the_cap_are_dropped() -> None:
    tree = Tree(sources_max=1).attached()
    tree.brisa.on_data(1, data(0, (0, 1), source=8))
    assert tree.got == []
    assert list(tree.flow().windows) == [0]


def test_there_is_always_room_for_the_source_itself() -> None:
    """Whoever knows the name of a flow can publish on it before its source does."""
    tree = Tree(sources_max=3)
    for publisher in range(100, 110):
        tree.brisa.on_data(1, data(0, (), source=publisher, flags=UPWARD))
    assert len(tree.flow().windows) == 3
    tree.brisa.on_data(1, data(0, (0, 1)))
    assert tree.got[-1] == (0, 0)


def test_what_the_source_has_published_is_chased_also_where_others_fill_the_table() -> None:
    tree = Tree(sources_max=3)
    tree.brisa.start()
    for publisher in range(100, 110):
        tree.brisa.on_data(1, data(0, (), source=publisher, flags=UPWARD))
    tree.take()
    for _ in range(3):
        tree.hears(1, (0, 1), last=4)
        tree.env.advance(1_000_000)
    assert any(isinstance(each, Send) and each.msg == Recover(FLOW, ((0, 4, 4),)) for each in tree.env.effects)


def test_progress_of_publishers_above_the_cap_is_not_chased() -> None:
    tree = Tree(sources_max=1).attached()
    tree.brisa.start()
    tree.brisa.heard(1, (Position(FLOW, (0, 1), ((0, 0), (7, 5), (8, 5))),), tree.env.now_us())
    tree.env.advance(10_000_000)
    assert tree.take() == []


def test_a_flow_that_begins_with_a_publication_has_no_parent_to_look_for() -> None:
    tree = Tree(neighbours=())
    tree.brisa.start()
    tree.brisa.broadcast("t", b"x")
    tree.env.advance(10_000_000)
    assert tree.take() == []
    assert tree.brisa.parents() == {}


# The buffer


def message(seq: int, size: int = 1) -> Data:
    return Data(FLOW, 0, seq, 0, (0,), 0, "t", bytes(size))


def kept(buffer: Buffer) -> list[int]:
    return [each.seq for each in buffer.since(0)]


def test_a_buffer_keeps_the_latest_messages() -> None:
    buffer = Buffer(messages_max=3, bytes_max=1000)
    for seq in range(5):
        buffer.add(seq, message(seq))
    assert kept(buffer) == [2, 3, 4]
    assert len(buffer) == 3


def test_a_buffer_keeps_no_more_bytes_than_allowed() -> None:
    buffer = Buffer(messages_max=100, bytes_max=10)
    for seq in range(4):
        buffer.add(seq, message(seq, size=4))
    assert kept(buffer) == [2, 3]


def test_a_buffer_counts_the_bytes_of_what_it_dropped_for_its_number() -> None:
    buffer = Buffer(messages_max=1, bytes_max=10)
    for seq in range(10):
        buffer.add(seq, message(seq, size=8))
    assert kept(buffer) == [9]


def test_a_message_larger_than_the_buffer_is_not_kept() -> None:
    buffer = Buffer(messages_max=10, bytes_max=10)
    buffer.add(0, message(0, size=11))
    assert kept(buffer) == []
    buffer.add(1, message(1, size=10))
    assert kept(buffer) == [1]


def test_a_buffer_gives_what_came_since_a_time() -> None:
    buffer = Buffer(messages_max=10, bytes_max=1000)
    for seq in range(5):
        buffer.add(seq * 100, message(seq))
    assert [each.seq for each in buffer.since(200)] == [2, 3, 4]


def test_a_buffer_gives_ranges_of_a_source() -> None:
    buffer = Buffer(messages_max=10, bytes_max=1000)
    for seq in range(6):
        buffer.add(0, message(seq))
    assert [each.seq for each in buffer.within([(0, 1, 2), (0, 5, 9), (7, 0, 9)])[0]] == [1, 2, 5]


def test_a_parent_is_never_sent_its_own_message_back() -> None:
    tree = Tree().attached()
    tree.brisa.on_activate(1, Activate(FLOW))  # even if it asks for copies
    tree.take()
    tree.brisa.on_data(1, data(1, (0, 1)))
    assert tree.take() == []


def test_at_the_cap_a_flow_without_a_parent_makes_room() -> None:
    tree = Tree(flows_max=2)
    tree.brisa.on_data(1, data(0, (0, 1)))
    tree.brisa.on_data(2, data(0, (9, 2), source=9, flow=OTHER))
    assert tree.brisa.table.meet((7, 0)) is None, "both have parents"
    tree.brisa.neighbour_down(1, True)
    assert tree.brisa.parents()[FLOW] is None
    assert tree.brisa.table.meet((7, 0)) is not None
    assert list(tree.brisa.flows) == [OTHER, (7, 0)]


def test_a_source_may_have_only_so_many_flows() -> None:
    tree = Tree(flows_of_one_max=2)
    met = [tree.brisa.table.meet((9, number)) for number in range(3)]
    assert [flow is not None for flow in met] == [True, True, False]
    assert tree.brisa.table.meet((8, 0)) is not None


def test_what_came_on_a_forgotten_flow_does_not_come_again() -> None:
    tree = Tree(flows_max=1)
    for seq in range(3):
        tree.brisa.on_data(1, data(seq, (0, 1)))
    tree.brisa.neighbour_down(1, True)
    assert tree.brisa.table.meet(OTHER) is not None
    assert list(tree.brisa.flows) == [OTHER]
    tree.brisa.lose_parent(tree.flow(OTHER), ())
    before = list(tree.got)
    assert tree.brisa.on_data(2, data(2, (0, 2))) is True, "a duplicate"
    assert tree.brisa.on_data(2, data(3, (0, 2))) is False
    assert tree.got == [*before, (0, 3)]
    assert not tree.flow(FLOW).mid_stream


def test_flows_that_one_neighbour_may_have_invented_make_room_once_they_are_silent() -> None:
    tree = Tree(flows_max=4)
    tree.brisa.on_data(1, data(0, (0, 1)))
    for root in (7, 8, 9):
        tree.brisa.on_data(2, data(0, (root, 2), source=root, flow=(root, 0)))
    assert tree.brisa.table.meet((6, 0)) is None, "all of them are busy"
    tree.env.advance(tree.brisa.config.watch_us * 2)
    tree.brisa.on_data(2, data(1, (7, 2), source=7, flow=(7, 0)))
    assert tree.brisa.table.meet((6, 0)) is not None
    assert list(tree.brisa.flows) == [FLOW, (7, 0), (9, 0), (6, 0)]


def test_where_no_neighbour_brings_most_flows_those_that_hardly_began_make_room() -> None:
    tree = Tree(flows_max=4)
    for root, peer in {0: 1, 7: 1, 8: 2, 9: 3}.items():
        tree.brisa.on_data(peer, data(0, (root, peer), source=root, flow=(root, 0)))
    tree.brisa.on_data(1, data(1, (0, 1)))
    tree.brisa.on_data(2, data(1, (8, 2), source=8, flow=(8, 0)))
    assert tree.brisa.table.hear_of((6, 0), 1) is None, "all of them are busy"
    tree.env.advance(tree.brisa.config.watch_us * 2)
    assert tree.brisa.table.hear_of((6, 0), 1) is not None
    assert tree.brisa.table.hear_of((4, 0), 1) is not None
    assert tree.brisa.table.hear_of((3, 0), 1) is None, "of the others more came"
    assert list(tree.brisa.flows) == [FLOW, (8, 0), (6, 0), (4, 0)]


def test_all_topics_may_share_one_tree() -> None:
    apart, together = Tree(), Tree(one_flow=True)
    for tree, flows in ((apart, 2), (together, 1)):
        ids = [tree.brisa.broadcast(topic, b"x") for topic in ("a", "b")]
        assert len(tree.brisa.flows) == flows
        assert len(set(ids)) == 2
        assert tree.brisa.next_id("a") == (5, ids[0][1] + 1 if tree is apart else ids[1][1] + 1)


def test_more_flows_of_ones_own_than_there_may_be_are_refused_in_one_line() -> None:
    tree = Tree(flows_max=1)
    tree.brisa.broadcast("a", b"x")
    with pytest.raises(EpicastError, match="more than 1 trees of our own: raise flows_max"):
        tree.brisa.broadcast("b", b"x")


# What others say about flows that we have not seen


def names(tree: Tree, teller: int, *flows: tuple[int, int]) -> None:
    """In each of the ways in which a neighbour can name a flow."""
    for number, flow in enumerate(flows):
        told = Position(flow, (flow[0], teller))
        if number % 3 == 0:
            tree.brisa.heard(teller, (told,), tree.env.now_us())
        elif number % 3 == 1:
            tree.brisa.on_whereabouts(teller, Whereabouts(told))
        else:
            tree.brisa.on_activate(teller, Activate(flow))


def test_nobody_tells_a_process_about_flows_of_its_own() -> None:
    tree = Tree(flows_of_one_max=4)
    me = tree.env.me
    names(tree, 1, *[(me, number) for number in range(9)])
    tree.brisa.on_data(1, data(0, (me, 1), source=me, flow=(me, 7)))
    tree.brisa.on_data(1, data(0, (), source=9, flow=(me, 8), flags=UPWARD))
    assert tree.brisa.flows == {}
    assert tree.take() == []
    tree.brisa.broadcast("t", b"x")
    assert list(tree.brisa.flows) == [(me, 0)]


def test_flows_of_others_do_not_stand_in_the_way_of_ones_own() -> None:
    tree = Tree(flows_max=2)
    for root in (8, 9):
        tree.brisa.on_data(1, data(0, (root, 1), source=root, flow=(root, 0)))
    tree.brisa.broadcast("t", b"x")
    assert list(tree.brisa.flows) == [(8, 0), (9, 0), (5, 0)]


def test_a_neighbour_may_introduce_so_many_flows_and_no_more() -> None:
    tree = Tree(hearsay_max=3)
    names(tree, 1, *[(root, 0) for root in range(10, 20)])
    names(tree, 2, *[(root, 0) for root in range(15, 30)])
    assert len(tree.brisa.flows) == 2 * 3
    tree.brisa.on_data(3, data(0, (29, 3), source=29, flow=(29, 0)))
    assert (29, 0) in tree.brisa.flows, "its message came"
    tree.brisa.on_data(1, data(0, (10, 1), source=10, flow=(10, 0)))
    names(tree, 1, (19, 0))
    assert (19, 0) in tree.brisa.flows, "there is room again for one more, since a message of another came"


def test_what_is_known_by_hearsay_is_not_told_on() -> None:
    tree = Tree()
    names(tree, 1, OTHER)
    assert tree.brisa.positions() == ()
    tree.take()
    tree.told(1, (9, 1))
    tree.brisa.neighbour_up(4)
    assert [effect for effect in tree.take() if effect.to == 4] == []  # type: ignore[union-attr]
    tree.brisa.on_data(1, data(0, (9, 1), source=9, flow=OTHER))
    assert [told.flow for told in tree.brisa.positions()] == [OTHER]


def test_what_one_neighbour_alone_told_of_goes_with_it() -> None:
    tree = Tree()
    names(tree, 1, (8, 0), OTHER)
    tree.brisa.heard(2, (Position((8, 0), (8, 2)),), tree.env.now_us())
    tree.brisa.neighbour_down(1, True)
    assert list(tree.brisa.flows) == [(8, 0)]
    tree.brisa.neighbour_down(2, True)
    assert tree.brisa.flows == {}


def test_what_nobody_tells_of_any_more_is_forgotten() -> None:
    tree = Tree(forget_us=10_000_000, watch_us=1_000_000)
    tree.brisa.start()
    tree.brisa.on_data(1, data(0, (0, 1)))
    names(tree, 1, OTHER)
    for _ in range(8):
        tree.env.advance(2_000_000)
        names(tree, 1, OTHER)
    assert OTHER in tree.brisa.flows
    tree.env.advance(12_000_000)
    assert list(tree.brisa.flows) == [FLOW]


def test_invented_flows_of_a_source_do_not_stand_in_the_way_of_its_true_ones() -> None:
    tree = Tree(flows_of_one_max=4)
    names(tree, 1, *[(9, number) for number in range(100, 104)])
    tree.brisa.on_data(2, data(0, (9, 2), source=9, flow=OTHER))
    assert tree.got == [(9, 0)]
    assert len(tree.brisa.flows) == 4


def test_invented_flows_make_room_first() -> None:
    tree = Tree(flows_max=3).attached()
    names(tree, 1, (8, 0), OTHER)
    tree.brisa.on_data(2, data(0, (7, 2), source=7, flow=(7, 0)))
    assert list(tree.brisa.flows) == [FLOW, OTHER, (7, 0)]


def test_a_number_that_was_only_claimed_is_not_taken_for_one_that_came() -> None:
    tree = Tree(watch_us=1_000_000)
    tree.brisa.start()
    tree.brisa.heard(1, (Position(OTHER, (9, 1), ((9, 10**12),)),), tree.env.now_us())
    tree.env.advance(2_000_000)
    tree.brisa.neighbour_down(1, True)
    assert OTHER not in tree.brisa.flows
    tree.brisa.on_data(2, data(0, (9, 2), source=9, flow=OTHER))
    assert tree.got == [(9, 0)]
