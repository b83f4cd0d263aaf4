"""To each topic its order."""

from typing import Any

import pytest

from epicast.core.errors import ConfigError
from epicast.core.message import Event
from epicast.core.ordered import Ordered
from epicast.core.recording import RecordingEnv
from epicast.ordering import trailer
from epicast.ordering.by_topic import ByTopic, ByTopicConfig
from tests.support.neighbours import Members

ORDERS: dict[str, Any] = {"topics": {"log/*": "fifo", "chat/**": "causal", "ledger": "total", "chat/x": "total"}}


def by_topic(**settings: Any) -> tuple[ByTopic, list[tuple[str, bytes]]]:
    got: list[tuple[str, bytes]] = []

    def deliver(event: Event, sender: int) -> None:
        got.append((event.topic, event.payload))

    config = ByTopicConfig(**(settings or ORDERS))
    return ByTopic(RecordingEnv(0), config, Members((1,)), deliver), got  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("topic", "kind"),
    [
        ("log/a", trailer.FIFO),
        ("log/a/b", None),
        ("chat", trailer.CAUSAL),
        ("chat/x", trailer.CAUSAL),  # the first pattern that fits
        ("ledger", trailer.TOTAL),
        ("ledger/x", None),
    ],
)
def test_the_first_pattern_that_fits_counts(topic: str, kind: int | None) -> None:
    order, _ = by_topic()
    dressed = order.dress(topic, b"body")
    if kind is None:
        assert dressed == b"body"
    else:
        payload, header = trailer.split(dressed)
        assert (payload, header[0]) == (b"body", kind)


def test_what_has_no_order_is_delivered_as_it_comes() -> None:
    order, got = by_topic()
    order.receive(Ordered(7, 0, "news", 1, b"plain"), 1)
    assert got == [("news", b"plain")]


def test_only_the_orders_that_are_used_exist() -> None:
    order, _ = by_topic(topics={"log/*": "fifo"})
    assert order.total is None
    order.start()
    order.leave()
    assert not any(timer.live for timer in order.env.timers)  # type: ignore[attr-defined]  # nobody counts heads


def test_in_a_hurry_one_hears_of_events_before_their_turn() -> None:
    order, got = by_topic()
    arrived: list[tuple[str, bytes]] = []
    order.on_arrival = lambda event: arrived.append((event.topic, event.payload))
    sender, _ = by_topic()
    order.receive(Ordered(7, 0, "ledger", 1, sender.dress("ledger", b"body")), 1)
    order.receive(Ordered(7, 1, "news", 1, b"plain"), 1)
    assert arrived == [("ledger", b"body")]  # what has no order is no news
    assert got == [("news", b"plain")]


@pytest.mark.parametrize(
    ("pattern", "weakest"),
    [
        ("log/a", "fifo"),
        ("log/*", "fifo"),
        ("log/**", "none"),  # log/a/b has none
        ("chat/**", "causal"),
        ("ledger", "total"),
        ("*", "none"),
        ("**", "none"),
        ("chat/*/b", "causal"),
    ],
)
def test_the_weakest_order_of_all_topics_that_fit(pattern: str, weakest: str) -> None:
    assert by_topic()[0].order_of(pattern) == weakest


def test_a_default_is_for_the_rest() -> None:
    order, _ = by_topic(topics={"log/*": "fifo"}, default="total")
    assert [order.order_of(pattern) for pattern in ("**", "log/a", "x", "x/**")] == ["fifo", "fifo", "total", "total"]


def test_patterns_are_looked_at() -> None:
    with pytest.raises(ConfigError, match=r"topics: .* stand for whole levels"):
        ByTopicConfig(topics={"a*b": "fifo"})
    with pytest.raises(ConfigError, match="topics"):
        ByTopicConfig(topics={"a": "sorted"})
