"""Every parameter of the public calls, with wrong types and values: one line that says what is expected."""

from __future__ import annotations

import asyncio
import inspect
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from epicast import ConfigError, EpicastError, Gap, Limits, Message, Node, Subscription, SyncNode, Tls, simulate
from epicast.core.config import field_types
from epicast.core.records import Level
from epicast.dissemination.flood import Gossip
from epicast.live.driver import Application
from epicast.live.switchboard import Switchboard
from epicast.sim.scenario import Scenario
from epicast.stacks import stack as stacks
from tests.live.clusters import payloads, run, until
from tests.live.test_subscription import run_of
from tests.tidy.test_api import FOR_THE_INSIDE

NODE = list(inspect.signature(Node).parameters)
WRONG: list[Any] = [
    *(5, 0, -1, 1.5, float("nan"), True, None, b"bytes", "", "\ud800", "x" * 300, "a\nb", object()),
    *([5], ["total"], ("x", 3), {"a": object()}, {5: 5}, {"": 1}),
]
"""Each is wrong for most parameters. Where one is right, the call has to work."""


def name_of(value: object) -> str:
    return f"{type(value).__name__}-{ascii(value)[:12]}"


wrong_values = pytest.mark.parametrize("value", WRONG, ids=name_of)


def require_one_line(error: EpicastError) -> None:
    said = str(error)
    assert said
    assert said.isprintable() or "\n" not in said
    assert len(said) < 600


def refused(call: Callable[[], object]) -> EpicastError | None:
    """None if it is not. Any other exception fails the test."""
    try:
        call()
    except EpicastError as error:
        require_one_line(error)
        return error
    return None


async def refused_later(call: Callable[[], Any]) -> EpicastError | None:
    """The same for calls that are awaited, and for subscriptions, which are opened."""
    try:
        found = call()
        if isinstance(found, Subscription):
            async with found:
                pass
        elif isinstance(found, Awaitable):
            await found
    except EpicastError as error:
        require_one_line(error)
        return error
    return None


# Node and SyncNode

FITS: dict[str, list[Any]] = {
    "seeds": [["total"]],  # a host of that name
    "advertise": ["", None],
    "tls": [None],
    "insecure": [True],
    "limits": [None],
    "trace": ["", "\n", "x" * 300, "a\nb", None],  # opened by `start`
    "cluster": ["a\nb"],
    "area": ["", "a\nb"],
    "order": [None],
    "order_settings": [None],
}


@wrong_values
@pytest.mark.parametrize("name", NODE)
@pytest.mark.parametrize("kind", [Node, SyncNode])
def test_a_node_refuses_what_does_not_fit(kind: Callable[..., object], name: str, value: Any) -> None:
    error = refused(lambda: kind(**{name: value}))
    assert (error is None) == (value in FITS.get(name, []) or (name, value) == ("discovery", "")), error
    if error is not None and not isinstance(value, str):
        assert name in str(error) or (name, value) == ("sign", True)


def test_nested_settings_of_orders_are_refused_too() -> None:
    for settings in ({"total": 5}, {"total": {"balls": 5}}, {"total": {"balls": {"x": 1}}}, {"nothing": {}}):
        assert refused(lambda settings=settings: Node(order="total", order_settings=settings))  # type: ignore[misc]
    for order in ({"a//b": "total"}, {5: "total"}, {"a": ["total"]}):
        assert refused(lambda order=order: Node(order=order))  # type: ignore[misc]


def test_a_stack_may_be_a_table() -> None:
    table = {**stacks.load("brisa").source}
    assert Node(stack=table)._stack == Node(stack="brisa")._stack
    with pytest.raises(ConfigError, match=r"stack\.dissemination\.protocol: expected one of"):
        Node(stack={"membership": {"protocol": "hyparview"}})


@pytest.mark.parametrize("limit", field_types(Limits))
@wrong_values
def test_limits_refuse_what_does_not_fit(limit: str, value: Any) -> None:
    error = refused(lambda: Limits(**{limit: value}))
    fits = (limit == "local_sockets" and value is True) or (limit == "far_delay_us" and value in (0, 5))
    small = limit.removesuffix("_us") != limit or limit in SMALL
    assert (error is None) == (fits or (value == 5 and small and value is not True)), error
    assert error is None or limit in str(error)


SMALL = ("connections", "handshakes", "handshakes_per_address", "subscriber_messages", "subscriptions")


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"header_bytes": 1 << 16}, "header_bytes: expected an integer from 1024 to 65535"),
        ({"fragment_bytes": (1 << 20) - 4096}, "fragment_bytes: expected at least 4096 .* less than frame_bytes"),
        ({"fragment_bytes": 1000}, "fragment_bytes: expected an integer from 1024"),
        ({"fragment_bytes": 1024, "message_bytes": 1 << 27}, "message_bytes: expected at most 65536 times"),
        ({"reassembly_bytes": 1 << 26}, "reassembly_bytes: expected at least message_bytes"),
        ({"peer_queue_bytes": 1 << 20}, "peer_queue_high_bytes: expected less than peer_queue_bytes"),
    ],
)
def test_limits_with_which_messages_could_not_arrive_are_refused(limits: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Limits(**limits)  # type: ignore[arg-type]


def test_the_largest_pieces_and_headers_that_fit_arrive() -> None:
    async def work() -> None:
        limits = Limits(frame_bytes=1 << 17, header_bytes=(1 << 16) - 1, fragment_bytes=(1 << 16) + 1 - 4096)
        async with Node(limits=limits) as first, Node(limits=limits, seeds=[first.address]) as second:
            await second.ready()
            async with first.subscribe("t") as messages:
                headers = {"name": "x" * 65_000}
                await second.publish("t", bytes(limits.fragment_bytes), headers=headers)
                await second.publish("t" * 255, b"")
                await second.publish("t", bytes(3 * limits.fragment_bytes), headers=headers)
                for fragments in (1, 3):
                    message = await anext(messages)
                    assert isinstance(message, Message)
                    assert (message.size, message.headers) == (fragments * limits.fragment_bytes, headers)
            assert first._hub.counters["connections made"] <= 2

    run(work())


# The calls of a node

ARGUMENTS: dict[str, dict[str, Any]] = {
    "publish": {"topic": "t", "payload": b"x"},
    "publish_now": {"topic": "t", "payload": b"x"},
    "subscribe": {},
    "events": {},
    "waiting": {},
    "take": {"message_id": ("x", 3)},
    "ready": {},
}
WORKS: dict[str, list[Any]] = {
    "topic": ["a\nb"],
    "pattern": ["a\nb"],
    "payload": [b"bytes"],
    "headers": [None],
    "wait": [True],
    "messages_max": [None, 5],
    "bytes_max": [None, 5],
    "events_max": [5],
    "order": [None],
    "message_id": [("x", 3)],
    "timeout": [None, 5, 0, 1.5],
}


def test_every_call_of_a_node_is_tried() -> None:
    inside = FOR_THE_INSIDE[Node] | {*vars(Application), "start", "stop", "neighbours"}
    assert {name for name in dir(Node) if not name.startswith("_")} - inside == set(ARGUMENTS)


@pytest.mark.parametrize("call", ARGUMENTS)
def test_a_call_refuses_what_does_not_fit(call: str) -> None:
    async def work() -> None:
        async with Node(order="total") as node, node.subscribe("t") as messages:
            function = getattr(node, call)
            for name in inspect.signature(function).parameters:
                for value in WRONG:
                    given = {**ARGUMENTS[call], name: value}
                    error = await refused_later(lambda given=given: function(**given))
                    right = [*WORKS.get(name, []), *([None] if (call, name) == ("waiting", "topic") else [])]
                    assert (error is None) == any(type(value) is type(each) and value == each for each in right), given
            await node.publish("t", b"the node still works")
            async with asyncio.timeout(20):
                async for item in messages:
                    if isinstance(item, Message) and item.payload == b"the node still works":
                        return

    run(work())


def test_batches_refuse_what_does_not_fit() -> None:
    async def work() -> None:
        async with Node() as node, node.subscribe("t") as messages:
            for value in WRONG:
                error = refused(lambda value=value: messages.batches(value))  # type: ignore[misc]
                assert (error is None) == (value == 5), value

    run(work())


def test_calls_of_a_node_that_does_not_run_say_so() -> None:
    async def require_refusals(node: Node) -> None:
        for call, given in ARGUMENTS.items():
            error = await refused_later(lambda call=call, given=given: getattr(node, call)(**given))
            assert error is not None, call
            assert "the node is not running" in str(error)
        assert node.neighbours == []
        await node.stop()

    async def work() -> None:
        node = Node(seeds=["127.0.0.1:1"])
        await require_refusals(node)
        async with node:
            pass
        await require_refusals(node)

    run(work())


def test_calls_of_a_sync_node_that_does_not_run_say_so() -> None:
    node = SyncNode(seeds=["127.0.0.1:1"])
    for _ in range(2):
        for call, given in ARGUMENTS.items():
            if call != "publish_now":
                error = refused(lambda call=call, given=given: getattr(node, call)(**given))
                assert error is not None, call
                assert "the node is not running" in str(error)
        assert node.neighbours == []
        node.stop()
        with node:
            pass


def test_a_timeout_without_async_is_a_number() -> None:
    with SyncNode() as node, node.subscribe("t") as messages:
        for value in WRONG:
            if value not in (5, 0, 1.5, None) or value is True:
                assert refused(lambda value=value: messages.get(value)) is not None, value  # type: ignore[misc]


# Payloads, headers and topics that are right though not of the plain type


@pytest.mark.parametrize("size", [0, 10, 100_000])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: memoryview(data).cast("B")[::1]])
def test_payloads_are_anything_that_holds_bytes(kind: Callable[[bytes], Any], size: int) -> None:
    async def work() -> None:
        data = bytes(range(256)) * (size // 256 + 1)
        async with Node(limits={"fragment_bytes": 10_000}) as node, node.subscribe("t", order="none") as messages:
            await node.publish("t", kind(data))
            if len(data) <= node.limits.fragment_bytes:
                node.publish_now("t", kind(data))
                assert await payloads(messages, 1) == [data]
            assert await payloads(messages, 1) == [data]

    run(work())


def test_a_buffer_may_be_used_again_once_it_was_published() -> None:
    async def work() -> None:
        async with Node() as node, node.subscribe("t") as messages:
            buffer = bytearray(b"first")
            await node.publish("t", buffer)
            buffer[:] = b"other"
            wide = memoryview(b"abcdefgh").cast("I")  # two items of four bytes
            await node.publish("t", wide)
            assert await payloads(messages, 2) == [b"abcdefgh", b"first"]

    run(work())


class Topic(StrEnum):
    PRICES = "prices"


def test_topics_and_headers_may_be_members_of_an_enum() -> None:
    async def work() -> None:
        async with Node() as first, Node(seeds=[first.address]) as second:
            await second.ready()
            async with first.subscribe(Topic.PRICES) as messages:
                await second.publish(Topic.PRICES, b"", headers={Topic.PRICES: Topic.PRICES})
                message = await anext(messages)
                assert isinstance(message, Message)
                assert (message.topic, message.headers) == ("prices", {"prices": "prices"})

    run(work())


# Starting


def listeners() -> int:
    """Of this process: sockets that listen, by TCP or as Unix sockets."""
    found = 0
    for handle in Path("/proc/self/fd").iterdir():
        try:
            with socket.socket(fileno=socket.dup(int(handle.name))) as copy:
                found += copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        except OSError:
            continue
    return found


def test_a_second_start_is_refused_and_leaves_nothing_open() -> None:
    async def work() -> None:
        before = listeners()
        node = Node()
        await node.start()
        address, running = node.address, listeners()
        for _ in range(3):
            with pytest.raises(EpicastError, match="was started before: stop it first, or make another one"):
                await node.start()
        assert (listeners(), node.address) == (running, address)
        await node.stop()
        assert listeners() == before
        starts = await asyncio.gather(node.start(), node.start(), return_exceptions=True)
        assert [type(each) for each in starts] == [type(None), EpicastError]
        await node.stop()
        assert listeners() == before

    run(work())


def test_a_start_that_fails_leaves_nothing_open(tmp_path: Path) -> None:
    class Broken:
        closed = False

        async def start(self, me: object, cluster: str, found: object) -> None:
            raise RuntimeError("no network")

        def close(self) -> None:
            self.closed = True

    async def work() -> None:
        before = listeners()
        (tmp_path / "file").write_text("no folder")
        with pytest.raises(EpicastError, match="file"):
            await Node(trace=tmp_path / "file" / "run").start()
        assert listeners() == before
        broken = Broken()
        with pytest.raises(RuntimeError, match="no network"):
            await Node(discovery=[broken]).start()
        assert broken.closed
        assert listeners() == before
        async with Node(discovery=[]) as node:
            await node.publish("t", b"")

    run(work())


def test_a_sync_node_starts_once_at_a_time() -> None:
    node = SyncNode()
    with node:
        with pytest.raises(EpicastError, match="was started before"):
            node.start()
        node.publish("t", b"")
    with node:  # again, as another process of the cluster
        node.publish("t", b"")


# One subscriber's failure


def test_a_failing_subscription_ends_alone() -> None:
    """Whatever goes wrong while it is offered something: here the connections cannot be held."""

    def broken(subscription: object) -> None:
        raise RuntimeError("this connection is gone")

    counted: Counter[str] = Counter()
    board = Switchboard(Limits(), counted, lambda: 100, broken, broken)

    async def work() -> None:
        from tests.live.test_subscription import pack_plain

        before, bad, after = (
            board.subscribe("t", policy, 2, None) for policy in ("drop-newest", "block", "drop-newest")
        )
        for each in (before, bad, after):
            await each.__aenter__()
        event = Gossip("a:1/x", 1, 1, "t", pack_plain(40, b"x"))
        for _ in range(3):
            board.deliver(event)
        board.deliver_run(event, run_of([pack_plain(40, b"x")] * 4))
        for good in (before, after):
            assert [type(await anext(good)) for _ in range(3)] == [Message, Message, Gap]
            assert good.lost == 5
        assert [type(item) for item in (await anext(bad), await anext(bad))] == [Message, Message]
        with pytest.raises(EpicastError, match="this connection is gone"):
            await anext(bad)
        assert counted["subscriptions failed"] == 1
        assert list(board.subscriptions) == [before, after]

    run(work())


def test_a_wrong_size_of_a_queue_does_not_break_others() -> None:
    async def work() -> None:
        async with Node() as first, Node(seeds=[first.address]) as second:
            await second.ready()
            async with first.subscribe("t") as messages:
                with pytest.raises(ConfigError, match="messages_max: expected an integer from 1"):
                    async with first.subscribe("t", messages_max="x"):  # type: ignore[arg-type]
                        pass
                await second.publish("t", b"x")
                assert await payloads(messages, 1) == [b"x"]
                await until(lambda: bool(first.neighbours), "the link was lost")

    run(work())


# Simulating

SMALL_RUN: dict[str, Any] = {"stack": "flood", "nodes": 5, "messages": 2, "warmup_us": 0}
SIMULATE = [name for name in inspect.signature(simulate).parameters if name != "scenario"]
RUNS: dict[str, list[Any]] = {
    "nodes": [5],
    "messages": [5, 0],
    "rate": [5, 1.5],
    "payload": [5, 0],
    "churn": [""],
    "seed": [5, 0],
    "level": [0],
    "warmup_us": [5, 0],
    "protect_sources": [True],
    "drain_us": [5, 0],
    "snapshot_interval_us": [5, 0],
    "codec_check": [True],
}


@pytest.mark.parametrize("name", [*SIMULATE, *(key for key in field_types(Scenario) if key not in SIMULATE)])
def test_simulate_refuses_what_does_not_fit(name: str) -> None:
    for value in WRONG:
        error = refused(lambda value=value: simulate(**{**SMALL_RUN, name: value}))  # type: ignore[misc]
        right = any(type(value) is type(each) and value == each for each in RUNS.get(name, []))
        assert (error is None) == right, (name, value, error)


def test_a_level_may_be_a_name() -> None:
    assert simulate(**SMALL_RUN, level="off").trace_digest == simulate(**SMALL_RUN, level=0).trace_digest  # type: ignore[arg-type]
    assert simulate(**SMALL_RUN, level="full").trace_digest == simulate(**SMALL_RUN, level=Level.FULL).trace_digest
    assert simulate(**SMALL_RUN, level="full").trace_digest != simulate(**SMALL_RUN, level="off").trace_digest


def test_files_of_keys_are_named_by_texts_or_paths(tmp_path: Path) -> None:
    for value in (5, None, [tmp_path], b"x"):
        assert refused(lambda value=value: Tls(value, "a", "b")) is not None  # type: ignore[misc]
        assert refused(lambda value=value: Tls.from_folder(value, "a")) is not None  # type: ignore[misc]
        assert refused(lambda value=value: Tls.from_folder(tmp_path, value)) is not None  # type: ignore[misc]
