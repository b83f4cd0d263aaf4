"""What one process does with balls: E-I4, E-I6, E-I11 and the errata E-E1, E-E2, E-E6, E-E9, E-E14."""

from itertools import pairwise
from typing import Any

import pytest

from epicast.core.errors import EpicastError
from epicast.core.ids import NOBODY
from epicast.core.message import Event
from epicast.core.ordered import Ordered
from epicast.core.recording import Record, RecordingEnv, Send
from epicast.core.records import Kind
from epicast.dissemination.ball_keys import make_key, timestamp_of
from epicast.dissemination.ball_messages import Ball, Heads
from epicast.dissemination.balls import Balls, BallsConfig
from tests.support.neighbours import Members

Levels = list[tuple[int, dict[bytes, tuple[str, bytes]]]]


def balls(me: int = 0, peers: tuple[int, ...] = (1, 2, 3), **settings: Any) -> tuple[Balls, RecordingEnv, list[Any]]:
    env, got = RecordingEnv(me), []

    def deliver(event: Event, sender: int) -> None:
        got.append((event, sender))

    given = {"rounds": 3, "fanout": 2, **settings}
    return Balls(env, BallsConfig(**given), Members(peers), deliver), env, got


def event(ts: int, source: int, seq: int = 0, payload: bytes = b"x") -> dict[bytes, tuple[str, bytes]]:
    return {make_key(ts, source, seq): ("t", payload)}


def ball(*levels: tuple[int, dict[bytes, tuple[str, bytes]]], clock: int = 9) -> Ball:
    return Ball(clock, levels)


def thrown(env: RecordingEnv) -> list[Ball]:
    """The balls of a round, one for each message."""
    found: dict[int, Ball] = {id(sent.msg): sent.msg for sent in env.sent(Ball)}  # type: ignore[misc]
    return list(found.values())


def test_a_publication_waits_for_the_end_of_the_round_and_has_one_round_behind_it_then() -> None:
    process, env, got = balls()
    assert process.broadcast("t", b"x") == (0, 0)
    assert env.effects == []
    process.end_round()
    (only,) = thrown(env)
    assert only.levels == ((1, event(1, 0)),)
    assert got == [(Ordered(0, 0, "t", 0, b"x"), NOBODY)]
    assert env.records == [Record(Kind.PUBLISH, 0, 0, 0, 0, "t", "1")]


def test_a_ball_goes_to_as_many_different_others_as_the_fanout_says_or_to_all_there_are() -> None:
    """E-I11."""
    for fanout, wanted in ((1, 1), (2, 2), (3, 3), (9, 3)):
        process, env, _ = balls(fanout=fanout)
        process.broadcast("t", b"x")
        process.end_round()
        receivers = [sent.to for sent in env.sent(Ball)]
        assert len(receivers) == len(set(receivers)) == wanted
        assert 0 not in receivers


def test_events_are_kept_while_there_is_nobody_to_throw_them_at_but_no_longer_than_ttl() -> None:
    process, env, got = balls(peers=())
    process.broadcast("t", b"x")
    process.end_round()
    assert thrown(env) == []
    process.members.view = [1]  # type: ignore[attr-defined]
    process.end_round()
    assert [only.levels for only in thrown(env)] == [((2, event(1, 0)),)]
    lonely, env, _ = balls(peers=())
    lonely.broadcast("t", b"x")
    for _ in range(4):
        lonely.end_round()
    lonely.members.view = [1]  # type: ignore[attr-defined]
    lonely.end_round()
    assert thrown(env) == []
    assert len(got) == 1


def test_a_few_processes_throw_for_more_rounds_than_the_logarithm_of_their_number() -> None:
    few, _, _ = balls(rounds=0)
    assert few.ttl == 7
    many, _, _ = balls(rounds=0, peers=tuple(range(1, 1000)))
    assert many.ttl == 13  # 1.25 lg 1000
    told, _, _ = balls(rounds=2)
    assert told.ttl == 2


def test_an_event_is_thrown_on_once_for_each_round_in_which_it_came() -> None:
    process, env, _ = balls()
    process.on_ball(1, ball((1, event(5, 7))))
    process.on_ball(2, ball((1, event(5, 7))))
    process.end_round()
    assert [only.levels for only in thrown(env)] == [((2, event(5, 7)),)]
    env.take()
    process.end_round()
    assert env.sent(Ball) == []


def test_of_an_event_that_comes_with_two_counts_the_higher_is_kept() -> None:
    """E-E1: whichever came first."""
    for first, second in ((1, 2), (2, 1)):
        process, env, _ = balls()
        process.on_ball(1, ball((first, event(5, 7))))
        process.on_ball(2, ball((second, event(5, 7))))
        process.end_round()
        assert [only.levels for only in thrown(env)] == [((3, event(5, 7)),)]


@pytest.mark.parametrize(("go_on", "thrown_on"), [(False, []), (True, [((3, event(5, 7)),)])])
def test_a_slow_copy_goes_on_after_the_fastest_has_ended_only_if_told_so(go_on: bool, thrown_on: Levels) -> None:
    process, env, _ = balls(rounds=3, go_on=go_on, everybody_throws=False)
    rounds: list[Levels] = []
    process.on_round = rounds.append
    process.on_ball(1, ball((3, event(5, 7))))
    process.on_ball(2, ball((2, event(5, 7))))
    process.end_round()
    assert [only.levels for only in thrown(env)] == thrown_on
    assert {count for count, _ in rounds[0]} == {3}


def test_an_event_with_all_rounds_behind_it_goes_no_farther() -> None:
    """E-I4."""
    process, env, got = balls(rounds=3, everybody_throws=False)
    process.on_ball(1, ball((3, event(5, 7))))
    process.end_round()
    assert env.sent(Ball) == []
    assert [source.source for source, _ in got] == [7]


@pytest.mark.parametrize("ordered", [False, True])
def test_what_is_new_is_thrown_once_even_with_all_rounds_behind_it(ordered: bool) -> None:
    """E-E15: where rounds follow each other quickly, an event has them behind it before most have thrown it."""
    process, env, _ = balls(rounds=3)
    if ordered:
        process.on_round = lambda levels: None
    process.on_ball(1, ball((3, event(5, 7))))
    process.end_round()
    assert [only.levels for only in thrown(env)] == [((3, event(5, 7)),)]
    env.take()
    process.on_ball(2, ball((3, event(5, 7))))
    process.end_round()
    assert thrown(env) == []


@pytest.mark.parametrize(("as_printed", "seen"), [(False, [(3, event(5, 7))]), (True, [])])
def test_the_ordering_gets_what_goes_no_farther_unless_as_printed(as_printed: bool, seen: Levels) -> None:
    """E-E6."""
    process, _, _ = balls(rounds=3, as_printed=as_printed)
    rounds: list[Levels] = []
    process.on_round = rounds.append
    process.on_ball(1, ball((3, event(5, 7))))
    process.end_round()
    assert rounds == [seen]


def test_the_ordering_is_called_in_every_round() -> None:
    """E-E3."""
    process, _, _ = balls()
    rounds: list[Levels] = []
    process.on_round = rounds.append
    process.end_round()
    process.broadcast("t", b"x")
    process.end_round()
    process.end_round()
    assert rounds == [[], [(1, event(1, 0))], []]


def test_a_ball_that_was_thrown_is_never_changed() -> None:
    """E-E9: neither by the sender's later rounds nor by a receiver."""
    sender, env, _ = balls(me=1)
    receiver, _, _ = balls(me=2)
    sender.broadcast("t", b"x")
    sender.end_round()
    (sent,) = thrown(env)
    before = [(ttl, dict(level)) for ttl, level in sent.levels]
    receiver.on_ball(1, sent)
    receiver.on_ball(3, ball((1, event(2, 3))))
    sender.on_ball(3, ball((1, event(2, 3))))
    sender.broadcast("t", b"y")
    for process in (sender, receiver):
        process.end_round()
    assert [(ttl, dict(level)) for ttl, level in sent.levels] == before


def test_the_clock_sees_all_that_comes_whether_or_not_it_is_thrown_on() -> None:
    """E-E2, E-I6."""
    process, env, _ = balls(rounds=2, everybody_throws=False)
    process.on_ball(1, ball((2, event(40, 7)), clock=50))
    process.broadcast("t", b"x")
    process.end_round()
    assert [only.levels for only in thrown(env)] == [((1, event(51, 0)),)]


def test_two_publications_never_have_the_same_time() -> None:
    """E-E8, with a clock that stands still."""
    process, env, _ = balls(clock="global")
    env.advance(1000)
    for _ in range(3):
        process.broadcast("t", b"x")
    process.end_round()
    (only,) = thrown(env)
    assert list(only.levels[0][1]) == [make_key(1000 + seq, 0, seq) for seq in range(3)]


def times(env: RecordingEnv) -> list[int]:
    """Of the events in the balls of the last round."""
    return [timestamp_of(key) for each in thrown(env) for _, level in each.levels for key in level]


def test_a_global_clock_never_falls_behind_what_it_gave_even_if_the_calendar_is_set_back() -> None:
    process, env, _ = balls(clock="global")
    env.skew_us = 5_000_000
    process.broadcast("t", b"x")
    env.skew_us = -5_000_000
    process.broadcast("t", b"y")
    process.end_round()
    assert times(env) == [5_000_000, 5_000_001]


def told(process: Balls, *times_us: int) -> None:
    for teller, time_us in enumerate(times_us, 1):
        process.on_heads(teller, Heads(0, process.heads.marks, time_us))


def published_at(process: Balls, env: RecordingEnv) -> int:
    process.broadcast("t", b"x")
    process.end_round()
    return times(env)[-1]


@pytest.mark.parametrize("jump_s", [3600, 2, -2, -3600])
def test_a_calendar_that_jumps_is_not_believed(jump_s: int) -> None:
    """Nobody else would take what comes from the future, and what comes from the past is late."""
    process, env, _ = balls(clock="global")
    env.skew_us = 10_000_000_000
    env.advance(1_000_000)
    told(process, env.calendar_us(), env.calendar_us() - 2_000)
    env.skew_us += jump_s * 1_000_000
    env.advance(5_000_000)
    assert 10_006_000_000 - 2_000 <= published_at(process, env) <= 10_006_000_000


def test_a_calendar_that_is_near_what_others_tell_is_believed() -> None:
    process, env, _ = balls(clock="global")
    env.advance(1_000_000)
    told(process, 100_000, 600_000, 1_900_000)
    assert published_at(process, env) == 1_000_000


@pytest.mark.parametrize("wrong_us", [9_000_000_000, -9_000_000_000])
def test_who_has_a_wrong_calendar_misleads_nobody(wrong_us: int) -> None:
    """Nor do many readings of one process count for more than one."""
    process, env, _ = balls(clock="global")
    env.advance(20_000_000_000)
    told(process, env.now_us(), *[env.now_us()] * 2)
    for _ in range(50):
        process.on_heads(9, Heads(0, process.heads.marks, env.now_us() + wrong_us))
    assert published_at(process, env) == 20_000_000_000


def test_two_that_differ_agree_on_the_earlier_time() -> None:
    """Whatever is given is above all that was given before, so that nothing is set back."""
    process, env, _ = balls(clock="global")
    env.advance(9_000_000_000)
    assert published_at(process, env) == 9_000_000_000
    told(process, 5_000_000_000)
    assert process.clock.reading() == 5_000_000_000
    assert published_at(process, env) == 9_000_000_001


@pytest.mark.parametrize("theirs_us", [9_000_000_000, 5_000_000_000])
def test_a_process_whose_calendar_is_wrong_from_the_start_takes_the_time_of_others(theirs_us: int) -> None:
    process, env, _ = balls(clock="global")
    env.skew_us = 7_000_000_000
    process.on_ball(1, ball((1, event(4, 7)), clock=4))
    assert not process.has_room(), "the last event says nothing about what time it is now"
    told(process, theirs_us)
    assert process.has_room()
    env.advance(2_000_000)
    assert published_at(process, env) == theirs_us + 2_000_000
    env.skew_us += theirs_us - 7_000_000_000 + 100  # somebody sets it right
    assert published_at(process, env) == theirs_us + 2_000_100


def test_a_newcomer_has_no_room_before_it_has_heard_what_time_it_is() -> None:
    """E-E14."""
    process, _, _ = balls()
    assert not process.has_room()
    process.on_heads(1, Heads(0, process.heads.marks, 70))
    assert process.has_room()
    assert process.clock.take() == 71


def test_who_is_alone_may_publish() -> None:
    assert balls(peers=())[0].has_room()


def test_without_an_order_above_an_event_is_delivered_as_it_comes_and_once() -> None:
    process, _, got = balls()
    both = {**event(5, 7), **event(3, 8)}
    process.on_ball(2, ball((1, both)))
    process.on_ball(1, ball((2, both)))
    process.end_round()
    process.on_ball(1, ball((3, both)))
    assert got == [(Ordered(8, 0, "t", 1, b"x"), 2), (Ordered(7, 0, "t", 1, b"x"), 2)]


def test_many_events_are_spread_over_several_messages() -> None:
    process, env, _ = balls(frame_events_max=4, fanout=1)
    for _ in range(10):
        process.broadcast("t", b"x")
    process.end_round()
    assert [sum(len(level) for _, level in each.levels) for each in thrown(env)] == [4, 4, 2]
    together = {key for each in thrown(env) for _, level in each.levels for key in level}
    assert together == {make_key(1 + seq, 0, seq) for seq in range(10)}


def test_large_events_are_spread_over_several_messages() -> None:
    process, env, _ = balls(frame_bytes_max=100, fanout=1)
    for size in (60, 60, 30, 200, 1):
        process.broadcast("t", bytes(size))
    process.end_round()
    sizes = [[len(entry[1]) for _, level in each.levels for entry in level.values()] for each in thrown(env)]
    assert sizes == [[60], [60, 30], [200], [1]]


def test_publishers_wait_when_there_is_much_to_carry_and_go_on_after_the_round() -> None:
    process, _, _ = balls(peers=(1,), round_events_max=32)
    process.met = True
    for _ in range(4):
        assert process.has_room()
        process.broadcast("t", b"x")
    assert not process.has_room()
    process.end_round()
    assert not process.has_room()  # they are under way
    process.end_round()
    assert process.has_room()


def test_publishers_wait_when_the_last_ball_was_large() -> None:
    process, _, _ = balls(round_bytes_max=100)
    process.met = True
    process.broadcast("t", bytes(50))
    process.end_round()
    assert not process.has_room()
    process.end_round()
    assert process.has_room()


def test_nobody_can_fill_our_memory_within_a_round() -> None:
    process, env, _ = balls(round_events_max=3)
    for start in range(0, 40, 8):
        process.on_ball(1, ball((1, {make_key(5, 7, seq): ("t", b"") for seq in range(start, start + 8)})))
    process.end_round()
    (only,) = thrown(env)
    assert len(only.levels[0][1]) == 16
    assert env.records.count(Record(Kind.NONSENSE, 1, detail="more events in a round than round_events_max")) == 3


@pytest.mark.parametrize(
    "key",
    [
        make_key(5, 0, 3),  # in our name
        make_key(90, 7, 0),  # later than the ball says it is
        b"\xff" * 25,
        make_key(5, "somebody", 0),  # ids of this run are numbers
        make_key(5, 7, 0) + b"\x00",
    ],
    ids=["ours", "future", "junk", "text", "too long"],
)
def test_nonsense_in_a_ball_goes_no_farther(key: bytes) -> None:
    process, env, got = balls()
    process.on_ball(1, ball((1, {key: ("t", b"x"), **event(5, 8)}), clock=50))
    process.end_round()
    assert [only.levels for only in thrown(env)] == [((2, event(5, 8)),)]
    assert [each.source for each, _ in got] == [8]
    assert env.records == [Record(Kind.NONSENSE, detail="an event that nobody can have published")]


def test_a_clock_far_in_the_future_is_not_believed() -> None:
    process, env, got = balls()
    process.on_ball(1, ball((1, event(1 << 61, 7)), clock=1 << 61))
    process.on_heads(1, Heads(0, process.heads.marks, 1 << 61))
    assert process.clock.take() == 1
    assert got == []
    assert env.records == [Record(Kind.NONSENSE, 1, detail="a clock far in the future")]


def test_who_leaves_throws_what_it_has_published_and_nothing_more() -> None:
    process, env, _ = balls()
    process.start()
    process.broadcast("t", b"x")
    process.leave()
    assert [only.levels for only in thrown(env)] == [((1, event(1, 0)),)]
    env.take()
    env.advance(10_000_000)
    assert env.effects == []
    with pytest.raises(EpicastError, match="leaving"):
        process.broadcast("t", b"y")


def test_rounds_have_their_period_and_drift_around_it() -> None:
    for drift, shortest, longest in ((0.0, 100_000, 100_000), (0.2, 80_000, 120_000)):
        process, env, _ = balls(period_us=100_000, drift=drift)
        times: list[int] = []
        process.on_round = lambda levels, times=times, env=env: times.append(env.now_us())  # type: ignore[misc]
        process.start()
        env.advance(20_000_000)
        lengths = [b - a for a, b in pairwise(times)]
        assert shortest <= min(lengths) <= max(lengths) <= longest
        assert (len(set(lengths)) > 50) == (drift > 0)


def test_a_drift_above_one_makes_some_rounds_as_short_as_can_be() -> None:
    """EP-5."""
    process, env, _ = balls(period_us=100_000, drift=3.0)
    times: list[int] = []
    process.on_round = lambda levels: times.append(env.now_us())
    process.start()
    env.advance(10_000_000)
    lengths = [b - a for a, b in pairwise(times)]
    assert min(lengths) == 1
    assert 300_000 < max(lengths) <= 400_000


def test_effects_are_balls_and_counts_alone() -> None:
    process, env, _ = balls()
    process.start()
    process.broadcast("t", b"x")
    env.advance(3_000_000)
    assert {type(sent.msg) for sent in env.effects if isinstance(sent, Send)} == {Ball, Heads}
    assert all(isinstance(effect, Send) for effect in env.effects)


def test_an_event_is_delivered_once_although_it_comes_again_after_a_minute() -> None:
    """A process that stood still throws the balls of its time when it wakes."""
    process, env, got = balls()
    old = event(5, 7, 0) | event(6, 7, 1)
    process.on_ball(1, ball((1, old)))
    for _ in range(3):
        env.advance(60_000_000)
        process.end_round()
    process.on_ball(1, ball((1, dict(old))))
    process.end_round()
    assert [(each.source, each.seq) for each, _ in got] == [(7, 0), (7, 1)]
