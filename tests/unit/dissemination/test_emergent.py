"""One Emergent process: whom it passes what on to, with which rounds, eagerly or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicast.core.message import HOPS_MAX, Event
from epicast.core.recording import Record, RecordingEnv, Send
from epicast.core.records import Kind
from epicast.core.roles import handler_name
from epicast.dissemination.anti_entropy import Copy, Digest, Pull, Want
from epicast.dissemination.emergent import Emergent, EmergentConfig
from epicast.dissemination.emergent_messages import Msg
from epicast.dissemination.requests import DontHave, Fetching, IHave, IWant
from tests.support.places import Members

HUGE = (1 << 63) - 1
NEAR, FAR = (1, 2), (11, 12)
S = 1_000_000
Got = list[tuple[Any, int, int, Any]]  # source, number, hops, sender


def emergent(
    me: int = 0,
    near: tuple[int, ...] = NEAR,
    far: tuple[int, ...] | Mapping[int, int] = FAR,
    *,
    kind: type[Emergent] = Emergent,
    **settings: Any,
) -> tuple[Any, RecordingEnv, Got]:
    env, got = RecordingEnv(me), []
    members: Any = Members(near, far)

    def deliver(event: Event, sender: Any) -> None:
        got.append((event.source, event.seq, event.hops, sender))

    return kind(env, EmergentConfig(**{"pull": "none", **settings}), members, deliver), env, got


def msg(local: int, remote: int, *, hops: int = 1, distance: int = 0, seq: int = 0, source: int = 9) -> Msg:
    return Msg(source, seq, hops, local, remote, distance, "t", b"x")


def ihave(seq: int = 0, distance: int = 1) -> IHave:
    return IHave(9, seq, distance)


# Who gets what


def test_near_neighbours_get_the_payload_and_far_ones_an_advertisement() -> None:
    process, env, got = emergent()
    assert process.broadcast("t", b"x") == (0, 0)
    own = Msg(0, 0, 1, 1, 0, 0, "t", b"x")
    assert env.effects == [Send(11, IHave(0, 0, 1)), Send(12, IHave(0, 0, 1)), Send(1, own), Send(2, own)]
    assert got == [(0, 0, 0, 0)]


def test_what_comes_for_the_first_time_is_passed_on_but_not_back() -> None:
    process, env, got = emergent()
    assert process.on_msg(1, msg(1, 0)) is False
    assert env.effects == [Send(11, ihave()), Send(12, ihave()), Send(2, msg(2, 0, hops=2))]
    assert got == [(9, 0, 1, 1)]


def test_what_the_first_copy_kept_from_a_sort_of_neighbours_goes_there_with_a_later_one() -> None:
    """Nobody but the relay says how many rounds are over."""
    process, env, got = emergent(eager="all", local_rounds=3, remote_rounds=2)
    process.on_msg(1, msg(3, 0))
    assert [each.to for each in env.take()] == [11, 12]  # type: ignore[union-attr]
    process.on_msg(2, msg(3, 0))
    assert env.take() == []
    assert process.on_msg(2, msg(1, 0)) is True
    assert env.take() == [Send(1, msg(2, 0, hops=2))], "the others had it with the first copy"
    process.on_msg(1, msg(1, 0))
    assert env.take() == []
    assert len(got) == 1


def test_what_comes_again_is_a_duplicate_whatever_its_rounds() -> None:
    process, env, got = emergent()
    process.on_msg(1, msg(1, 0))
    env.take()
    assert process.on_msg(2, msg(5, 3)) is True
    assert process.on_msg(11, msg(0, 1, distance=1)) is True
    assert process.on_copy(11, Copy(9, 0, 1, "t", b"x")) is True
    assert env.effects == []
    assert len(got) == 1


def test_near_and_far_neighbours_are_separate_sets() -> None:
    """E-CLON-25: everyone is sent one message."""
    process, env, _ = emergent(eager="all")
    process.broadcast("t", b"x")
    assert sorted(send.to for send in env.sent(Msg)) == [1, 2, 11, 12]


class Accumulating(Emergent):
    """E-CLON-25 as printed: the near neighbours are added to the far ones, and all of them get the local round."""

    def _forward(self, msg: Msg, but: tuple[Any, ...]) -> None:
        near, far = self._neighbours(but)
        for distance, peers in far.items():
            self._pass_on(msg, peers, distance, True)
        self._pass_on(msg, near + [peer for peers in far.values() for peer in peers], 0, True)


def test_as_printed_far_neighbours_would_get_it_twice() -> None:
    process, env, _ = emergent(eager="all", kind=Accumulating)
    process.broadcast("t", b"x")
    assert [send.to for send in env.sent(Msg)].count(11) == 2


def test_fanouts_limit_each_set() -> None:
    process, env, _ = emergent(near=tuple(range(1, 9)), far=tuple(range(11, 19)), local_fanout=3, remote_fanout=2)
    for seq in range(50):
        process.on_msg(99, msg(1, 0, seq=seq))
        pushed, advertised = env.sent(Msg), env.sent(IHave)
        assert len({send.to for send in pushed}) == 3
        assert len({send.to for send in advertised}) == 2
        assert all(send.to < 10 for send in pushed)
        assert all(send.to > 10 for send in advertised)
        env.take()


def test_each_is_told_its_own_distance() -> None:
    process, env, _ = emergent(near=(1,), far={11: 1, 12: 2, 13: 1, 14: 1000})
    process.broadcast("t", b"x")
    assert [(send.to, send.msg.distance) for send in env.sent(IHave)] == [(11, 1), (13, 1), (12, 2), (14, 255)]


def test_a_process_without_neighbours_delivers_to_itself() -> None:
    process, env, got = emergent(near=(), far=())
    process.broadcast("t", b"x")
    assert env.effects == []
    assert got == [(0, 0, 0, 0)]


# Rounds


def test_one_round_grows_with_each_link() -> None:
    """The local one within an area, the remote one between areas."""
    process, env, _ = emergent(eager="all")
    process.on_msg(1, msg(3, 2))
    assert env.effects == [
        Send(11, msg(3, 3, hops=2, distance=1)),
        Send(12, msg(3, 3, hops=2, distance=1)),
        Send(2, msg(4, 2, hops=2)),
    ]


def test_the_local_round_starts_anew_in_another_area() -> None:
    """E-CLON-26: the receiver must be able to tell."""
    process, env, _ = emergent(eager="all")
    process.on_msg(11, msg(7, 1, distance=1))
    assert env.effects == [
        Send(12, msg(0, 2, hops=2, distance=1)),
        Send(1, msg(1, 1, hops=2)),
        Send(2, msg(1, 1, hops=2)),
    ]


def test_that_holds_for_a_sender_that_is_no_neighbour() -> None:
    process, env, _ = emergent(far=(), eager="all")
    process.on_msg(77, msg(7, 1, distance=2))
    process.on_msg(78, msg(7, 1, seq=1))
    assert [send.msg.local_round for send in env.sent(Msg)] == [1, 1, 8, 8]


def test_rounds_have_limits_of_their_own() -> None:
    process, env, _ = emergent(eager="all", local_rounds=3, remote_rounds=2)
    for seq, (local, remote, receivers) in enumerate(
        [(2, 1, [11, 12, 2]), (3, 1, [11, 12]), (2, 2, [2]), (3, 2, [])],
    ):
        process.on_msg(1, msg(local, remote, seq=seq))
        assert [send.to for send in env.take() if isinstance(send, Send)] == receivers


def test_a_message_that_enters_an_area_late_still_spreads_there() -> None:
    """Without the reset it would die after `local_rounds` less what it spent elsewhere."""
    process, env, _ = emergent(local_rounds=3)
    process.on_msg(11, msg(3, 1, distance=1))
    assert [send.to for send in env.sent(Msg)] == [1, 2]


def test_as_printed_it_would_end_there() -> None:
    """E-CLON-26: a message that does not tell that it came over a long link."""
    process, env, _ = emergent(local_rounds=3)
    process.on_msg(11, msg(3, 1, distance=0))
    assert not env.sent(Msg)


def test_rounds_do_not_grow_beyond_what_a_message_can_carry() -> None:
    process, env, _ = emergent(eager="all")
    process.on_msg(1, msg(HOPS_MAX, HOPS_MAX, hops=HOPS_MAX))
    assert env.effects == [
        Send(11, msg(HOPS_MAX, HOPS_MAX, hops=HOPS_MAX, distance=1)),
        Send(12, msg(HOPS_MAX, HOPS_MAX, hops=HOPS_MAX, distance=1)),
        Send(2, msg(HOPS_MAX, HOPS_MAX, hops=HOPS_MAX)),
    ]


# Eager or lazy


@pytest.mark.parametrize("threshold", [0, 1, 2, 5])
def test_far_neighbours_get_the_payload_in_remote_rounds_below_the_threshold(threshold: int) -> None:
    """E-CLON-28: below it, and not above. E-CLON-29: the round before the link is crossed."""
    process, env, _ = emergent(eager_remote_rounds=threshold)
    for remote in range(8):
        process.on_msg(1, msg(1, remote, seq=remote))
        far = [type(send.msg) for send in env.take() if isinstance(send, Send) and send.to in FAR]
        assert far == [Msg if remote < threshold else IHave] * 2


class LateThreshold(Emergent):
    """E-CLON-29 as printed: the round is counted before the question is asked."""

    def _pass_on(self, msg: Msg, peers: list[Any], distance: int, eager: bool) -> None:
        super()._pass_on(msg, peers, distance, eager and msg.remote_round + 1 < self.config.eager_remote_rounds)


class Inverted(Emergent):
    """E-CLON-28 as the text says it: lazy while the round is below the threshold."""

    def _pass_on(self, msg: Msg, peers: list[Any], distance: int, eager: bool) -> None:
        super()._pass_on(msg, peers, distance, not eager if distance else eager)


@pytest.mark.parametrize(("kind", "threshold"), [(LateThreshold, 1), (Inverted, 0)])
def test_as_printed_a_threshold_means_something_else(kind: type[Emergent], threshold: int) -> None:
    """With 1 the first round would be lazy, and with 0, which is called completely lazy, all would be eager."""
    process, env, _ = emergent(eager_remote_rounds=threshold, kind=kind)
    corrected, expected, _ = emergent(eager_remote_rounds=threshold)
    for each in (process, corrected):
        each.broadcast("t", b"x")
    assert [type(send.msg) for send in expected.effects[:2]] == ([Msg, Msg] if threshold else [IHave, IHave])
    assert env.effects[:2] != expected.effects[:2]


def test_all_eager_nothing_is_advertised() -> None:
    process, env, _ = emergent(eager="all")
    process.broadcast("t", b"x")
    process.on_msg(1, msg(1, 40))
    assert not env.sent(IHave)


def test_all_lazy_nothing_but_advertisements_goes_out() -> None:
    process, env, _ = emergent(eager="none", eager_remote_rounds=3)
    process.broadcast("t", b"x")
    process.on_msg(1, msg(1, 0))
    assert not env.sent(Msg)
    assert [(send.to, send.msg.distance) for send in env.sent(IHave)] == [
        *((11, 1), (12, 1), (1, 0), (2, 0)),
        *((11, 1), (12, 1), (2, 0)),
    ]


# Asking and answering


def test_who_has_only_pushed_its_own_message_does_not_ask_for_it() -> None:
    """E-CLON-11."""
    process, env, _ = emergent(far=(), scheduler="naive")
    process.broadcast("t", b"x")
    env.take()
    process.on_i_have(12, IHave(0, 0, 1))
    assert env.effects == []


class OnlyLazyKnown(Emergent):
    """E-CLON-11 as printed: the lower layer takes note of what it advertises, and not of what it pushes."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.known: list[tuple[Any, int]] = []

    def _pass_on(self, msg: Msg, peers: list[Any], distance: int, eager: bool) -> None:
        self.known += [] if eager else [(msg.source, msg.seq)]
        super()._pass_on(msg, peers, distance, eager)

    def _lacks(self, source: Any, seq: int) -> bool:
        return (source, seq) not in self.known


def test_as_printed_it_would_ask_for_its_own_message() -> None:
    process, env, _ = emergent(far=(), scheduler="naive", kind=OnlyLazyKnown)
    process.broadcast("t", b"x")
    env.take()
    process.on_i_have(12, IHave(0, 0, 1))
    assert env.effects == [Send(12, IWant(0, 0, 1))]


def test_what_is_known_is_not_asked_for() -> None:
    process, env, _ = emergent(scheduler="naive")
    process.on_msg(1, msg(1, 0))
    env.take()
    process.on_i_have(12, ihave())
    process.on_fetching(1, Fetching(9, 0))
    assert env.effects == []


def test_an_answer_counts_the_link_to_whoever_asked() -> None:
    """E-CLON-27: near and far ones get different rounds, in whichever order they ask."""
    process, env, _ = emergent(eager="none")
    process.on_msg(1, msg(3, 2))
    env.take()
    for asker, distance in ((12, 1), (2, 0), (12, 1)):
        process.on_i_want(asker, IWant(9, 0, distance))
    assert env.effects == [
        Send(12, msg(3, 3, hops=2, distance=1)),
        Send(2, msg(4, 2, hops=2)),
        Send(12, msg(3, 3, hops=2, distance=1)),
    ]


class OneCachedPair(Emergent):
    """E-CLON-27 as printed: the rounds of the last advertisement answer every request."""

    def answer(self, peer: Any, event: Any, distance: int) -> None:
        super().answer(peer, event, 0)  # near neighbours come last


def test_as_printed_a_far_one_would_get_the_rounds_of_a_near_one() -> None:
    process, env, _ = emergent(eager="none", kind=OneCachedPair)
    process.on_msg(1, msg(3, 2))
    env.take()
    process.on_i_want(12, IWant(9, 0, 1))
    assert env.effects == [Send(12, msg(4, 2, hops=2))]


def test_an_answer_after_a_long_link_starts_with_the_first_local_round() -> None:
    process, env, _ = emergent(eager="none")
    process.on_msg(11, msg(5, 1, distance=1))
    env.take()
    process.on_i_want(1, IWant(9, 0, 0))
    assert env.effects == [Send(1, msg(1, 1, hops=2))]


def test_whoever_asks_for_what_is_not_there_is_told_so() -> None:
    """E-CLON-12."""
    process, env, _ = emergent(recent_messages=1)
    process.on_msg(1, msg(1, 0))
    process.on_msg(1, msg(1, 0, seq=1))
    env.take()
    process.on_i_want(11, IWant(9, 0, 1))
    process.on_i_want(11, IWant(9, HUGE, 1))
    assert env.effects == [Send(11, DontHave(9, 0)), Send(11, DontHave(9, HUGE))]


def test_no_far_one_is_asked_while_a_near_one_is_left() -> None:
    process, env, _ = emergent(scheduler="single", asks_max=1)
    for sender, distance in ((11, 1), (12, 1), (1, 0), (13, 2), (2, 0)):
        process.on_i_have(sender, ihave(distance=distance))
    env.advance(10 * S)
    assert [send.to for send in env.sent(IWant)] == [11, 2, 1, 12, 13], "the first was alone when it was asked"


def test_a_fetched_payload_goes_around_the_area() -> None:
    process, env, _ = emergent(near=(1, 2), far=(11,))
    process.on_i_have(11, ihave())
    env.advance(S)
    for peer in (1, 2):
        process.on_dont_have(peer, DontHave(9, 0))
    assert env.take()[-3:] == [Send(11, IWant(9, 0, 1)), Send(1, Fetching(9, 0)), Send(2, Fetching(9, 0))]
    process.on_msg(11, msg(4, 1, distance=1))
    assert env.effects == [Send(1, msg(1, 1, hops=2)), Send(2, msg(1, 1, hops=2))]


def test_who_asked_too_early_gets_it_once_and_first() -> None:
    process, env, _ = emergent(near=(1, 2), far=(11, 12))
    process.on_fetching(1, Fetching(9, 0))
    assert env.take() == [Send(2, Fetching(9, 0))]
    for asker, distance in ((2, 0), (7, 0), (12, 1)):
        process.on_i_want(asker, IWant(9, 0, distance))
    assert env.take() == [Send(asker, Fetching(9, 0)) for asker in (2, 7, 12)]
    process.on_msg(1, msg(1, 1))
    assert env.effects == [
        Send(2, msg(2, 1, hops=2)),
        Send(7, msg(2, 1, hops=2)),
        Send(12, msg(1, 2, hops=2, distance=1)),
        Send(11, ihave()),
    ]


def test_who_asked_too_early_gets_what_was_pulled_too() -> None:
    process, env, got = emergent()
    process.on_fetching(1, Fetching(9, 0))
    process.on_i_want(7, IWant(9, 0, 0))
    env.take()
    assert process.on_copy(11, Copy(9, 0, 3, "t", b"x")) is False
    assert got == [(9, 0, 3, 11)]
    assert env.effects == [Send(7, msg(1, 0, hops=4))]


# Bounds and nonsense


def test_sources_above_the_cap_are_dropped_and_recorded() -> None:
    process, env, got = emergent(sources_max=1)
    process.on_msg(1, msg(1, 0, source=8))
    env.take()
    assert process.on_msg(1, msg(1, 0, seq=3)) is True
    process.on_i_have(1, ihave(4))
    process.on_fetching(1, Fetching(9, 5))
    assert [source for source, *_ in got] == [8]
    assert env.effects == []
    assert env.records == [Record(Kind.NONSENSE, source=9, seq=seq, detail="too many sources") for seq in (3, 4, 5)]


def test_a_process_that_left_does_nothing_more_by_itself() -> None:
    process, env, _ = emergent(pull="exchange")
    process.start()
    process.on_i_have(11, ihave())
    process.leave()
    env.advance(60 * S)
    assert env.effects == []


ids = st.sampled_from([0, 1, 8, 9, -1, HUGE, "x"])
seqs = st.sampled_from([0, 1, 2, 5, 1 << 40, HUGE])
rounds = st.sampled_from([0, 1, HOPS_MAX])
distances = st.sampled_from([0, 1, 255])
spans = st.lists(st.tuples(ids, seqs, seqs), max_size=6).map(tuple)
messages = st.one_of(
    st.builds(Msg, ids, seqs, rounds, rounds, rounds, distances, st.just("t"), st.binary(max_size=3)),
    st.builds(Copy, ids, seqs, rounds, st.just("t"), st.binary(max_size=3)),
    st.builds(IHave, ids, seqs, distances),
    st.builds(IWant, ids, seqs, distances),
    st.builds(DontHave, ids, seqs),
    st.builds(Fetching, ids, seqs),
    st.builds(Pull, spans, seqs, st.booleans(), st.booleans()),
    st.builds(Digest, spans),
    st.builds(Want, spans),
)


@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 11, 12, 77]), messages), max_size=60),
    st.sampled_from(["near", "all", "none"]),
    st.sampled_from(["naive", "single", "delayed"]),
)
def test_whatever_comes_state_is_bounded_and_nothing_is_delivered_twice(
    arrivals: list[tuple[int, Any]], eager: str, scheduler: str
) -> None:
    bounds = {"sources_max": 3, "ahead_max": 4, "recent_messages": 5, "wanted_max": 6, "advertisers_max": 3}
    process, env, got = emergent(eager=eager, scheduler=scheduler, pull="exchange", answers_max=3, **bounds)
    process.start()
    process.broadcast("t", b"x")
    for sender, message in arrivals:
        before = len(env.effects)
        getattr(process, handler_name(type(message)))(sender, message)
        assert len(env.effects) - before <= 4 + 3 + 1, "a push to all, and to those who asked"
        env.advance(100_000)
    assert len(process.seen) <= 4
    assert all(len(w.ahead) <= 4 and len(w.before or ()) <= 4 for w in process.seen.values())
    assert len(process.recent) <= 5
    assert len(process.requests.wanted) <= 6
    assert all(len(w.asks) <= 3 + 1 and len(w.askers) <= 3 for w in process.requests.wanted.values())
    assert len({(source, seq) for source, seq, *_ in got}) == len(got)
    assert [entry for entry in got if entry[0] == 0] == [(0, 0, 0, 0)]
