"""Who is charged for a dial, and for how long."""

from __future__ import annotations

from epicast.dissemination.brisa_messages import Activate, Data
from epicast.live.told import DIALS_MAX, NAMES_MAX, PERIOD_US, SILENT_US, TELLERS_MAX, Told, names_in
from epicast.membership.hyparview_messages import ForwardJoin, Join, KeepAlive, NeighbourReply, Shuffle


def test_a_peer_is_charged_for_what_it_named_and_no_more_than_its_share() -> None:
    told = Told()
    named = [f"n{number}" for number in range(2 * DIALS_MAX)]
    told.name("liar", named, 0)
    assert [told.may_dial(node, "", 0) for node in named].count(True) == DIALS_MAX
    assert not told.may_dial("n0", "", PERIOD_US - 1)
    assert told.may_dial("n0", "", PERIOD_US)


def test_what_others_named_too_is_dialled_on_their_word() -> None:
    told = Told()
    named = [f"n{number}" for number in range(DIALS_MAX)]
    told.name("liar", [*named, "both"], 0)
    told.name("honest", ["both"], 0)
    assert all(told.may_dial(node, "", 0) for node in named)
    assert told.may_dial("both", "", 0)


def test_a_message_of_a_peer_is_charged_to_it_also_for_processes_that_we_know() -> None:
    told = Told()
    told.reached("known")
    told.name("liar", ["known"], 0)
    assert [told.may_dial("known", "liar", 0) for _ in range(2 * DIALS_MAX)].count(True) == DIALS_MAX
    assert all(told.may_dial("known", "", 0) for _ in range(2 * DIALS_MAX))


def test_names_of_one_peer_push_out_no_names_of_others() -> None:
    told = Told()
    told.name("honest", ["theirs"], 0)
    told.name("liar", (f"n{number}" for number in range(10 * NAMES_MAX)), 0)
    told.name("liar", (f"m{number}" for number in range(DIALS_MAX)), 0)
    assert [told.may_dial(f"m{number}", "", 0) for number in range(DIALS_MAX)].count(True) == DIALS_MAX
    assert told.may_dial("theirs", "", 0)
    assert sum(len(each.named) for each in told._tellers.values()) <= NAMES_MAX + 1


def test_there_are_not_too_many_tellers_and_silent_ones_are_forgotten() -> None:
    told = Told()
    for number in range(2 * TELLERS_MAX):
        told.name(f"teller{number}", ["x"], number)
    assert len(told._tellers) == TELLERS_MAX
    assert told.may_dial("x", "", 0)
    told.forget(2 * TELLERS_MAX + SILENT_US)
    assert len(told._tellers) == 1, "the one that was charged is remembered for its minute"
    told.forget(2 * TELLERS_MAX + PERIOD_US)
    assert not told._tellers


def test_what_nobody_named_has_a_share_too() -> None:
    told = Told()
    assert [told.may_dial(f"n{number}", "", 0) for number in range(2 * DIALS_MAX)].count(True) == DIALS_MAX


def test_every_process_in_a_message_is_found() -> None:
    def found(msg: object) -> list[str]:
        names = names_in(type(msg))
        assert names is not None
        return list(names(msg))

    assert found(Shuffle("a", 3, ("b", "c"))) == ["a", "b", "c"]
    assert found(ForwardJoin("a", 3)) == ["a"]
    assert found(NeighbourReply(True, ("a", "b"))) == ["a", "b"]
    assert found(Activate(("a", 1), False, ("b",))) == ["a", "b"]
    assert set(found(Data(("a", 1), "b", 0, 0, ("c", "d"), 0, "t", b""))) == {"a", "b", "c", "d"}
    assert names_in(Join) is None
    assert names_in(KeepAlive) is not None
