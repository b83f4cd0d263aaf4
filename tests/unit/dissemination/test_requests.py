"""Whom a process asks for what was advertised to it, when, and whom next."""

from __future__ import annotations

from typing import Any

import pytest

from epicast.core.ids import NodeId
from epicast.core.recording import RecordingEnv, Send
from epicast.dissemination.requests import PROMISES_MAX, DontHave, Fetching, IWant, Requests, RequestsConfig

KEY, OTHER = (9, 0), (9, 1)
TIMEOUT, PATIENCE = 100, 1_000
PROMISE = 2 * TIMEOUT
AREA = (21, 22, 23)


def requests(scheduler: str, area: tuple[int, ...] = AREA, **settings: Any) -> tuple[Requests, RecordingEnv]:
    env = RecordingEnv(0)
    config = RequestsConfig(scheduler=scheduler, request_timeout_us=TIMEOUT, **settings)

    def near(but: NodeId) -> list[NodeId]:
        return [peer for peer in area if peer != but]

    return Requests(env, config, PATIENCE, near), env


def wants(*peers: int, key: tuple[int, int] = KEY, distance: int = 0) -> list[Send]:
    return [Send(peer, IWant(*key, distance)) for peer in peers]


def asked(env: RecordingEnv) -> list[NodeId]:
    """In turn, since the last call."""
    return [sent.to for sent in env.take() if isinstance(sent, Send) and isinstance(sent.msg, IWant)]


def told(env: RecordingEnv) -> list[NodeId]:
    return [send.to for send in env.sent(Fetching)]


# Naive


def test_the_naive_asks_everyone_that_advertises() -> None:
    """E-CLON-13: the rule that the published figures come of."""
    asking, env = requests("naive")
    for peer in (1, 2, 3):
        asking.advertised(KEY, peer, 1)
    assert env.effects == wants(1, 2, 3, distance=1)
    assert not asking.wanted


# One at a time


def test_the_first_advertiser_is_asked_at_once_and_the_next_ones_wait() -> None:
    """E-CLON-13."""
    asking, env = requests("single")
    for peer in (1, 2, 3):
        asking.advertised(KEY, peer, 0)
    assert env.effects == wants(1)


def test_messages_do_not_wait_for_one_another() -> None:
    asking, env = requests("single")
    asking.advertised(KEY, 1, 0)
    asking.advertised(OTHER, 1, 0)
    assert env.effects == [*wants(1), *wants(1, key=OTHER)]


def test_who_does_not_answer_is_followed_by_the_next() -> None:
    asking, env = requests("single", asks_max=1)
    for peer in (1, 2):
        asking.advertised(KEY, peer, 0)
    env.take()
    env.advance(TIMEOUT - 1)
    assert env.effects == []
    env.advance(1)
    assert env.effects == wants(2)


def test_who_does_not_have_it_is_followed_by_the_next_at_once() -> None:
    """E-CLON-12."""
    asking, env = requests("single")
    for peer in (1, 2):
        asking.advertised(KEY, peer, 0)
    env.take()
    asking.refused(KEY, 1)
    assert env.effects == wants(2)


def test_who_says_that_it_has_nothing_is_not_asked_later() -> None:
    asking, env = requests("single", asks_max=1)
    for peer in (1, 2, 3):
        asking.advertised(KEY, peer, 0)
    asking.refused(KEY, 3)
    env.advance(10 * TIMEOUT)
    assert asked(env) == [1, 2]


def test_a_refusal_by_somebody_who_was_never_asked_changes_nothing() -> None:
    asking, env = requests("single")
    asking.advertised(KEY, 1, 0)
    env.take()
    asking.refused(KEY, 7)
    asking.refused(OTHER, 1)
    assert env.effects == []
    assert asking.wanted[KEY].asked == (0, 1)


def test_the_silent_are_asked_again_after_all_others() -> None:
    asking, env = requests("single", asks_max=2)
    for peer in (1, 2):
        asking.advertised(KEY, peer, 0)
    env.advance(10 * TIMEOUT)
    assert asked(env) == [1, 2, 1, 2]


def test_when_nobody_is_left_it_is_given_up_until_somebody_else_advertises_it() -> None:
    asking, env = requests("single", asks_max=1)
    asking.advertised(KEY, 1, 0)
    env.advance(TIMEOUT)
    assert not asking.wanted
    env.take()
    asking.advertised(KEY, 2, 0)
    assert env.effects == wants(2)


def test_what_arrived_is_asked_for_no_more() -> None:
    asking, env = requests("single")
    for peer in (1, 2):
        asking.advertised(KEY, peer, 0)
    env.take()
    asking.arrived(KEY)
    env.advance(10 * TIMEOUT)
    assert env.effects == []
    assert not asking.wanted


def test_who_is_gone_is_asked_for_nothing() -> None:
    asking, env = requests("single")
    for peer in (1, 2):
        asking.advertised(KEY, peer, 0)
    asking.advertised(OTHER, 3, 0)
    asking.advertised(OTHER, 1, 0)
    env.take()
    asking.gone(1)
    assert env.effects == wants(2), "the one that was asked for the other message is still there"
    asking.gone(3)
    assert OTHER not in asking.wanted


def test_an_advertiser_is_in_the_queue_once() -> None:
    asking, env = requests("single", asks_max=1)
    for peer in (1, 2, 2, 1, 2):
        asking.advertised(KEY, peer, 0)
    env.advance(10 * TIMEOUT)
    assert asked(env) == [1, 2]


def test_stopping_forgets_everything() -> None:
    asking, env = requests("single")
    asking.advertised(KEY, 1, 0)
    env.take()
    asking.stop()
    env.advance(10 * TIMEOUT)
    assert env.effects == []


# Whom first


@pytest.mark.parametrize(
    ("advertised", "order"),
    [
        ([(2, 0), (3, 0), (4, 0)], [4, 3, 2]),  # the newest of those that are as near
        ([(2, 1), (3, 0)], [3, 2]),
        ([(2, 0), (3, 1)], [2, 3]),
        ([(2, 1), (3, 0), (4, 1), (5, 0)], [5, 3, 4, 2]),
        ([(2, 3), (3, 1), (4, 2), (5, 1)], [5, 3, 4, 2]),  # the farther, the later
    ],
)
def test_the_nearest_come_first_and_the_newest_of_those(advertised: list[tuple[int, int]], order: list[int]) -> None:
    """E-CLON-30: a total order for any number of advertisers."""
    asking, env = requests("single", asks_max=1)
    asking.advertised(KEY, 1, 0)
    for peer, distance in advertised:
        asking.advertised(KEY, peer, distance)
    env.advance(10 * TIMEOUT)
    assert asked(env) == [1, *order]


def test_as_printed_the_queue_does_not_put_the_nearest_first() -> None:
    """E-CLON-30: a new advertiser changes places with the last one if it is not farther. With three that leaves a far
    one in front of a near one."""
    queue: list[tuple[int, int]] = []
    for peer, distance in [(2, 1), (3, 1), (4, 0)]:
        queue.append((distance, peer))
        if len(queue) > 1 and not (distance > 0 and queue[-2][0] == 0):
            queue[-1], queue[-2] = queue[-2], queue[-1]
    assert queue[0][0] == 1


# With patience


def test_what_is_advertised_from_far_away_is_not_asked_for_at_once() -> None:
    asking, env = requests("delayed")
    asking.advertised(KEY, 1, 1)
    assert env.effects == []
    env.advance(PATIENCE)
    assert asked(env)


def test_what_is_advertised_by_somebody_near_is_asked_for_at_once() -> None:
    asking, env = requests("delayed")
    asking.advertised(KEY, 1, 1)
    asking.advertised(KEY, 2, 0)
    assert env.effects == wants(2)


def test_everyone_waits_for_a_time_of_its_own() -> None:
    asking, env = requests("delayed")
    for number in range(200):
        asking.advertised((9, number), 1, 1)
    dues = sorted(timer.due_us for timer in env.timers)
    assert dues[0] < PATIENCE / 20
    assert PATIENCE * 19 / 20 < dues[-1] < PATIENCE
    assert sum(dues) / 200 == pytest.approx(PATIENCE / 2, rel=0.1)


def test_before_anyone_far_away_a_near_neighbour_is_asked() -> None:
    asking, env = requests("delayed", asks_max=1)
    for number in range(30):
        asking.advertised((9, number), 1, 1)
    env.advance(PATIENCE + 10 * TIMEOUT)
    sent = [(send.msg.seq, send.to) for send in env.sent(IWant)]  # type: ignore[attr-defined]
    first = dict(reversed(sent))
    assert set(first.values()) == set(AREA)
    assert {to for seq, to in sent if to != first[seq]} == {1}
    assert len(sent) == 60


def test_who_asks_far_away_tells_its_area() -> None:
    asking, env = requests("delayed", asks_max=1)
    asking.advertised(KEY, 1, 1)
    while not asked(env):
        env.advance(1)
    assert told(env) == []
    env.advance(TIMEOUT)
    assert env.effects == [*wants(1, distance=1), *(Send(peer, Fetching(*KEY)) for peer in AREA)]


def test_who_has_nobody_near_asks_far_away_at_once() -> None:
    asking, env = requests("delayed", area=())
    asking.advertised(KEY, 1, 1)
    assert env.effects == wants(1, distance=1)


def test_word_that_somebody_fetches_it_is_passed_on_once_and_waited_for() -> None:
    asking, env = requests("delayed")
    asking.advertised(KEY, 1, 1)
    asking.promised(KEY, Fetching(*KEY), 21)
    asking.promised(KEY, Fetching(*KEY), 22)
    assert env.effects == [Send(22, Fetching(*KEY)), Send(23, Fetching(*KEY))]
    env.take()
    env.advance(PROMISE - 1)
    assert env.effects == []
    env.advance(PATIENCE + 1)
    assert asked(env)


def test_word_that_comes_before_the_advertisement_is_heeded_too() -> None:
    asking, env = requests("delayed")
    asking.promised(KEY, Fetching(*KEY), 21)
    env.take()
    asking.advertised(KEY, 1, 1)
    env.advance(PROMISE - 1)
    assert env.effects == []


def test_nobody_can_make_us_wait_for_ever() -> None:
    asking, env = requests("delayed")
    asking.advertised(KEY, 1, 1)
    waited = 0
    while not env.sent(IWant):
        asking.promised(KEY, Fetching(*KEY), 21)
        env.advance(10)
        waited += 10
        assert waited <= PROMISES_MAX * (PROMISE + PATIENCE)


def test_who_has_asked_does_not_heed_others() -> None:
    asking, env = requests("delayed")
    asking.advertised(KEY, 1, 0)
    env.take()
    asking.promised(KEY, Fetching(*KEY), 21)
    assert env.effects == []
    env.advance(TIMEOUT)
    assert asked(env) == [1]


def test_whom_we_asked_may_answer_later() -> None:
    asking, env = requests("delayed", asks_max=1)
    asking.advertised(KEY, 1, 0)
    asking.advertised(KEY, 2, 0)
    asking.promised(KEY, Fetching(*KEY), 1)
    env.take()
    env.advance(PROMISE - 1)
    assert env.effects == []
    env.advance(1)
    assert asked(env) == [2]


def test_who_asks_us_while_we_fetch_it_will_get_it() -> None:
    asking, env = requests("delayed", area=())
    assert not asking.asked_too_early(KEY, 5, 0)
    asking.advertised(KEY, 1, 1)
    assert asking.asked_too_early(KEY, 5, 0)
    assert asking.asked_too_early(KEY, 6, 1)
    assert asking.arrived(KEY) == [(5, 0), (6, 1)]
    assert env.effects == wants(1, distance=1)


def test_who_asks_us_while_we_only_wait_is_told_that_we_have_nothing() -> None:
    """Two that wait for each other would both wait in vain."""
    asking, _ = requests("delayed")
    asking.advertised(KEY, 1, 1)
    assert not asking.asked_too_early(KEY, 5, 0)
    asking.advertised(KEY, 2, 0)
    assert not asking.asked_too_early(KEY, 5, 0), "we have asked a neighbour, which may be the very one that asks us"


def test_those_who_asked_us_are_told_when_we_give_up() -> None:
    asking, env = requests("delayed", area=(), asks_max=1)
    asking.advertised(KEY, 1, 1)
    asking.asked_too_early(KEY, 5, 0)
    env.take()
    env.advance(TIMEOUT)
    assert env.effects == [Send(5, DontHave(*KEY))]


@pytest.mark.parametrize("scheduler", ["naive", "single"])
def test_without_patience_nobody_waits_for_others(scheduler: str) -> None:
    asking, env = requests(scheduler)
    asking.promised(KEY, Fetching(*KEY), 21)
    assert env.effects == []
    assert not asking.wanted
    asking.advertised(KEY, 1, 1)
    assert env.effects == wants(1, distance=1)
    assert not asking.asked_too_early(KEY, 5, 0)


# Bounds


def test_of_too_many_wanted_the_one_wanted_for_longest_goes() -> None:
    asking, env = requests("single", wanted_max=3)
    for number in range(5):
        asking.advertised((9, number), 1, 0)
    assert list(asking.wanted) == [(9, 2), (9, 3), (9, 4)]
    assert len([timer for timer in env.timers if timer.live]) == 3


@pytest.mark.parametrize("liar_first", [True, False])
@pytest.mark.parametrize("before", [0, 10])
@pytest.mark.parametrize("count", [1, 5])
def test_made_up_advertisements_push_out_no_true_ones(count: int, before: int, *, liar_first: bool) -> None:
    """Also where the liar has advertised the true ones as well, before or after everybody else."""
    asking, env = requests("single", wanted_max=20)
    liar, honest, true = 1, 2, [(9, number) for number in range(count)]
    for number in range(before):
        asking.advertised((8, number), liar, 0)
    for key in true:
        for peer in (liar, honest) if liar_first else (honest, liar):
            asking.advertised(key, peer, 0)
    for number in range(before, 100):
        asking.advertised((8, number), liar, 0)
    assert all(key in asking.wanted for key in true)
    assert len(asking.wanted) == 20
    env.advance(10_000_000)
    for key in true:
        assert Send(honest, IWant(*key)) in env.effects
    assert not asking.wanted
    assert not asking._accounts


def test_too_many_advertisers_and_askers_of_one_message_are_ignored() -> None:
    asking, _ = requests("delayed", area=(), advertisers_max=4)
    for peer in range(1, 100):
        asking.advertised(KEY, peer, 1)
    assert len(asking.wanted[KEY].asks) == 4
    assert sum(asking.asked_too_early(KEY, peer, 0) for peer in range(100)) == 4
