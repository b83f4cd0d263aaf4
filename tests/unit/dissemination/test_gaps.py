"""What one process does about missing numbers: what it tells, when, and whom it believes."""

from __future__ import annotations

from epicast.core.recording import Record, RecordingEnv, Send
from epicast.core.records import Kind
from epicast.dissemination.gaps import ALONE_US, BEGIN_US, Gaps, GapsConfig, Heights
from epicast.dissemination.head_claims import CLAIMS_MAX
from epicast.dissemination.seen import Seen
from tests.support.neighbours import Members

ME, SOURCE, LIAR, WITNESS = 1, 7, 8, 9
SECOND = 1_000_000
GRACE_US = GapsConfig().grace_us


def process(
    *, first: bool = True, own: int = 0, pulls: bool = False, sources: int = 65_536, cap: int = 100
) -> tuple[Gaps, Seen, RecordingEnv]:
    env, seen = RecordingEnv(ME), Seen(sources, cap)
    seen.pulls = pulls
    gaps = Gaps(env, GapsConfig(), Members((2, 3, 4)), seen, lambda: own)  # type: ignore[arg-type]
    gaps.start(first=first)
    return gaps, seen, env


def gap(seq: int, lost: int) -> Record:
    """The row has the number after those that were lost."""
    return Record(Kind.GAP, source=SOURCE, seq=seq, detail=f"{lost} lost")


def test_a_number_below_one_that_came_is_told_after_the_grace_and_once() -> None:
    _, seen, env = process()
    for number in (0, 1, 4, 5, 7):
        seen.add(SOURCE, number)
    env.advance(GRACE_US - 1)
    assert env.records == []
    env.advance(2 * GRACE_US)
    assert env.records == [gap(4, 2), gap(7, 1)]


def test_what_comes_within_the_grace_is_not_told_and_what_comes_after_it_is_old_news() -> None:
    _, seen, env = process()
    for number in (0, 2, 4):
        seen.add(SOURCE, number)
    env.advance(GRACE_US // 2)
    assert seen.add(SOURCE, 1)
    env.advance(2 * GRACE_US)
    assert env.records == [gap(4, 1)]
    assert not seen.add(SOURCE, 3)


def test_where_what_is_missing_is_asked_for_it_has_longer() -> None:
    _, seen, env = process(pulls=True)
    seen.add(SOURCE, 0)
    seen.add(SOURCE, 2)
    env.advance(GapsConfig().pulled_us - 1)
    assert env.records == []
    env.advance(GapsConfig().pulled_us)
    assert env.records == [gap(2, 1)]


def test_what_came_and_waits_for_its_turn_is_not_missing() -> None:
    _, seen, env = process()
    waiting = [1]
    seen.held = lambda source: waiting
    for number in (0, 3):
        seen.add(SOURCE, number)
    env.advance(3 * GRACE_US)
    assert env.records == []
    waiting.clear()
    seen.add(SOURCE, 1)
    env.advance(3 * GRACE_US)
    assert env.records == [gap(3, 1)]


def test_the_last_messages_are_missed_by_what_the_source_says() -> None:
    gaps, seen, env = process()
    seen.add(SOURCE, 0)
    gaps.on_heights(SOURCE, Heights(((SOURCE, 2),)))
    env.advance(2 * GRACE_US)
    assert env.records == [gap(3, 2)]


def test_all_messages_of_a_source_may_be_missing() -> None:
    gaps, _, env = process()
    gaps.on_heights(SOURCE, Heights(((SOURCE, 2),)))
    env.advance(2 * GRACE_US)
    assert env.records == [gap(3, 3)]


def test_what_two_say_is_believed() -> None:
    gaps, seen, env = process()
    seen.add(SOURCE, 0)
    gaps.on_heights(LIAR, Heights(((SOURCE, 2),)))
    gaps.on_heights(WITNESS, Heights(((SOURCE, 1),)))
    env.advance(2 * GRACE_US)
    assert env.records[0] == gap(2, 1)


def test_a_claim_is_believed_no_longer_than_until_the_source_says_something_else() -> None:
    gaps, seen, env = process()
    seen.add(SOURCE, 0)
    gaps.on_heights(LIAR, Heights(((SOURCE, 10**12),)))
    env.advance(3 * SECOND)
    asked = [sent for sent in env.sent(Heights) if sent.to == SOURCE]
    assert asked
    assert all(sent.msg.asks for sent in asked)  # type: ignore[attr-defined]
    gaps.on_heights(SOURCE, Heights(((SOURCE, 0),), answers=2))
    env.advance(60 * SECOND)
    assert env.records == []


def test_a_source_that_does_not_answer_may_be_gone_and_then_one_claim_will_do() -> None:
    gaps, seen, env = process()
    seen.add(SOURCE, 0)
    gaps.on_heights(WITNESS, Heights(((SOURCE, 1),)))
    env.advance(10 * SECOND)
    assert env.records == [gap(2, 1)]


# Lies about heads

FAR = 10**12
SEVERAL = (LIAR, WITNESS)  # one member can be both


def lie(gaps: Gaps, height: int = FAR, source: int = SOURCE) -> None:
    for teller in SEVERAL:
        gaps.on_heights(teller, Heights(((source, height),)))


def questions(env: RecordingEnv) -> list[Send]:
    return [sent for sent in env.sent(Heights) if sent.to == SOURCE and sent.msg.asks]  # type: ignore[attr-defined]


def test_before_claims_count_the_source_has_the_last_word() -> None:
    gaps, seen, env = process()
    seen.add(SOURCE, 0)
    lie(gaps)
    env.advance(GRACE_US + SECOND)
    assert questions(env) == [Send(SOURCE, Heights(((SOURCE, FAR),), asks=True))]
    gaps.on_heights(SOURCE, Heights(((SOURCE, 2),), answers=2))
    assert env.records == [gap(3, 2)], "these it has published"
    env.advance(60 * SECOND)
    assert len(env.records) == 1
    assert seen.add(SOURCE, 3)


def test_a_source_that_has_published_nothing_says_so() -> None:
    gaps, seen, env = process()
    lie(gaps)
    env.advance(GRACE_US + SECOND)
    gaps.on_heights(SOURCE, Heights((), answers=2))
    env.advance(60 * SECOND)
    assert env.records == []
    assert SOURCE not in seen.windows


def test_claims_about_a_source_that_says_something_else_do_not_hide_true_ones() -> None:
    gaps, seen, env = process()
    seen.add(SOURCE, 0)
    lie(gaps)
    env.advance(GRACE_US + SECOND)
    gaps.on_heights(SOURCE, Heights(((SOURCE, 0),), answers=2))
    lie(gaps, 4)
    env.advance(GRACE_US + SECOND)
    gaps.on_heights(SOURCE, Heights(((SOURCE, 4),), answers=2))
    assert env.records == [gap(5, 4)]


def test_a_source_that_could_not_be_reached_for_a_while_is_heard_again() -> None:
    gaps, seen, env = process()
    seen.add(SOURCE, 0)
    lie(gaps)
    env.advance(60 * SECOND)
    assert env.records == [gap(FAR + 1, FAR)]
    assert not seen.add(SOURCE, 5)
    assert len(questions(env)) > 1, "it is asked again"
    gaps.on_heights(SOURCE, Heights(((SOURCE, 7),), answers=2))
    assert not seen.add(SOURCE, 7), "that was told as lost, and it is"
    assert seen.add(SOURCE, 8)
    env.advance(60 * SECOND)
    assert len(env.records) == 1


def test_what_was_presumed_and_came_true_stays_done() -> None:
    gaps, seen, env = process()
    seen.add(SOURCE, 0)
    lie(gaps, 3)
    env.advance(60 * SECOND)
    assert env.records == [gap(4, 3)]
    assert seen.add(SOURCE, 4), "it did publish them, then"
    gaps.on_heights(SOURCE, Heights(((SOURCE, 2),), answers=2))
    assert not seen.add(SOURCE, 3)
    assert not seen.add(SOURCE, 4)


def test_a_source_that_does_not_answer_is_asked_ever_more_rarely() -> None:
    gaps, seen, env = process()
    seen.add(SOURCE, 0)
    lie(gaps)
    env.advance(1000 * SECOND)
    assert 5 < len(questions(env)) < 10


def test_invented_sources_fill_no_table() -> None:
    """Where the table of windows is full, true sources are not heard any more."""
    gaps, seen, env = process()
    for first in range(1000, 1000 + 3 * CLAIMS_MAX, 1000):
        for source in range(first, first + 1000):
            lie(gaps, source=source)
        env.advance(10 * SECOND)
        env.take()
    assert len(seen.windows) <= CLAIMS_MAX
    assert seen.add(SOURCE, 0)


def test_the_table_of_heads_is_bounded() -> None:
    gaps, _, _ = process()
    gaps.sources_max = 10
    for source in range(1000, 1100):
        lie(gaps, source=source)
    assert len(gaps.heads) == 10


def test_heads_are_told_while_there_is_news_and_then_no_more() -> None:
    _, seen, env = process(own=3)
    seen.add(SOURCE, 0)
    env.advance(8 * SECOND)
    told = [sent.msg.heads for sent in env.sent(Heights) if sent.msg.heads]  # type: ignore[attr-defined]
    assert len(told) == 10 * 3
    assert set(told[0]) == {(SOURCE, 0), (ME, 2)}
    env.take()
    env.advance(60 * SECOND)
    assert not [sent for sent in env.sent(Heights) if sent.msg.heads]  # type: ignore[attr-defined]
    assert len(env.effects) <= 8  # somebody is asked now and then


def test_a_checksum_is_answered_only_if_it_differs() -> None:
    one, seen, env = process()
    seen.add(SOURCE, 0)
    env.advance(8 * SECOND)
    asked = next(sent.msg for sent in env.sent(Heights) if sent.msg.asks)  # type: ignore[attr-defined]
    env.take()
    one.on_heights(2, asked)  # type: ignore[arg-type]
    assert env.effects == []
    seen.add(SOURCE, 1)
    one.on_heights(2, asked)  # type: ignore[arg-type]
    assert env.effects == [Send(2, Heights(((SOURCE, 1),), answers=2))]


def test_heads_of_many_sources_are_found_once_a_round_however_often_others_ask() -> None:
    one, seen, env = process(cap=1000)
    for source in range(100, 400):
        seen.add(source, 0)
    env.advance(8 * SECOND)
    env.take()
    one.on_heights(2, Heights((), asks=True))
    (before,) = env.take()
    for source in range(100, 400):
        seen.add(source, 1)
    one.on_heights(3, Heights((), asks=True))
    assert [sent.msg for sent in env.take()] == [before.msg]  # type: ignore[attr-defined]
    env.advance(SECOND)
    env.take()
    one.on_heights(3, Heights((), asks=True))
    (after,) = env.take()
    assert {height for _, height in after.msg.heads} == {1}  # type: ignore[attr-defined]


def test_a_newcomer_is_owed_what_is_above_the_heads_that_others_know() -> None:
    gaps, seen, env = process(first=False)
    env.advance(SECOND)
    gaps.on_heights(2, Heights(((SOURCE, 40),), answers=2))
    env.advance(2 * BEGIN_US)
    assert gaps.begun
    seen.add(SOURCE, 43)
    env.advance(2 * GRACE_US)
    assert env.records == [gap(43, 2)]


def test_a_newcomer_that_nobody_has_answered_misses_nothing() -> None:
    gaps, seen, env = process(first=False)
    env.advance(10 * BEGIN_US)
    assert not gaps.begun
    seen.add(SOURCE, 43)
    env.advance(2 * GRACE_US)
    assert env.records == []


def test_newcomers_alone_do_not_say_where_duty_begins_unless_nobody_else_is_there() -> None:
    gaps, _, env = process(first=False)
    env.advance(SECOND)
    gaps.on_heights(2, Heights((), answers=1))
    env.advance(2 * BEGIN_US)
    assert not gaps.begun
    gaps.on_heights(3, Heights(((SOURCE, 40),), answers=2))
    env.advance(SECOND)
    assert gaps.begun
    assert gaps.base == {SOURCE: 41}
    alone, _, env = process(first=False)
    alone.on_heights(2, Heights((), answers=1))
    env.advance(ALONE_US + SECOND)
    assert alone.begun


def test_of_a_source_that_nobody_had_heard_of_everything_is_owed() -> None:
    gaps, seen, env = process(first=False)
    env.advance(SECOND)
    gaps.on_heights(2, Heights((), answers=2))
    env.advance(2 * BEGIN_US)
    seen.add(SOURCE, 2)
    env.advance(2 * GRACE_US)
    assert env.records == [gap(2, 2)]


def test_a_process_that_stood_still_first_takes_what_waits_for_it() -> None:
    _, seen, env = process()
    for number in (0, 2):
        seen.add(SOURCE, number)
    env._now_us += 60 * SECOND  # no timer has fired
    env.advance(1)
    assert env.records == []
    seen.add(SOURCE, 1)
    env.advance(3 * GRACE_US)
    assert env.records == []


def test_holes_before_the_beginning_that_an_order_has_learned_are_no_gaps() -> None:
    gaps, seen, env = process()
    for number in (0, 3, 8):
        seen.add(SOURCE, number)
    gaps.owes_from(SOURCE, 5)
    gaps.owes_from(SOURCE, 7)  # another stream of the same source, later
    env.advance(3 * GRACE_US)
    assert env.records == [gap(8, 3)]
