"""Messages that were missed: noticed, asked for, answered, and given up only aloud."""

import pytest

from epicast.core.message import Position
from epicast.core.recording import Record, Send
from epicast.core.records import Kind
from epicast.dissemination.brisa_messages import RECOVERED, UPWARD, Activate, Baseline, Data, Deactivate, Recover
from epicast.dissemination.brisa_recovery import FRUITLESS_MAX, LAST_RESORT_MAX
from tests.support.neighbours import STRANGER, Tree, data, position

FLOW = (0, 0)
LOOK = 1_000_000  # the default watch period
SLACK = 1_000_000  # a request for the past reaches so much farther back than the asker's own start


def behind(parent_last: int = 2, **settings: object) -> Tree:
    """Has message 0; its parent has told of more."""
    tree = Tree(**settings).attached()  # type: ignore[arg-type]
    tree.brisa.start()
    tree.hears(1, (0, 1), last=parent_last)
    return tree


def holder(messages: int = 3, neighbours: tuple[int, ...] = (1, 2, 3), **settings: object) -> Tree:
    """Has the first messages of the flow, one a second."""
    tree = Tree(neighbours=neighbours, **settings).attached()  # type: ignore[arg-type]
    for seq in range(1, messages):
        tree.env.advance(1_000_000)
        tree.brisa.on_data(1, data(seq, (0, 1)))
    tree.take()
    return tree


def look(tree: Tree) -> list[object]:
    tree.env.advance(LOOK)
    return tree.take()  # type: ignore[return-value]


# Noticing


def test_what_lacks_at_one_look_may_still_come() -> None:
    assert look(behind()) == []


def test_what_lacks_at_two_looks_is_asked_for() -> None:
    """And the parent, which has it, is asked to go on sending: perhaps it thinks that we do not want it (E-B2)."""
    tree = behind()
    look(tree)
    assert look(tree) == [Send(1, Recover(FLOW, ((0, 1, 2),))), Send(1, Activate(FLOW))]


def test_a_single_message_that_lacks_is_asked_for() -> None:
    tree = behind(parent_last=1)
    look(tree)
    assert look(tree)[0] == Send(1, Recover(FLOW, ((0, 1, 1),)))


def test_what_came_between_two_looks_is_not_asked_for() -> None:
    tree = behind()
    look(tree)
    tree.brisa.on_data(1, data(1, (0, 1)))
    tree.brisa.on_data(1, data(2, (0, 1)))
    assert look(tree) == []


def test_who_lags_asks_for_nothing_while_numbers_come_in_turn() -> None:
    """They are under way, and others have them earlier. Once no more come, they are asked for."""
    tree = behind(parent_last=9)
    look(tree)
    for seq in (1, 2, 3):
        tree.brisa.on_data(1, data(seq, (0, 1)))
        assert look(tree) == []
    assert look(tree)[0] == Send(1, Recover(FLOW, ((0, 4, 9),)))


def test_numbers_behind_a_hole_do_not_hide_it() -> None:
    tree = behind(parent_last=9)
    look(tree)
    for seq in (1, 3):
        tree.brisa.on_data(1, data(seq, (0, 1)))
    assert look(tree)[0] == Send(1, Recover(FLOW, ((0, 2, 2), (0, 4, 9))))


def test_who_lags_does_not_leave_its_parent_for_that() -> None:
    """Others are ahead of it all the time, and of what its parent last told of itself."""
    tree = behind(parent_last=0)
    for seq in range(1, 12):
        tree.brisa.on_data(1, data(seq, (0, 1)))
        tree.hears(2, (0, 2), last=seq + 10)
        assert look(tree) == []
    assert tree.flow().parent == 1


def test_what_one_answer_has_no_room_for_is_asked_for_at_once() -> None:
    tree = behind(parent_last=9, recover_max=3)
    look(tree)
    assert look(tree)[0] == Send(1, Recover(FLOW, ((0, 1, 9),)))
    for seq in (1, 2):
        tree.brisa.on_data(1, data(seq, (0, 1), flags=RECOVERED))
    assert requests(tree.take()) == []
    tree.brisa.on_data(1, data(3, (0, 1), flags=RECOVERED))
    assert Send(1, Recover(FLOW, ((0, 4, 9),))) in tree.take()


def requests(effects: list[object]) -> list[object]:
    return [each for each in effects if isinstance(each, Send) and isinstance(each.msg, Recover)]


def test_what_an_answer_left_out_is_asked_for_once_no_more_of_it_comes() -> None:
    """What comes because we asked does not come in turn: nobody sends the rest by itself. But we may be slow to take
    it, and asking again would make it more."""
    tree = behind(parent_last=4)
    look(tree)
    look(tree)
    for seq in (1, 2):
        tree.brisa.on_data(1, data(seq, (0, 1), flags=RECOVERED))
        tree.take()
        assert look(tree) == []
    assert look(tree)[0] == Send(1, Recover(FLOW, ((0, 3, 4),)))


def test_a_whole_answer_is_followed_by_a_request_for_what_else_lacks() -> None:
    tree = behind(parent_last=2)
    look(tree)
    tree.hears(1, (0, 1), last=9)
    look(tree)
    for seq in (1, 2):
        tree.brisa.on_data(1, data(seq, (0, 1), flags=RECOVERED))
    tree.take()
    assert look(tree)[0] == Send(1, Recover(FLOW, ((0, 3, 9),)))


def test_what_one_answer_has_no_bytes_for_is_asked_for_at_once() -> None:
    tree = behind(parent_last=9, recover_bytes=len(b"payload") + 1)
    look(tree)
    look(tree)
    tree.brisa.on_data(1, data(1, (0, 1), flags=RECOVERED))
    assert requests(tree.take()) == []
    tree.brisa.on_data(1, data(2, (0, 1), flags=RECOVERED))
    assert requests(tree.take()) == [Send(1, Recover(FLOW, ((0, 3, 9),)))]
    assert look(tree) == []


def test_only_what_lacked_before_is_asked_for() -> None:
    tree = behind(parent_last=2)
    look(tree)
    tree.hears(1, (0, 1), last=5)
    assert look(tree)[0] == Send(1, Recover(FLOW, ((0, 1, 2),)))


def test_holes_are_asked_for_as_ranges() -> None:
    tree = behind(parent_last=6)
    for seq in (3, 4):
        tree.brisa.on_data(1, data(seq, (0, 1)))
    look(tree)
    assert look(tree)[0] == Send(1, Recover(FLOW, ((0, 1, 2), (0, 5, 6))))


def test_a_hole_below_what_came_is_noticed_too() -> None:
    tree = Tree().attached()
    tree.brisa.start()
    tree.brisa.on_data(1, data(2, (0, 1)))
    tree.hears(1, (0, 1), last=2)
    look(tree)
    assert look(tree)[0] == Send(1, Recover(FLOW, ((0, 1, 1),)))


def test_a_neighbour_that_has_what_the_parent_lacks_is_asked() -> None:
    tree = Tree().attached()
    tree.brisa.start()
    tree.hears(1, (0, 1), last=0)
    tree.hears(2, (0, 2), last=4)
    look(tree)
    assert look(tree) == [Send(2, Recover(FLOW, ((0, 1, 4),)))]


def test_another_neighbour_is_asked_the_next_time() -> None:
    tree = behind()
    tree.hears(2, (0, 2), last=2)
    look(tree)
    first, second = look(tree)[0], look(tree)[0]
    assert [first.to, second.to] == [1, 2]  # type: ignore[attr-defined]


def test_two_neighbours_that_can_help_take_turns() -> None:
    tree = Tree().attached()
    tree.brisa.start()
    tree.hears(1, (0, 1), last=0)
    tree.hears(2, (0, 2), last=4)
    tree.hears(3, (0, 3), last=4)
    look(tree)
    asked = [look(tree)[0].to for _ in range(4)]  # type: ignore[attr-defined]
    assert asked in ([2, 3, 2, 3], [3, 2, 3, 2])


@pytest.mark.parametrize("lasts", [{2: 5, 3: 2}, {2: 2, 3: 5}])
def test_the_neighbour_that_is_farthest_says_how_much_lacks(lasts: dict[int, int]) -> None:
    tree = Tree().attached()
    tree.brisa.start()
    for peer, last in lasts.items():
        tree.hears(peer, (0, peer), last=last)
    look(tree)
    assert look(tree)[0].msg == Recover(FLOW, ((0, 1, 5),))  # type: ignore[attr-defined]


def test_what_lacks_of_a_publisher_that_we_never_heard_is_asked_for() -> None:
    tree = Tree().attached()
    tree.brisa.start()
    tree.brisa.heard(1, (Position(FLOW, (0, 1), ((0, 0), (8, 3))),), 0)
    look(tree)
    asked = [effect.msg for effect in look(tree)]  # type: ignore[attr-defined]
    assert asked == [Recover(FLOW, ((8, 3, 3),)), Activate(FLOW)]
    assert list(tree.flow().windows) == [0], "a claim makes no window, or it would be told on"


def test_nobody_knows_more_of_our_messages_than_we_do() -> None:
    source = Tree(me=0)
    source.brisa.start()
    source.brisa.broadcast("t", b"x")
    source.hears(1, (0, 1), last=50)
    source.take()
    for _ in range(5):
        assert look(source) == []


def test_nothing_is_asked_for_that_nobody_has() -> None:
    tree = Tree().attached()
    tree.brisa.start()
    tree.hears(1, (0, 1), last=0)
    for _ in range(5):
        assert look(tree) == []


def test_what_was_asked_for_is_delivered_and_passed_on() -> None:
    tree = behind()
    tree.brisa.on_activate(3, Activate(FLOW))
    tree.take()
    assert tree.brisa.on_data(2, data(1, (0, 2), flags=RECOVERED)) is False
    assert tree.got == [(0, 1)]
    assert tree.take() == [Send(3, data(1, (0, 1, 5), hops=3))]


# Answering


def test_what_is_still_in_the_buffer_is_sent_again() -> None:
    tree = holder()
    tree.brisa.on_recover(3, Recover(FLOW, ((0, 1, 2),)))
    assert tree.take() == [Send(3, data(seq, (0, 1, 5), flags=RECOVERED)) for seq in (1, 2)]


def test_what_has_left_the_buffer_is_said_to_be_gone() -> None:
    tree = holder(messages=5, buffer_messages=2)
    tree.brisa.on_recover(3, Recover(FLOW, ((0, 1, 4),)))
    assert tree.take() == [
        Send(3, Baseline(FLOW, ((0, 3),))),
        *(Send(3, data(seq, (0, 1, 5), flags=RECOVERED)) for seq in (3, 4)),
    ]


def test_a_range_that_has_left_the_buffer_altogether_begins_after_its_end() -> None:
    tree = holder(messages=5, buffer_messages=1)
    tree.brisa.on_recover(3, Recover(FLOW, ((0, 0, 2),)))
    assert tree.take() == [Send(3, Baseline(FLOW, ((0, 3),)))]


def test_what_we_lack_ourselves_is_not_said_to_be_gone() -> None:
    tree = holder(messages=2)
    tree.brisa.on_recover(3, Recover(FLOW, ((0, 2, 4),)))
    assert tree.take() == []


def test_what_is_gone_is_told_for_each_publisher() -> None:
    tree = holder(messages=5, buffer_messages=3)
    tree.brisa.on_data(1, data(0, (), source=9, flags=UPWARD))
    tree.take()
    tree.brisa.on_recover(3, Recover(FLOW, ((0, 1, 4), (9, 0, 0))))
    assert tree.env.sent(Baseline) == [Send(3, Baseline(FLOW, ((0, 3),)))]


def test_no_more_bytes_are_sent_again_than_allowed() -> None:
    tree = holder(messages=5, recover_bytes=len(b"payload") + 1)
    tree.brisa.on_recover(2, Recover(FLOW, ((0, 0, 4),)))
    assert [each.msg.seq for each in tree.env.sent(Data)] == [0, 1]


def test_no_more_is_sent_again_than_allowed() -> None:
    tree = holder(messages=5, recover_max=2)
    tree.brisa.on_recover(3, Recover(FLOW, ((0, 0, 4),)))
    assert [effect.msg.seq for effect in tree.env.sent(Data)] == [0, 1]  # type: ignore[attr-defined]


def test_only_the_ranges_that_were_asked_for_are_sent() -> None:
    tree = holder(messages=6)
    tree.brisa.on_recover(3, Recover(FLOW, ((0, 1, 1), (0, 4, 5), (9, 0, 9))))
    assert [effect.msg.seq for effect in tree.env.sent(Data)] == [1, 4, 5]  # type: ignore[attr-defined]


def test_a_request_for_an_unknown_flow_or_from_a_stranger_is_ignored() -> None:
    tree = holder()
    tree.brisa.on_recover(3, Recover((7, 7), ((0, 0, 9),)))
    tree.brisa.on_recover(STRANGER, Recover(FLOW, ((0, 0, 9),)))
    assert tree.take() == []


def test_the_source_answers_strangers_too() -> None:
    """It is the last resort of whoever finds no neighbour that can help."""
    source = Tree(me=0)
    source.brisa.broadcast("t", b"payload")
    source.take()
    source.brisa.on_recover(STRANGER, Recover(FLOW, ((0, 0, 0),)))
    assert source.take() == [Send(STRANGER, data(0, (0,), flags=RECOVERED))]


def test_an_upward_message_is_sent_again_without_a_path() -> None:
    tree = Tree().attached()
    tree.brisa.on_data(1, data(0, (), source=9, flags=UPWARD))
    tree.take()
    tree.brisa.on_recover(3, Recover(FLOW, ((9, 0, 0),)))
    assert tree.take() == [Send(3, data(0, (), source=9, flags=UPWARD | RECOVERED, hops=1))]


# The past


def newcomer() -> Tree:
    """Up for five seconds when message 7 is the first that it gets."""
    tree = Tree()
    tree.brisa.start()
    tree.env.advance(5_000_000)
    tree.brisa.on_data(1, data(7, (0, 1)))
    return tree


def test_a_process_that_comes_in_mid_stream_asks_its_parent_for_the_past() -> None:
    tree = newcomer()
    assert tree.env.sent(Recover) == [Send(1, Recover(FLOW, (), 5_000_000 + SLACK))]
    assert tree.got == [(0, 7)]


def test_a_process_that_is_there_from_the_start_asks_for_no_past() -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(0, (0, 1)))
    assert tree.env.sent(Recover) == []


def asked_now(tree: Tree) -> int:
    """The age that a request sent at this moment asks for."""
    return tree.env.now_us() - tree.brisa.started_us + SLACK


def test_an_answer_to_a_request_that_took_too_long_is_not_believed() -> None:
    tree = newcomer()
    age_us = asked_now(tree)
    tree.env.advance(SLACK + 1)
    tree.brisa.on_baseline(1, Baseline(FLOW, ((0, 7),), age_us))
    assert tree.flow().mid_stream
    tree.brisa.on_baseline(1, Baseline(FLOW, ((0, 7),), asked_now(tree)))
    assert not tree.flow().mid_stream


def test_a_refusal_does_not_tell_a_newcomer_where_its_duty_begins() -> None:
    tree = newcomer()
    tree.brisa.on_baseline(1, Baseline(FLOW, ((0, 7),)))
    assert tree.flow().mid_stream


def test_the_past_is_what_came_within_the_time_asked_for_and_where_it_begins() -> None:
    tree = holder(messages=5)  # the last three came within the last two seconds
    tree.brisa.on_recover(3, Recover(FLOW, (), 2_000_000))
    assert tree.take() == [
        Send(3, Baseline(FLOW, ((0, 2),), 2_000_000)),
        *(Send(3, data(seq, (0, 1, 5), flags=RECOVERED)) for seq in (2, 3, 4)),
    ]


def test_whoever_was_there_from_the_start_can_speak_for_any_time() -> None:
    tree = holder(messages=2)
    tree.brisa.on_recover(3, Recover(FLOW, (), 60_000_000))
    assert tree.take() == [
        Send(3, Baseline(FLOW, ((0, 0),), 60_000_000)),
        *(Send(3, data(seq, (0, 1, 5), flags=RECOVERED)) for seq in (0, 1)),
    ]


def test_an_empty_past_begins_with_the_next_message() -> None:
    tree = holder(messages=3)
    tree.env.advance(10_000_000)
    tree.brisa.on_recover(3, Recover(FLOW, (), 2_000_000))
    assert tree.take() == [Send(3, Baseline(FLOW, ((0, 3),), 2_000_000))]


def test_a_process_that_is_catching_up_cannot_speak_for_the_past() -> None:
    tree = newcomer()
    tree.take()
    tree.brisa.on_recover(3, Recover(FLOW, (), 1))
    assert tree.take() == []
    tree.brisa.on_recover(3, Recover(FLOW, (), 1, anything=True))
    assert tree.env.sent(Baseline) != []


def test_a_process_cannot_speak_for_a_time_before_its_own() -> None:
    tree = newcomer()
    tree.brisa.on_baseline(1, Baseline(FLOW, ((0, 7),), asked_now(tree)))
    tree.take()
    tree.brisa.on_recover(3, Recover(FLOW, (), 60_000_000))
    assert tree.take() == []
    tree.brisa.on_recover(3, Recover(FLOW, (), 3_000_000))
    assert tree.env.sent(Baseline) == [Send(3, Baseline(FLOW, ((0, 7),), 3_000_000))]


def test_a_newcomer_that_learns_where_its_duty_begins_lacks_what_lies_between() -> None:
    tree = newcomer()
    tree.brisa.on_baseline(1, Baseline(FLOW, ((0, 5),), asked_now(tree)))
    tree.hears(1, (0, 1), last=7)
    tree.take()
    look(tree)
    assert look(tree)[0] == Send(1, Recover(FLOW, ((0, 5, 6),)))


def test_a_newcomer_takes_older_messages_in_any_order() -> None:
    tree = newcomer()
    for seq in (5, 6, 5):
        tree.brisa.on_data(1, data(seq, (0, 1), flags=RECOVERED))
    assert tree.got == [(0, 7), (0, 5), (0, 6)]


def test_a_newcomer_whose_request_was_not_answered_asks_somebody_else() -> None:
    tree = newcomer()
    tree.hears(2, (0, 2), last=7)
    tree.take()
    [ask] = look(tree)
    now_us = tree.env.now_us()
    assert isinstance(ask, Send)
    assert (ask.to, ask.msg.ranges) == (2, ())  # type: ignore[attr-defined]
    assert now_us - LOOK < ask.msg.age_us - SLACK <= now_us  # type: ignore[attr-defined]


def test_a_newcomer_that_is_never_answered_settles_for_anyone() -> None:
    tree = newcomer()
    tree.hears(2, (0, 2), last=7)
    tree.env.advance(25 * LOOK)
    asked = [effect.msg.anything for effect in tree.env.sent(Recover)]  # type: ignore[attr-defined]
    assert asked == [False] * 20 + [True] * 6


def test_a_newcomer_that_changes_its_parent_asks_the_new_one_for_the_past() -> None:
    tree = newcomer()
    tree.hears(2, (0, 2), last=7)
    tree.brisa.neighbour_down(1, True)
    tree.take()
    tree.told(2, (0, 2), last=7)
    assert tree.env.sent(Recover) == [Send(2, Recover(FLOW, (), 5_000_000 + SLACK))]


def test_a_newcomer_that_was_answered_asks_no_more() -> None:
    tree = newcomer()
    tree.hears(2, (0, 2), last=7)
    tree.brisa.on_baseline(1, Baseline(FLOW, ((0, 7),), asked_now(tree)))
    tree.take()
    for _ in range(5):
        assert look(tree) == []


def test_an_answer_that_comes_late_does_not_count() -> None:
    """What was asked for has receded meanwhile."""
    tree = newcomer()
    tree.env.advance(SLACK + 1)
    tree.brisa.on_baseline(1, Baseline(FLOW, ((0, 7),)))
    assert tree.flow().mid_stream


# Giving up


def test_what_everyone_has_lost_is_given_up_aloud() -> None:
    tree = behind(parent_last=3)
    tree.brisa.on_data(1, data(3, (0, 1)))
    for _ in range(LAST_RESORT_MAX + 3):
        look(tree)
        tree.brisa.on_baseline(1, Baseline(FLOW, ((0, 3),)))
    assert tree.env.records == [Record(Kind.GAP, source=0, seq=3, detail="2 lost")]
    assert look(tree) == []


def test_a_source_that_does_not_answer_is_asked_for_as_long_as_a_partition_may_last_and_then_no_more() -> None:
    tree = behind(parent_last=3)
    tree.brisa.on_data(1, data(3, (0, 1)))
    asked: list[bool] = []
    while not tree.env.records:
        asked.append(Send(0, Recover(FLOW, ((0, 1, 2),))) in look(tree))
        tree.brisa.on_baseline(1, Baseline(FLOW, ((0, 3),)))
    asked = asked[asked.index(True) :]
    assert len(asked) == LAST_RESORT_MAX + 1
    assert asked[:20] == [True, False] * 10
    assert [look for look, source in enumerate(asked) if source and look >= 20] == list(range(24, LAST_RESORT_MAX, 8))


def test_those_who_may_have_got_it_by_now_are_asked_in_turn_with_the_source() -> None:
    """Whoever comes back from a partition hears of neighbours that have it, though the source is gone."""
    tree = behind(parent_last=3)
    tree.brisa.on_data(1, data(3, (0, 1)))
    for _ in range(100):
        last = [each.to for each in requests(look(tree))]  # type: ignore[attr-defined]
        assert last in ([], [0], [1])
    tree.hears(2, (0, 2), last=3)
    asked = [each.to for _ in range(8) for each in requests(look(tree))]  # type: ignore[attr-defined]
    assert sorted(set(asked)) == [0, 1, 2]
    assert asked.count(0) == 1


def test_a_source_that_answers_in_between_is_waited_for_again() -> None:
    tree = behind(parent_last=9)
    tree.brisa.on_data(1, data(9, (0, 1)))
    for seq in (1, 3, 5):
        for _ in range(LAST_RESORT_MAX):
            look(tree)
        tree.brisa.on_data(0, data(seq, (0,), flags=RECOVERED))
    assert [record for record in tree.env.records if record.kind == Kind.GAP] == []


def test_what_the_source_has_lost_is_given_up_at_once() -> None:
    tree = behind(parent_last=3)
    tree.brisa.on_data(1, data(3, (0, 1)))
    look(tree)
    look(tree)
    for peer in (1, 0):
        tree.brisa.on_baseline(peer, Baseline(FLOW, ((0, 3),)))
    assert look(tree) == []
    assert tree.env.records == [Record(Kind.GAP, source=0, seq=3, detail="2 lost")]


def test_who_could_not_help_once_is_asked_again_for_something_else() -> None:
    tree = behind(parent_last=2)
    look(tree)
    look(tree)
    tree.brisa.on_baseline(1, Baseline(FLOW, ((0, 2),)))
    for seq in (1, 2):
        tree.brisa.on_data(2, data(seq, (0, 2), flags=RECOVERED))
    look(tree)
    tree.hears(1, (0, 1), last=4)
    look(tree)
    assert look(tree)[0] == Send(1, Recover(FLOW, ((0, 3, 4),)))


def test_a_baseline_of_many_publishers_does_not_fill_the_memory() -> None:
    tree = Tree(sources_max=3).attached()
    tree.brisa.on_baseline(1, Baseline(FLOW, tuple((source, 5) for source in range(100, 1100))))
    assert len(tree.flow().windows) == 1, "of publishers that we do not know, it says nothing that could be believed"


def test_before_giving_up_the_source_itself_is_asked() -> None:
    tree = behind(parent_last=3)
    tree.brisa.on_data(1, data(3, (0, 1)))
    look(tree)
    look(tree)
    tree.brisa.on_baseline(1, Baseline(FLOW, ((0, 3),)))
    assert look(tree) == [Send(0, Recover(FLOW, ((0, 1, 2),)))]
    assert tree.env.records == []


def test_neighbours_that_never_answer_are_not_asked_for_ever() -> None:
    """They lack the same, and hope for us as we hope for them: both tell how far they are, not what lacks before."""
    tree = behind(parent_last=3)
    tree.brisa.on_data(1, data(3, (0, 1)))
    tree.hears(2, (0, 2), last=3)
    sent: list[object] = []
    while Send(0, Recover(FLOW, ((0, 1, 2),))) not in sent:
        sent += look(tree)
    asked = [each.to for each in requests(sent)]  # type: ignore[attr-defined]
    assert asked == [*([1, 2] * FRUITLESS_MAX)[: FRUITLESS_MAX - 1], 0]
    assert tree.env.records == []
    tree.brisa.on_baseline(0, Baseline(FLOW, ((0, 3),)))
    look(tree)
    assert tree.env.records == [Record(Kind.GAP, source=0, seq=3, detail="2 lost")]


def test_as_long_as_something_comes_neighbours_are_asked_on() -> None:
    tree = behind(parent_last=80)
    tree.brisa.on_data(1, data(80, (0, 1)))
    for seq in range(60, 2, -1):  # from the end, so that the hole at the beginning stays
        assert [each for each in look(tree) if isinstance(each, Send) and each.to == 0] == []
        tree.brisa.on_data(1, data(seq, (0, 1), flags=RECOVERED))
    assert tree.env.records == []


def test_nothing_is_given_up_while_somebody_may_still_have_it() -> None:
    tree = behind(parent_last=3)
    for _ in range(20):
        look(tree)
    assert [record for record in tree.env.records if record.kind == Kind.GAP] == []


def test_holes_that_outgrow_the_memory_are_given_up_aloud() -> None:
    tree = Tree(buffer_messages=2).attached()
    for seq in (2, 4, 6):
        tree.brisa.on_data(1, data(seq, (0, 1)))
    assert tree.env.records == [Record(Kind.GAP, source=0, seq=6, detail="1 lost")]
    tree.brisa.on_data(1, data(3, (0, 1)))
    assert len(tree.env.records) == 1
    for seq in (8, 10):
        tree.brisa.on_data(1, data(seq, (0, 1)))
    assert tree.env.records[1:] == [Record(Kind.GAP, source=0, seq=10, detail="1 lost")]


def test_a_baseline_of_an_unknown_flow_changes_nothing() -> None:
    tree = Tree()
    tree.brisa.on_baseline(1, Baseline((7, 7), ((0, 3),)))
    assert tree.brisa.flows == {}


def test_a_baseline_says_nothing_about_our_own_messages() -> None:
    source = Tree(me=0)
    source.brisa.broadcast("t", b"x")
    source.brisa.on_baseline(1, Baseline(FLOW, ((0, 50),)))
    assert source.brisa.broadcast("t", b"x") == (0, 1)
    assert source.brisa.positions() == (position((0,), last=1),)


def test_a_process_that_told_us_it_does_not_want_copies_still_gets_what_it_asks_for() -> None:
    tree = holder(messages=2)
    tree.brisa.on_deactivate(3, Deactivate(FLOW))
    tree.brisa.on_recover(3, Recover(FLOW, ((0, 1, 1),)))
    assert tree.take() == [Send(3, data(1, (0, 1, 5), flags=RECOVERED))]


# Whose word counts


def test_only_those_that_were_asked_tell_a_newcomer_where_its_duty_begins() -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(7, (0, 1)))
    assert [effect.to for effect in tree.take() if isinstance(effect.msg, Recover)] == [1]  # type: ignore[union-attr]
    age_us = tree.brisa.config.confirm_us + 1
    tree.brisa.on_baseline(2, Baseline(FLOW, ((0, 7),), age_us))
    assert tree.flow().windows[0].provisional, "an unasked answer could hide what came before"
    tree.brisa.on_baseline(1, Baseline(FLOW, ((0, 5),), age_us))
    assert tree.flow().windows[0].missing(7, 9) == [(5, 6)]


def test_nobody_tells_a_process_of_messages_of_its_own() -> None:
    tree = Tree()
    source, seq = tree.brisa.broadcast("t", b"x")
    flow = (source, 0)
    before = list(tree.got)
    assert tree.brisa.on_data(1, data(seq, (source, 1), source=source, flow=flow)) is True, "a duplicate"
    assert tree.brisa.on_data(1, data(seq + 1, (source, 1), source=source, flow=flow)) is False
    assert tree.got == before
    assert [record.detail for record in tree.env.records] == ["we have not published that"]
    assert tree.brisa.broadcast("t", b"x") == (source, seq + 1)


# For an order above


def test_an_order_learns_when_all_that_is_owed_is_here() -> None:
    tree = newcomer()
    assert not tree.brisa.complete(0, 7)  # nobody has said yet where we begin
    tree.brisa.on_baseline(1, Baseline(FLOW, ((0, 5),), asked_now(tree)))
    assert not tree.brisa.complete(0, 7)  # 5 and 6 are on their way
    for number in (5, 6):
        tree.brisa.on_data(1, data(number, (0, 1), flags=RECOVERED))
    assert tree.brisa.complete(0, 7)
    assert not tree.brisa.complete(0, 8)
    assert not tree.brisa.complete(9, 0)


def test_an_order_that_waits_hastens_the_request_and_asks_another_neighbour_next_time() -> None:
    tree = newcomer()
    tree.hears(2, (0, 2), last=7)
    tree.take()
    tree.brisa.hasten(unheard=False)
    tree.brisa.hasten(unheard=False)
    assert [each.to for each in tree.env.sent(Recover)][-1] == 2
    tree.brisa.on_baseline(2, Baseline(FLOW, ((0, 7),), asked_now(tree)))
    tree.take()
    tree.brisa.hasten(unheard=False)
    assert tree.env.sent(Recover) == []
