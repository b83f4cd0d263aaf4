"""Claims of neighbours: a reason to ask, never to leave a parent that delivers; empty ones are ignored for a while."""

from itertools import pairwise

import pytest

from epicast.core.message import Position
from epicast.core.recording import Record, Send
from epicast.core.records import Kind
from epicast.dissemination.brisa_claims import DOUBTED_MAX, SILENT_US, UNANSWERED_MAX, UNHEARD_MAX, Doubts
from epicast.dissemination.brisa_messages import RECOVERED, Activate, Baseline, Deactivate, Recover
from tests.support.neighbours import Tree, data, position

FLOW = (0, 0)
LOOK = 1_000_000
FAR = 10**12
LIAR = 2


def streaming(**settings: object) -> Tree:
    """Attached to 1, with a message each second."""
    tree = Tree(**settings).attached()  # type: ignore[arg-type]
    tree.brisa.start()
    return tree


def second(tree: Tree, seq: int, parent: int = 1, claimed: int = FAR, path: tuple[int, ...] = (0, LIAR)) -> None:
    """The parent sends a message and tells so; the liar tells what it likes."""
    tree.brisa.on_data(parent, data(seq, (0, parent)))
    tree.hears(parent, (0, parent), last=seq)
    tree.hears(LIAR, path, last=claimed)
    tree.env.advance(LOOK)


def asked(tree: Tree, whom: int) -> list[object]:
    return [
        each
        for each in tree.env.effects
        if isinstance(each, Send) and each.to == whom and isinstance(each.msg, Recover)
    ]


def denies(tree: Tree, peer: int, first: int = FAR) -> None:
    tree.brisa.on_baseline(peer, Baseline(FLOW, ((0, first),)))


# A liar beside a good parent


@pytest.mark.parametrize("parent", [1, 0])
def test_a_boaster_does_not_part_a_process_from_a_parent_that_delivers(parent: int) -> None:
    tree = Tree(neighbours=(parent, LIAR, 3)).attached(parent, (0, 1) if parent else (0,))
    tree.brisa.start()
    for seq in range(1, 60):
        tree.brisa.on_data(parent, data(seq, (0, 1) if parent else (0,)))
        tree.hears(parent, (0, 1) if parent else (0,), last=seq)
        tree.hears(LIAR, (0, LIAR), last=FAR)
        tree.env.advance(LOOK)
        assert tree.flow().parent == parent


def test_a_claim_that_comes_true_later_does_not_part_a_process_from_its_parent() -> None:
    """The liar delivers what it claimed, but not before the parent does."""
    tree = streaming()
    for seq in range(1, 60):
        second(tree, seq, claimed=seq + 5)
        for each in asked(tree, LIAR):
            for source, first, last in each.msg.ranges:  # type: ignore[attr-defined]
                for number in range(first, min(last, seq) + 1):
                    tree.brisa.on_data(LIAR, data(number, (0, LIAR), source=source, flags=RECOVERED))
    assert tree.flow().parent == 1
    assert tree.got == [(0, seq) for seq in range(1, 60)]


def test_a_neighbour_that_stays_silent_about_its_own_claim_is_doubted() -> None:
    tree = streaming()
    for _ in range(2 + UNANSWERED_MAX):
        tree.hears(LIAR, (0, LIAR), last=FAR)
        tree.env.advance(LOOK)
    assert len(asked(tree, LIAR)) == UNANSWERED_MAX
    assert tree.brisa.claims.highest(tree.flow()) == {0: 0}
    tree.take()
    tree.hears(LIAR, (0, LIAR), last=FAR)
    tree.env.advance(2 * LOOK)
    assert tree.take() == []


def test_doubt_ends_and_grows() -> None:
    """Whoever was only busy is believed again; a liar is asked ever less often."""
    tree = streaming()
    times: list[int] = []
    for now in range(600):
        tree.hears(LIAR, (0, LIAR), last=FAR)
        tree.env.advance(LOOK)
        times += [now] * len(asked(tree, LIAR))
        tree.take()
    starts = times[::UNANSWERED_MAX]
    gaps = [after - before for before, after in pairwise(starts)]
    assert gaps == sorted(gaps)
    assert gaps[0] * LOOK >= SILENT_US
    assert gaps[-1] > 8 * gaps[0]
    assert len(times) <= 7 * UNANSWERED_MAX


def test_what_a_doubted_neighbour_claims_counts_as_far_as_messages_prove_it() -> None:
    tree = streaming()
    for _ in range(2 + UNANSWERED_MAX):
        tree.hears(LIAR, (0, LIAR), last=FAR)
        tree.env.advance(LOOK)
    tree.take()
    tree.brisa.on_data(1, data(3, (0, 1)))  # two are missing
    tree.hears(LIAR, (0, LIAR), last=FAR)
    tree.env.advance(2 * LOOK)
    assert tree.take()[-1] == Send(LIAR, Recover(FLOW, ((0, 1, 2),)))


def test_a_neighbour_that_answers_is_never_doubted() -> None:
    tree = streaming()
    for seq in range(1, 40):
        tree.hears(LIAR, (0, LIAR), last=seq)
        tree.env.advance(2 * LOOK)
        tree.brisa.on_data(LIAR, data(seq, (0, LIAR), flags=RECOVERED))
    assert len(tree.got) == 39
    assert len(tree.brisa.claims.doubts) == 0


# The source's word


def test_the_source_says_how_far_it_has_published_when_it_is_asked_for_more() -> None:
    source = Tree(me=0)
    for _ in range(3):
        source.brisa.broadcast("t", b"payload")
    source.take()
    source.brisa.on_recover(1, Recover(FLOW, ((0, 3, FAR),)))
    assert source.take() == [Send(1, Baseline(FLOW, (), 0, 3))]
    source.brisa.on_recover(2, Recover(FLOW, ((0, 2, FAR),)))
    assert source.take() == [Send(2, Baseline(FLOW, (), 0, 3)), Send(2, data(2, (0,), flags=RECOVERED, hops=1))]
    source.brisa.on_recover(3, Recover(FLOW, ((0, 0, 2),)))
    assert source.env.sent(Baseline) == []


def test_a_process_that_is_asked_about_a_flow_that_it_never_had_says_so() -> None:
    source = Tree(me=0)
    source.brisa.on_recover(99, Recover((0, 7), ((0, 0, FAR),)))
    assert source.take() == [Send(99, Baseline((0, 7), (), 0, 0))]
    source.brisa.on_recover(99, Recover((1, 7), ((0, 0, FAR),)))
    assert source.take() == []


def minutes_of_lies(tree: Tree, minutes: int, *, answers: bool) -> int:
    """The liar claims and denies; how often the source is asked, which answers or is not there."""
    tree.brisa.on_data(1, data(1, (0, 1)))
    questions = 0
    for _ in range(60 * minutes):
        tree.hears(1, (0, 1), last=1)
        tree.hears(LIAR, (0, LIAR), last=FAR)
        tree.env.advance(LOOK)
        effects = tree.take()
        for each in effects:
            if isinstance(each, Send) and isinstance(each.msg, Recover):
                questions += each.to == 0
                if each.to == LIAR:
                    denies(tree, LIAR)
                elif each.to == 0 and answers:
                    tree.brisa.on_baseline(0, Baseline(FLOW, (), 0, 2))
    return questions


def test_one_question_to_the_source_ends_an_invented_number() -> None:
    tree = streaming()
    assert minutes_of_lies(tree, 1, answers=True) == 1
    assert minutes_of_lies(tree, 60, answers=True) <= 6
    assert tree.flow().parent == 1
    assert not [record for record in tree.env.records if record.kind == Kind.GAP]


def test_a_source_that_is_gone_is_not_asked_for_ever_on_the_word_of_a_liar() -> None:
    tree = streaming()
    assert minutes_of_lies(tree, 60, answers=False) <= 30


def test_a_relay_cannot_speak_for_the_source() -> None:
    tree = streaming()
    for _ in range(2):
        tree.hears(3, (0, 3), last=5)
        tree.env.advance(LOOK)
    tree.brisa.on_baseline(LIAR, Baseline(FLOW, (), 0, 1))
    tree.brisa.on_baseline(77, Baseline(FLOW, ((0, 9),), 0, 1))
    assert tree.brisa.claims.highest(tree.flow()) == {0: 5}
    assert 77 not in tree.flow().denied


def test_a_claim_that_the_source_confirms_is_not_held_against_anybody() -> None:
    """What it claimed was published after the source had answered."""
    tree = streaming()
    tree.hears(LIAR, (0, LIAR), last=4)
    flow = tree.flow()
    flow.evidence.vouched = {LIAR: 4}
    tree.brisa.on_baseline(0, Baseline(FLOW, (), 0, 5))
    assert len(tree.brisa.claims.doubts) == 0


def test_the_end_of_a_stream_that_even_the_source_has_lost_is_given_up_aloud() -> None:
    """No message after it shows the hole: neighbours claim it, and the source confirms it."""
    tree = streaming()
    for _ in range(3):
        tree.hears(1, (0, 1), last=3)
        tree.env.advance(LOOK)
        denies(tree, 1, 4)
    tree.brisa.on_baseline(0, Baseline(FLOW, ((0, 4),)))
    tree.hears(1, (0, 1), last=3)
    tree.env.advance(LOOK)
    assert tree.env.records == [Record(Kind.GAP, source=0, seq=4, detail="3 lost")]
    assert tree.flow().windows[0].next == 4


# A parent that lies


def test_a_parent_that_claims_and_delivers_nothing_is_left_and_avoided() -> None:
    """Its path is the shortest, and it says what it likes. Another neighbour sends what it is asked for."""
    tree = Tree(neighbours=(1, LIAR)).attached(LIAR, (0, LIAR))
    tree.brisa.start()
    for last in range(1, 15):
        tree.hears(1, (0, 8, 1), last=last)
        tree.hears(LIAR, (0, LIAR), last=last)
        tree.env.advance(LOOK)
        for each in asked(tree, 1):
            for source, first, until in each.msg.ranges:  # type: ignore[attr-defined]
                for seq in range(first, min(until, last) + 1):
                    tree.brisa.on_data(1, data(seq, (0, 8, 1), source=source, flags=RECOVERED))
        if tree.flow().parent is None:
            break
    assert Send(LIAR, Deactivate(FLOW)) in tree.env.effects
    assert tree.env.sent(Activate)[-1] == Send(1, Activate(FLOW))
    tree.told(1, (0, 8, 1), last=20)
    assert tree.flow().parent == 1
    tree.brisa.neighbour_up(3)
    tree.hears(3, (0, 8, 7, 3), last=20)
    tree.hears(LIAR, (0, LIAR), last=FAR)
    tree.take()
    tree.brisa.neighbour_down(1, True)
    assert tree.env.sent(Activate)[-1] == Send(3, Activate(FLOW)), "the liar says that it is nearer to the source"


def test_a_parent_that_delivers_only_what_it_is_asked_for_is_left() -> None:
    tree = Tree(neighbours=(1, LIAR)).attached(LIAR, (0, LIAR))
    tree.brisa.start()
    for last in range(1, 30):
        tree.hears(1, (0, 8, 1), last=last)
        tree.hears(LIAR, (0, LIAR), last=last)
        tree.env.advance(LOOK)
        for each in asked(tree, LIAR):
            for source, first, until in each.msg.ranges:  # type: ignore[attr-defined]
                for seq in range(first, min(until, last) + 1):
                    tree.brisa.on_data(LIAR, data(seq, (0, LIAR), source=source, flags=RECOVERED))
        if tree.flow().parent is None:
            break
    assert tree.env.sent(Activate)[-1] == Send(1, Activate(FLOW))


def test_a_parent_that_claims_a_number_that_nobody_published_is_left() -> None:
    tree = streaming()
    tree.hears(3, (0, 8, 3), last=0)
    for _ in range(3 + UNANSWERED_MAX):
        tree.hears(1, (0, 1), last=FAR)
        tree.env.advance(LOOK)
    assert Send(1, Deactivate(FLOW)) in tree.env.effects
    assert tree.env.sent(Activate)[-1] == Send(3, Activate(FLOW))


def test_a_liar_is_taken_for_a_parent_if_there_is_nobody_else() -> None:
    tree = Tree(neighbours=(1,)).attached()
    tree.brisa.start()
    for _ in range(3 + UNANSWERED_MAX):
        tree.hears(1, (0, 1), last=FAR)
        tree.env.advance(LOOK)
    assert tree.flow().parent is None
    for _ in range(5):
        tree.env.advance(LOOK)
        tree.told(1, (0, 1), last=FAR)
    assert tree.flow().parent == 1


def test_a_new_parent_that_sends_a_long_backlog_is_kept() -> None:
    """All that it had before it became our parent comes because we ask for it, for longer than our patience."""
    tree = streaming()
    tree.hears(3, (0, 8, 3), last=100)
    tree.brisa.neighbour_down(1, True)
    tree.told(3, (0, 8, 3), last=100)
    assert tree.flow().parent == 3
    for seq in range(1, 101):
        tree.brisa.on_data(3, data(seq, (0, 8, 3), flags=RECOVERED))
        tree.hears(3, (0, 8, 3), last=100)
        tree.hears(LIAR, (0, 9, LIAR), last=100)
        tree.env.advance(LOOK // 2)
        assert tree.flow().parent == 3
    assert tree.got == [(0, seq) for seq in range(1, 101)]


# Publishers that nobody has heard


def test_one_neighbour_cannot_make_us_ask_for_many_invented_publishers() -> None:
    tree = streaming()
    names = tuple((f"x{n}:1/y", 5) for n in range(256))
    for _ in range(30):
        tree.brisa.heard(LIAR, (Position(FLOW, (0, LIAR), names),), tree.env.now_us())
        tree.brisa.heard(1, (Position(FLOW, (0, 1), ((0, 0), (8, 3))),), tree.env.now_us())
        tree.env.advance(LOOK)
    assert list(tree.flow().windows) == [0]
    assert not tree.flow().mid_stream
    assert tree.flow().progress() == ((0, 0),), "nobody is told what one neighbour claims"
    assert len(asked(tree, LIAR)) <= 3 * UNANSWERED_MAX
    assert all(len(each.msg.ranges) <= UNHEARD_MAX + 1 for each in asked(tree, LIAR))  # type: ignore[attr-defined]
    assert asked(tree, 1), "the publisher that the other neighbour tells of is asked for"
    assert asked(tree, 0) == []


# The table


def test_the_table_of_doubts_is_bounded_and_forgets_the_doubt_that_ends_first() -> None:
    doubts = Doubts(10**9)
    doubts.add("steadfast", 0, 10**8)
    for peer in range(2 * DOUBTED_MAX):
        doubts.add(peer, peer, 1_000)
    assert len(doubts) == DOUBTED_MAX
    assert doubts.hold("steadfast", 10**7)
    assert doubts.hold(2 * DOUBTED_MAX - 1, 2 * DOUBTED_MAX)
    assert not doubts.hold(0, 0)


def test_a_term_doubles_up_to_the_most_and_begins_anew_long_after() -> None:
    doubts = Doubts(4_000)
    now = 0
    for term in (1_000, 2_000, 4_000, 4_000):
        doubts.add("liar", now, 1_000)
        assert doubts.hold("liar", now + term - 1)
        now += term
        assert not doubts.hold("liar", now)
    now += 4_001
    doubts.add("liar", now, 1_000)
    assert not doubts.hold("liar", now + 1_000)


def test_where_others_stand_is_heard_of_a_doubted_neighbour_too() -> None:
    tree = streaming()
    tree.brisa.claims.doubts.add(LIAR, 0, SILENT_US)
    tree.brisa.heard(LIAR, (position((0, LIAR), last=FAR),), 0)
    assert tree.flow().known[LIAR].path == (0, LIAR)
