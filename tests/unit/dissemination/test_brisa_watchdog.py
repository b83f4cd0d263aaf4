"""The watchdog: no process stays for ever without a parent, or with one that is no good (B-I11)."""

from epicast.core.recording import Record, Send
from epicast.core.records import Kind
from epicast.dissemination.brisa_messages import RECOVERED, Activate, Deactivate, Recover, Whereabouts
from tests.support.neighbours import Tree, data, position

FLOW = (0, 0)
LOOK = 1_000_000
PATIENCE = 4_000_000


def watched(**settings: object) -> Tree:
    """Attached to 1; 2 would do as a parent."""
    tree = Tree(**settings).attached()  # type: ignore[arg-type]
    tree.hears(2, (0, 2))
    tree.brisa.start()
    return tree


def left_parent(tree: Tree) -> bool:
    return Send(1, Deactivate(FLOW)) in tree.env.effects and tree.flow().parent is None


# Parents that are no good


def test_a_parent_that_stays_an_orphan_is_left() -> None:
    tree = watched()
    tree.hears(1, (0, 1), pending=True)
    tree.env.advance(PATIENCE - LOOK)
    assert tree.flow().parent == 1
    tree.env.advance(2 * LOOK)
    assert left_parent(tree)
    assert tree.env.sent(Activate)[0] == Send(2, Activate(FLOW))


def test_a_parent_that_found_its_way_again_is_kept() -> None:
    tree = watched()
    tree.hears(1, (0, 1), pending=True)
    tree.env.advance(PATIENCE - LOOK)
    tree.hears(1, (0, 1))
    tree.env.advance(LOOK)
    tree.hears(1, (0, 1), pending=True)
    tree.env.advance(PATIENCE - LOOK)
    assert tree.flow().parent == 1


def told(tree: Tree, seconds: int, parent_last: int, other_last: int, each: int = 0, *, delivers: bool = True) -> None:
    """Keep-alives of the parent and of another neighbour, which are so much further each second. The neighbour sends
    what it is asked for, if it delivers at all."""
    for second in range(seconds):
        if tree.flow().parent == 1:
            tree.hears(1, (0, 1), last=parent_last + each * second)
        tree.hears(2, (0, 2), last=other_last + each * second)
        tree.env.advance(LOOK)
        if delivers:
            answer(tree, 2, other_last + each * second)


def answer(tree: Tree, peer: int, last: int) -> None:
    """What an honest neighbour does that has all up to this number."""
    effects = tree.env.effects
    asked = [
        each.msg for each in effects if isinstance(each, Send) and isinstance(each.msg, Recover) and each.to == peer
    ]
    for msg in asked[len(tree.answered.setdefault(peer, [])) :]:
        tree.answered[peer].append(msg)
        for source, first, until in msg.ranges:
            for seq in range(first, min(until, last) + 1):
                tree.brisa.on_data(peer, data(seq, (0, peer), source=source, flags=RECOVERED))


def test_a_parent_that_lags_behind_others_for_long_is_left() -> None:
    """It may be part of a cycle that the data do not reach."""
    tree = watched()
    told(tree, 6, 0, 9)
    assert tree.flow().parent == 1
    told(tree, 4, 0, 9)
    assert left_parent(tree)


def test_a_parent_that_lags_behind_what_others_only_claim_is_kept() -> None:
    tree = watched()
    told(tree, 60, 0, 9, delivers=False)
    assert tree.flow().parent == 1


def test_a_parent_that_sends_in_turn_what_others_had_long_ago_is_left() -> None:
    """It takes less than is published: its children get everything ever later."""
    tree = watched()
    second = 0
    while tree.flow().parent == 1:
        tree.brisa.on_data(1, data(second + 1, (0, 1)))
        told(tree, 1, second + 1, 10 * second + 10)
        second += 1
        assert second < 12
    assert second > 4
    assert left_parent(tree)
    assert 1 not in tree.flow().targets()  # it has too much to take already


def test_a_message_that_proves_a_claim_is_not_taken_out_of_turn() -> None:
    """The messages before it are under way from the parent. With a hole they would all be asked for."""
    tree = watched()
    for second in range(4):
        tree.brisa.on_data(1, data(second + 1, (0, 1)))
        told(tree, 1, second + 1, 10 * second + 10)
    assert tree.answered[2] == [Recover(FLOW, ((0, 20, 20),))]
    assert tree.got == [(0, seq) for seq in range(1, 5)]
    assert tree.flow().windows[0].last == 4


def test_a_parent_that_is_always_a_little_late_is_kept() -> None:
    tree = watched()
    for second in range(30):
        for seq in range(10 * second + 1, 10 * second + 11):
            tree.brisa.on_data(1, data(seq, (0, 1)))
        told(tree, 1, 10 * second + 10, 10 * second + 30)
    assert tree.flow().parent == 1


def test_what_we_got_elsewhere_does_not_make_a_parent_that_lags_good() -> None:
    tree = watched()
    for second in range(9):
        tree.brisa.on_data(2, data(second + 1, (0, 2), flags=RECOVERED))
        told(tree, 1, 0, second + 2)
    assert left_parent(tree)


def test_a_parent_that_has_not_told_for_long_where_it_stands_is_not_taken_for_one_that_lags() -> None:
    """With many flows each is told of by turns."""
    tree = watched()
    tree.hears(1, (0, 1), last=0)
    for last in range(9, 99):
        tree.hears(2, (0, 2), last=last)
        tree.env.advance(LOOK)
        answer(tree, 2, last)
    assert tree.flow().parent == 1


def test_who_left_a_parent_for_lagging_prefers_others() -> None:
    tree = watched()
    told(tree, 10, 0, 9)
    assert left_parent(tree)
    tree.told(2, (0, 2))
    tree.hears(1, (0, 1), last=99)
    tree.hears(3, (0, 2, 3), last=99)
    tree.brisa.neighbour_down(2, False)
    assert tree.env.sent(Activate)[-1] == Send(3, Activate(FLOW))  # although 1 is nearer to the source


def test_a_parent_that_lagged_and_caught_up_is_kept() -> None:
    tree = watched()
    for seq in (1, 2, 3):
        tree.hears(1, (0, 1), last=seq - 1)
        tree.hears(2, (0, 2), last=seq)
        tree.env.advance(PATIENCE)
        tree.brisa.on_data(1, data(seq, (0, 1)))
        tree.hears(1, (0, 1), last=seq)
        tree.env.advance(LOOK)
    assert tree.flow().parent == 1


def test_a_parent_that_lags_no_more_than_we_do_is_kept() -> None:
    tree = watched()
    for seq in range(1, 10):
        tree.brisa.on_data(1, data(seq, (0, 1)))
    tree.hears(1, (0, 1), last=9)
    tree.hears(2, (0, 2), last=9)
    tree.env.advance(10 * PATIENCE)
    assert tree.flow().parent == 1


def test_a_silent_flow_is_no_reason_to_leave_the_parent() -> None:
    tree = watched()
    tree.hears(1, (0, 1))
    tree.env.advance(100 * PATIENCE)
    assert tree.flow().parent == 1
    assert tree.take() == []


# Processes without a parent


def test_a_process_that_has_only_payload_looks_for_a_parent() -> None:
    tree = Tree()
    tree.brisa.start()
    tree.brisa.on_data(2, data(0, ()))
    tree.take()
    tree.env.advance(LOOK)
    assert tree.flow().repair is not None


def test_the_source_looks_for_no_parent() -> None:
    tree = Tree(me=0)
    tree.brisa.start()
    tree.brisa.broadcast("t", b"x")
    tree.take()
    tree.env.advance(60 * LOOK)
    assert tree.take() == []


def test_a_flow_without_a_way_to_its_source_is_forgotten_after_a_long_time() -> None:
    tree = Tree(forget_us=60_000_000).attached()
    tree.brisa.start()
    tree.brisa.neighbour_down(1, True)
    tree.env.advance(59_000_000)
    assert FLOW in tree.brisa.flows
    tree.env.advance(2_000_000)
    assert tree.brisa.flows == {}
    tree.take()
    tree.env.advance(60_000_000)
    assert tree.take() == []
    tree.brisa.on_data(2, data(1, (0, 2)))
    assert tree.brisa.parents() == {FLOW: 2}


def test_a_process_that_leaves_stops_watching() -> None:
    tree = watched()
    tree.hears(1, (0, 1), last=5)
    tree.brisa.leave()
    tree.take()
    tree.env.advance(60 * LOOK)
    assert tree.take() == []


# A cycle of two, step by step


def test_of_two_that_adopted_each_other_one_lets_go_at_the_first_keep_alive() -> None:
    """E-B4: no data will ever come round this cycle."""
    one = Tree(me=5, neighbours=(6, 1)).attached(parent=6, path=(0, 1, 6))
    two = Tree(me=6, neighbours=(5, 1)).attached(parent=5, path=(0, 1, 5))
    assert two.brisa.positions() == (position((0, 1, 5, 6)),)
    one.brisa.heard(6, two.brisa.positions(), one.env.now_us())
    assert one.flow().parent is None
    assert one.take()[0] == Send(6, Deactivate(FLOW))
    two.brisa.on_deactivate(5, Deactivate(FLOW))
    one.hears(1, (0, 1))
    assert one.env.sent(Activate)[-1] == Send(1, Activate(FLOW))
    one.told(1, (0, 1))
    assert one.flow().parent == 1
    two.brisa.on_whereabouts(5, Whereabouts(one.flow().position(one.env.now_us())))
    assert (two.flow().parent, two.flow().path) == (5, (0, 1, 5, 6))


# The trace


def test_what_the_watchdog_does_is_a_repair_like_any_other() -> None:
    tree = watched()
    tree.hears(1, (0, 1), pending=True)
    tree.env.advance(PATIENCE + LOOK)
    tree.told(2, (0, 2))
    assert [record.kind for record in tree.env.records] == [Kind.PARENT, Kind.REPAIR, Kind.PARENT]
    assert tree.env.records[1] == Record(Kind.REPAIR, 2, 0, 0, detail="soft")
    assert tree.env.sent(Recover) == []
