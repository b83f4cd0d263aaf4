"""An Env that sends every message through the codec: what arrives is what a live node would have decoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from epicast.core.env import Env, Timer
from epicast.core.ids import NodeId
from epicast.core.message import Event, Message
from epicast.wire.codec import Decoder, frame


class CheckedEnv:
    __slots__ = ("_decoder", "_env", "me", "place", "rng")

    def __init__(self, env: Env, decoder: Decoder) -> None:
        self._env, self._decoder = env, decoder
        self.me: NodeId = env.me
        self.rng: Random = env.rng
        self.place = env.place

    def now_us(self) -> int:
        return self._env.now_us()

    def calendar_us(self) -> int:
        return self._env.calendar_us()

    def send(self, to: NodeId, msg: Message) -> None:
        self._env.send(to, self._decoded(msg))

    def send_many(self, to: Sequence[NodeId], msg: Message) -> None:
        self._env.send_many(to, self._decoded(msg))

    def shout(self, msg: Message) -> None:
        self._env.shout(self._decoded(msg))

    def after(self, delay_us: int, fn: Callable[..., None], *args: Any) -> Timer:
        return self._env.after(delay_us, fn, *args)

    def open(self, peer: NodeId) -> None:
        self._env.open(peer)

    def close(self, peer: NodeId) -> None:
        self._env.close(peer)

    def deliver(self, event: Event, sender: NodeId) -> None:
        self._env.deliver(event, sender)

    def correct(self, event: Event) -> None:
        self._env.correct(event)

    def record(self, kind: int, *args: Any, **columns: Any) -> None:
        self._env.record(kind, *args, **columns)

    def _decoded(self, msg: Message) -> Message:
        decoded = self._decoder.unframe(frame(msg))
        assert decoded == msg and type(decoded) is type(msg), f"{msg!r} is decoded as {decoded!r}"
        return decoded
