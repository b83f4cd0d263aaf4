"""One Cyclon process: whom it exchanges entries with, what makes room, and how the dead go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicast.core.errors import ConfigError
from epicast.core.recording import RecordingEnv, Send
from epicast.membership.cyclon import (
    PARTNERS_MAX,
    SILENT_MAX,
    Cyclon,
    CyclonConfig,
    Enter,
    EnterWalk,
    Exchange,
    ExchangeReply,
)
from tests.support.neighbours import Ear, exchange

S = 1_000_000


def cyclon(
    me: int = 0, ages: Mapping[int, int] | None = None, *, seed: int = 0, **settings: Any
) -> tuple[Cyclon, RecordingEnv, Ear]:
    env, ear = RecordingEnv(me, seed), Ear()
    process = Cyclon(env, CyclonConfig(**{"view_size": 4, "exchange_size": 3, **settings}))
    process.listener = ear
    for peer, age in (ages or {}).items():
        process._add(peer, age)
    env.take()
    ear.notes.clear()
    return process, env, ear


def sends(env: RecordingEnv) -> list[Send]:
    return [effect for effect in env.take() if isinstance(effect, Send)]


# Exchanging


def test_the_oldest_is_asked_and_gets_a_fresh_entry_of_us() -> None:
    """E-CLON-5."""
    process, env, _ = cyclon(ages={1: 3, 2: 9, 3: 0})
    process._on_exchange_due()
    (sent,) = sends(env)
    assert sent.to == 2
    assert isinstance(sent.msg, Exchange)
    assert sent.msg.entries[0] == (0, 0)
    assert dict(sent.msg.entries[1:]) == {1: 4, 3: 1}, "ages have grown, and the one that is asked is not among them"
    assert process.peers() == [1, 2, 3]


def test_the_answer_takes_the_place_of_what_was_sent() -> None:
    process, env, _ear = cyclon(ages={1: 3, 2: 9, 3: 0, 4: 1})
    process._on_exchange_due()
    (sent,) = sends(env)
    offered = [peer for peer, _ in sent.msg.entries[1:]]
    kept = {1, 3, 4} - set(offered)
    process.on_exchange_reply(2, ExchangeReply(((7, 5), (8, 6), (0, 9))))
    assert set(process.ages) >= kept | {7, 8}
    assert 2 not in process.ages
    assert 0 not in process.ages
    assert len(process.ages) <= 4
    assert process.ages[7] == 5
    assert process.asked is None


def test_as_many_entries_are_given_as_came() -> None:
    process, env, _ = cyclon(ages={1: 3, 2: 9, 3: 0, 4: 1})
    process.on_exchange(9, Exchange(((9, 0), (8, 2))))
    (sent,) = sends(env)
    assert sent.to == 9
    assert len(sent.msg.entries) == 2
    assert len(process.ages) == 4
    assert process.ages[9] == 0
    assert process.ages[8] == 2
    assert set(process.ages) & {peer for peer, _ in sent.msg.entries} == set(), "what was given away makes room"


def test_where_nothing_was_given_away_the_oldest_makes_room() -> None:
    """E-CLON-5."""
    process, _, ear = cyclon(ages={1: 3, 2: 9, 3: 0, 4: 1})
    process._merge([(7, 0)], ())
    assert set(process.ages) == {1, 3, 4, 7}
    assert ear.notes == [("down", 2, "alive"), ("up", 7)]


def test_who_does_not_answer_is_gone() -> None:
    process, env, ear = cyclon(ages={1: 3, 2: 9})
    process._on_exchange_due()
    env.advance(2 * S)
    assert process.peers() == [1]
    assert ear.notes == [("down", 2, "gone")]
    process._on_exchange_due()
    assert process.asked == 1


entries = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 50)), max_size=12).map(tuple)


@given(st.dictionaries(st.integers(1, 12), st.integers(0, 50), max_size=4), entries, entries, st.integers(0, 99))
def test_a_view_stays_within_bounds_and_holds_nobody_twice(
    ages: dict[int, int], first: tuple[tuple[int, int], ...], second: tuple[tuple[int, int], ...], seed: int
) -> None:
    process, _env, ear = cyclon(ages=ages, seed=seed)
    process.on_exchange(5, Exchange(first))
    process._on_exchange_due()
    process.on_exchange_reply(process.asked or 6, ExchangeReply(second))
    assert len(process.ages) <= 4
    assert 0 not in process.ages
    seen = set(ages)
    for note in ear.notes:
        assert (note[1] in seen) == (note[0] == "down"), "the layer above is told each once"
        seen ^= {note[1]}
    assert seen == set(process.ages)


def test_strangers_cannot_fill_a_full_view() -> None:
    process, _, _ = cyclon(ages={1: 3, 2: 9, 3: 0, 4: 1})
    process.on_exchange_reply(9, ExchangeReply(((7, 0), (8, 0))))
    assert set(process.ages) == {1, 2, 3, 4}


# Joining


def test_who_did_not_answer_comes_back_with_younger_entries_only() -> None:
    """Where views are as large as the system, all others still hold the dead, and would give it back for ever."""
    process, env, _ = cyclon(ages={1: 3, 2: 9})
    process._on_exchange_due()
    env.advance(process.config.reply_timeout_us)
    assert process.peers() == [1]
    process._on_exchange_due()
    process.on_exchange_reply(1, ExchangeReply(((2, 1), (3, 1))))
    assert 2 not in process.ages, "that entry was made before the question"
    process.on_exchange(3, Exchange(((3, 0), (2, 0))))
    assert 2 in process.ages, "this one after it"


def test_who_exchanges_with_us_is_not_silent() -> None:
    process, env, _ = cyclon(ages={1: 3, 2: 9})
    process._on_exchange_due()
    env.advance(process.config.reply_timeout_us)
    process.on_exchange(2, Exchange(((2, 0),)))
    assert 2 in process.ages
    assert process.silent == {}


def test_the_silent_are_bounded() -> None:
    process, _, _ = cyclon(ages={1: 3})
    for peer in range(SILENT_MAX + 10):
        process._on_no_reply(peer + 100)
    assert list(process.silent) == list(range(110, SILENT_MAX + 110))


def test_a_contact_that_answers_the_driver_is_a_fresh_entry() -> None:
    """Two parts that have forgotten each other find together through it."""
    process, env, _ = cyclon(ages={1: 3, 2: 9, 3: 0, 4: 1})
    process.meet(7)
    process.meet(7)
    assert process.ages == {1: 3, 3: 0, 4: 1, 7: 0}
    assert sends(env) == []


def test_a_contact_sends_walks_for_a_joiner() -> None:
    process, env, _ = cyclon(ages={1: 0, 2: 0})
    process.on_enter(9, Enter())
    answer, *walks = sends(env)
    assert len(walks) == 4
    assert {each.msg for each in walks} == {EnterWalk(9, 5)}
    assert answer.to == 9
    assert dict(answer.msg.entries) == {1: 0, 2: 0}, "in case that no walk comes to its end"


def test_a_walk_ends_in_an_exchange_of_one_entry() -> None:
    process, env, _ = cyclon(ages={1: 3, 2: 9, 3: 0, 4: 1})
    process.on_enter_walk(5, EnterWalk(9, 1))
    assert sends(env)[0].msg == EnterWalk(9, 0)
    process.on_enter_walk(5, EnterWalk(9, 0))
    (sent,) = sends(env)
    ((given, _),) = sent.msg.entries
    assert sent.to == 9
    assert set(process.ages) == {1, 2, 3, 4, 9} - {given}


def test_two_processes_and_a_third() -> None:
    processes = {me: cyclon(me, seed=me)[0] for me in range(3)}
    for me, process in processes.items():
        process.start([0] if me else [])
        exchange(processes)
    assert all(process.peers() for process in processes.values())
    known = {peer for process in processes.values() for peer in process.peers()}
    assert known == {0, 1, 2}


def test_a_process_that_knows_nobody_asks_a_contact_again() -> None:
    process, env, _ = cyclon(exchange_interval_us=S)
    process.start([7])
    process.on_link_down(7)
    env.take()
    env.advance(S)
    assert Send(7, Enter()) in sends(env)


def test_a_joiner_without_an_answer_turns_to_every_contact() -> None:
    process, env, ear = cyclon(exchange_interval_us=S)
    process.start([7, 8, 9])
    env.advance(3 * S)
    asked = [effect.to for effect in env.effects if isinstance(effect, Send)]
    assert set(asked[:3]) == {7, 8, 9}
    assert process.peers() == [process.entering], "whoever kept silent is not a peer"
    silent = len(asked) - 1
    assert [note for note in ear.notes if note[0] == "down"] == [("down", peer, "gone") for peer in asked[:silent]]


def test_any_answer_ends_the_search_for_a_contact() -> None:
    process, env, _ = cyclon(exchange_interval_us=S)
    process.start([7, 8, 9])
    env.advance(S)
    process.on_exchange_reply(5, ExchangeReply(((4, 1),)))
    env.take()
    env.advance(S)
    assert not [sent for sent in sends(env) if isinstance(sent.msg, Enter)]


def test_when_the_contacts_are_gone_former_partners_are_asked() -> None:
    process, env, _ = cyclon(ages={5: 3}, exchange_interval_us=S)
    process.contacts[7] = None
    process._on_exchange_due()
    process.on_exchange_reply(5, ExchangeReply(()))
    process.on_link_down(5)
    assert process.peers() == []
    env.take()
    env.advance(2 * S)
    process._on_exchange_due()
    process._on_exchange_due()
    assert [sent.to for sent in sends(env)] == [7, 5]


def test_a_partner_that_answered_stays_while_there_is_room() -> None:
    """In a small system all have the same oldest entry: if each gave it up, nobody would know that process."""
    process, _, ear = cyclon(ages={5: 3, 6: 1}, exchange_interval_us=S, view_size=3, exchange_size=2)
    process._on_exchange_due()
    process.on_exchange_reply(5, ExchangeReply(((8, 4),)))
    assert process.ages == {5: 0, 6: 2, 8: 4}
    assert ("down", 5, "alive") not in ear.notes


def test_a_partner_that_answered_makes_room_in_a_full_view() -> None:
    process, _, _ = cyclon(ages={5: 3, 6: 1}, exchange_interval_us=S, view_size=2, exchange_size=2)
    process._on_exchange_due()
    process.on_exchange_reply(5, ExchangeReply(((8, 4),)))
    assert process.ages == {6: 2, 8: 4}


@given(st.lists(st.integers(1, 100), max_size=60))
def test_only_the_last_partners_are_remembered(partners: list[int]) -> None:
    process, _, _ = cyclon()
    for partner in partners:
        process._remember(partner)
    newest = list(dict.fromkeys(reversed(partners)))
    assert list(reversed(process.partners)) == newest[:PARTNERS_MAX]


def test_more_to_exchange_than_there_are_places_is_refused() -> None:
    with pytest.raises(ConfigError, match="exchange_size: expected at most view_size = 4, got 5"):
        CyclonConfig.load({"view_size": 4, "exchange_size": 5}, "x")


# Lies


@pytest.mark.parametrize("kind", [Exchange, ExchangeReply])
def test_one_message_replaces_no_more_of_a_view_than_an_exchange(kind: type[Exchange | ExchangeReply]) -> None:
    known = dict.fromkeys(range(1, 11), 1)
    process, env, _ = cyclon(ages=known, view_size=10, exchange_size=3)
    process.asked = 1
    entries = tuple((peer, 0) for peer in range(100, 130))
    if kind is Exchange:
        process.on_exchange(1, Exchange(entries))
        [reply] = sends(env)
        assert len(reply.msg.entries) == 3  # type: ignore[attr-defined]
    else:
        process.on_exchange_reply(1, ExchangeReply(entries))
    assert len(process.ages.keys() & known.keys()) == 7


def test_a_walk_has_no_more_hops_left_than_ours_have_whatever_its_sender_says() -> None:
    process, env, _ = cyclon(ages={1: 0, 2: 0}, walk_length=5)
    process.on_enter_walk(1, EnterWalk(50, 64))
    [onward] = sends(env)
    assert onward.msg == EnterWalk(50, 4)
