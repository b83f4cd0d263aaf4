"""Pulling, eager, lazy and both ways: what is told, offered, asked for and sent."""

from __future__ import annotations

from typing import Any

import pytest

from epicast.core.message import HOPS_MAX
from epicast.core.recording import Send
from epicast.dissemination.anti_entropy import SLACK_US, Copy, Digest, Pull, Want
from epicast.dissemination.gossip import Gossip
from epicast.dissemination.requests import IHave
from tests.support.neighbours import exchange
from tests.unit.dissemination.test_gossip import HUGE, gossip, rumor

S = 1_000_000
LONG = 100 * S


def holding(*seqs: int, **settings: Any) -> tuple[Gossip, Any, Any]:
    """It got these from somebody, and what it did about it is forgotten. One every ten milliseconds."""
    process, env, got = gossip(**{"pull": "exchange", "push": "none", **settings})
    for seq in seqs:
        process.on_rumor(1, rumor(seq))
        env.advance(10_000)
    env.take()
    got.clear()
    return process, env, got


def copy(seq: int, hops: int = 2) -> Copy:
    return Copy(9, seq, hops, "t", b"x")


# Asking


@pytest.mark.parametrize(
    ("pull", "eager", "mutual"), [("eager", True, False), ("lazy", False, False), ("exchange", False, True)]
)
def test_every_period_one_neighbour_is_told_what_we_have(pull: str, eager: bool, mutual: bool) -> None:
    process, env, _ = holding(0, 1, 2, pull=pull, pull_interval_us=S)
    process.start()
    env.advance(S)
    (sent,) = env.effects
    assert sent.to in (1, 2, 3)
    assert sent.msg.have == ((9, 0, 2),)
    assert (sent.msg.eager, sent.msg.mutual) == (eager, mutual)
    env.take()
    env.advance(10 * S)
    assert len(env.effects) == 10


def test_all_neighbours_get_their_turn() -> None:
    process, env, _ = holding(pull_interval_us=1000)
    process.start()
    env.advance(100_000)
    assert {sent.to for sent in env.effects} == {1, 2, 3}


def test_who_is_alone_asks_nobody() -> None:
    process, env, _ = gossip(peers=(), pull="exchange")
    process.start()
    env.advance(10 * S)
    assert env.effects == []


def test_the_age_is_how_long_we_have_been_there_and_some_more() -> None:
    process, env, _ = holding(pull_interval_us=S)
    process.start()
    env.advance(S)
    (sent,) = env.effects
    at_us = sent.msg.age_us - SLACK_US
    assert 0 < at_us <= S


def test_what_is_told_are_spans_of_numbers_and_ones_own_too() -> None:
    process, _, _ = holding(0, 1, 2, 5, 6, 9)
    process.broadcast("t", b"x")
    assert process._told() == ((9, 0, 2), (9, 5, 6), (9, 9, 9), (0, 0, 0))


def test_a_source_met_in_mid_stream_is_told_from_where_we_began() -> None:
    process, _, _ = holding(5, 6, 3)
    assert process._told() == ((9, 3, 3), (9, 5, 6))


def test_what_is_told_is_bounded_and_the_sources_heard_last_come_first() -> None:
    process, env, _ = gossip(pull="exchange", push="none", digest_max=3)
    for source in (5, 6, 7, 8, 9):
        process.on_rumor(1, rumor(source=source))
    assert process._told() == ((9, 0, 0), (8, 0, 0), (7, 0, 0))
    assert env.effects == []


def test_what_came_lately_is_neither_offered_nor_to_be_asked_for() -> None:
    process, env, _ = holding(0, 1, 2, grace_us=15_000)  # at 0, 10 and 20 ms; now it is 30 ms
    process._on_pull_due()
    (sent,) = env.take()
    assert (sent.msg.have, sent.msg.young) == (((9, 0, 2),), ((9, 2, 2),))
    process.on_pull(2, Pull((), LONG))
    assert env.take() == [Send(2, Digest(((9, 0, 1),)))]
    env.advance(15_000)
    process.on_pull(2, Pull((), LONG))
    assert env.effects == [Send(2, Digest(((9, 0, 2),)))]


def test_what_may_be_on_its_way_to_us_is_not_asked_for() -> None:
    process, env, _ = holding(0)
    process.on_pull(2, Pull(((9, 0, 5),), LONG, mutual=True, young=((9, 4, 5),)))
    assert env.effects == [Send(2, Want(((9, 1, 3),)))]


# Being asked


def test_where_nothing_lacks_a_pull_is_answered_with_silence() -> None:
    process, env, _ = holding(0, 1, 2)
    process.on_pull(2, Pull(((9, 0, 2),), LONG, eager=False, mutual=True))
    process.on_pull(2, Pull(((9, 0, 2),), LONG, eager=True, mutual=False))
    assert env.effects == []


def test_eagerly_the_payloads_that_lack_are_sent() -> None:
    process, env, _ = holding(0, 1, 2, 3)
    process.on_pull(2, Pull(((9, 0, 0), (9, 2, 2)), LONG, eager=True))
    assert env.effects == [Send(2, copy(1)), Send(2, copy(3))]


def test_lazily_a_digest_is_sent_and_then_what_is_wanted_of_it() -> None:
    process, env, _ = holding(0, 1, 2, 3)
    process.on_pull(2, Pull(((9, 0, 0),), LONG))
    assert env.take() == [Send(2, Digest(((9, 1, 3),)))]
    process.on_want(2, Want(((9, 2, 3),)))
    assert env.effects == [Send(2, copy(2)), Send(2, copy(3))]


def test_both_ways_the_one_that_is_asked_asks_for_what_it_lacks() -> None:
    process, env, _ = holding(0, 1)
    process.on_pull(2, Pull(((9, 1, 4), (0, 0, 7)), LONG, mutual=True))
    assert env.effects == [
        Send(2, Digest(((9, 0, 0),))),
        Send(2, Want(((9, 2, 4),))),
    ], "of its own events it lacks none"


def test_who_is_asked_asks_for_nothing_from_before_it_began() -> None:
    """Nobody has said how old that is: its own pulls will tell."""
    process, env, _ = holding(5)
    process.on_pull(2, Pull(((9, 0, 7), (8, 0, 2)), LONG, mutual=True))
    assert env.effects == [Send(2, Want(((9, 6, 7),)))]


def test_of_a_digest_only_what_lacks_is_asked_for() -> None:
    process, env, _ = holding(0, 1, 4)
    process.on_digest(2, Digest(((9, 0, 6),)))
    assert env.take() == [Send(2, Want(((9, 2, 3), (9, 5, 6))))]
    process.on_digest(2, Digest(((9, 0, 1), (9, 4, 4))))
    assert env.effects == []


def test_numbers_below_where_we_began_are_asked_for_too() -> None:
    process, env, _ = holding(5, 3)
    process.on_digest(2, Digest(((9, 2, 6),)))
    assert env.effects == [Send(2, Want(((9, 2, 2), (9, 4, 4), (9, 6, 6))))]


def test_a_newcomer_gets_nothing_from_before_its_time() -> None:
    process, env, _ = holding(0, 1, 2, 3)  # at 0, 10, 20 and 30 ms; now it is 40 ms
    process.on_pull(2, Pull((), 15_000))
    assert env.effects == [Send(2, Digest(((9, 3, 3),)))]


def test_a_copy_is_delivered_kept_and_not_pushed_on() -> None:
    process, env, got = holding(push="eager")
    assert process.on_copy(2, copy(0)) is False
    assert got == [(9, 0, 2, 2)]
    assert env.effects == []
    assert process.on_copy(3, copy(0)) is True
    assert env.effects == []
    process.on_want(3, Want(((9, 0, 0),)))
    assert env.effects == [Send(3, copy(0, hops=3))]
    assert len(got) == 1


def test_what_is_pushed_to_us_goes_on_though_a_relay_said_it_was_pulled() -> None:
    process, env, got = holding(push="eager")
    process.on_copy(2, copy(0))
    assert process.on_rumor(3, rumor(0)) is True
    assert env.effects == [Send(1, rumor(0, hops=2)), Send(2, rumor(0, hops=2))]
    env.take()
    assert process.on_rumor(1, rumor(0)) is True
    assert env.effects == [], "once"
    assert len(got) == 1


def test_a_copy_of_what_was_asked_for_elsewhere_ends_the_asking() -> None:
    process, env, _ = holding(push="lazy")
    process.on_i_have(3, IHave(9, 0))
    process.on_copy(2, copy(0))
    env.take()
    env.advance(10 * S)
    assert env.effects == []


# Bounds


def test_one_request_is_answered_with_so_many_payloads_at_most() -> None:
    process, env, _ = holding(*range(20), answers_max=3)
    process.on_want(2, Want(((9, 0, HUGE),)))
    process.on_pull(2, Pull((), LONG, eager=True))
    assert env.effects == [Send(2, copy(seq)) for seq in (0, 1, 2)] * 2


def test_what_is_asked_for_and_offered_is_bounded() -> None:
    process, env, _ = holding(*range(0, 40, 2), digest_max=4)
    process.on_digest(2, Digest(((9, 0, HUGE),)))
    process.on_pull(2, Pull((), LONG))
    (want, digest) = env.effects
    assert len(want.msg.wanted) == len(digest.msg.have) == 4


def test_wants_of_nonsense_are_answered_with_silence() -> None:
    process, env, got = holding(0)
    process.on_want(2, Want(((9, 5, 2), (7, 0, HUGE), (0, 0, HUGE), (9, 1, HUGE))))
    process.on_digest(2, Digest(((9, 5, 2), (0, 0, HUGE))))
    assert env.effects == []
    assert got == []


def test_hops_of_copies_do_not_grow_beyond_what_a_message_can_carry() -> None:
    process, env, _ = holding()
    process.on_copy(1, copy(0, hops=HOPS_MAX))
    process.on_want(2, Want(((9, 0, 0),)))
    assert env.effects == [Send(2, copy(0, hops=HOPS_MAX))]


# Two of them


@pytest.mark.parametrize("grace_us", [0, 5_000])
@pytest.mark.parametrize("pull", ["eager", "lazy", "exchange"])
def test_who_asks_has_everything_afterwards(pull: str, grace_us: int) -> None:
    """And with an exchange, who was asked, but for the other's own events: it had heard of none."""
    settings = {"push": "none", "pull": pull, "grace_us": grace_us, "pull_interval_us": S}
    (a, env_a, got_a), (b, env_b, got_b) = gossip(1, (2,), **settings), gossip(2, (1,), **settings)
    for seq in range(10):
        a.on_rumor(3, rumor(seq, source=8)) if seq % 2 else b.on_rumor(3, rumor(seq, source=8))
        (a if seq % 3 else b).broadcast("t", b"x")
    for env in (env_a, env_b):
        env.advance(10_000)
        env.take()
    a._on_pull_due()
    exchange({1: a, 2: b})
    everything = {(8, seq) for seq in range(10)} | {(1, seq) for seq in range(6)} | {(2, seq) for seq in range(4)}
    assert {(source, seq) for source, seq, *_ in got_a} == everything
    assert len(got_a) == 20
    assert ({(8, seq) for seq in range(10)} <= {(source, seq) for source, seq, *_ in got_b}) == (pull == "exchange")
    b._on_pull_due()
    exchange({1: a, 2: b})
    assert {(source, seq) for source, seq, *_ in got_b} == everything
    a._on_pull_due()
    (sent,) = env_a.take()
    b.on_pull(1, sent.msg)
    assert env_b.effects == [], "nothing lacks any more"
