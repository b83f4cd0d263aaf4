"""From delivered events to subscribers: envelopes opened, pieces put together, patterns matched."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from epicast.core.errors import EpicastError, WireError
from epicast.core.patterns import compiled, matches
from epicast.live.config import Limits, Policy
from epicast.live.envelope import PLAIN_BYTES, unpack
from epicast.live.messages import Correction, Gap, Message, plain_messages
from epicast.live.reassembly import Reassembly
from epicast.live.subscription import Item, Subscription
from epicast.wire.frames import Run

if TYPE_CHECKING:
    from collections import Counter

ROUTES_MAX = 65_536

log = logging.getLogger("epicast")


class Switchboard:
    def __init__(
        self,
        limits: Limits,
        counters: Counter[str],
        unix_us: Callable[[], int],
        block: Callable[[Any], None],
        unblock: Callable[[Any], None],
        has_order: Callable[[str], bool] = lambda topic: False,
        signer_of: Callable[[Any], str | None] = lambda event: None,
    ) -> None:
        self._limits, self._counters, self._unix_us = limits, counters, unix_us
        self.block, self.unblock = block, unblock
        self.subscriptions: dict[Subscription, None] = {}
        self._has_order, self._signer_of = has_order, signer_of
        self._routes: dict[str, list[Subscription]] = {}  # by topic
        self._hasty: dict[str, list[Subscription]] = {}  # those that want what comes on ordered topics at once
        self.reassembly = Reassembly(
            limits.reassembly_bytes, limits.message_bytes, limits.reassembly_us, self._gave_up_pieces
        )

    # Subscriptions

    def subscribe(
        self, pattern: str, policy: Policy, messages: int | None, bytes_: int | None, *, as_they_come: bool = False
    ) -> Subscription:
        compiled(pattern)
        messages, bytes_ = messages or self._limits.subscriber_messages, bytes_ or self._limits.subscriber_bytes
        return Subscription(self, pattern, policy, messages, bytes_, as_they_come=as_they_come)

    def add(self, subscription: Subscription) -> None:
        if len(self.subscriptions) >= self._limits.subscriptions:
            raise EpicastError(f"more than {self._limits.subscriptions} subscriptions: close some")
        self.subscriptions[subscription] = None
        self._forget_routes()

    def remove(self, subscription: Subscription) -> None:
        self.subscriptions.pop(subscription, None)
        self._forget_routes()

    @property
    def hasty(self) -> bool:
        """Does anybody want messages as they come?"""
        return any(each.as_they_come for each in self.subscriptions)

    def _forget_routes(self) -> None:
        self._routes.clear()
        self._hasty.clear()

    def count_lost(self, count: int) -> None:
        self._counters["lost by subscribers"] += count

    def _route(self, topic: str) -> list[Subscription]:
        if len(self._routes) >= ROUTES_MAX:
            self._routes.clear()
        fits = [each for each in self.subscriptions if matches(each.pattern, topic)]
        ordered = self._has_order(topic)
        found = self._routes[topic] = [each for each in fits if not (ordered and each.as_they_come)]
        return found

    # Events

    def deliver(self, event: Any) -> None:
        self._counters["delivered"] += 1
        route = self._routes.get(event.topic)
        if route is None:
            route = self._route(event.topic)
        if route:
            self._offer(event, route)

    def arrived(self, event: Any) -> None:
        """On a topic with an order, before its turn."""
        route = self._hasty.get(event.topic)
        if route is None:
            if len(self._hasty) >= ROUTES_MAX:
                self._hasty.clear()
            route = [each for each in self.subscriptions if each.as_they_come and matches(each.pattern, event.topic)]
            self._hasty[event.topic] = route
        if route:
            self._offer(event, route)

    def correct(self, event: Any) -> None:
        """After its turn."""
        message = self.opened(event)
        if message is not None:
            self._offer_all(self._route(event.topic), Correction(message))

    def opened(self, event: Any) -> Message | None:
        """As the application sees it; None for a piece of a larger one, or if it cannot be read."""
        try:
            envelope = unpack(event.payload)
        except WireError:
            return None
        if envelope.fragment is not None:
            return None
        now_us, published_us, headers = self._unix_us(), envelope.published_us, envelope.headers
        signer = self._signer_of(event)
        return Message(event.topic, envelope.payload, event.source, event.seq, published_us, now_us, headers, signer)

    def _offer(self, event: Any, route: list[Subscription]) -> None:
        payload: bytes = event.payload
        if len(payload) < PLAIN_BYTES or payload[0] or payload[1] & 0x80:
            self._deliver_dressed(event, route)
            return
        published_us = int.from_bytes(payload[1:PLAIN_BYTES], "big")
        message = Message(event.topic, payload[PLAIN_BYTES:], event.source, event.seq, published_us, self._unix_us())
        for subscription in route:  # as `_offer_all`: every single message comes here
            try:
                subscription.offer(message)
            except Exception as error:
                self._failed(subscription, error)

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
            try:
                subscription.offer_many(messages, size)
            except Exception as error:
                self._failed(subscription, error)
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
        signer, published_us = self._signer_of(event), envelope.published_us
        message = Message(event.topic, payload, event.source, seq, published_us, now_us, headers, signer)
        self._offer_all(route, message)

    def _offer_all(self, route: list[Subscription], item: Item) -> None:
        for subscription in route:
            try:
                subscription.offer(item)
            except Exception as error:
                self._failed(subscription, error)

    def _failed(self, subscription: Subscription, error: Exception) -> None:
        """A fault in one subscription is the end of that one: the others, and the link that the message came by, have
        no part in it."""
        self._counters["subscriptions failed"] += 1
        log.error("subscription %r failed: %r", subscription.pattern, error, exc_info=error)
        try:
            subscription.fail(EpicastError(f"subscription {subscription.pattern!r} failed: {error!r}"))
        except Exception as another:  # it blocked, and cannot let go
            log.error("subscription %r cannot be closed: %r", subscription.pattern, another, exc_info=another)

    def gap(self, source: str, lost: int, reason: str, topic: str = "") -> None:
        """The layers below gave up on messages of a source; on which topics is not always known."""
        for subscription in list(self.subscriptions):
            if topic and (subscription.as_they_come or not matches(subscription.pattern, topic)):
                continue
            subscription.lost += lost
            self._offer_all([subscription], Gap(lost, reason, source))

    def _gave_up_pieces(self, source: str, why: str) -> None:
        self._counters[f"messages given up: {why}"] += 1
        self.gap(source, 1, why)

    def close(self) -> None:
        for subscription in list(self.subscriptions):
            subscription.close()
