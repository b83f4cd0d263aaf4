"""A process that lost its parent: soft repair, hard repair, and how cycles are kept out (E-B4, E-B5)."""

import pytest

from epicast.core.ids import NOBODY
from epicast.core.recording import Record, Send
from epicast.core.records import Kind
from epicast.dissemination.brisa_messages import Activate, Deactivate, Recover, Whereabouts
from tests.support.neighbours import STRANGER, Tree, data, position

FLOW = (0, 0)
CONFIRM = 1_000_000  # the default patience with a candidate
RETRY = 1_000_000  # until the first retry of a hard repair
FRESH = Activate(FLOW, fresh=True, taint=(1, 5))  # what 5 asks of everyone when 1 has failed


def orphan(*candidates: int, neighbours: tuple[int, ...] = (1, 2, 3), **settings: object) -> Tree:
    """Has just lost its parent 1; the candidates are known to be attached."""
    tree = Tree(neighbours=neighbours, **settings).attached()  # type: ignore[arg-type]
    for peer in candidates:
        tree.hears(peer, (0, peer))
    tree.brisa.neighbour_down(1, True)
    return tree


# Soft repair


def test_an_orphan_asks_a_neighbour_that_is_known_to_be_attached() -> None:
    tree = orphan(2)
    assert tree.take() == [Send(2, Activate(FLOW))]
    assert tree.brisa.parents() == {FLOW: None}
    assert tree.env.records == [Record(Kind.PARENT, NOBODY, 0, 0)]


def test_a_candidate_that_confirms_becomes_the_parent() -> None:
    tree = orphan(2)
    tree.take()
    tree.told(2, (0, 2))
    assert (tree.flow().parent, tree.flow().path) == (2, (0, 2, 5))
    assert tree.take() == []
    assert tree.env.records[1:] == [Record(Kind.REPAIR, 2, 0, 0, detail="soft"), Record(Kind.PARENT, 2, 0, 0)]


def test_the_new_parent_is_asked_for_what_was_missed() -> None:
    tree = orphan(2)
    tree.take()
    tree.told(2, (0, 2), last=3)
    assert tree.take() == [Send(2, Recover(FLOW, ((0, 1, 3),)))]


def test_children_are_told_that_we_moved() -> None:
    tree = Tree().attached()
    tree.brisa.on_activate(3, Activate(FLOW))  # a child
    tree.hears(2, (0, 2))
    tree.brisa.neighbour_down(1, True)
    tree.take()
    tree.told(2, (0, 2))
    assert tree.take() == [Send(3, Whereabouts(position((0, 2, 5))))]


def test_a_keep_alive_that_is_older_than_what_we_were_told_is_ignored() -> None:
    """It waited for its turn; the peer has moved since."""
    tree = Tree().attached()
    tree.env.advance(1_000_000)
    tree.told(2, (0, 2))
    tree.brisa.heard(2, (position(()),), 500_000)
    tree.brisa.neighbour_down(1, True)
    assert tree.take() == [Send(2, Activate(FLOW))]


def test_a_keep_alive_is_no_confirmation() -> None:
    """It may have been on its way before the request."""
    tree = orphan(2)
    tree.take()
    tree.hears(2, (0, 2))
    assert tree.flow().parent is None


def test_an_orphan_keeps_its_place_but_is_not_to_be_adopted() -> None:
    tree = orphan(2)
    assert tree.brisa.positions() == (position((0, 1, 5), pending=True),)


def test_children_stay_served_while_their_parent_is_an_orphan() -> None:
    tree = Tree().attached()
    tree.brisa.on_activate(3, Activate(FLOW))
    tree.hears(2, (0, 2))
    tree.brisa.neighbour_down(1, True)
    tree.take()
    tree.brisa.on_data(STRANGER, data(1, (0, STRANGER)))
    assert Send(3, data(1, (0, 1, 5))) in tree.take()


def test_a_candidate_that_does_not_answer_gives_way_to_the_next() -> None:
    tree = orphan(2, 3)
    assert tree.take() == [Send(2, Activate(FLOW))]
    tree.env.advance(CONFIRM)
    assert tree.take() == [Send(3, Activate(FLOW))]
    tree.env.advance(CONFIRM)
    assert tree.take() == [Send(2, FRESH), Send(3, FRESH)]


def test_another_neighbour_that_goes_away_does_not_disturb_the_search() -> None:
    tree = orphan(2, 3)
    tree.take()
    tree.brisa.neighbour_down(3, True)
    assert tree.take() == []
    tree.told(2, (0, 2))
    assert tree.flow().parent == 2


def test_a_candidate_that_goes_away_gives_way_to_the_next() -> None:
    tree = orphan(2, 3)
    tree.take()
    tree.brisa.neighbour_down(2, True)
    assert tree.take() == [Send(3, Activate(FLOW))]


@pytest.mark.parametrize(
    "answer", [{"path": ()}, {"path": (0, 2), "pending": True}, {"path": (0, 5, 2)}, {"path": (0, 1, 2)}]
)
def test_a_candidate_that_turns_out_to_be_unfit_gives_way_to_the_next(answer: dict[str, object]) -> None:
    """E-B5: an orphan, one about to move, our descendant, or one that hangs on the failed process."""
    tree = orphan(2, 3)
    tree.take()
    tree.told(2, **answer)  # type: ignore[arg-type]
    assert tree.flow().parent is None
    assert tree.take() == [Send(3, Activate(FLOW))]


def test_a_late_confirmation_of_one_who_was_given_up_is_not_taken_for_another_ones() -> None:
    tree = orphan(2, 3)
    tree.env.advance(CONFIRM)
    tree.told(2, (0, 2))
    assert tree.flow().parent is None
    tree.told(3, (0, 3))
    assert tree.flow().parent == 3


def test_each_candidate_has_its_full_time_to_answer() -> None:
    tree = orphan(2, 3)
    tree.env.advance(CONFIRM // 2)
    tree.told(2, ())
    tree.take()
    tree.env.advance(CONFIRM - 1)
    assert tree.take() == []
    tree.env.advance(1)
    assert tree.take() != []


def test_an_orphan_whose_candidate_was_once_faster_than_its_parent_keeps_it() -> None:
    tree = Tree().attached()
    tree.brisa.on_data(2, data(1, (0, 2)))  # before the parent's copy
    tree.brisa.neighbour_down(1, True)
    tree.told(2, (0, 2), last=1)
    assert tree.flow().parent == 2
    tree.take()
    tree.brisa.on_data(2, data(1, (0, 2)))
    assert tree.take() == []


# Who will do


def test_a_process_whose_path_runs_through_the_failed_one_will_not_do() -> None:
    """E-B5: the orphaned sibling."""
    tree = Tree().attached()
    tree.hears(2, (0, 1, 2))
    tree.hears(3, (0, 9, 1, 8, 3))
    tree.brisa.neighbour_down(1, True)
    assert tree.take() == [Send(2, FRESH), Send(3, FRESH)]


def test_a_process_whose_path_runs_through_a_parent_that_is_merely_no_neighbour_will_do() -> None:
    tree = Tree().attached()
    tree.hears(2, (0, 1, 2))
    tree.brisa.neighbour_down(1, False)
    assert tree.take() == [Send(2, Activate(FLOW))]


def test_a_process_whose_path_runs_through_us_will_not_do() -> None:
    tree = Tree().attached()
    tree.hears(2, (0, 1, 5, 2))
    tree.brisa.neighbour_down(1, False)
    assert tree.take() == [Send(peer, Activate(FLOW, fresh=True, taint=(5,))) for peer in (2, 3)]


def test_a_process_that_looks_for_a_parent_itself_will_not_do() -> None:
    tree = Tree().attached()
    tree.hears(2, (0, 2), pending=True)
    tree.brisa.neighbour_down(1, True)
    assert tree.take() == [Send(2, FRESH), Send(3, FRESH)]


def test_the_failure_of_the_source_does_not_rule_out_everyone() -> None:
    tree = Tree(neighbours=(0, 2, 3)).attached(parent=0, path=(0,))
    tree.hears(2, (0, 2))
    tree.brisa.neighbour_down(0, True)
    assert tree.take() == [Send(2, Activate(FLOW))]


# Hard repair


def test_an_orphan_without_a_candidate_forgets_its_place_and_asks_everyone() -> None:
    tree = orphan()
    assert tree.take() == [Send(2, FRESH), Send(3, FRESH)]
    assert tree.flow().path == ()
    assert tree.brisa.positions() == (position((), pending=True),)


def test_an_orphan_that_asked_everyone_takes_whoever_sends_data() -> None:
    tree = orphan()
    tree.env.records.clear()
    tree.brisa.on_data(3, data(1, (0, 3)))
    assert tree.flow().parent == 3
    assert tree.env.records == [Record(Kind.REPAIR, 3, 0, 0, detail="hard"), Record(Kind.PARENT, 3, 0, 0)]


def test_an_orphan_that_asked_everyone_takes_nobody_who_hangs_on_the_failed_one() -> None:
    tree = orphan()
    tree.brisa.on_data(3, data(1, (0, 1, 3)))
    assert tree.flow().parent is None


def test_an_orphan_asks_whoever_tells_of_a_path() -> None:
    tree = orphan()
    tree.take()
    tree.hears(3, (0, 3))
    assert tree.take() == [Send(3, Activate(FLOW))]
    tree.told(3, (0, 3))
    assert tree.flow().parent == 3
    assert tree.env.records[-2] == Record(Kind.REPAIR, 3, 0, 0, detail="hard")


def test_an_orphan_does_not_ask_one_that_tells_of_a_path_through_the_failed_one() -> None:
    tree = orphan()
    tree.take()
    tree.hears(3, (0, 1, 3))
    assert tree.take() == []


def test_whoever_was_asked_meanwhile_has_its_full_time_to_answer() -> None:
    tree = orphan()
    tree.env.advance(RETRY // 2)
    tree.hears(3, (0, 3))
    tree.take()
    tree.env.advance(CONFIRM - 1)
    assert tree.take() == []
    tree.told(3, (0, 3))
    assert tree.flow().parent == 3


def test_who_did_not_answer_is_asked_again_with_the_next_attempt() -> None:
    tree = orphan(2)
    tree.env.advance(CONFIRM)
    tree.take()
    tree.env.advance(RETRY)
    assert tree.take() == [Send(2, Activate(FLOW))]


def test_an_orphan_tries_again_ever_less_often() -> None:
    tree = orphan(hard_retry_max_us=4 * RETRY)
    tree.take()
    times = []
    for _ in range(16):
        tree.env.advance(RETRY)
        if tree.take():
            times.append(tree.env.now_us() // RETRY)
    assert times == [1, 3, 7, 11, 15]


def test_an_orphan_that_tries_again_asks_for_a_wider_view_and_forgets_whom_it_distrusted() -> None:
    tree = orphan()
    tree.take()
    tree.env.advance(RETRY)
    assert tree.members.widened == 1
    assert tree.take() == [Send(peer, Activate(FLOW, fresh=True, taint=(5,))) for peer in (2, 3)]


def test_an_orphan_stops_trying_once_it_has_a_parent() -> None:
    tree = orphan()
    tree.brisa.on_data(3, data(1, (0, 3)))
    tree.take()
    tree.env.advance(60_000_000)
    assert tree.take() == []


def test_a_process_that_leaves_looks_for_no_parent() -> None:
    tree = Tree().attached()
    tree.hears(2, (0, 2))
    tree.brisa.leave()
    tree.brisa.neighbour_down(1, False)
    tree.env.advance(60_000_000)
    assert tree.take() == []


def test_a_process_that_leaves_in_the_middle_of_a_repair_gives_it_up() -> None:
    tree = orphan()
    tree.take()
    tree.brisa.leave()
    tree.env.advance(60_000_000)
    assert tree.take() == []


# Being asked


def test_whoever_asks_gets_our_position_and_the_next_message() -> None:
    tree = Tree().attached()
    tree.brisa.on_activate(3, Activate(FLOW))
    assert tree.take() == [Send(3, Whereabouts(position((0, 1, 5))))]
    tree.brisa.on_data(1, data(1, (0, 1)))
    assert tree.take() == [Send(3, data(1, (0, 1, 5)))]


def test_whoever_asks_a_process_without_a_place_is_told_when_it_has_one() -> None:
    tree = orphan()
    tree.take()
    tree.brisa.on_deactivate(3, Deactivate(FLOW))
    tree.brisa.on_activate(3, Activate(FLOW))
    assert tree.take() == [Send(3, Whereabouts(position((), pending=True)))]
    tree.brisa.on_deactivate(3, Deactivate(FLOW))
    tree.hears(2, (0, 2))  # is asked
    tree.take()
    tree.told(2, (0, 2))  # and confirms
    assert tree.take() == [Send(3, Whereabouts(position((0, 2, 5))))]
    tree.told(2, (0, 9, 2))  # moves
    assert tree.take() == []


def test_a_child_that_asked_while_we_had_no_place_is_told_once() -> None:
    tree = orphan(neighbours=(1, 2, 3))
    tree.brisa.on_activate(3, Activate(FLOW))
    tree.hears(2, (0, 2))
    tree.take()
    tree.told(2, (0, 2))
    assert tree.take() == [Send(3, Whereabouts(position((0, 2, 5))))]


def test_a_stranger_that_asks_is_ignored() -> None:
    tree = Tree().attached()
    tree.brisa.on_activate(STRANGER, Activate(FLOW))
    assert tree.take() == []


def test_a_child_whose_parent_forgot_its_place_looks_for_another() -> None:
    """The request comes from the parent; nobody whose path runs through it will do (E-B5)."""
    tree = Tree().attached()
    tree.hears(2, (0, 1, 2))
    tree.hears(3, (0, 3))
    tree.brisa.on_activate(1, Activate(FLOW, fresh=True, taint=(9, 1)))
    assert tree.take() == [
        Send(3, Activate(FLOW)),
        Send(1, Whereabouts(position((0, 1, 5), pending=True))),
    ]


def test_a_child_whose_parent_forgot_its_place_distrusts_whom_the_parent_distrusts() -> None:
    tree = Tree().attached()
    tree.hears(2, (0, 9, 2))
    tree.brisa.on_activate(1, Activate(FLOW, fresh=True, taint=(9, 1)))
    assert [effect.msg for effect in tree.env.sent(Activate)] == [Activate(FLOW, fresh=True, taint=(9, 1, 5))] * 3


def test_the_former_child_may_become_the_parent() -> None:
    """The cascade of hard repairs ends at the first process that has a way out."""
    tree = orphan()
    tree.take()
    tree.told(2, (0, 8, 2))  # is asked
    tree.told(2, (0, 8, 2))  # and confirms
    assert tree.flow().parent == 2


def test_a_process_that_is_fresh_is_known_to_have_no_path() -> None:
    tree = orphan(2, 3)
    tree.take()
    tree.brisa.on_activate(3, Activate(FLOW, fresh=True, taint=(3,)))
    tree.take()
    tree.env.advance(CONFIRM)
    assert tree.env.sent(Activate)[0].msg == Activate(FLOW, fresh=True, taint=(1, 3, 5))


def test_a_process_that_is_fresh_is_not_asked_for_what_it_told_before() -> None:
    tree = Tree().attached()
    tree.hears(3, (0, 3))
    tree.brisa.on_activate(3, Activate(FLOW, fresh=True, taint=(3,)))
    tree.take()
    tree.brisa.neighbour_down(1, False)
    assert tree.take() == [Send(peer, Activate(FLOW, fresh=True, taint=(5,))) for peer in (2, 3)]


# Cycles and parents that lost their way (E-B4)


@pytest.mark.parametrize("how", ["keep-alive", "message", "data"])
def test_a_process_that_finds_itself_above_its_parent_leaves_it(how: str) -> None:
    tree = Tree().attached()
    cycle = (0, 9, 5, 1)
    if how == "keep-alive":
        tree.hears(1, cycle)
    elif how == "message":
        tree.told(1, cycle)
    else:
        tree.brisa.on_data(1, data(1, cycle))
    assert tree.env.sent(Deactivate) == [Send(1, Deactivate(FLOW))]
    assert tree.flow().parent is None
    assert tree.flow().repair is not None


def test_a_parent_without_a_path_is_left() -> None:
    tree = Tree().attached()
    tree.hears(2, (0, 2))
    tree.hears(1, ())
    assert tree.take() == [Send(1, Deactivate(FLOW)), Send(2, Activate(FLOW))]


def test_a_parent_that_moved_takes_us_along() -> None:
    tree = Tree().attached()
    tree.brisa.on_activate(3, Activate(FLOW))
    tree.take()
    tree.hears(1, (0, 7, 8, 1))
    assert tree.flow().path == (0, 7, 8, 1, 5)
    assert tree.take() == [Send(3, Whereabouts(position((0, 7, 8, 1, 5))))]


def test_a_parent_that_stays_where_it_was_is_no_news() -> None:
    tree = Tree().attached()
    tree.brisa.on_activate(3, Activate(FLOW))
    tree.take()
    tree.hears(1, (0, 1))
    assert tree.take() == []


def test_a_parent_that_is_merely_searching_is_kept_for_the_time_being() -> None:
    tree = Tree().attached()
    tree.hears(2, (0, 2))
    tree.hears(1, (0, 1), pending=True)
    assert tree.take() == []
    assert tree.flow().parent == 1
