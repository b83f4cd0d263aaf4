"""With keys: strangers stay outside, and a member cannot speak for others, whatever it sends."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import msgspec
import pytest

from epicast.dissemination.brisa_messages import Data
from epicast.live import keys
from epicast.live.envelope import pack_plain
from epicast.live.hello import Refusal
from epicast.live.sync import new_loop
from epicast.live.tls import Tls
from epicast.wire.codec import frame
from tests.live.attacker import ME, Attacker, hello
from tests.live.certified import HOST, LONG_AGO, make_cluster, make_odd
from tests.live.relays import CLUSTER, as_event, credulous, member_of, secured
from tests.live.siege import LIMITS, STALL_S, Siege, run, until


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_cluster(tmp_path_factory.mktemp("hostile") / "keys", "n1", "n2", "evil", cluster=CLUSTER)
    keys.issue(made, "late", hosts=[HOST], days=1, now=LONG_AGO)
    make_odd(made, "abroad", uris=("epicast://others/abroad",))
    make_odd(made, "nameless")
    return made


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another authority for a cluster of the same name."""
    return make_cluster(tmp_path_factory.mktemp("foreign") / "keys", "evil", cluster=CLUSTER)


async def knock(siege: Siege, context: ssl.SSLContext | None, sent: bytes) -> bytes:
    """What the node answers before it closes the connection."""
    try:
        attacker = await Attacker.dial(siege.node.address, context)
    except OSError:
        return b""
    attacker.send(sent)
    return await attacker.gone()


def strangers(folder: Path, foreign: Path) -> dict[str, ssl.SSLContext | None]:
    old = credulous(Tls.from_folder(folder, "evil"))
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    return {
        "plain text": None,
        "no certificate": credulous(None),
        "another authority": credulous(Tls.from_folder(foreign, "evil")),
        "expired": credulous(Tls.from_folder(folder, "late")),
        "another cluster": credulous(Tls.from_folder(folder, "abroad")),
        "no name": credulous(Tls.from_folder(folder, "nameless")),
        "an old protocol": old,
    }


@pytest.mark.parametrize("loop", [new_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def test_strangers_stay_outside(folder: Path, foreign: Path, loop: Any) -> None:
    async def attack() -> None:
        async with secured(folder) as siege:
            for what, context in strangers(folder, foreign).items():
                assert b"welcome" not in await knock(siege, context, hello(cluster=CLUSTER)), what
                siege.no_lies()
            await siege.stands()
            await siege.alone_again()
            assert siege.meter.worst_s < STALL_S

    run(attack(), loop)


def test_a_member_is_not_let_in_under_another_host(folder: Path) -> None:
    async def attack() -> None:
        async with secured(folder) as siege:
            attacker = await Attacker.dial(siege.node.address, credulous(Tls.from_folder(folder, "evil")))
            attacker.send(hello(cluster=CLUSTER, node="10.0.0.9:1/x"))
            answer = await attacker.answer()
            assert isinstance(answer, Refusal)
            assert "not for 10.0.0.9" in answer.reason
            await attacker.gone()
            assert siege.count("refused") == 1
            await siege.stands()
            await siege.alone_again()

    run(attack())


def test_handshakes_that_are_never_finished_lock_nobody_out_for_long(folder: Path) -> None:
    async def attack() -> None:
        async with secured(folder) as siege:
            attackers = []
            for number in range(100):
                attacker = await Attacker.dial(siege.node.address)
                attacker.send(b"\x16\x03\x01"[: number % 4])
                attackers.append(attacker)
                siege.bounded()
            await siege.stands()
            for attacker in attackers:
                await attacker.gone()
            await siege.alone_again()
            await siege.stands()

    run(attack())


def test_a_link_over_tls_outlives_the_time_for_greetings(folder: Path) -> None:
    async def calm() -> None:
        async with secured(folder) as siege:
            conn = siege.node._hub.links[siege.friend.id].conn
            await asyncio.sleep(2 * LIMITS.handshake_us / 1e6)
            assert siege.node._hub.links[siege.friend.id].conn is conn
            assert not conn.closing

    run(calm())


# Signed messages


def true_message(siege: Siege) -> Data:
    """One that the friend has signed and the node has got."""
    flow = siege.friend._stack_node.dissemination.flows[(siege.friend.id, 0)]
    return flow.buffer[-1][1]


def forgeries(true: Data) -> dict[str, Data]:
    change = msgspec.structs.replace
    payload, following = true.payload, true.seq + 1
    flipped = {at: bytes((*payload[:at], payload[at] ^ 1, *payload[at + 1 :])) for at in (0, 2, 40, -80, -1)}
    plain = pack_plain(1, b"forged")
    return {
        "no signature": change(true, seq=following, payload=plain),
        "no signature, of oneself": change(true, flow=(ME, 0), source=ME, seq=0, path=(ME,), payload=plain),
        "another number": change(true, seq=following),
        "another topic": change(true, seq=following, topic="other"),
        "the same number on another topic": change(true, flow=(ME, 1), path=(ME,), topic="other"),
        "another source": change(true, flow=(ME, 0), source=ME, seq=0, path=(ME,)),
        "a source that is no id": change(true, flow=(ME, 0), source="nobody", seq=0, path=(ME,)),
        "nothing": change(true, seq=following, payload=b""),
        "half a signature": change(true, seq=following, payload=payload[:100]),
        **{f"a bit of byte {at}": change(true, flow=(ME, 2), path=(ME,), payload=bad) for at, bad in flipped.items()},
    }


@pytest.mark.parametrize(
    "way",
    [
        "event",
        "message",
    ],
)
def test_forged_messages_reach_nobody_and_take_nobodys_place(folder: Path, way: str) -> None:
    send = as_event if way == "event" else frame

    async def attack() -> None:
        async with secured(folder, sign=True) as siege, member_of(siege, folder) as attacker:
            for what, forged in forgeries(true_message(siege)).items():
                before = siege.count("bad signatures")
                conn = siege.node._hub.links[ME].conn
                sent = conn.received_bytes
                attacker.send(send(forged))
                await until(lambda conn=conn, sent=sent: conn.received_bytes > sent)  # type: ignore[misc]
                await siege.goes_on(1)
                siege.no_lies()
                assert siege.count("bad signatures") == before + 1, what
            await siege.stands()

    run(attack())


def test_a_recording_is_worth_nothing(folder: Path) -> None:
    """Over the same flow it is a duplicate; for another one it was not signed."""

    async def attack() -> None:
        async with secured(folder, sign=True) as siege, member_of(siege, folder) as attacker:
            true = true_message(siege)
            attacker.send(as_event(true), as_event(true))
            await until(lambda: siege.count("duplicates") >= 2)
            for number in range(3):
                attacker.send(as_event(msgspec.structs.replace(true, flow=(ME, number), path=(ME,))))
                await until(lambda number=number: siege.count("bad signatures") == number + 1)  # type: ignore[misc]
            attacker.send(frame(msgspec.structs.replace(true, flow=(ME, 7), path=(ME,))))
            await until(lambda: siege.count("bad signatures") == 4)
            assert siege.node._stack_node.dissemination.flows.keys() <= {(siege.node.id, 0), (siege.friend.id, 0)}
            await siege.stands()

    run(attack())
