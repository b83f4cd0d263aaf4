"""Members that send more than anyone needs: what is kept of it is bounded, and nobody waits for it to be handled."""

from __future__ import annotations

import asyncio
import tracemalloc
from functools import partial
from typing import Any

import msgspec
import pytest

from epicast.core.message import LIST_LENGTH_MAX
from epicast.dissemination.brisa_messages import Activate, Recover
from epicast.live.envelope import Fragment, pack, pack_plain
from epicast.membership.hyparview_messages import Join, KeepAlive, Shuffle
from epicast.wire.codec import frame
from epicast.wire.frames import event_frame
from tests.live.attacker import ME, Attacker, data, head, stream_of
from tests.live.neighbour import FAR, FLOW, neighbour_of, published
from tests.live.siege import LIMITS, STALL_S, Siege, besieged, run, until

# Messages in pieces

PIECES = msgspec.structs.replace(LIMITS, reassembly_bytes=1 << 16, message_bytes=1 << 15, reassembly_us=400_000)


def test_empty_pieces_are_not_kept_without_end() -> None:
    async def attack() -> None:
        async with besieged(limits=PIECES) as siege, neighbour_of(siege) as attacker:
            many = 3_000
            pieces = [pack(1, b"", b"", Fragment(group, 0, 2)) for group in range(many)]
            before = siege.count("delivered")
            for at in range(0, many, 500):
                attacker.send(*(published(at + n, piece) for n, piece in enumerate(pieces[at : at + 500])))
                await attacker.writer.drain()
            await until(lambda: siege.count("delivered") >= before + many)
            assert len(siege.node._board.reassembly._waiting) < 1_100

    run(attack())


def test_pieces_are_not_kept_above_the_cap() -> None:
    async def attack() -> None:
        async with besieged(limits=PIECES) as siege, neighbour_of(siege) as attacker:
            groups = 100
            pieces = [pack(1, b"x", b"", Fragment(group, 0, 3)) for group in range(groups)]
            pieces += [pack(1, b"x" * 8000, b"", Fragment(group, 1, 3)) for group in range(groups)]
            before = siege.count("delivered")
            attacker.send(*(published(n, piece) for n, piece in enumerate(pieces)))
            await until(lambda: siege.count("delivered") >= before + len(pieces))
            assert siege.node._board.reassembly.waiting_bytes <= PIECES.reassembly_bytes + PIECES.fragment_bytes

    run(attack())


def test_a_message_that_never_becomes_whole_is_given_up_in_time() -> None:
    async def attack() -> None:
        async with besieged(limits=PIECES) as siege, neighbour_of(siege) as attacker:
            attacker.send(published(0, pack(1, b"x", b"", Fragment(1, 0, 2))))
            await until(lambda: siege.node._board.reassembly.waiting_bytes)
            async with asyncio.timeout(3):
                while siege.node._board.reassembly.waiting_bytes:
                    await asyncio.sleep(0.05)

    run(attack())


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"\x00",
        b"\x00\x01\x02",
        b"\x80" + bytes(8),
    ],
    ids=["nothing", "one byte", "three bytes", "unknown flags"],
)
def test_what_is_no_envelope_reaches_nobody(packed: bytes) -> None:
    async def attack() -> None:
        async with besieged() as siege, neighbour_of(siege) as attacker:
            before = siege.count("delivered"), siege.count("bad envelopes")
            attacker.send(published(0, packed), published(1, pack(1, b"", b"\x81", None)))
            await until(lambda: siege.count("delivered") >= before[0] + 2)
            siege.no_lies()
            assert siege.count("bad envelopes") == before[1] + 2
            await siege.stands()

    run(attack())


def test_envelopes_that_lie_about_themselves_reach_nobody() -> None:
    lies = [b"\x01", b"\x01\xff\xff", b"\x02" + bytes(8), b"\x02" + bytes(8) + b"\xff\xff", b"\x04" + bytes(10)]
    lies += [b"\x02" + bytes(8) + b"\x00\x03\x81\xa1", pack(1, b"x", b"", Fragment(1, 2, 2)), b"\x07" + bytes(200)]

    async def attack() -> None:
        async with besieged() as siege, neighbour_of(siege) as attacker:
            before = siege.count("delivered")
            attacker.send(*(published(seq, packed) for seq, packed in enumerate(lies)))
            await until(lambda: siege.count("delivered") >= before + len(lies))
            assert siege.count("bad envelopes") == len(lies)
            await siege.stands()

    run(attack())


def test_of_what_came_together_only_the_messages_are_kept() -> None:
    """A message is kept for those who miss it; what came in the same breath is not."""
    padding = frame(data(FLOW, ME, 0, bytes(140_000)))  # an old message again

    async def attack() -> None:
        async with besieged() as siege, neighbour_of(siege) as attacker:
            siege.said.add(b"small")
            flows = siege.node._stack_node.dissemination.flows
            attacker.send(published(0, pack_plain(1, b"small")))
            await until(lambda: FLOW in flows and flows[FLOW].parent == ME)
            tracemalloc.start()
            before, _ = tracemalloc.get_traced_memory()
            count = 100
            for seq in range(1, count):
                attacker.send(event_frame(stream_of(data(FLOW, ME, 0, b"")), seq, pack_plain(1, b"small")), padding)
                await until(partial(has_delivered, siege, seq + 1))
            grown = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            assert len(flows[FLOW].buffer) >= count - 1
            assert grown < 20 * len(padding), f"{grown:,} bytes"

    run(attack())


def has_delivered(siege: Siege, count: int) -> bool:
    return siege._take() and siege.got[siege.node].count(b"small") >= count


# Work that peers make


def test_a_request_for_much_is_answered_without_a_stall() -> None:
    async def attack() -> None:
        async with besieged() as siege, neighbour_of(siege) as attacker:
            for number in range(2000):
                payload = f"kept {number}".encode()
                siege.said.add(payload)
                await siege.node.publish("honest", payload)
                if number % 50 == 0:
                    await asyncio.sleep(0)
            await siege.goes_on()
            flow = (siege.node.id, 0)
            ranges = tuple((siege.node.id, FAR + 2 * n, FAR + 2 * n) for n in range(LIST_LENGTH_MAX))
            await stall_over(siege, attacker, frame(Recover(flow, ranges)))

    run(attack())


async def stall_over(siege: Siege, attacker: Attacker, sent: bytes) -> None:
    """The best of three: what else goes on in the process may be in the way once."""
    worst = []
    for _ in range(3):
        link = siege.node._hub.links.get(ME)
        if link is None or link.conn is None:
            break
        conn, taken = link.conn, link.conn.received_bytes
        siege.meter.again()
        attacker.send(sent)
        await until(partial(has_taken, conn, taken + len(sent)))
        await siege.goes_on(1)
        worst.append(siege.meter.worst_s)
    assert min(worst) < STALL_S, worst
    await siege.stands()


def has_taken(conn: Any, size: int) -> bool:
    return conn.ended or conn.received_bytes >= size


FLOODS: dict[str, bytes] = {
    "joins": frame(Join()) * 40_000,
    "keep-alives": frame(KeepAlive(1, 4)) * 30_000,
    "shuffles": frame(Shuffle(ME, 0, ())) * 10_000,
    "requests": frame(Activate(FLOW)) * 10_000,
    "events": published(0, pack_plain(1, b"x")) + event_frame(stream_of(data(FLOW, ME, 0, b"")), 0, b"x") * 10_000,
}


@pytest.mark.parametrize(
    "what",
    [
        "joins",
        "keep-alives",
        "shuffles",
        "requests",
        "events",
    ],
)
def test_a_flood_of_messages_stalls_nobody(what: str) -> None:
    async def attack() -> None:
        async with besieged() as siege, neighbour_of(siege) as attacker:
            siege.said.add(b"x")
            await stall_over(siege, attacker, FLOODS[what])

    run(attack())


def test_a_subscriber_that_blocks_is_not_flooded_over_new_connections() -> None:
    async def attack() -> None:
        async with besieged() as siege, siege.node.subscribe("spam", policy="block", messages_max=100) as slow:
            siege.said.add(b"x")
            for number in range(5):
                source = f"127.0.0.1:9/z{number}"
                events = [data((source, 0), source, seq, pack_plain(1, b"x"), topic="spam") for seq in range(400)]
                attacker = await Attacker.greeted(siege.node.address, node=source)
                attacker.send(head(events[0]), *(event_frame(stream_of(e), e.seq, e.payload) for e in events))
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.3):
                        await attacker.reader.read()
            assert slow.waiting <= 600

    run(attack())
