"""Relays that change what nobody signs: no message vanishes by it, and nothing else comes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from epicast.core.message import HOPS_MAX
from epicast.dissemination.brisa_messages import BOOTSTRAP, RECOVERED, UPWARD, Data
from epicast.live.node import Node
from epicast.live.tls import Tls
from tests.live.attacker import ME
from tests.live.certified import make_cluster
from tests.live.relays import CLUSTER, as_event, member_of, secured, signer
from tests.live.siege import LIMITS, Siege, quick, run, until


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cluster(tmp_path_factory.mktemp("relays") / "keys", "n1", "n2", "evil", cluster=CLUSTER)


def has_all(siege: Siege, payloads: set[bytes]) -> bool:
    siege.said |= payloads
    return siege._take() and all(payloads <= set(got) for got in siege.got.values())


LIES = {
    "bootstrap": {"flags": BOOTSTRAP},
    "upward": {"flags": UPWARD, "path": ()},
    "bootstrap, upward": {"flags": BOOTSTRAP | UPWARD, "path": ()},
    "recovered": {"flags": RECOVERED},
    "all": {"flags": BOOTSTRAP | UPWARD | RECOVERED, "path": ()},
    "far": {"hops": HOPS_MAX},
    "no path": {"path": ()},
    "a path from elsewhere": {"path": ("127.0.0.1:9/other", ME)},
    "a long path": {"path": tuple(f"127.0.0.1:9/{n}" for n in range(1024))},
}


@pytest.mark.parametrize("lie", LIES)
def test_no_lie_about_a_signed_message_makes_it_vanish(folder: Path, lie: str) -> None:
    async def attack() -> None:
        async with (
            secured(folder, sign=True) as siege,
            member_of(siege, folder) as attacker,
            signer(folder, 20) as (third, signed),
        ):
            for each in signed:
                attacker.send(as_event(replace(each, **{"path": (third.id, ME), "hops": 1, **LIES[lie]})))
            await until(lambda: has_all(siege, {b"signed %d" % number for number in range(20)}), "a message vanished")
            third._stack_node.membership.meet(siege.node.id)
            await until(lambda: third.id in siege.node.neighbours)
            for number in range(20, 40):
                await third.publish("new", b"signed %d" % number)
            await until(lambda: has_all(siege, {b"signed %d" % number for number in range(20, 40)}))
            assert siege.count("bad signatures") == 0
            await siege.stands()

    run(attack())


def test_nobody_is_blamed_for_passing_on_what_a_relay_has_spoilt(folder: Path) -> None:
    """Who knows the source needs no certificate to read its messages. Who has come since then does."""

    def spoilt(message: Data) -> Data:
        payload = bytearray(message.payload)
        payload[60] ^= 1  # of the certificate
        return replace(message, payload=bytes(payload))

    async def attack() -> None:
        async with (
            secured(folder, sign=True) as siege,
            member_of(siege, folder) as attacker,
            signer(folder, 10) as (third, signed),
        ):
            first, *others = [replace(each, path=(third.id, ME), hops=1) for each in signed]
            attacker.send(as_event(first))
            await until(lambda: has_all(siege, {b"signed 0"}))
            given = {"stack": quick(), "limits": LIMITS, "tls": Tls.from_folder(folder, "n2"), "cluster": CLUSTER}
            async with Node(**given, seeds=[siege.node.address], sign=True) as newcomer:
                await newcomer.ready()
                async with newcomer.subscribe("new") as messages:
                    attacker.send(*(as_event(spoilt(each)) for each in others))
                    await until(lambda: siege.count("bad signatures") == len(others))
                    third._stack_node.membership.meet(siege.node.id)
                    rest = {b"signed %d" % number for number in range(1, 10)}
                    await until(lambda: has_all(siege, rest))
                    await until(lambda: rest <= {each.payload for each in messages._queue})
                    assert newcomer._hub.counters["bad signatures"] == 0
            await siege.stands()

    run(attack())
