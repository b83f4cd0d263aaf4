"""A task that repeats: every `period_us`, first after a random part of it, so that nodes do not beat together."""

from __future__ import annotations

from collections.abc import Callable

from epicast.core.env import Env, Timer


class Periodic:
    __slots__ = ("_fn", "_timer", "env", "period_us")

    def __init__(self, env: Env, period_us: int, fn: Callable[[], None]) -> None:
        assert period_us > 0
        self.env, self.period_us, self._fn = env, period_us, fn
        self._timer: Timer | None = None

    def start(self) -> None:
        assert self._timer is None, "already started"
        self._timer = self.env.after(1 + int(self.env.rng.random() * self.period_us), self._on_due)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_due(self) -> None:
        # Re-armed first, so that the task may stop() itself.
        self._timer = self.env.after(self.period_us, self._on_due)
        self._fn()
