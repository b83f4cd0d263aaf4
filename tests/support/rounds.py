"""EpTO processes whose rounds and messages a test moves by hand."""

from __future__ import annotations

from typing import Any

from epicast.core.message import Event
from epicast.core.recording import RecordingEnv, Send
from epicast.dissemination.ball_messages import Ball
from epicast.dissemination.balls import Balls, BallsConfig
from epicast.ordering.epto import Epto, EptoConfig
from epicast.ordering.stable import StableOrder
from tests.support.neighbours import Members


class Process:
    """`got` has what reached the application: round (the first is 0), source, number."""

    def __init__(
        self, me: int, peers: tuple[int, ...], order: type[StableOrder] = StableOrder, **settings: Any
    ) -> None:
        self.env = RecordingEnv(me)
        self.got: list[tuple[int, int, int]] = []
        late, scope = settings.pop("late", "drop"), settings.pop("scope", "topic")
        members = Members(peers)
        self.epto = Epto(self.env, EptoConfig(late=late, scope=scope), members, self._deliver)  # type: ignore[arg-type]
        self.epto.order = order(self.env, self.epto.config, self._deliver)  # type: ignore[arg-type]
        self.balls = Balls(self.env, BallsConfig(**settings), members, self.epto.receive)  # type: ignore[arg-type]
        self.epto.attach(self.balls)

    def _deliver(self, event: Event, sender: int) -> None:
        self.got.append((self.balls.round - 1, event.source, event.seq))  # type: ignore[arg-type]

    def round(self) -> list[Ball]:
        """Let one pass; the ball that it threw, if any."""
        self.env.take()
        self.balls.end_round()
        found = {id(sent.msg): sent.msg for sent in self.env.effects if isinstance(sent, Send)}
        return [msg for msg in found.values() if isinstance(msg, Ball)]

    @property
    def order(self) -> list[int]:
        """The sources of what was delivered."""
        return [source for _, source, _ in self.got]
