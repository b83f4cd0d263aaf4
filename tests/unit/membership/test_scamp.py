"""One Scamp process: what it keeps, hands on, renews and tells when it leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from epicast.core.errors import ConfigError
from epicast.core.message import Position
from epicast.core.recording import Close, RecordingEnv, Send
from epicast.core.records import Kind
from epicast.membership.scamp import COPIES_MAX, Scamp, ScampConfig
from epicast.membership.scamp_messages import (
    Dropped,
    ForwardedSubscription,
    Heartbeat,
    Kept,
    Subscription,
    Unsubscription,
    Welcome,
)
from tests.support.neighbours import Ear, exchange

S = 1_000_000
JOINER = 50
COPY = ForwardedSubscription(JOINER, 9)


def scamp(
    me: int = 0, view: Iterable[int] = (), *, seed: int = 0, kind: type[Scamp] = Scamp, **settings: Any
) -> tuple[Scamp, RecordingEnv, Ear]:
    env, ear = RecordingEnv(me, seed), Ear()
    process = kind(env, ScampConfig(**settings))
    process.listener = ear
    for peer in view:
        process._add(peer)
    env.take()
    ear.notes.clear()
    return process, env, ear


def sends(env: RecordingEnv) -> list[Send]:
    return [effect for effect in env.take() if isinstance(effect, Send)]


def copies_sent(env: RecordingEnv) -> list[Send]:
    return [each for each in sends(env) if isinstance(each.msg, ForwardedSubscription)]


# Joining


def test_a_joiner_asks_its_contact_and_knows_it_once_it_answers() -> None:
    process, env, ear = scamp()
    process.start([7])
    assert sends(env) == [Send(7, Subscription())]
    assert process.peers() == [], "it may be gone"
    process.on_welcome(7, Welcome())
    assert process.peers() == [7]
    assert ear.notes == [("up", 7)]
    process.on_welcome(8, Welcome())
    assert process.peers() == [7], "whom nobody asked"


def test_the_second_process_ever_is_taken_in_by_the_first() -> None:
    """E-CLON-4: with an empty view there is nobody to send copies to."""
    process, env, _ = scamp()
    process.on_subscription(JOINER, Subscription())
    assert process.peers() == [JOINER]
    assert sends(env) == [Send(JOINER, Welcome()), Send(JOINER, Kept())]


@pytest.mark.parametrize("c", [0, 1, 6])
def test_a_subscription_makes_as_many_copies_as_the_view_has_members_and_c_more(c: int) -> None:
    process, env, _ = scamp(view=range(1, 6), copies=float(c))
    process.on_subscription(JOINER, Subscription())
    sent = copies_sent(env)
    assert len(sent) == 5 + c
    assert {each.msg for each in sent} == {ForwardedSubscription(JOINER, 48)}, "eight hops for each member and one more"
    assert all(Counter(each.to for each in sent)[peer] >= 1 for peer in range(1, 6)), "one to each member"


def test_a_part_of_a_copy_is_made_with_that_probability() -> None:
    process, env, _ = scamp(view=range(1, 6), copies=0.35)
    for _ in range(2000):
        process.on_subscription(JOINER, Subscription())
    assert len(copies_sent(env)) / 2000 == pytest.approx(5.35, abs=0.05)


def test_a_target_degree_takes_the_place_of_the_law() -> None:
    process, env, _ = scamp(view=range(1, 30), target_degree=9)
    process.on_subscription(JOINER, Subscription())
    assert len(copies_sent(env)) == 8


@pytest.mark.parametrize("size", [0, 1, 4, 9])
def test_a_copy_is_kept_with_one_over_view_plus_one(size: int) -> None:
    trials, kept = 6000, 0
    process, _env, _ = scamp(view=range(1, size + 1))
    for _ in range(trials):
        kept += process.accepts(COPY)
    share = 1 / (size + 1)
    assert kept / trials == pytest.approx(share, abs=4 * (share * (1 - share) / trials) ** 0.5 + 1e-9)
    assert process.peers() == list(range(1, size + 1))


class Printed(Scamp):
    """The printed test, floor(view + 1 * U)."""

    __slots__ = ()

    def accepts(self, msg: ForwardedSubscription) -> bool:
        return int(len(self.view) + 1 * self.env.rng.random()) == 0


def test_as_printed_nothing_would_ever_be_kept() -> None:
    """E-CLON-1."""
    printed, _, _ = scamp(view=(1, 2), kind=Printed)
    assert not any(printed.accepts(COPY) for _ in range(1000))
    corrected, _, _ = scamp(view=(1, 2))
    assert any(corrected.accepts(COPY) for _ in range(1000))


def test_who_keeps_a_copy_says_so_and_who_does_not_hands_it_on() -> None:
    outcomes: set[str] = set()
    for seed in range(40):
        process, env, ear = scamp(view=(1, 2), seed=seed)
        process.on_forwarded_subscription(9, ForwardedSubscription(JOINER, 5))
        sent = sends(env)
        if JOINER in process.view:
            assert sent == [Send(JOINER, Kept())]
            assert ear.notes == [("up", JOINER)]
            outcomes.add("kept")
        else:
            assert len(sent) == 1
            assert sent[0].to in (1, 2)
            assert sent[0].msg == ForwardedSubscription(JOINER, 4)
            outcomes.add("handed on")
    assert outcomes == {"kept", "handed on"}


@pytest.mark.parametrize(("subject", "view"), [(0, (1, 2)), (1, (1, 2))], ids=["itself", "a member"])
def test_nobody_keeps_itself_or_anyone_twice(subject: int, view: tuple[int, ...]) -> None:
    """E-CLON-3; nor does a copy go to the process that it is about."""
    process, env, _ = scamp(view=view)
    for _ in range(50):
        process.on_forwarded_subscription(9, ForwardedSubscription(subject, 3))
    assert process.peers() == list(view)
    assert all(each.to != subject for each in sends(env))


def test_a_copy_that_nobody_can_keep_ends() -> None:
    """E-CLON-3: where everybody knows the subject it would go round for ever."""
    process, env, _ = scamp(view=(1, 2))
    process.on_forwarded_subscription(9, ForwardedSubscription(1, 0))
    assert sends(env) == []
    assert [record.kind for record in env.records] == [Kind.NONSENSE]


def test_the_last_process_on_the_way_keeps_it_if_it_can() -> None:
    process, _, _ = scamp(view=range(1, 200))
    process.on_forwarded_subscription(9, ForwardedSubscription(JOINER + 1000, 0))
    assert JOINER + 1000 in process.view


def test_a_full_view_keeps_no_more() -> None:
    process, _env, _ = scamp(view=(1, 2), view_max=2)
    for _ in range(30):
        process.on_forwarded_subscription(9, ForwardedSubscription(JOINER, 3))
    process.on_forwarded_subscription(9, ForwardedSubscription(JOINER, 0))
    assert process.peers() == [1, 2]


# Contacts that do not answer


def test_a_contact_that_does_not_answer_is_given_up_for_another() -> None:
    process, env, ear = scamp(heartbeat_us=0, lease_us=0)
    process.start([7, 8])
    [first] = sends(env)
    env.advance(4 * S)
    assert sends(env) == [Send(15 - first.to, Subscription())]
    assert ear.notes == []


def test_a_contact_that_answers_stays() -> None:
    process, env, _ = scamp(heartbeat_us=0, lease_us=0)
    process.start([7, 8])
    [first] = sends(env)
    process.on_welcome(first.to, Welcome())
    env.advance(60 * S)
    assert sends(env) == []
    assert process.peers() == [first.to]


# Being known, and isolated


def test_whoever_hears_no_heartbeat_subscribes_again() -> None:
    process, env, _ = scamp(heartbeat_us=2 * S, isolated_us=7 * S, lease_us=0)
    process.start([7])
    process.on_welcome(7, Welcome())
    env.take()
    env.advance(6 * S)
    assert Subscription() not in [each.msg for each in sends(env)]
    env.advance(4 * S)
    assert Send(7, Subscription()) in sends(env)


def test_heartbeats_keep_it_calm_and_tell_who_knows_it() -> None:
    process, env, _ = scamp(heartbeat_us=2 * S, isolated_us=7 * S, lease_us=0)
    process.start([7])
    process.on_welcome(7, Welcome())
    env.take()
    for _ in range(10):
        env.advance(3 * S)
        process.on_heartbeat(7, Heartbeat())
    assert {each.msg for each in sends(env)} == {Heartbeat()}
    assert list(process.in_view) == [7]


def test_a_dead_neighbour_is_forgotten_and_the_last_one_makes_it_join_again() -> None:
    process, env, ear = scamp(view=(1,))
    process.meet(7)
    process.on_link_down(1)
    assert ear.notes == [("down", 1, "gone")]
    assert Send(7, Subscription()) in sends(env)


def test_whoever_loses_an_arc_with_the_other_end_asks_for_another_most_of_the_time() -> None:
    """A join brings c + 1 arcs more than an end takes, so that many are not replaced."""
    asked = 0
    for seed in range(400):
        process, env, _ = scamp(view=range(1, 11), seed=seed, copies=1.0)
        process.on_kept(99, Kept())
        process.on_link_down(99)
        asked += sum(isinstance(each.msg, Subscription) for each in sends(env))
    assert asked / 400 == pytest.approx(1 - 2 / 10, abs=0.08)


# Links that both ends use


def test_a_connection_stays_as_long_as_the_other_end_needs_it() -> None:
    process, env, _ = scamp(view=(1, 2))
    process.on_kept(1, Kept())
    env.take()
    process._remove(1, gone=False)
    process._remove(2, gone=False)
    assert [effect for effect in env.take() if isinstance(effect, Close)] == [Close(2)]


def test_symmetric_neighbours_are_those_known_and_those_who_know() -> None:
    process, _env, ear = scamp(view=(1,), symmetric=True)
    process.on_kept(1, Kept())
    process.on_kept(2, Kept())
    assert list(process.peers()) == [1, 2]
    process._remove(1, gone=False)
    assert list(process.peers()) == [1, 2]
    process.on_dropped(1, Dropped())
    process.on_link_down(2)
    assert ear.notes[:3] == [("up", 2), ("down", 1, "alive"), ("down", 2, "gone")]


def test_heartbeats_carry_news_of_flows_to_symmetric_neighbours() -> None:
    process, _env, ear = scamp(view=(1,), symmetric=True)
    news = (Position((9, 0), (9, 1)),)
    process.on_heartbeat(1, Heartbeat(news))
    assert ear.notes == [("heard", 1, news)]


# Leases


def test_an_entry_lasts_for_a_lease_give_or_take_a_quarter() -> None:
    process, env, _ = scamp(lease_us=40 * S, heartbeat_us=0)
    process.start([])
    process._add(1)
    env.advance(29 * S)
    assert process.peers() == [1]
    process._add(2)
    env.take()
    env.advance(29 * S)
    assert process.peers() == [2]
    assert Send(1, Dropped(ran_out=True)) in sends(env)


def test_the_last_entry_stays() -> None:
    process, env, _ = scamp(lease_us=40 * S, heartbeat_us=0)
    process.start([])
    process._add(1)
    env.advance(200 * S)
    assert process.peers() == [1]


def test_two_that_know_only_each_other_ask_somebody_from_long_ago() -> None:
    process, env, _ = scamp(lease_us=40 * S, heartbeat_us=0)
    process.start([])
    process._add(1)
    process.on_kept(1, Kept())
    process.meet(7)
    env.take()
    env.advance(60 * S)
    assert Send(7, Subscription(copies=1)) in sends(env)


def test_for_each_arc_that_ran_out_its_subject_asks_for_one_copy() -> None:
    process, env, _ = scamp(view=(1, 2))
    process.on_kept(11, Kept())
    env.take()
    process.on_dropped(11, Dropped(ran_out=True))
    [asked] = sends(env)
    assert asked.msg == Subscription(copies=1)
    process.on_dropped(11, Dropped(ran_out=True))
    assert sends(env) == [], "once"


def test_an_arc_that_a_tree_needs_is_kept() -> None:
    process, env, ear = scamp(lease_us=40 * S, heartbeat_us=0)
    ear.used = (1,)
    process.start([])
    process._add(1)
    process._add(2)
    env.advance(60 * S)
    assert 1 in process.view
    assert 2 not in process.view


# Leaving


def test_a_leaver_gives_most_of_those_who_know_it_somebody_in_its_place() -> None:
    process, env, _ = scamp(view=(1, 2), copies=1.0)
    for knower in (11, 12, 13, 14, 15):
        process.on_kept(knower, Kept())
    env.take()
    process.leave()
    told = [(each.to, each.msg.instead) for each in sends(env) if isinstance(each.msg, Unsubscription)]
    assert told == [(11, ((1, ""),)), (12, ((2, ""),)), (13, ((1, ""),)), (14, ()), (15, ())]
    assert process.peers() == []


def test_who_is_told_takes_the_other_in() -> None:
    process, env, ear = scamp(view=(1, 2))
    process.on_unsubscription(1, Unsubscription(((9, ""),)))
    assert process.peers() == [2, 9]
    assert ear.notes == [("down", 1, "gone"), ("up", 9)]
    assert sends(env) == [Send(9, Kept())]
    process.on_unsubscription(5, Unsubscription(((8, ""),)))
    assert process.peers() == [2, 9], "only in the place of somebody that was there"


def test_whoever_knew_only_the_leaver_turns_to_one_who_knows_it_or_subscribes_again() -> None:
    process, env, _ = scamp(view=(1,))
    process.on_kept(7, Kept())
    env.take()
    process.on_unsubscription(1, Unsubscription())
    assert sends(env) == [Send(7, Kept())]
    assert process.peers() == [7]
    process.meet(8)
    process.on_link_down(7)
    assert Send(8, Subscription()) in sends(env)


def test_three_processes_know_each_other_after_all_have_joined() -> None:
    processes = {me: scamp(me, seed=me, heartbeat_us=0, lease_us=0)[0] for me in range(3)}
    for me, process in processes.items():
        process.start([0] if me else [])
        exchange(processes)
    assert all(process.peers() and process.in_view for process in processes.values())


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="isolated_us: expected more than heartbeat_us"):
        ScampConfig.load({"heartbeat_us": "5s", "isolated_us": "5s"}, "x")


# Lies


def test_nobody_makes_many_copies_for_one_request() -> None:
    process, env, _ = scamp(view=range(1, 6), target_degree=9)
    process.on_subscription(JOINER, Subscription("", 4096))
    assert len(copies_sent(env)) == COPIES_MAX


def test_a_copy_has_no_more_hops_left_than_ours_have_whatever_its_sender_says() -> None:
    process, env, _ = scamp(view=range(1, 200), hops_max=16)
    process.on_forwarded_subscription(1, ForwardedSubscription(JOINER, 1024))
    assert [each.msg.hops_left for each in copies_sent(env)] == [15]  # type: ignore[attr-defined]
