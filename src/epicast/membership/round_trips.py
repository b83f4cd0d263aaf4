"""Round trips to processes that one may not be connected to: ask, wait for the answer, remember the time.

Whoever does not answer in time is taken for gone. Both who is waited for and what is remembered are bounded.
"""

from __future__ import annotations

from collections.abc import Callable

from epicast.core.env import Env, Timer
from epicast.core.ids import NodeId
from epicast.core.message import Count
from epicast.membership.hyparview_messages import MembershipMessage

REMEMBERED_MAX = 1024
WAITING_MAX = 256
AT_ONE_MAX = 16  # who wait for the same answer

Then = Callable[[int | None], None]
"""Is given the round trip, or None if there was no answer."""


class Probe(MembershipMessage, tag=20):
    """Answer at once."""

    sent_us: Count


class ProbeReply(MembershipMessage, tag=21):
    """Returns the asker's own time stamp."""

    sent_us: Count


class RoundTrips:
    __slots__ = ("_waiting", "env", "known", "timeout_us")

    def __init__(self, env: Env, timeout_us: int) -> None:
        self.env, self.timeout_us = env, timeout_us
        self.known: dict[NodeId, int] = {}  # the longest remembered first
        self._waiting: dict[NodeId, tuple[int, Timer, list[Then]]] = {}

    def measure(self, peer: NodeId, then: Then) -> None:
        if peer in self.known:
            then(self.known[peer])
            return
        waiting = self._waiting.get(peer)
        if waiting is not None:
            if len(waiting[2]) < AT_ONE_MAX:
                waiting[2].append(then)
        elif len(self._waiting) < WAITING_MAX:
            now = self.env.now_us()
            timer = self.env.after(self.timeout_us, self._on_no_answer, peer)
            self._waiting[peer] = (now, timer, [then])
            self.env.send(peer, Probe(now))
        else:
            then(None)

    def on_reply(self, sender: NodeId, msg: ProbeReply) -> None:
        waiting = self._waiting.get(sender)
        if waiting is None or waiting[0] != msg.sent_us:
            return
        del self._waiting[sender]
        waiting[1].cancel()
        rtt_us = self.env.now_us() - msg.sent_us
        if len(self.known) >= REMEMBERED_MAX:
            del self.known[next(iter(self.known))]
        self.known[sender] = rtt_us
        for then in waiting[2]:
            then(rtt_us)

    def _on_no_answer(self, peer: NodeId) -> None:
        for then in self._waiting.pop(peer)[2]:
            then(None)

    def stop(self) -> None:
        for _, timer, _ in self._waiting.values():
            timer.cancel()
        self._waiting.clear()
