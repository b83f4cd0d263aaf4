"""One CLON process: which kinds of copies it makes, keeps and gives up, and how newcomers find contacts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from epicast.core.errors import ConfigError
from epicast.core.recording import RecordingEnv, Send, Shout
from epicast.membership.clon import Clon, ClonConfig
from epicast.membership.clon_messages import Contact, ContactWanted, NodeInfo
from epicast.membership.round_trips import Probe, ProbeReply
from epicast.membership.scamp_messages import ANY_KIND, Dropped, ForwardedSubscription, Kept, Subscription, Welcome
from tests.support.neighbours import Ear

S = 1_000_000
NEAR, FAR = 0, 1
JOINER = 500
QUIET = {"heartbeat_us": 0, "lease_us": 0, "balance_interval_us": 0}


def place_of(node: int) -> str:
    """Tens are areas."""
    return str(node // 10)


def clon(me: int = 0, view: Iterable[int] = (), *, seed: int = 0, **settings: Any) -> tuple[Clon, RecordingEnv, Ear]:
    env, ear = RecordingEnv(me, seed, place_of(me)), Ear()
    process = Clon(env, ClonConfig(**{**QUIET, **settings}))
    process.listener = ear
    for peer in view:
        process._add(peer, place_of(peer))
    env.take()
    ear.notes.clear()
    return process, env, ear


def sends(env: RecordingEnv, kind: type) -> list[Send]:
    return [effect for effect in env.take() if isinstance(effect, Send) and isinstance(effect.msg, kind)]


# Kinds of copies


@pytest.mark.parametrize(
    ("joiner", "kinds"),
    [(5, {NEAR: 6, FAR: 2}), (JOINER, {NEAR: 7, FAR: 1})],
    ids=["a near joiner", "a far joiner"],
)
def test_copies_and_the_joiners_own_link_make_up_what_is_wanted(joiner: int, kinds: dict[int, int]) -> None:
    process, env, _ = clon(view=(1, 2, 11))
    process.on_subscription(joiner, Subscription(place_of(joiner)))
    sent = [each.msg for each in sends(env, ForwardedSubscription)]
    assert Counter(msg.kind for msg in sent if isinstance(msg, ForwardedSubscription)) == kinds


def test_single_copies_have_the_wanted_kinds_on_average() -> None:
    process, env, _ = clon(view=(1, 2, 11))
    for _ in range(2000):
        process.on_subscription(5, Subscription(place_of(5), copies=1))
    far = [msg for each in sends(env, ForwardedSubscription) if getattr(msg := each.msg, "kind", None) == FAR]
    assert len(far) / 2000 == pytest.approx(2 / 9, abs=0.04)


def test_where_nobody_is_far_all_copies_are_near() -> None:
    process, env, _ = clon(view=(1, 2))
    process.on_subscription(5, Subscription(place_of(5)))
    assert {getattr(each.msg, "kind", None) for each in sends(env, ForwardedSubscription)} == {NEAR}


def test_three_grades_of_distance_have_three_shares() -> None:
    process, env, _ = clon(wanted=(5, 3, 1))
    process.env.place = "eu/a"  # type: ignore[misc]
    for peer, place in ((1, "eu/a"), (2, "eu/b"), (3, "us/c")):
        process._add(peer, place)
    env.take()
    process.on_subscription(9, Subscription("us/d"))
    sent = Counter(getattr(each.msg, "kind", None) for each in sends(env, ForwardedSubscription))
    assert sent == {0: 5, 1: 3}, "the joiner's own link is the farthest one"


# Keeping


@pytest.mark.parametrize(("kind", "subject"), [(NEAR, 5), (FAR, JOINER)])
def test_a_copy_is_kept_with_one_over_the_neighbours_of_its_kind_plus_one(kind: int, subject: int) -> None:
    process, _env, _ = clon(view=(1, 2, 3, 4, 11))
    trials = 5000
    kept = sum(process.accepts(ForwardedSubscription(subject, 128, place_of(subject), kind)) for _ in range(trials))
    assert kept / trials == pytest.approx(1 / (process.counts[kind] + 1), abs=0.03)


def test_a_copy_of_the_other_kind_is_handed_on_to_somebody_whom_it_fits() -> None:
    process, env, _ = clon(view=(1, 2, 11, 501))
    for _ in range(50):
        process.on_forwarded_subscription(9, ForwardedSubscription(JOINER, 128, place_of(JOINER), NEAR))
    assert {each.to for each in sends(env, ForwardedSubscription)} == {501}, "which is where the joiner is"


def test_half_way_through_its_hops_a_copy_is_kept_by_anybody() -> None:
    process, _env, _ = clon(view=(1, 2))
    early, late = (ForwardedSubscription(JOINER, hops, place_of(JOINER), NEAR) for hops in (64, 63))
    assert not any(process.accepts(early) for _ in range(500))
    assert any(process.accepts(late) for _ in range(500))


def test_the_documents_factors_can_be_had() -> None:
    """0.7 and 1.3 times the size of the view."""
    process, _env, _ = clon(view=(1, 2, 3, 4, 5, 6, 7, 8, 11, 12), factors=(0.7, 1.3))
    for subject, perceived in ((9, 7.0), (JOINER, 13.0)):
        copy = ForwardedSubscription(subject, 128, place_of(subject))
        assert sum(process.accepts(copy) for _ in range(8000)) / 8000 == pytest.approx(1 / perceived, abs=0.02)


def test_how_far_a_contact_is_counts_once_it_has_told() -> None:
    process, _env, _ = clon()
    process.start([11])
    assert process.counts == [0, 0]
    process.on_welcome(11, Welcome(place_of(11)))
    assert process.counts == [0, 1]
    assert process.distance(11) == 1


# Round trips


def test_by_round_trip_a_copy_waits_until_its_subject_is_measured() -> None:
    process, env, _ = clon(distances="rtt 10ms")
    process.on_forwarded_subscription(9, ForwardedSubscription(JOINER, 128, "", NEAR))
    assert env.take() == [Send(JOINER, Probe(0))]
    env.advance(2_000)
    process.on_probe_reply(JOINER, ProbeReply(0))
    assert Send(JOINER, Kept("0")) in env.take()
    assert process.distance(JOINER) == NEAR
    assert process.rtt_us(JOINER) == 2_000


def test_by_round_trip_a_subject_that_does_not_answer_is_gone() -> None:
    process, env, _ = clon(distances="rtt 10ms")
    process.on_forwarded_subscription(9, ForwardedSubscription(JOINER, 128, "", NEAR))
    env.take()
    env.advance(60 * S)
    assert env.take() == []
    assert process.peers() == []


# Balancing


def test_counts_walk_to_the_end_of_their_hops() -> None:
    process, env, _ = clon(view=(1,), balance_interval_us=S)
    process.start([])
    env.advance(S)
    assert sends(env, NodeInfo) == [Send(1, NodeInfo(5, (1, 0)))]
    process.on_node_info(1, NodeInfo(3, (1, 0)))
    assert sends(env, NodeInfo) == [Send(1, NodeInfo(2, (1, 0)))]


def test_whoever_has_over_three_times_as_many_gives_one_of_that_kind_up() -> None:
    process, env, _ = clon(view=(1, 2, 3, 4, 11))
    process.on_node_info(1, NodeInfo(0, (1, 1)))
    [dropped, copy] = [effect for effect in env.take() if isinstance(effect, Send)]
    assert dropped.msg == Dropped()
    assert copy.msg == ForwardedSubscription(dropped.to, 128, "0", NEAR)
    assert process.counts == [3, 1]
    process.on_node_info(1, NodeInfo(0, (1, 1)))
    assert env.take() == [], "three is not over three times one"


def test_nobody_gives_up_its_last_of_a_kind() -> None:
    """E-CLON-17: somebody who has none would take it from everyone."""
    process, env, _ = clon(view=(1, 11))
    process.on_node_info(1, NodeInfo(0, (0, 0)))
    assert env.take() == []


def test_half_of_what_is_wanted_is_kept_whatever_others_say_they_have() -> None:
    process, env, _ = clon(view=(*range(1, 10), 11, 12, 13))
    for _ in range(50):
        process.on_node_info(1, NodeInfo(0, (0, 0)))
    assert process.counts == [3, 1]
    env.take()
    process.on_node_info(1, NodeInfo(64, (0, 0)))
    assert [sent.msg.hops_left for sent in sends(env, NodeInfo)] == [4]  # type: ignore[attr-defined]


def test_what_a_tree_needs_is_not_given_up() -> None:
    process, env, ear = clon(view=(1, 2, 3, 4))
    ear.used = (1, 2, 3)
    process.on_node_info(1, NodeInfo(0, (1, 0)))
    assert env.take() == []


# Newcomers


def newcomer(**settings: Any) -> tuple[Clon, RecordingEnv]:
    process, env, _ = clon(5, discovery="first", **settings)
    process.start([JOINER])
    return process, env


def test_a_newcomer_calls_louder_and_louder_and_then_asks_its_seeds() -> None:
    """E-CLON-24: nobody may answer."""
    _, env = newcomer()
    env.advance(2 * S)
    calls = [effect.msg for effect in env.effects if isinstance(effect, Shout)]
    assert calls == [ContactWanted(rarity) for rarity in (10, 8, 6, 4, 2, 0)]
    assert sends(env, Subscription) == [Send(JOINER, Subscription("0"))]


def test_the_first_contact_is_always_taken_and_later_ones_by_chance() -> None:
    taken = Counter[int]()
    for seed in range(300):
        process, _, _ = clon(5, discovery="first", seed=seed)
        process.start([])
        for contact in (1, 2, 3):
            process.on_contact(1, Contact(contact, "0"))
        taken.update(process.peers())
    assert taken[1] == 300
    assert taken[2] / 300 == pytest.approx(1 / 2, abs=0.1)
    assert taken[3] / 300 == pytest.approx(5 / 12, abs=0.1)


def test_all_extra_copies_go_out_once_and_no_more() -> None:
    """E-CLON-19: as printed the check would run again after every contact but the first."""
    process, env = newcomer(copies=6.0, target_degree=0)
    process.on_contact(1, Contact(1, "0"))
    process.on_contact(1, Contact(1, "0"))
    assert len(sends(env, ForwardedSubscription)) == 2
    env.advance(10 * S)
    assert len(sends(env, ForwardedSubscription)) == 5
    process.on_contact(2, Contact(2, "0"))
    assert process.peers() == [1], "it has what it needs"


def test_with_a_target_the_links_and_copies_of_a_join_come_to_it() -> None:
    """E-CLON-23: as printed every contact adds two arcs, and views grow with every join."""
    for contacts in (1, 3, 50):
        process, env = newcomer(target_degree=9)
        for contact in range(11, 11 + contacts):
            process.on_contact(contact, Contact(contact, place_of(contact)))
        env.advance(10 * S)
        links, copies = len(process.view), len(sends(env, ForwardedSubscription))
        assert links + copies == 9 or (links > 4 and copies == 4), "there may be more contacts than that, but no copies"


def test_nobody_takes_itself_as_a_contact() -> None:
    process, _ = newcomer()
    process.on_contact(1, Contact(5, "0"))
    assert process.peers() == []


def test_half_of_the_answers_name_somebody_from_another_area() -> None:
    process, env, _ = clon(view=(1, 2, 11, 12))
    for _ in range(1000):
        process.on_contact_wanted(5, ContactWanted())
    named = Counter(getattr(each.msg, "peer", None) for each in sends(env, Contact))
    assert named[0] / 1000 == pytest.approx(0.5, abs=0.05)
    assert named[11] + named[12] == 1000 - named[0]


def test_whoever_knows_nobody_outside_names_itself() -> None:
    """E-CLON-20."""
    process, env, _ = clon(view=(1, 2))
    for _ in range(100):
        process.on_contact_wanted(5, ContactWanted())
    assert {each.msg for each in sends(env, Contact)} == {Contact(0, "0")}


@pytest.mark.parametrize(
    ("settings", "rarity", "size", "chance"),
    [
        ({}, 0, 9, 1.0),
        ({}, 3, 9, 1 / 8),
        ({"reply": "always"}, 3, 9, 1.0),
        ({"reply": "share"}, 0, 9, 0.05),
        ({"reply": "size"}, 0, 9, 9 / 1000),
        ({"reply": "size-and-areas"}, 0, 9, 9 / 200),
        (
            {"reply": "size-and-areas"},
            0,
            8,
            0.4,
        ),  # where the document's estimate is small, everybody answers (E-CLON-22)
        ({"reply": "size-and-areas"}, 0, 5, 5 / 10**5),
    ],
)
def test_the_chance_to_answer(settings: dict[str, Any], rarity: int, size: int, chance: float) -> None:
    process, _, _ = clon(view=range(1, size + 1), **settings)
    assert process._discovery.reply_chance(rarity) == pytest.approx(chance)


def test_whoever_is_alone_does_not_answer() -> None:
    process, env, _ = clon()
    process.on_contact_wanted(5, ContactWanted())
    assert env.take() == []


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"wanted": [0, 0]}, "wanted: expected at least one neighbour"),
        ({"factors": [0.7]}, "factors: expected one for near and one for far"),
        ({"distances": "by heart"}, "distances: expected one of"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        ClonConfig.load(settings)


def test_copies_of_no_kind_are_as_in_scamp() -> None:
    process, _, _ = clon(view=(1, 2, 3, 11))
    copy = ForwardedSubscription(JOINER, 128, place_of(JOINER), ANY_KIND)
    assert sum(process.accepts(copy) for _ in range(5000)) / 5000 == pytest.approx(1 / 5, abs=0.03)
