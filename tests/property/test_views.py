"""Scamp, CLON and Cyclon under any messages from anybody, in any order: no error, no growth beyond bounds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicast.core.message import Message, Position
from epicast.core.recording import RecordingEnv
from epicast.core.roles import handler_name
from epicast.membership.clon import Clon, ClonConfig
from epicast.membership.clon_messages import Contact, ContactWanted, NodeInfo
from epicast.membership.cyclon import Cyclon, CyclonConfig, Enter, EnterWalk, Exchange, ExchangeReply
from epicast.membership.round_trips import Probe, ProbeReply
from epicast.membership.scamp import Scamp, ScampConfig
from epicast.membership.scamp_messages import (
    Dropped,
    ForwardedSubscription,
    Heartbeat,
    Kept,
    Subscription,
    Unsubscription,
    Welcome,
)
from epicast.membership.scamp_view import UNKNOWN
from tests.support.neighbours import Ear

ME, VIEW_MAX = 0, 4
peers = st.integers(ME, 4)  # few, so that much happens to each
places = st.sampled_from(["", "a", "b", "b/c"])
hops = st.integers(0, 9)
positions = st.lists(st.builds(Position, flow=st.tuples(peers, hops), path=st.just(())), max_size=2).map(tuple)

SCAMP: st.SearchStrategy[Message] = st.one_of(
    st.builds(Subscription, places, hops),
    st.builds(ForwardedSubscription, peers, hops, places, st.integers(-1, 16)),
    st.builds(Kept, places),
    st.builds(Unsubscription, st.lists(st.tuples(peers, places), max_size=3).map(tuple)),
    st.builds(Dropped, st.booleans()),
    st.builds(Heartbeat, positions),
    st.builds(Welcome, places),
    st.builds(Probe, hops),
    st.builds(ProbeReply, hops),
)
CLON = SCAMP | st.one_of(
    st.builds(NodeInfo, hops, st.lists(hops, max_size=17).map(tuple)),
    st.builds(ContactWanted, st.integers(0, 30)),
    st.builds(Contact, peers, places),
)
entries = st.lists(st.tuples(peers, hops), max_size=12).map(tuple)
CYCLON = st.one_of(
    st.just(Enter()), st.builds(EnterWalk, peers, hops), st.builds(Exchange, entries), st.builds(ExchangeReply, entries)
)
DONE = st.sampled_from(["link down"] * 6 + ["time passes"] * 6 + ["meet"] * 6 + ["leave"])


def steps(messages: st.SearchStrategy[Message]) -> st.SearchStrategy[list[tuple[Any, Any]]]:
    return st.lists(st.tuples(peers.filter(lambda peer: peer != ME), messages | DONE), min_size=15, max_size=60)


def play(process: Any, env: RecordingEnv, ear: Ear, history: list[tuple[Any, Any]]) -> None:
    process.listener = ear
    process.start([1, 2])
    for peer, what in history:
        if what == "link down":
            process.on_link_down(peer)
        elif what == "time passes":
            env.advance(11_000_000)
        elif what == "meet":
            process.meet(peer)
        elif what == "leave":
            process.leave()
        else:
            getattr(process, handler_name(type(what)))(peer, what)


def neighbours(ear: Ear) -> set[Any]:
    """Whom the layer above believes to have."""
    up: set[Any] = set()
    for note in ear.notes:
        if note[0] == "up":
            assert note[1] not in up, "told twice"
            up.add(note[1])
        elif note[0] == "down":
            up.remove(note[1])
    return up


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("distances", ["labels", "rtt 3ms"])
@given(data=st.data())
@settings(max_examples=60)
def test_views_stay_sound_whatever_comes(symmetric: bool, distances: str, data: st.DataObject) -> None:
    env, ear = RecordingEnv(ME, place="a"), Ear()
    kind = data.draw(st.sampled_from([Scamp, Clon]))
    chosen: dict[str, Any] = {"view_max": VIEW_MAX, "symmetric": symmetric, "distances": distances, "hops_max": 6}
    chosen["lease_us"] = 20_000_000
    extra = {"discovery": data.draw(st.sampled_from(["never", "first"]))} if kind is Clon else {}
    process: Any = kind(env, (ClonConfig if kind is Clon else ScampConfig)(**chosen, **extra))
    play(process, env, ear, data.draw(steps(CLON if kind is Clon else SCAMP)))
    assert ME not in process.view
    assert set(process.arcs) == set(process.view)
    assert len(process.in_view) <= VIEW_MAX
    assert len(process.view) <= VIEW_MAX + len(process._asked) + 1, "a contact that is being asked may be one too many"
    expected = {*process.view, *process.in_view} if symmetric else set(process.view)
    assert neighbours(ear) == set(process.peers()) == expected
    assert len(process.contacts) <= 64
    if kind is Clon:
        known = [arc.distance for arc in process.arcs.values() if arc.distance != UNKNOWN]
        assert process.counts == [sum(process._kind(each) == at for each in known) for at in range(2)]
    if process.left:
        assert not process.peers()


@given(steps(CYCLON))
def test_cyclon_stays_sound_whatever_comes(history: list[tuple[Any, Any]]) -> None:
    env, ear = RecordingEnv(ME), Ear()
    process = Cyclon(env, CyclonConfig(view_size=VIEW_MAX, exchange_size=3))
    play(process, env, ear, history)
    assert ME not in process.ages
    assert len(process.ages) <= VIEW_MAX
    assert neighbours(ear) == set(process.peers())
