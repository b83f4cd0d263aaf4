"""How a newcomer learns where its duty begins, from neighbours that are honest, new, silent or lying."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from epicast.core.ids import NodeId
from epicast.core.recording import Send
from epicast.ordering.beginnings import ENOUGH_US, LOOK_ALONE_US, LOOK_US, ROUND_US
from epicast.ordering.standing import PAGE, AskStanding, Place, Standing
from tests.support.neighbours import Members
from tests.support.ordering import Process
from tests.unit.ordering import test_barrier as barriers
from tests.unit.ordering import test_fifo as fifos

SECOND = 1_000_000
SETTLE, PATIENCE, STABLE = 3 * SECOND, 30 * SECOND, 60 * SECOND
FIFO, CAUSAL = 1, 2
LAST = (1 << 63) - 1


class Layer:
    """A layer below that asks for what is owed to us: the test says what is here."""

    def __init__(self) -> None:
        self.here: dict[tuple[NodeId, int], None] = {}
        self.hastened: list[bool] = []

    def complete(self, source: NodeId, seq: int) -> bool:
        return (source, seq) in self.here

    def hasten(self, *, unheard: bool) -> None:
        self.hastened.append(unheard)


class Newcomer(Process):
    def __init__(self, order: str, peers: Iterable[NodeId], layer: Layer | None = None) -> None:
        stable = {} if order == "fifo" else {"stable_us": STABLE}
        super().__init__(order, "Z" if order == "barrier" else 0, settle_us=SETTLE, patience_us=PATIENCE, **stable)
        self.kind = FIFO if order == "fifo" else CAUSAL
        self.ways: Any = self.room.beginnings
        self.ways._members = Members(peers)
        if layer is not None:
            self.order.attach(layer)  # type: ignore[arg-type]
        self.order.start()
        self.advance(LOOK_US)

    @property
    def asked(self) -> list[NodeId]:
        return [
            effect.to for effect in self.env.effects if isinstance(effect, Send) and isinstance(effect.msg, AskStanding)
        ]

    def told(self, peer: NodeId, *streams: Place, knows: bool = True, recent: Any = (), ask: int = 1) -> None:
        self.ways.on_standing(peer, Standing(self.kind, ask, 0, knows, False, streams, tuple(recent)))


def stream(number: int, source: NodeId = 7, topic: str = "t") -> Place:
    return source, topic, number


# Asking


def test_a_newcomer_asks_its_neighbours_and_is_settled_once_they_have_answered() -> None:
    process = Newcomer("fifo", [1, 2])
    assert process.asked == [1, 2]
    assert not process.order.settled()
    process.told(1, stream(5))
    assert not process.order.settled()
    process.told(2, stream(5))
    assert process.order.settled()
    process.advance(PATIENCE)
    assert process.asked == [1, 2]


def test_one_answer_is_enough_where_the_other_neighbour_is_silent() -> None:
    process = Newcomer("fifo", [1, 2])
    process.told(1, stream(5))
    process.advance(ENOUGH_US)
    assert process.order.settled()


def test_nobody_to_ask_and_nobody_who_answers_end_the_wait() -> None:
    assert Newcomer("fifo", []).order.settled()
    process = Newcomer("barrier", [1])
    process.advance(SETTLE // 2)
    assert process.order.settled()  # where nothing is sent again, we have given up asking
    process = Newcomer("barrier", [1], Layer())
    process.advance(SETTLE // 2 + SETTLE)
    assert process.order.settled()


def test_newcomers_among_themselves_are_settled_and_ask_again() -> None:
    process = Newcomer("fifo", [1])
    process.told(1, knows=False)
    assert process.order.settled()
    process.advance(ROUND_US)
    assert process.asked == [1, 1]


# First in, first out


def test_the_message_that_neighbours_wait_for_is_delivered_at_once_and_those_after_it() -> None:
    process = Newcomer("fifo", [1])
    process.told(1, stream(5))
    process.receive(fifos.said(6))
    assert fifos.numbers(process) == []
    process.receive(fifos.said(5))
    assert fifos.numbers(process) == [5, 6]
    process.receive(fifos.said(4))  # from before our beginning: no loss
    assert process.env.records == []


def test_what_came_before_the_answer_is_delivered_too() -> None:
    process = Newcomer("fifo", [1])
    process.receive(fifos.said(3), fifos.said(4))
    process.told(1, stream(5))
    assert fifos.numbers(process) == [3, 4]


def test_a_first_message_that_is_late_does_not_make_us_owe_what_lies_between() -> None:
    process = Newcomer("fifo", [1])
    process.told(1, stream(5))
    process.receive(fifos.said(0), fifos.said(5))
    process.advance(PATIENCE)
    assert fifos.numbers(process) == [5]
    assert process.env.records == []


def test_the_layer_below_knows_best() -> None:
    layer = Layer()
    process = Newcomer("fifo", [1], layer)
    assert process.asked == []
    process.receive(fifos.said(6))
    process.advance(SETTLE)
    assert layer.hastened
    assert fifos.numbers(process) == []
    process.receive(fifos.said(5))
    layer.here[7, 105] = None
    process.advance(LOOK_US)
    assert fifos.numbers(process) == [5, 6]


def test_a_layer_that_never_knows_is_waited_for_until_patience_is_over() -> None:
    process = Newcomer("fifo", [1], Layer())
    process.receive(fifos.said(6))
    process.advance(PATIENCE)
    assert fifos.numbers(process) == [6]
    assert process.env.records == []


# Liars


@pytest.mark.parametrize("lie", [0, 1, 4, 7, LAST])
def test_a_wrong_number_costs_no_more_than_no_answer(lie: int) -> None:
    process = Newcomer("fifo", [1])
    process.told(1, stream(lie))
    process.receive(fifos.said(5), fifos.said(6))
    process.advance(SETTLE)
    assert fifos.numbers(process) == [5, 6]
    assert process.env.records == []


@pytest.mark.parametrize("lie", [6, 7, LAST])
def test_the_lowest_number_that_anybody_says_counts(lie: int) -> None:
    process = Newcomer("fifo", [1, 2])
    process.told(1, stream(lie))
    process.told(2, stream(5))
    process.receive(fifos.said(6), fifos.said(5))
    assert fifos.numbers(process) == [5, 6]


def test_answers_that_nobody_asked_for_are_dropped() -> None:
    process = Newcomer("fifo", [1])
    process.told(9, stream(5))
    process.told(1, stream(5), ask=2)
    assert process.ways.claims == {}
    process.told(1, stream(5))
    process.told(1, stream(3))
    assert process.ways.claims == {(7, "t"): 5}


def test_a_neighbour_without_end_is_heard_for_so_many_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epicast.ordering.beginnings.PAGES_MAX", 3)
    process = Newcomer("fifo", [1])
    for page in range(5):
        process.ways.on_standing(1, Standing(FIFO, 1, page, True, True, (stream(5, topic=str(page)),)))
    assert len(process.ways.claims) == 3
    assert process.order.settled()


# Causal order


def test_with_a_cut_a_message_need_not_wait_for_what_came_before_our_beginning() -> None:
    process = Newcomer("barrier", [1])
    process.told(1, ("A", "", 5), ("B", "", 3))
    process.receive(barriers.said("B", 3, {"A": 4}, lead=3))
    assert process.got == [("B", 103)]
    process.receive(barriers.said("A", 4))  # it comes before that one
    assert process.got == [("B", 103)]
    assert process.env.records == []
    process.receive(barriers.said("A", 5, {"B": 3}, lead=4))
    assert process.got == [("B", 103), ("A", 105)]


def test_what_is_not_in_the_cut_is_waited_for() -> None:
    process = Newcomer("barrier", [1])
    process.told(1, ("A", "", 5), ("B", "", 3))
    process.receive(barriers.said("B", 3, {"A": 5}, lead=3))
    assert process.got == []
    process.receive(barriers.said("A", 5))
    assert process.got == [("A", 105), ("B", 103)]


def test_a_cut_counts_once_all_recent_messages_are_here() -> None:
    layer = Layer()
    process = Newcomer("barrier", [1], layer)
    process.told(1, ("A", "", 5), ("B", "", 3), recent=[("A", 104)])
    process.receive(barriers.said("B", 3, {"A": 4}, lead=3))
    assert process.got == []
    assert not process.order.settled()
    process.receive(barriers.said("A", 4))
    layer.here["A", 104] = None
    process.advance(LOOK_US)
    assert process.got == [("A", 104), ("B", 103)]
    assert process.order.settled()


def test_nobody_keeps_us_from_beginning_by_naming_what_does_not_exist() -> None:
    process = Newcomer("barrier", [1, 2], Layer())
    process.told(1, ("B", "", 3), recent=[("A", LAST)])
    process.told(2, ("A", "", 5), ("B", "", 3))
    process.receive(barriers.said("B", 3, {"A": 4}, lead=3))
    process.advance(SETTLE)
    assert process.got == [("B", 103)]


def test_numbers_of_a_liar_end_with_the_first_messages_of_a_stream() -> None:
    process = Newcomer("barrier", [1])
    process.told(1, ("A", "", LAST))
    process.receive(barriers.said("A", 5), barriers.said("A", 6))
    process.advance(SETTLE)
    process.receive(barriers.said("A", 7))
    assert process.got == [("A", 105), ("A", 106), ("A", 107)]


def gave_up_a_name() -> Newcomer:
    """It had nobody to ask, delivered B's message without A's message 4, and now has a neighbour to ask."""
    process = Newcomer("barrier", [])
    process.receive(barriers.said("B", 3, {"A": 4}, lead=3))
    process.advance(SETTLE)
    assert process.got == [("B", 103)]
    process.ways._members = Members([1])
    process.advance(LOOK_ALONE_US)
    assert process.asked == [1]
    return process


@pytest.mark.parametrize("cut_is_first", [True, False])
def test_messages_between_a_name_that_was_given_up_and_our_beginning_are_no_loss(cut_is_first: bool) -> None:
    process = gave_up_a_name()
    message = barriers.said("A", 7, lead=30)
    if cut_is_first:
        process.told(1, ("A", "", 7), ("B", "", 4))
        process.receive(message)
    else:
        process.receive(message)
        assert process.got == [("B", 103)]  # A's messages 5 and 6 may be owed to us
        process.told(1, ("A", "", 7), ("B", "", 4))
    assert process.got == [("B", 103), ("A", 107)]
    process.advance(PATIENCE)
    assert process.gaps == []


def test_messages_after_our_beginning_are_a_loss_and_no_others() -> None:
    process = gave_up_a_name()
    process.receive(barriers.said("A", 9, lead=30))
    process.told(1, ("A", "", 7), ("B", "", 4))
    process.advance(PATIENCE)
    assert process.got == [("B", 103), ("A", 109)]
    assert process.gaps == [("A", "2 lost")]


def test_without_a_cut_a_stream_begins_with_the_lowest_message_that_came_after_a_name_that_was_given_up() -> None:
    process = Newcomer("barrier", [])
    process.receive(barriers.said("B", 3, {"A": 4}, lead=3))
    process.advance(SETTLE)
    process.receive(barriers.said("A", 9, lead=30))
    process.advance(PATIENCE)
    assert process.got == [("B", 103), ("A", 109)]
    assert process.gaps == []
    process.receive(barriers.said("A", 11, lead=30))
    process.advance(PATIENCE)
    assert process.gaps == [("A", "1 lost")]


def test_a_message_that_came_too_late_does_not_make_us_owe_what_lies_between() -> None:
    process = gave_up_a_name()
    process.receive(barriers.said("A", 3))
    process.told(1, ("A", "", 7), ("B", "", 4))
    process.receive(barriers.said("A", 9, lead=30))
    process.advance(PATIENCE)
    assert process.got == [("B", 103), ("A", 109)]
    assert process.gaps == [("A", "1 came too late"), ("A", "2 lost")]


def test_a_name_given_up_later_is_no_loss_of_what_lies_before_our_beginning() -> None:
    process = gave_up_a_name()
    process.told(1, ("A", "", 7), ("B", "", 4))
    process.advance(STABLE + PATIENCE)
    process.receive(barriers.said("B", 4, {"A": 8}, lead=30))
    process.advance(PATIENCE)
    assert process.got == [("B", 103), ("B", 104)]
    assert process.gaps == [("A", "2 lost")]  # messages 7 and 8


# Answering


def answers(process: Process) -> list[Standing]:
    return [each.msg for each in process.env.sent(Standing) if isinstance(each.msg, Standing)]


def test_a_newcomer_speaks_for_itself_alone() -> None:
    process = Newcomer("fifo", [1])
    process.publish("u")
    process.receive(fifos.said(0))
    process.ways.on_ask_standing(2, AskStanding(FIFO, 4))
    process.told(1)
    process.ways.on_ask_standing(2, AskStanding(FIFO, 5))
    assert answers(process) == [
        Standing(FIFO, 4, 0, False, False, ((0, "u", 1),)),
        Standing(FIFO, 5, 0, True, False, ((0, "u", 1), (7, "t", 1))),
    ]


def test_what_one_has_learned_and_not_heard_is_told_on() -> None:
    process = Newcomer("fifo", [1])
    process.told(1, stream(5))
    process.ways.on_ask_standing(2, AskStanding(FIFO, 1))
    assert answers(process) == [Standing(FIFO, 1, 0, True, False, (stream(5),))]


def test_many_streams_are_told_in_pages_and_not_without_end() -> None:
    process = Newcomer("fifo", [1])
    process.told(1)
    for number in range(PAGE + 2):
        process.receive(fifos.said(0, topic=str(number)))
    for page in (0, 1, 2):
        process.ways.on_ask_standing(2, AskStanding(FIFO, 1, page))
    assert [(len(each.streams), each.more) for each in answers(process)] == [(PAGE, True), (2, False), (0, False)]
    for _ in range(200):
        process.ways.on_ask_standing(2, AskStanding(FIFO, 2))
    assert len(answers(process)) < 70
    process.advance(SECOND)
    before = len(answers(process))
    process.ways.on_ask_standing(2, AskStanding(FIFO, 3))
    assert len(answers(process)) == before + 1


def test_the_highest_number_is_not_told_on() -> None:
    process = Newcomer("fifo", [1])
    process.told(1)
    process.receive(fifos.said(0), fifos.said(LAST))
    process.advance(PATIENCE)
    assert fifos.numbers(process) == [0, LAST]
    process.ways.on_ask_standing(2, AskStanding(FIFO, 1))
    assert answers(process)[0].streams == ()


def test_recent_messages_are_told_to_whom_they_may_be_owed() -> None:
    process = Newcomer("barrier", [1], Layer())
    process.told(1)
    process.receive(barriers.said("A", 0))
    process.advance(10 * SECOND)
    process.receive(barriers.said("B", 0))
    process.ways.on_ask_standing("Y", AskStanding(CAUSAL, 1, 0, 5 * SECOND))
    (answer,) = answers(process)
    assert (answer.knows, answer.recent) == (True, (("B", 100),))
    assert answer.streams == (("Z", "", 0), ("B", "", 1), ("A", "", 1))


def test_one_who_came_later_cannot_speak_for_the_time_before() -> None:
    process = Newcomer("barrier", [1], Layer())
    process.told(1)
    process.receive(barriers.said("A", 0))
    process.ways.on_ask_standing("Y", AskStanding(CAUSAL, 1, 0, 60 * SECOND))
    assert [each.knows for each in answers(process)] == [False]


# Standing still


@pytest.mark.parametrize("order", ["fifo", "barrier"])
def test_a_process_that_stood_still_has_not_waited_meanwhile(order: str) -> None:
    process = Newcomer(order, [])
    late, early = [fifos.said(number) if order == "fifo" else barriers.said("A", number) for number in (6, 5)]
    process.receive(late)
    process.env._now_us += 10 * SECOND  # no timer fires
    process.receive(early)  # it has been in a queue for as long
    process.advance(SETTLE)
    assert [seq for _, seq in process.got] == [105, 106]
    assert process.env.records == []
