"""Peers that send nonsense lose their connection; the node, its friends and its application do not notice."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import msgspec
import pytest

from epicast.core.message import PATH_LENGTH_MAX, Position
from epicast.dissemination.brisa_messages import Activate
from epicast.live.congestion import SLOW_PART
from epicast.live.hello import Refusal, Welcome
from epicast.live.sync import new_loop
from epicast.membership.hyparview_messages import ForwardJoin, Join, KeepAlive, NeighbourReply, Shuffle
from epicast.wire.codec import frame
from epicast.wire.frames import event_frame
from epicast.wire.streams import STREAMS_MAX
from tests.live.attacker import ME, Attacker, data, framed, head, head_under, hello, packed, stream_of
from tests.live.siege import LIMITS, STALL_S, Siege, besieged, run, until

FLOW = (ME, 0)
EVENT = data(FLOW, ME, 0, b"")
DEEP = 100_000


def length(size: int) -> bytes:
    return size.to_bytes(4, "big")


# What a stranger may send instead of a greeting, and what the node counts

STRANGERS: dict[str, tuple[bytes, str]] = {
    "an empty frame": (length(0), "nonsense"),
    "one byte more than a greeting may have": (length(LIMITS.handshake_bytes + 1), "nonsense"),
    "the largest length there is": (length(2**32 - 1), "nonsense"),
    "noise": (Random(1).randbytes(1 << 16), "nonsense"),
    "noise in a frame": (framed(Random(2).randbytes(1000)), "nonsense"),
    "a request of the web": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "nonsense"),
    "lists in lists": (framed(b"\x91" * 4000), "nonsense"),
    "a list longer than its frame": (framed(b"\xdd\xff\xff\xff\xff\xa5hello"), "nonsense"),
    "a version that is not a number": (packed("hello", "epicast", float("nan"), "epicast", "x", ME), "nonsense"),
    "text that is not UTF-8": (framed(b"\x96\xa5hello\xa7epicast\x01\xa2\xff\xfe\xa1x\xa1y"), "nonsense"),
    "too long an id": (packed("hello", "epicast", 1, "epicast", "x", "y" * 121), "nonsense"),
    "another magic": (hello(magic="memcast"), "refused"),
    "another version": (hello(version=2), "refused"),
    "a version from nowhere": (hello(version=-(2**63)), "refused"),
    "another cluster": (hello(cluster="others"), "refused"),
    "another stack": (hello(stack="static+flood"), "refused"),
    "a welcome to whom did not call": (framed(msgspec.msgpack.encode(Welcome(ME))), "nonsense"),
    "a refusal of what was not asked": (framed(msgspec.msgpack.encode(Refusal("no"))), "nonsense"),
    "an event before the greeting": (event_frame(1, 0, b"x"), "nonsense"),
    "a message before the greeting": (frame(Join()), "nonsense"),
}
IDS = ["", "x", "/x", ":1/x", "127.0.0.1/x", "127.0.0.1:0/x", "127.0.0.1:65536/x", "127.0.0.1:80/", "a b:80/x"]
IDS += ["127.0.0.1:80/é", "127.0.0.1:80/a/b", "127.0.0.1:-1/x", "127.0.0.1:¹/x"]
STRANGERS |= {f"the id {name!r}": (hello(node=name), "refused") for name in IDS}


@pytest.mark.parametrize("loop", [new_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def test_who_does_not_greet_as_one_should_is_sent_away(loop: Any) -> None:
    async def attack() -> None:
        async with besieged() as siege:
            for what, (sent, counter) in STRANGERS.items():
                before = siege.count(counter)
                attacker = await Attacker.dial(siege.node.address)
                attacker.send(sent)
                heard = await attacker.gone()
                assert siege.count(counter) == before + 1, what
                assert (b"refusal" in heard) == (counter == "refused"), what
                assert b"welcome" not in heard, what
                siege.no_lies()
            await siege.stands()
            await siege.alone_again()
            assert siege.meter.worst_s < STALL_S

    run(attack(), loop)


# What a member may send that no member sends


def with_event(seq: int) -> bytes:
    return head(EVENT) + event_frame(stream_of(EVENT), seq, b"x")


MEMBERS: dict[str, bytes] = {
    "an empty frame": length(0),
    "one byte more than a frame may have": length(LIMITS.frame_bytes + 1) + b"x" * 100,
    "the largest length there is": length(2**32 - 1),
    "noise": Random(3).randbytes(1 << 16),
    "noise in a frame": framed(Random(4).randbytes(1000)),
    "a million empty lists": framed(b"\x92\x07\xdd" + length(1_000_000) + b"\x90" * 1_000_000),
    "a million numbers": framed(b"\x92\x07\xdd" + length(1_000_000) + b"\x01" * 1_000_000),
    "a list longer than its frame": framed(b"\x92\x07\xdd\xff\xff\xff\xff\x01"),
    "a hundred thousand lists in lists": framed(b"\x92\x07" + b"\x91" * DEEP),
    "the same where anything may stand": framed(b"\x93\x1e\x01" + b"\x91" * DEEP + b"\x01"),
    "the same behind the last field": framed(b"\x94\x07\x90" + b"\x91" * DEEP),
    "a time that is not a number": packed(8, float("nan"), 0),
    "text that is not UTF-8": framed(b"\x94\x06\xa2\xff\xfe\x00\x90"),
    "a second greeting": hello(),
    "a tag that nobody knows": packed(99),
    "no tag": packed(),
    "a map": framed(b"\x81\xa3tag\x01"),
    "a walk without end": packed(2, ME, 65),
    "a time before all time": packed(8, -1, 0),
    "a path of many": packed(53, [FLOW, [ME] * (PATH_LENGTH_MAX + 1), []]),
    "too long an id": packed(2, "x" * 121, 1),
    "an event of an unknown stream": event_frame(1, 0, b"x"),
    "an event without a number": framed(b"\xc1\x00\x00"),
    "a number that is too large": with_event(2**63 - 1),
    "a head under a wrong number": head_under(1, EVENT),
    "a head of what carries no event": head_under(1, Join()),
    "the head of a head": head_under(1, msgspec.msgpack.decode(head(EVENT)[4:])),
    "half a message": framed(frame(KeepAlive(1, 1))[4:-1]),
    "two messages in a frame": framed(frame(Join())[4:] * 2),
}


def test_a_member_that_sends_nonsense_is_cut() -> None:
    async def attack() -> None:
        async with besieged() as siege:
            for what, sent in MEMBERS.items():
                before = siege.count("nonsense")
                attacker = await Attacker.greeted(siege.node.address)
                attacker.send(sent)
                await attacker.gone()
                assert siege.count("nonsense") == before + 1, what
                siege.no_lies()
            await siege.stands()
            await siege.alone_again()
            assert siege.meter.worst_s < STALL_S

    run(attack())


def ids_of_wrong_type() -> dict[str, bytes]:
    """Ids of live processes are texts; the numbers of simulated ones have no place among them."""
    return {
        "a joiner": frame(ForwardJoin(7, 0)),
        "the origin of a shuffle": frame(Shuffle(7, 0, ())),
        "a peer in a sample": frame(NeighbourReply(False, (7,))),
        "a flow": frame(Activate((7, 0))),
        "the failed": frame(Activate(FLOW, True, (7,))),
        "a path": frame(KeepAlive(1, 1, (Position(FLOW, (ME, 7)),))),
        "progress": frame(KeepAlive(1, 1, (Position(FLOW, (), ((7, 1),)),))),
        "a source": head(data(FLOW, 7, 0, b"")),
    }


def test_a_number_is_no_id() -> None:
    async def attack() -> None:
        async with besieged() as siege:
            sent = {}
            for at, (what, message) in enumerate(ids_of_wrong_type().items()):
                sent[what] = await Attacker.greeted(siege.node.address, node=f"127.0.0.1:9/x{at}")
                sent[what].send(message)
            await asyncio.wait([asyncio.create_task(each.gone()) for each in sent.values()], timeout=1)
            assert [what for what, each in sent.items() if not each.reader.at_eof()] == []
            assert siege.count("nonsense") == len(sent)
            await siege.stands()

    run(attack())


# Frames that are never finished


@pytest.mark.parametrize("greeted", [False, True])
def test_a_frame_that_ends_in_its_middle_is_forgotten(greeted: bool) -> None:
    async def attack() -> None:
        async with besieged() as siege:
            whole = frame(KeepAlive(1, 1)) if greeted else hello()
            for cut in range(1, len(whole)):
                dial = Attacker.greeted if greeted else Attacker.dial
                attacker = await dial(siege.node.address)
                attacker.send(whole[:cut])
                attacker.writer.close()
                await attacker.writer.wait_closed()
            await siege.stands()
            await siege.alone_again()

    run(attack())


def test_a_thousand_halves_of_a_header_lock_nobody_out_for_long() -> None:
    async def attack() -> None:
        async with besieged() as siege:
            worst = [await wave(siege, 334) for _ in range(3)]
            (await Attacker.greeted(siege.node.address)).close()
            await siege.stands()
            assert min(worst) < STALL_S, worst  # the best of three: the attackers are in the same loop

    run(attack())


async def wave(siege: Siege, size: int) -> float:
    """The longest stall while so many come, say half a word, and are sent away."""
    before, attackers = siege.refused, []
    siege.meter.again()
    for _ in range(size):
        attacker = await Attacker.dial(siege.node.address)
        attacker.send(b"\0\0")
        attackers.append(attacker)
        siege.bounded()
    await siege.stands()
    await until(lambda: siege.refused >= before + size - LIMITS.handshakes_per_address)
    for attacker in attackers:
        await attacker.gone()
    await siege.alone_again()
    return siege.meter.worst_s


def test_a_member_that_says_nothing_is_shown_out() -> None:
    async def attack() -> None:
        async with besieged() as siege:
            silent = [await Attacker.greeted(siege.node.address, node=f"127.0.0.1:9/x{n}") for n in range(20)]
            silent[0].send(length(1000) + b"x")  # and one that never ends its sentence
            for attacker in silent:
                await attacker.gone()
            await siege.alone_again()
            await until(lambda: siege.count("ended: idle") == 20)
            await siege.stands()

    run(attack())


def test_no_more_members_than_there_is_room_for() -> None:
    async def attack() -> None:
        async with besieged() as siege:
            members = []
            for n in range(LIMITS.connections - len(siege.node._hub.links)):
                members.append(await Attacker.greeted(siege.node.address, node=f"127.0.0.1:9/x{n}"))
                siege.bounded()
            late = await Attacker.dial(siege.node.address)
            late.send(hello(node="127.0.0.1:9/late"))
            assert b"welcome" not in await late.gone()
            assert siege.refused == 1
            await siege.stands()
            for member in members:
                member.close()
            await siege.alone_again()

    run(attack())


def test_refused_connections_are_among_the_counters() -> None:
    async def attack() -> None:
        async with besieged() as siege:
            for _ in range(LIMITS.handshakes_per_address + 5):
                await Attacker.dial(siege.node.address)
            await until(lambda: siege.refused == 5)
            assert siege.count("connections refused") == 5

    run(attack())


def test_a_member_that_takes_nothing_is_cut() -> None:
    limits = msgspec.structs.replace(
        LIMITS, stall_us=600_000, peer_queue_high_bytes=1 << 15, peer_queue_bytes=SLOW_PART << 19
    )
    much = b"x" * 60_000

    async def attack() -> None:
        async with besieged(limits=limits) as siege:
            siege.said.add(much)
            attacker = await Attacker.greeted(siege.node.address)
            attacker.writer.transport.pause_reading()
            attacker.send(Join())
            staying = asyncio.create_task(attacker.stay())
            await until(lambda: ME in siege.node.neighbours)
            await siege.node.publish("much", much)
            attacker.send(*map(Activate, siege.node._stack_node.dissemination.flows))
            link = siege.node._hub.links[ME]
            while not link.conn.closing:
                await siege.node.publish("much", much)
                await asyncio.sleep(0.001)
            staying.cancel()
            assert siege.count("slow peers cut") == 1
            assert link.conn.waiting_bytes < 1 << 20
            await siege.goes_on()
            assert siege.friend.id in siege.node._hub.links

    run(attack())


# Streams


def test_a_link_knows_no_more_streams_than_it_may() -> None:
    async def attack() -> None:
        async with besieged() as siege:
            attacker = await Attacker.greeted(siege.node.address)
            heads = [head(data(FLOW, ME, 0, b"", topic=f"t{n}")) for n in range(STREAMS_MAX + 10)]
            attacker.send(*heads[:STREAMS_MAX])
            await until(lambda: len(siege.node._hub.links[ME].conn.known.heads) == STREAMS_MAX)
            attacker.send(*heads[STREAMS_MAX:])
            await bounded_or_gone(siege)
            attacker.close()
            await siege.stands()

    run(attack())


async def bounded_or_gone(siege: Siege) -> None:
    """A cap may end the connection, or make room."""
    link = siege.node._hub.links[ME]
    conn = link.conn
    taken = conn.received_bytes
    await until(lambda: conn.ended or (conn.received_bytes > taken and len(conn.known.heads) <= STREAMS_MAX))
    assert len(conn.known.heads) <= STREAMS_MAX
