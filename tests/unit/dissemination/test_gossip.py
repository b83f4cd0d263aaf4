"""One gossiping process: whom it pushes to, lazily or not, and what it makes of hostile messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicast.core.errors import ConfigError
from epicast.core.message import HOPS_MAX, Event
from epicast.core.recording import Record, RecordingEnv, Send
from epicast.core.records import Kind
from epicast.core.roles import handler_name
from epicast.dissemination.anti_entropy import Copy, Digest, Pull, Want
from epicast.dissemination.gossip import Gossip, GossipConfig
from epicast.dissemination.gossip_messages import Rumor
from epicast.dissemination.requests import DontHave, IHave, IWant
from tests.support.places import Members

HUGE = (1 << 63) - 1
Got = list[tuple[Any, int, int, Any]]  # source, number, hops, sender


def gossip(me: int = 0, peers: tuple[int, ...] = (1, 2, 3), **settings: Any) -> tuple[Gossip, RecordingEnv, Got]:
    env, got = RecordingEnv(me), []
    members: Any = Members(peers)

    def deliver(event: Event, sender: Any) -> None:
        got.append((event.source, event.seq, event.hops, sender))

    return Gossip(env, GossipConfig(**settings), members, deliver), env, got


def rumor(seq: int = 0, hops: int = 1, source: int = 9) -> Rumor:
    return Rumor(source, seq, hops, "t", b"x")


def receivers(env: RecordingEnv) -> list[Any]:
    return [effect.to for effect in env.take() if isinstance(effect, Send)]


# Eager push


def test_a_publication_is_delivered_and_goes_to_all_neighbours() -> None:
    process, env, got = gossip()
    assert process.next_id("t") == (0, 0)
    assert process.broadcast("t", b"x") == (0, 0)
    assert env.effects == [Send(peer, Rumor(0, 0, 1, "t", b"x")) for peer in (1, 2, 3)]
    assert got == [(0, 0, 0, 0)]
    assert process.broadcast("t", b"x") == (0, 1)


def test_what_comes_for_the_first_time_is_passed_on_but_not_back() -> None:
    """Infect, and E-B3."""
    process, env, got = gossip()
    assert process.on_rumor(2, rumor(hops=4)) is False
    assert env.effects == [Send(1, rumor(hops=5)), Send(3, rumor(hops=5))]
    assert got == [(9, 0, 4, 2)]


def test_what_comes_again_is_a_duplicate_and_goes_nowhere() -> None:
    """And die."""
    process, env, got = gossip()
    process.on_rumor(2, rumor())
    env.take()
    for sender in (1, 2, 3):
        assert process.on_rumor(sender, rumor(hops=2)) is True
    assert env.effects == []
    assert len(got) == 1


def test_ones_own_rumor_that_comes_back_is_a_duplicate() -> None:
    process, env, got = gossip()
    process.broadcast("t", b"x")
    env.take()
    assert process.on_rumor(1, Rumor(0, 0, 2, "t", b"x")) is True
    assert process.on_rumor(1, Rumor(0, 7, 2, "t", b"forged")) is True
    assert env.effects == []
    assert len(got) == 1


def test_the_fanout_is_a_random_sample_without_the_sender() -> None:
    process, env, _ = gossip(peers=tuple(range(1, 11)), fanout=3)
    found: dict[int, int] = {}
    for seq in range(300):
        process.on_rumor(4, rumor(seq))
        to = receivers(env)
        assert len(set(to)) == 3
        assert 4 not in to
        for peer in to:
            found[peer] = found.get(peer, 0) + 1
    assert set(found) == set(range(1, 11)) - {4}
    assert min(found.values()) > 60, "of 100 each"


def test_a_fanout_above_the_number_of_neighbours_is_all_of_them() -> None:
    process, env, _ = gossip(fanout=30)
    process.on_rumor(2, rumor())
    assert sorted(receivers(env)) == [1, 3]


@pytest.mark.parametrize(("nodes", "fanout"), [(1, 1), (2, 1), (20, 3), (128, 5), (512, 7), (1000, 7), (10_000, 10)])
def test_the_fanout_may_follow_from_the_expected_size(nodes: int, fanout: int) -> None:
    """Document 000: ln N, rounded up."""
    assert GossipConfig(expected_nodes=nodes).targets == fanout


def test_after_the_last_round_nothing_is_passed_on() -> None:
    process, env, got = gossip(rounds_max=3)
    process.on_rumor(1, rumor(0, hops=2))
    assert receivers(env) == [2, 3]
    process.on_rumor(1, rumor(1, hops=3))
    assert receivers(env) == []
    assert len(got) == 2


def test_hops_do_not_grow_beyond_what_a_message_can_carry() -> None:
    process, env, _ = gossip()
    process.on_rumor(1, rumor(hops=HOPS_MAX))
    assert env.effects == [Send(2, rumor(hops=HOPS_MAX)), Send(3, rumor(hops=HOPS_MAX))]


def test_a_process_without_neighbours_delivers_to_itself() -> None:
    process, env, got = gossip(peers=())
    process.broadcast("t", b"x")
    assert env.effects == []
    assert got == [(0, 0, 0, 0)]


# Lazy push


def test_lazily_an_advertisement_goes_out_instead() -> None:
    process, env, _ = gossip(push="lazy")
    process.broadcast("t", b"x")
    assert env.effects == [Send(peer, IHave(0, 0)) for peer in (1, 2, 3)]


def test_what_is_advertised_is_asked_for_delivered_and_advertised_on() -> None:
    process, env, got = gossip(push="lazy")
    process.on_i_have(2, IHave(9, 0))
    assert env.take() == [Send(2, IWant(9, 0))]
    assert process.on_rumor(2, rumor()) is False
    assert env.effects == [Send(1, IHave(9, 0)), Send(3, IHave(9, 0))]
    assert got == [(9, 0, 1, 2)]
    env.take()
    env.advance(10_000_000)
    assert env.effects == [], "nobody is asked again"


def test_what_is_known_is_not_asked_for() -> None:
    process, env, _ = gossip(push="lazy")
    process.on_rumor(1, rumor())
    process.broadcast("t", b"x")
    env.take()
    process.on_i_have(2, IHave(9, 0))
    process.on_i_have(2, IHave(0, 0))
    process.on_i_have(2, IHave(0, 5))
    assert env.effects == [], "not even one's own that was never published"


def test_whoever_asks_gets_it() -> None:
    process, env, _ = gossip(push="lazy")
    process.on_rumor(1, rumor(hops=2))
    env.take()
    process.on_i_want(2, IWant(9, 0))
    assert env.effects == [Send(2, rumor(hops=3))]


def test_whoever_asks_for_what_is_not_there_is_told_so() -> None:
    """E-CLON-12."""
    process, env, _ = gossip(push="lazy", recent_messages=1)
    process.on_rumor(1, rumor(0))
    process.on_rumor(1, rumor(1))
    env.take()
    process.on_i_want(2, IWant(9, 0))
    process.on_i_want(2, IWant(7, HUGE))
    assert env.effects == [Send(2, DontHave(9, 0)), Send(2, DontHave(7, HUGE))]


def test_after_a_refusal_the_next_advertiser_is_asked() -> None:
    process, env, _ = gossip(push="lazy")
    process.on_i_have(2, IHave(9, 0))
    process.on_i_have(3, IHave(9, 0))
    env.take()
    process.on_dont_have(2, DontHave(9, 0))
    assert env.effects == [Send(3, IWant(9, 0))]


def test_after_a_copy_with_a_bad_signature_the_next_advertiser_is_asked() -> None:
    process, env, _ = gossip()
    for peer in (2, 3):
        process.on_i_have(peer, IHave(9, 0))
    env.take()
    process.on_rejected(2, Copy(9, 0, 1, "t", b"bad"), blamed=True)
    assert env.take() == [Send(3, IWant(9, 0))]
    process.on_rejected(1, Copy(9, 1, 1, "t", b"bad"), blamed=True)
    assert env.take() == [], "nobody had advertised it"


def test_a_neighbour_that_is_gone_is_not_waited_for() -> None:
    process, env, _ = gossip(push="lazy")
    process.on_i_have(2, IHave(9, 0))
    process.on_i_have(3, IHave(9, 0))
    env.take()
    process.neighbour_down(2, False)
    assert env.effects == []
    process.neighbour_down(2, True)
    assert env.effects == [Send(3, IWant(9, 0))]


def test_mixed_the_first_rounds_are_eager_and_the_others_lazy() -> None:
    process, env, _ = gossip(push="mixed", eager_rounds=2)
    process.on_rumor(1, rumor(0, hops=1))
    process.on_rumor(1, rumor(1, hops=2))
    assert env.effects == [
        Send(2, rumor(0, hops=2)),
        Send(3, rumor(0, hops=2)),
        Send(2, IHave(9, 1)),
        Send(3, IHave(9, 1)),
    ]


def test_without_push_nothing_goes_out() -> None:
    process, env, got = gossip(push="none", pull="eager")
    process.broadcast("t", b"x")
    process.on_rumor(1, rumor())
    assert env.effects == []
    assert len(got) == 2


# Settings


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"fanout": 3, "expected_nodes": 100}, "expected_nodes: expected it or fanout, got both"),
        ({"push": "none"}, "push: expected something other than none where pull is none"),
        ({"scheduler": "delayed"}, "scheduler: expected one of naive, single, got 'delayed'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        GossipConfig(**settings)


# Bounds and nonsense


def test_sources_above_the_cap_are_dropped_and_recorded() -> None:
    process, env, got = gossip(sources_max=1)
    process.on_rumor(1, rumor(source=8))
    env.take()
    assert process.on_rumor(1, rumor(3, source=9)) is True
    process.on_i_have(1, IHave(9, 4))
    process.on_digest(1, Digest(((9, 5, 6),)))
    assert [source for source, *_ in got] == [8]
    assert env.effects == []
    assert env.records == [Record(Kind.NONSENSE, source=9, seq=seq, detail="too many sources") for seq in (3, 4, 5)]
    process.broadcast("t", b"our own is not one too many")
    assert len(got) == 2


def test_numbers_given_up_are_recorded() -> None:
    process, env, _ = gossip(ahead_max=2)
    for seq in (0, 5, 7, 9):
        process.on_rumor(1, rumor(seq))
    assert env.records == [Record(Kind.GAP, source=9, seq=5, detail="4 lost")], "1 to 4; 5 came"


def test_a_process_that_left_does_nothing_more_by_itself() -> None:
    process, env, _ = gossip(push="lazy", pull="exchange")
    process.start()
    process.on_i_have(2, IHave(9, 0))
    env.take()
    process.leave()
    env.advance(60_000_000)
    assert env.effects == []


ids = st.sampled_from([0, 1, 8, 9, -1, HUGE, "x"])
seqs = st.sampled_from([0, 1, 2, 5, 1 << 40, HUGE])
spans = st.lists(st.tuples(ids, seqs, seqs), max_size=6).map(tuple)
messages = st.one_of(
    st.builds(Rumor, ids, seqs, st.sampled_from([0, 1, HOPS_MAX]), st.just("t"), st.binary(max_size=3)),
    st.builds(Copy, ids, seqs, st.sampled_from([0, 1, HOPS_MAX]), st.just("t"), st.binary(max_size=3)),
    st.builds(IHave, ids, seqs, st.sampled_from([0, 1, 255])),
    st.builds(IWant, ids, seqs, st.sampled_from([0, 1, 255])),
    st.builds(DontHave, ids, seqs),
    st.builds(Pull, spans, seqs, st.booleans(), st.booleans()),
    st.builds(Digest, spans),
    st.builds(Want, spans),
)


@given(st.lists(st.tuples(st.integers(1, 4), messages), max_size=60), st.sampled_from(["eager", "lazy", "mixed"]))
def test_whatever_comes_state_is_bounded_and_nothing_is_delivered_twice(
    arrivals: list[tuple[int, Any]], push: str
) -> None:
    bounds = {"sources_max": 3, "ahead_max": 4, "recent_messages": 5, "wanted_max": 6, "answers_max": 3}
    process, env, got = gossip(push=push, pull="exchange", **bounds)
    process.start()
    process.broadcast("t", b"x")
    for sender, message in arrivals:
        before = len(env.effects)
        getattr(process, handler_name(type(message)))(sender, message)
        assert len(env.effects) - before <= 3 + 1 + 3, "answers and wants, or a push to the others"
        env.advance(100_000)
    assert len(process.seen) <= 4
    assert all(len(w.ahead) <= 4 and len(w.before or ()) <= 4 for w in process.seen.values())
    assert len(process.recent) <= 5
    assert len(process.requests.wanted) <= 6
    assert len({(source, seq) for source, seq, *_ in got}) == len(got)
    assert [entry for entry in got if entry[0] == 0] == [(0, 0, 0, 0)]
