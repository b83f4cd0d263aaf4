from epicast.core.recording import RecordingEnv
from epicast.membership.static import Static, StaticConfig
from tests.support.neighbours import Ear


def static(peers: tuple[int, ...]) -> tuple[Static, RecordingEnv, Ear]:
    env, ear = RecordingEnv(me=0), Ear()
    view = Static(env, StaticConfig())
    view.listener = ear
    view.start(peers)
    return view, env, ear


def test_the_contacts_are_the_neighbours_in_the_given_order() -> None:
    view, _, ear = static((3, 1, 2))
    assert list(view.peers()) == [3, 1, 2]
    assert ear.notes == [("up", 3), ("up", 1), ("up", 2)]


def test_nothing_is_sent_opened_or_scheduled() -> None:
    view, env, _ = static((1, 2))
    view.widen()
    view.leave()
    assert env.effects == []
    assert env.timers == []


def test_a_neighbour_whose_link_goes_down_stays_a_neighbour() -> None:
    view, _, ear = static((1, 2))
    view.on_link_up(1)
    view.on_link_down(1)
    assert list(view.peers()) == [1, 2]
    assert ear.notes == [("up", 1), ("up", 2)]


def test_a_sample_holds_distinct_neighbours() -> None:
    view, _, _ = static((1, 2, 3, 4))
    sample = view.sample(3)
    assert len(sample) == len(set(sample)) == 3
    assert set(sample) <= {1, 2, 3, 4}


def test_a_sample_is_never_larger_than_the_view() -> None:
    view, _, _ = static((1, 2))
    assert sorted(view.sample(5)) == [1, 2]
    assert static(())[0].sample(5) == []


def test_round_trips_are_not_measured() -> None:
    assert static((1,))[0].rtt_us(1) is None
