"""The queue of a subscriber: what each policy does when it is full."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from epicast.core.errors import EpicastError
from epicast.dissemination.flood import Gossip
from epicast.live.config import Limits, Policy
from epicast.live.envelope import Fragment, pack, pack_headers, pack_plain
from epicast.live.messages import Gap, Message, SlowSubscriber
from epicast.live.subscription import Item, Subscription
from epicast.live.switchboard import Switchboard
from epicast.wire.frames import Run, event_frame
from epicast.wire.readers import FrameReader


class Board(Switchboard):
    """Of a node that does nothing else."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.counted: Counter[str] = Counter()
        self.blocked: list[Any] = []
        super().__init__(limits or Limits(), self.counted, lambda: 100, self.blocked.append, self.blocked.remove)

    def publish(self, seq: int, topic: str = "t", payload: bytes = b"x") -> None:
        self.deliver(Gossip("a:1/x", seq, 1, topic, pack_plain(40, payload)))


def take(subscription: Subscription, count: int) -> list[Item]:
    async def taking() -> list[Item]:
        return [await subscription.__anext__() for _ in range(count)]

    return asyncio.run(taking())


def opened(board: Board, pattern: str = "t", policy: Policy = "drop-oldest", most: int = 3) -> Subscription:
    subscription = board.subscribe(pattern, policy, most, None)
    asyncio.run(subscription.__aenter__())
    return subscription


def shown(items: list[Item]) -> list[object]:
    return [each.seq if isinstance(each, Message) else ("gap", each.lost) for each in items]


def run_of(payloads: list[bytes]) -> Run:
    (run,) = FrameReader(10_000).feed(b"".join(event_frame(1, 7 + at, each) for at, each in enumerate(payloads)))
    assert not isinstance(run, bytes)
    return run


def test_messages_come_with_all_that_is_known() -> None:
    board = Board()
    subscription = opened(board, "a/*")
    board.deliver(Gossip("a:1/x", 3, 1, "a/b", pack(40, b"hi", pack_headers({"unit": "usd"}))))
    board.publish(4, topic="other")
    (message,) = take(subscription, 1)
    assert message == Message("a/b", b"hi", "a:1/x", 3, 40, 100, {"unit": "usd"})
    assert isinstance(message, Message)
    assert (message.id, message.latency) == (("a:1/x", 3), 60e-6)
    assert subscription.waiting == 0


def test_drop_oldest_puts_a_gap_in_front() -> None:
    board = Board()
    subscription = opened(board)
    for seq in range(6):
        board.publish(seq)
    assert subscription.lost == board.counted["lost by subscribers"]
    assert subscription.lost >= 3
    found = shown(take(subscription, subscription.waiting))
    assert found[0] == ("gap", subscription.lost)
    assert found[1:] == list(range(subscription.lost, 6))


def test_drop_newest_puts_a_gap_where_they_would_have_been() -> None:
    board = Board()
    subscription = opened(board, policy="drop-newest")
    for seq in range(5):
        board.publish(seq)
    assert shown(take(subscription, 4)) == [0, 1, 2, ("gap", 2)]
    board.publish(5)
    assert shown(take(subscription, 1)) == [5]
    assert subscription.lost == 2


def test_disconnect_ends_the_subscription_with_an_error() -> None:
    board = Board()
    subscription = opened(board, policy="disconnect")
    for seq in range(5):
        board.publish(seq)
    assert shown(take(subscription, 4)) == [0, 1, 2, ("gap", 1)]
    with pytest.raises(SlowSubscriber, match="fell behind by 3 messages"):
        take(subscription, 1)
    assert board.subscriptions == {}


def test_block_loses_nothing_and_reads_on_when_half_is_taken() -> None:
    board = Board()
    subscription = opened(board, policy="block", most=4)
    for seq in range(6):
        board.publish(seq)
    assert board.blocked == [subscription]
    assert shown(take(subscription, 3)) == [0, 1, 2]
    assert board.blocked == [subscription]
    take(subscription, 1)
    assert board.blocked == []
    assert shown(take(subscription, 2)) == [4, 5]
    assert subscription.lost == 0


def test_many_bytes_fill_a_queue_too() -> None:
    board = Board()
    subscription = board.subscribe("t", "drop-newest", 100, 5000)
    asyncio.run(subscription.__aenter__())
    for seq in range(4):
        board.publish(seq, payload=bytes(2000))
    assert shown(take(subscription, 3)) == [0, 1, ("gap", 2)]


def test_a_run_is_the_same_as_one_by_one() -> None:
    one, other = Board(), Board()
    found = []
    for board in (one, other):
        first = opened(board, "t", most=100)
        payloads = [pack_plain(40, b"%d" % n) for n in range(5)] + [pack(40, b"5", pack_headers({"a": "b"}))]
        event = Gossip("a:1/x", 7, 1, "t", payloads[0])
        if board is one:
            board.deliver_run(event, run_of(payloads))
            board.deliver_run(event, run_of(payloads[:3]))
        else:
            for number, payload in [*enumerate(payloads, 7), *enumerate(payloads[:3], 7)]:
                board.deliver(Gossip("a:1/x", number, 1, "t", payload))
        found.append(take(first, 9))
    assert found[0] == found[1]
    assert one.counted == other.counted


def test_batches_give_all_that_waits() -> None:
    board = Board()
    subscription = opened(board, most=100)
    for seq in range(5):
        board.publish(seq)

    async def first_two() -> list[list[object]]:
        found = []
        async for batch in subscription.batches(most=3):
            found.append(shown(batch))
            if len(found) == 2:
                subscription.close()
        return found

    assert asyncio.run(first_two()) == [[0, 1, 2], [3, 4]]


def test_a_closed_subscription_ends_after_what_was_queued() -> None:
    board = Board()
    subscription = opened(board)
    board.publish(1)
    subscription.close()
    board.publish(2)

    async def rest() -> list[object]:
        return shown([item async for item in subscription])

    assert asyncio.run(rest()) == [1]


def test_what_the_stack_gave_up_is_a_gap_for_all() -> None:
    board = Board()
    subscription = opened(board)
    board.gap("a:1/x", 4, "gone")
    assert take(subscription, 1) == [Gap(4, "gone", "a:1/x")]
    assert subscription.lost == 4


def test_pieces_arrive_as_one_message() -> None:
    board = Board()
    subscription = opened(board)
    for number, part in enumerate((b"ab", b"cd")):
        board.deliver(Gossip("a:1/x", 8 + number, 1, "t", pack(40, part, b"", Fragment(1, number, 2))))
    (message,) = take(subscription, 1)
    assert isinstance(message, Message)
    assert (message.payload, message.seq) == (b"abcd", 8)


def test_bad_envelopes_are_counted_and_dropped() -> None:
    board = Board()
    subscription = opened(board)
    for bad in (b"\x02", b"", b"\0short"):
        board.deliver(Gossip("a:1/x", 1, 1, "t", bad))
    board.deliver_run(Gossip("a:1/x", 1, 1, "t", b""), run_of([b"", b"x"]))
    assert board.counted["bad envelopes"] == 5
    assert subscription.waiting == 0


def test_subscriptions_have_a_cap() -> None:
    board = Board(Limits(subscriptions=1))
    opened(board)
    with pytest.raises(EpicastError, match="more than 1 subscriptions"):
        opened(board)


def test_what_is_taken_one_by_one_no_longer_counts() -> None:
    board = Board()
    subscription = opened(board, most=100)
    board.deliver_run(Gossip("a:1/x", 0, 1, "t", b""), run_of([pack_plain(40, b"some bytes")] * 5))
    assert subscription._bytes == 50
    take(subscription, 5)
    assert subscription._bytes == 0
