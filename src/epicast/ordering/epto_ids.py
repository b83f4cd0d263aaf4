"""EpTO over another dissemination: payloads travel once, by whatever the stack has, and balls carry keys alone.

A ball of keys is as large as one with empty payloads: a large payload crosses the network once for each process, by
BRISA say, instead of K times a round for TTL rounds. The key of an event stands at the end of its payload too, so that

- whoever signs its messages signs their place in the order as well: a key that somebody changed on its way finds no
  payload;
- a payload is as good as a ball that brings its key: a process which all balls missed has a hole only if the
  dissemination leaves one too. Then nobody knows how old the event is: it is taken for new, and delivered late but in
  order.

An event that is stable but has no payload holds up what is behind it, for `payload_wait_us` at most. A process that
stood still, because its machine slept say, missed balls; it delivers nothing for as long, in which the dissemination
may bring what it missed.
"""

from __future__ import annotations

from typing import ClassVar

from epicast.core.config import Config, PositiveDuration
from epicast.core.env import Env
from epicast.core.errors import ConfigError, WireError
from epicast.core.ids import NodeId
from epicast.core.message import Event, Message
from epicast.core.records import Kind
from epicast.core.roles import Deliver, Disseminator, Membership
from epicast.dissemination.ball_keys import TIMESTAMP_MAX, make_key
from epicast.dissemination.ball_messages import Ball, BallsConfig, Heads
from epicast.dissemination.balls import Balls
from epicast.ordering import trailer
from epicast.ordering.epto import TotalOrder
from epicast.ordering.stable import EptoConfig, Level

__all__ = ["EptoIds", "EptoIdsConfig"]

STOOD_STILL_US = 1_000_000  # between two rounds: at least
TOO_FAR = "a time far in the future"
_TIMESTAMP_BYTES = 8
_TOTAL = bytes([trailer.TOTAL])


class EptoIdsConfig(Config):
    balls: BallsConfig = BallsConfig()
    order: EptoConfig = EptoConfig()
    payload_wait_us: PositiveDuration = 8_000_000  # our guess: a tree is repaired and has caught up by then


class EptoIds(TotalOrder):
    __slots__ = ("_quiet_until_us", "_round_us", "config")

    handles: ClassVar[tuple[type[Message], ...]] = (Ball, Heads)
    payloads_in_balls = False

    def __init__(self, env: Env, config: EptoIdsConfig, members: Membership, deliver: Deliver) -> None:
        super().__init__(env, config.order, deliver)
        self.config = config
        self.use(Balls(env, config.balls, members, _to_nobody))
        self._round_us = env.now_us()  # when the last round was
        self._quiet_until_us = 0
        self.patience = config.payload_wait_us // config.balls.period_us

    def attach(self, dissemination: Disseminator) -> None:
        if isinstance(dissemination, Balls):
            raise ConfigError("stack.ordering.protocol: over balls use epto, whose payloads travel in them")

    def start(self, *, first: bool = False) -> None:
        self.balls.start()

    def leave(self) -> None:
        self.balls.leave()

    def on_ball(self, sender: NodeId, msg: Ball) -> None:
        self.balls.on_ball(sender, msg)

    def on_heads(self, sender: NodeId, msg: Heads) -> None:
        self.balls.on_heads(sender, msg)

    # Payloads

    def dress(self, topic: str, payload: bytes) -> bytes:
        timestamp = self.balls.clock.take()
        return trailer.add(payload, _TOTAL + timestamp.to_bytes(_TIMESTAMP_BYTES, "big"))

    def receive(self, event: Event, sender: NodeId) -> None:
        try:
            payload, timestamp = self._undress(event.payload)
        except WireError as error:
            self.env.record(Kind.NONSENSE, sender, event.source, event.seq, topic=event.topic, detail=str(error))
            return
        me, balls = self.env.me, self.balls
        if not balls.clock.plausible(timestamp):
            # Nobody sends it again, and our own idea of the time may be wrong: we may have stood still.
            self.env.record(Kind.NONSENSE, sender, event.source, event.seq, topic=event.topic, detail=TOO_FAR)
            self.order.refuse(event.source, event.seq, event.topic, TOO_FAR)
            return
        key = make_key(timestamp, event.source, event.seq)
        if sender == me:
            self.env.record(Kind.PUBLISH, me, me, event.seq, 0, event.topic, detail=str(timestamp))
            balls.add(key, (event.topic, b""))
        balls.clock.see(timestamp)
        # Nobody says how old it is: as young as can be. It counts from the next round on.
        self.order.take(key, balls.round, event.hops, event.topic, payload)

    @staticmethod
    def _undress(dressed: bytes) -> tuple[bytes, int]:
        payload, said = trailer.split(dressed)
        timestamp = int.from_bytes(said[1:], "big")
        if said[:1] != _TOTAL or len(said) != 1 + _TIMESTAMP_BYTES or timestamp > TIMESTAMP_MAX:
            raise WireError("not a place in a total order")
        return payload, timestamp

    def on_round(self, levels: list[tuple[int, Level]]) -> None:
        now, before = self.env.now_us(), self._round_us
        self._round_us = now
        longest_us = self.balls.ttl * self.config.balls.period_us * (1 + self.config.balls.drift)
        if now - before > max(longest_us, STOOD_STILL_US):
            self._quiet_until_us = now + self.config.payload_wait_us
        super().on_round(levels)

    def _is_quiet(self) -> bool:
        return self.env.now_us() < self._quiet_until_us


def _to_nobody(event: Event, sender: NodeId) -> None:
    """What our balls carry has no payload."""
