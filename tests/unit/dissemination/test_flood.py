from epicast.core.message import Event
from epicast.core.recording import Record, RecordingEnv, Send
from epicast.core.records import Kind
from epicast.dissemination.flood import Flood, FloodConfig, Gossip
from tests.support.neighbours import Members

Got = list[tuple[int, int, int, int]]  # source, number, hops, sender


def flood(me: int = 0, peers: tuple[int, ...] = (1, 2, 3), **settings: int) -> tuple[Flood, RecordingEnv, Got]:
    env, got = RecordingEnv(me), []

    def deliver(event: Event, sender: int) -> None:
        got.append((event.source, event.seq, event.hops, sender))

    return Flood(env, FloodConfig(**settings), Members(peers), deliver), env, got


def test_a_publication_goes_to_all_neighbours_and_to_oneself() -> None:
    process, env, got = flood()
    assert process.broadcast("t", b"x") == (0, 0)
    assert env.effects == [Send(peer, Gossip(0, 0, 1, "t", b"x")) for peer in (1, 2, 3)]
    assert got == [(0, 0, 0, 0)]


def test_publications_are_numbered() -> None:
    process, _, _ = flood()
    assert [process.broadcast("t", b"") for _ in range(3)] == [(0, 0), (0, 1), (0, 2)]


def test_a_new_message_goes_to_all_but_its_sender() -> None:
    """E-B3."""
    process, env, got = flood()
    assert process.on_gossip(2, Gossip(9, 0, 4, "t", b"x")) is False
    assert env.effects == [Send(1, Gossip(9, 0, 5, "t", b"x")), Send(3, Gossip(9, 0, 5, "t", b"x"))]
    assert got == [(9, 0, 4, 2)]


def test_a_message_that_came_before_is_a_duplicate_and_goes_nowhere() -> None:
    process, env, got = flood()
    process.on_gossip(2, Gossip(9, 0, 1, "t", b"x"))
    env.take()
    assert process.on_gossip(1, Gossip(9, 0, 2, "t", b"x")) is True
    assert env.effects == []
    assert len(got) == 1


def test_ones_own_message_that_comes_back_is_a_duplicate() -> None:
    process, env, got = flood(me=0)
    process.broadcast("t", b"x")
    env.take()
    assert process.on_gossip(1, Gossip(0, 0, 2, "t", b"x")) is True
    assert env.effects == []
    assert len(got) == 1


def test_messages_of_one_source_may_come_in_any_order() -> None:
    process, _, got = flood()
    for seq in (5, 3, 4, 0, 7):
        assert process.on_gossip(1, Gossip(9, seq, 1, "t", b"")) is False
    assert [seq for _, seq, _, _ in got] == [5, 3, 4, 0, 7]
    for seq in (5, 3, 4, 0, 7):
        assert process.on_gossip(1, Gossip(9, seq, 1, "t", b"")) is True


def test_sources_are_told_apart() -> None:
    process, _, got = flood()
    process.on_gossip(1, Gossip(8, 0, 1, "t", b""))
    process.on_gossip(1, Gossip(9, 0, 1, "t", b""))
    assert [(source, seq) for source, seq, _, _ in got] == [(8, 0), (9, 0)]


def test_sources_above_the_cap_are_dropped_and_counted() -> None:
    process, env, got = flood(sources_max=1)
    process.on_gossip(1, Gossip(8, 0, 1, "t", b""))
    env.take()
    process.on_gossip(1, Gossip(9, 3, 1, "t", b""))
    assert len(got) == 1
    assert env.effects == []
    assert env.records == [Record(Kind.NONSENSE, source=9, seq=3, detail="too many sources")]


def test_at_the_cap_the_oldest_hole_is_told_by_its_own_numbers() -> None:
    process, env, _ = flood(ahead_max=2)
    for seq in (0, 3, 4, 6):
        process.on_gossip(1, Gossip(9, seq, 1, "t", b""))
    assert env.records == [Record(Kind.GAP, source=9, seq=3, detail="2 lost")], "1 and 2; 3 and 4 came"


def test_a_process_without_neighbours_delivers_to_itself() -> None:
    process, env, got = flood(peers=())
    process.broadcast("t", b"x")
    assert env.effects == []
    assert got == [(0, 0, 0, 0)]


def test_flooding_needs_no_link_in_particular_and_has_no_position() -> None:
    process, env, _ = flood()
    process.start()
    process.neighbour_up(4)
    process.heard(4, (), 0)
    process.neighbour_down(4, True)
    process.leave()
    assert process.positions() == ()
    assert not process.uses(1)
    assert env.effects == []
