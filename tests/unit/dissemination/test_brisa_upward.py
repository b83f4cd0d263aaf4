"""Publishing on somebody else's tree: over its edges in both directions, and when that is done."""

from epicast.core.recording import Send
from epicast.dissemination.brisa_messages import STREAM_SHIFT, UPWARD, Activate, Data, Deactivate
from tests.support.neighbours import Tree, data

FLOW = (0, 0)


def inner() -> Tree:
    """Process 5: parent 1, children 2 and 3; 4 is a neighbour that has nothing to do with the tree."""
    tree = Tree(neighbours=(1, 2, 3, 4)).attached()
    for child in (2, 3):
        tree.brisa.on_activate(child, Activate(FLOW))
    tree.take()
    return tree


def upward(seq: int, hops: int, source: int = 9) -> Data:
    return data(seq, (), source=source, flags=UPWARD, hops=hops)


# On its way


def test_an_upward_message_from_a_child_goes_to_the_parent_and_the_other_children() -> None:
    tree = inner()
    assert tree.brisa.on_data(2, upward(0, hops=1)) is False
    assert tree.take() == [Send(3, upward(0, hops=2)), Send(1, upward(0, hops=2))]
    assert tree.got == [(9, 0)]


def test_an_upward_message_from_the_parent_goes_to_all_children_and_not_up_again() -> None:
    tree = inner()
    tree.brisa.on_data(1, upward(0, hops=1))
    assert tree.take() == [Send(2, upward(0, hops=2)), Send(3, upward(0, hops=2))]


def test_an_upward_message_turns_at_the_source() -> None:
    source = Tree(me=0)
    source.brisa.broadcast("t", b"x")
    source.take()
    source.brisa.on_data(2, upward(0, hops=4))
    assert source.take() == [Send(1, upward(0, hops=5)), Send(3, upward(0, hops=5))]
    assert source.flow().parent is None


def test_an_upward_message_changes_no_place() -> None:
    """E-B9: it does not run from the source to the leaves, so its way is no path."""
    tree = inner()
    before = (tree.flow().parent, tree.flow().path, dict(tree.flow().in_active), dict(tree.flow().out_active))
    tree.brisa.on_data(2, upward(0, hops=1))
    tree.brisa.on_data(1, upward(1, hops=1))
    tree.brisa.on_data(4, upward(1, hops=1))
    assert (tree.flow().parent, tree.flow().path, tree.flow().in_active, tree.flow().out_active) == before
    assert tree.env.sent(Deactivate) == []


def test_an_upward_message_makes_no_parent() -> None:
    tree = Tree()
    tree.brisa.on_data(2, upward(0, hops=1))
    assert tree.flow().parent is None
    assert tree.got == [(9, 0)]


def test_an_upward_message_comes_once() -> None:
    tree = inner()
    tree.brisa.on_data(2, upward(0, hops=1))
    tree.take()
    assert tree.brisa.on_data(3, upward(0, hops=7)) is True
    assert tree.take() == []
    assert tree.got == [(9, 0)]


def test_the_numbers_of_several_publishers_on_one_tree_are_kept_apart() -> None:
    tree = inner()
    tree.brisa.on_data(2, upward(0, hops=1, source=8))
    tree.brisa.on_data(2, upward(0, hops=1, source=9))
    tree.brisa.on_data(1, data(1, (0, 1)))
    assert tree.got == [(8, 0), (9, 0), (0, 1)]


def test_ones_own_upward_message_that_comes_back_is_a_duplicate() -> None:
    tree = inner()
    tree.brisa.publish_on(FLOW, "t", b"payload")
    tree.take()
    assert tree.brisa.on_data(2, upward(0, hops=3, source=5)) is True
    assert tree.take() == []


# Reuse


def test_a_publisher_near_the_root_of_a_tree_uses_it() -> None:
    tree = Tree(reuse_depth=2).attached()
    assert tree.brisa.broadcast("news", b"payload") == (5, 0)
    [sent] = tree.take()
    assert sent == Send(1, Data(FLOW, 5, 0, 1, (), UPWARD, "news", b"payload"))
    assert list(tree.brisa.flows) == [FLOW]
    assert tree.got == [(5, 0)]


def test_a_publisher_far_from_every_root_makes_a_tree_of_its_own() -> None:
    tree = Tree(reuse_depth=1).attached()
    assert tree.brisa.broadcast("news", b"x") == (5, 0)
    assert list(tree.brisa.flows) == [FLOW, (5, 0)]
    assert [effect.msg.path for effect in tree.env.sent(Data)] == [(5,)] * 3  # type: ignore[attr-defined]


def test_trees_are_not_reused_unless_asked_for() -> None:
    tree = Tree().attached(parent=1, path=(0, 1))
    tree.brisa.broadcast("news", b"x")
    assert (5, 0) in tree.brisa.flows


def test_the_nearest_root_is_chosen() -> None:
    tree = Tree(reuse_depth=5).attached(path=(0, 8, 1))
    tree.brisa.on_data(2, data(0, (7, 2), source=7, flow=(7, 0)))
    tree.take()
    tree.brisa.broadcast("news", b"x")
    assert tree.env.sent(Data)[0].msg.flow == (7, 0)  # type: ignore[attr-defined]


def test_a_publisher_stays_with_the_tree_that_it_chose() -> None:
    tree = Tree(reuse_depth=5).attached(path=(0, 8, 1))
    tree.brisa.broadcast("news", b"x")
    tree.brisa.on_data(2, data(0, (7, 2), source=7, flow=(7, 0)))
    tree.take()
    tree.brisa.broadcast("news", b"x")
    assert tree.env.sent(Data)[0].msg.flow == FLOW  # type: ignore[attr-defined]


def test_a_tree_without_a_way_to_its_root_is_not_reused() -> None:
    tree = Tree(reuse_depth=5).attached()
    tree.brisa.neighbour_down(1, True)
    tree.brisa.broadcast("news", b"x")
    assert (5, 0) in tree.brisa.flows


def test_a_part_of_a_split_stream_is_not_reused() -> None:
    tree = Tree(reuse_depth=5).attached()
    tree.flow().siblings = frozenset({(0, 1)})
    tree.brisa.broadcast("news", b"x")
    assert (5, 0) in tree.brisa.flows


def test_a_flow_made_for_a_split_stream_knows_its_siblings() -> None:
    tree = Tree()
    first = tree.brisa.new_flow()
    second = tree.brisa.new_flow(frozenset({first}))
    assert (first, second) == ((5, 0), (5, 1))
    assert tree.flow(second).siblings == {first}


# Numbers


def test_each_flow_that_one_publishes_on_has_numbers_of_its_own() -> None:
    """A pair of source and number is unique, and the numbers of one flow have no holes."""
    tree = Tree()
    ids = [tree.brisa.broadcast(topic, b"x") for topic in ("a", "b", "a", "b")]
    assert ids == [(5, 0), (5, 1 << STREAM_SHIFT), (5, 1), (5, (1 << STREAM_SHIFT) + 1)]


def test_a_second_stream_is_received_from_its_start() -> None:
    tree = Tree()
    first = 3 << STREAM_SHIFT
    tree.brisa.on_data(1, data(first, (0, 1)))
    assert not tree.flow().mid_stream
    tree.brisa.on_data(1, data(first + 1, (0, 1)))
    assert tree.got == [(0, first), (0, first + 1)]
