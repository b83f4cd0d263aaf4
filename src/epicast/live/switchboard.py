"""From delivered events to subscribers: envelopes opened, pieces put together, patterns matched."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from epicast.core.errors import EpicastError, WireError
from epicast.live.config import Limits, Policy
from epicast.live.envelope import PLAIN_BYTES, unpack
from epicast.live.messages import Gap, Message, plain_messages
from epicast.live.reassembly import Reassembly
from epicast.live.subscription import Subscription
from epicast.live.topics import compiled, matches
from epicast.wire.frames import Run

if TYPE_CHECKING:
    from collections import Counter

ROUTES_MAX = 65_536


class Switchboard:
    def __init__(
        self,
        limits: Limits,
        counters: Counter[str],
        unix_us: Callable[[], int],
        block: Callable[[Any], None],
        unblock: Callable[[Any], None],
    ) -> None:
        self._limits, self._counters, self._unix_us = limits, counters, unix_us
        self.block, self.unblock = block, unblock
        self.subscriptions: dict[Subscription, None] = {}
        self._routes: dict[str, list[Subscription]] = {}  # by topic
        self.reassembly = Reassembly(
            limits.reassembly_bytes, limits.message_bytes, limits.reassembly_us, self._gave_up_pieces
        )

    # Subscriptions

    def subscribe(self, pattern: str, policy: Policy, messages: int | None, bytes_: int | None) -> Subscription:
        compiled(pattern)
        limits = self._limits
        return Subscription(
            self, pattern, policy, messages or limits.subscriber_messages, bytes_ or limits.subscriber_bytes
        )

    def add(self, subscription: Subscription) -> None:
        if len(self.subscriptions) >= self._limits.subscriptions:
            raise EpicastError(f"more than {self._limits.subscriptions} subscriptions: close some")
        self.subscriptions[subscription] = None
        self._routes.clear()

    def remove(self, subscription: Subscription) -> None:
        self.subscriptions.pop(subscription, None)
        self._routes.clear()

    def count_lost(self, count: int) -> None:
        self._counters["lost by subscribers"] += count

    def _route(self, topic: str) -> list[Subscription]:
        if len(self._routes) >= ROUTES_MAX:
            self._routes.clear()
        found = self._routes[topic] = [each for each in self.subscriptions if matches(each.pattern, topic)]
        return found

    # Events

    def deliver(self, event: Any) -> None:
        self._counters["delivered"] += 1
        route = self._routes.get(event.topic)
        if route is None:
            route = self._route(event.topic)
        if not route:
            return
        payload: bytes = event.payload
        if len(payload) < PLAIN_BYTES or payload[0] or payload[1] & 0x80:
            self._deliver_dressed(event, route)
            return
        published_us = int.from_bytes(payload[1:PLAIN_BYTES], "big")
        message = Message(event.topic, payload[PLAIN_BYTES:], event.source, event.seq, published_us, self._unix_us())
        for subscription in route:
            subscription.offer(message)

    def deliver_run(self, like: Any, run: Run) -> None:
        """Events with consecutive numbers, all else alike."""
        topic, source = like.topic, like.source
        route = self._routes.get(topic)
        if route is None:
            route = self._route(topic)
        if not route:
            self._counters["delivered"] += len(run)
            return
        messages = plain_messages(run, topic, source, self._unix_us())
        self._counters["delivered"] += len(messages)
        if len(messages) == len(run):
            size = run.payload_bytes - PLAIN_BYTES * len(messages)
        else:
            size = sum([each.size for each in messages])
        for subscription in route:
            subscription.offer_many(messages, size)
        for number in range(len(messages), len(run)):  # from the first that is not plain
            self.deliver(replace(like, seq=run.seq + number, payload=run[number]))

    def _deliver_dressed(self, event: Any, route: list[Subscription]) -> None:
        try:
            envelope = unpack(event.payload)
        except WireError:
            self._counters["bad envelopes"] += 1
            return
        now_us, seq, payload, headers = self._unix_us(), event.seq, envelope.payload, envelope.headers
        if envelope.fragment is not None:
            whole = self.reassembly.add(event.source, seq, envelope, now_us)
            if whole is None:
                return
            seq, payload, headers = whole.seq, whole.payload, whole.headers
        message = Message(event.topic, payload, event.source, seq, envelope.published_us, now_us, headers)
        for subscription in route:
            subscription.offer(message)

    def gap(self, source: str, lost: int, reason: str) -> None:
        """The layers below gave up on messages of a source; on which topics is not known."""
        for subscription in self.subscriptions:
            subscription.lost += lost
            subscription.offer(Gap(lost, reason, source))

    def _gave_up_pieces(self, source: str, why: str) -> None:
        self._counters[f"messages given up: {why}"] += 1
        self.gap(source, 1, why)

    def close(self) -> None:
        for subscription in list(self.subscriptions):
            subscription.close()
