"""Measuring round trips: one question to each, an answer for everyone who waits, bounds on both."""

from __future__ import annotations

from epicast.core.recording import RecordingEnv, Send
from epicast.membership.round_trips import AT_ONE_MAX, REMEMBERED_MAX, WAITING_MAX, Probe, ProbeReply, RoundTrips

S = 1_000_000


def test_everybody_who_waits_is_told_and_later_ones_at_once() -> None:
    env, told = RecordingEnv(), list[int | None]()
    trips = RoundTrips(env, S)
    trips.measure(7, told.append)
    trips.measure(7, told.append)
    assert env.take() == [Send(7, Probe(0))]
    env.advance(30_000)
    trips.on_reply(7, ProbeReply(0))
    trips.measure(7, told.append)
    assert told == [30_000] * 3
    assert env.take() == []


def test_silence_is_an_answer_too() -> None:
    env, told = RecordingEnv(), list[int | None]()
    trips = RoundTrips(env, S)
    trips.measure(7, told.append)
    env.advance(2 * S)
    assert told == [None]
    trips.on_reply(7, ProbeReply(0))
    assert trips.known == {}, "too late"


def test_an_answer_to_another_question_says_nothing() -> None:
    env, told = RecordingEnv(), list[int | None]()
    env.advance(S)
    trips = RoundTrips(env, S)
    trips.measure(7, told.append)
    trips.on_reply(7, ProbeReply(5))
    trips.on_reply(8, ProbeReply(S))
    assert told == []


def test_what_is_kept_is_bounded() -> None:
    env, told = RecordingEnv(), list[int | None]()
    trips = RoundTrips(env, S)
    for peer in range(WAITING_MAX + 10):
        trips.measure(peer, told.append)
    assert told == [None] * 10
    for _ in range(2 * AT_ONE_MAX):
        trips.measure(0, told.append)
    trips.on_reply(0, ProbeReply(0))
    assert len(told) == 10 + AT_ONE_MAX
    for peer in range(2 * REMEMBERED_MAX):
        trips.measure(peer, told.append)
        trips.on_reply(peer, ProbeReply(0))
    assert len(trips.known) == REMEMBERED_MAX
