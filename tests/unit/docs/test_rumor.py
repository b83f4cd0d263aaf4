"""The example protocol of docs/hacking.md: alone, and as part of a stack in the simulator."""

from typing import Any

import pytest

from epicast import simulate
from epicast.core.message import Event
from epicast.core.recording import RecordingEnv, Send
from epicast.stacks.stack import PROTOCOLS
from tests.support.neighbours import Members
from tests.unit.docs.rumor import Known, Push, RumorConfig, RumorMongering


class OneMember(Members):
    def sample(self, count: int) -> list[Any]:
        return self.view[:count]


def rumor(**settings: int) -> tuple[RumorMongering, RecordingEnv, list[Event]]:
    env, got = RecordingEnv(me=1), list[Event]()
    members: Any = OneMember([2, 3])
    return RumorMongering(env, RumorConfig(**settings), members, lambda event, _: got.append(event)), env, got


def test_a_new_rumor_is_delivered_and_pushed_on() -> None:
    mongering, env, got = rumor(round_us=1_000)
    mongering.start()
    assert mongering.on_push(2, Push(0, 0, 1, "t", b"x")) is False
    env.advance(1_000)
    assert got == [Push(0, 0, 1, "t", b"x")]
    assert env.effects == [Send(2, Push(0, 0, 2, "t", b"x"))]


def test_a_known_rumor_is_answered_and_not_delivered_again() -> None:
    mongering, env, got = rumor()
    for _ in range(2):
        duplicate = mongering.on_push(2, Push(0, 0, 1, "t", b"x"))
    assert duplicate is True
    assert env.effects == [Send(2, Known(0, 0))]
    assert len(got) == 1


def test_a_rumor_goes_cold_when_enough_neighbours_knew_it() -> None:
    mongering, _, _ = rumor(heat_max=2)
    mongering.broadcast("t", b"x")
    mongering.on_known(2, Known(1, 0))
    assert mongering.hot
    mongering.on_known(3, Known(1, 0))
    mongering.on_known(3, Known(1, 0))
    assert not mongering.hot


def test_the_hottest_stack_reaches_everyone(monkeypatch: pytest.MonkeyPatch) -> None:
    where = ("tests.unit.docs.rumor", "RumorMongering", "RumorConfig")
    monkeypatch.setitem(PROTOCOLS["dissemination"], "rumor", where)
    stack = {"membership": {"protocol": "hyparview"}, "dissemination": {"protocol": "rumor", "heat_max": 16}}
    summary = simulate(stack, nodes=60, messages=10, codec_check=True)
    assert summary.delivery_ratio == 1.0
    assert summary.repeated == 0
