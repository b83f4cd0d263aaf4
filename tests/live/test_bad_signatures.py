"""Messages whose signature is bad: whoever brings them is blamed, and nobody asks for them for ever."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace

from epicast.core.message import Position
from epicast.dissemination.brisa_messages import Whereabouts
from epicast.live import blame
from epicast.live.hello import Refusal
from epicast.live.messages import Gap, Message
from epicast.live.node import Node
from epicast.live.subscription import Subscription
from epicast.live.tls import Tls
from tests.live.attacker import ME, Attacker, hello
from tests.live.certified import make_cluster
from tests.live.relays import CLUSTER, as_event, credulous, member_of, secured, signer
from tests.live.siege import LIMITS, quick, run, until


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cluster(tmp_path_factory.mktemp("bad") / "keys", "n1", "n2", "evil", cluster=CLUSTER)


def rejected(node: Node) -> int:
    return node._hub.counters["bad signatures"]


def got_signed(messages: Subscription) -> bool:
    return any(isinstance(item, Message) and item.payload == b"signed" for item in messages._queue)


def test_a_publisher_that_forgot_to_sign_is_given_up_aloud(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    count = 150

    async def work() -> None:
        async with AsyncExitStack() as stack:
            given = {"stack": quick(), "limits": LIMITS, "tls": Tls.from_folder(folder, "n1"), "cluster": CLUSTER}
            nodes: list[Node] = []
            for _ in range(5):
                seeds = [node.address for node in nodes[:1]]
                nodes.append(await stack.enter_async_context(Node(**given, seeds=seeds, sign=True)))
                await nodes[-1].ready()
            careless = await stack.enter_async_context(Node(**given, seeds=[nodes[0].address]))
            with caplog.at_level(logging.WARNING, "epicast"):
                await careless.ready()
                heard = {node: await stack.enter_async_context(node.subscribe("**")) for node in nodes}
                for number in range(count):
                    await careless.publish("t", b"%d" % number)
                    await asyncio.sleep(0.005)
                told = [node for node in nodes if careless.id in node.neighbours]
                assert told
                await until(lambda: all(heard[node]._queue for node in told), "nobody is told of what is lost")
            await asyncio.sleep(3)  # fifteen times the period of the watchdog
            assert max(map(rejected, nodes)) < 2 * count, "each once, or again from a neighbour that came later"
            for node in told:
                gap = heard[node]._queue[0]
                assert isinstance(gap, Gap)
                assert (gap.reason, gap.source) == ("bad signature", careless.id)
            await nodes[0].publish("t", b"signed")
            await until(lambda: all(got_signed(heard[node]) for node in nodes))
            said = [record.getMessage() for record in caplog.records]
            assert any(text.startswith(f"{careless.id} does not sign") for text in said)
            assert any("accepts signed messages only" in text for text in said)
            assert any(text.startswith(f"{careless.id} publishes messages that may not be let in") for text in said)

    run(work())


def test_a_relay_that_spoils_messages_is_left_and_others_are_asked(folder: Path) -> None:
    async def attack() -> None:
        async with (
            secured(folder, sign=True) as siege,
            member_of(siege, folder) as attacker,
            signer(folder, 20) as (third, signed),
        ):
            flow = signed[0].flow
            flows = siege.node._stack_node.dissemination.flows
            while flow not in flows or flows[flow].parent != ME:
                attacker.send(Whereabouts(Position(flow, (third.id, ME), ((third.id, 19),))))
                await asyncio.sleep(0.02)
            spoilt = [replace(each, payload=each.payload[:-1] + b"!", path=(third.id, ME)) for each in signed]
            attacker.send(*map(as_event, spoilt))
            await until(lambda: rejected(siege.node) == 20)
            assert flow not in flows or flows[flow].parent != ME
            third._stack_node.membership.meet(siege.friend.id)
            payloads = {b"signed %d" % number for number in range(20)}
            siege.said |= payloads
            await until(lambda: siege._take() and payloads <= set(siege.got[siege.node]), "a message is missing")
            await siege.stands()

    run(attack())


def test_a_neighbour_that_goes_on_is_cut_off_and_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blame, "TERM_US", 2_000_000)

    async def attack() -> None:
        async with secured(folder, sign=True) as siege, signer(folder) as (_, signed):
            bad = replace(signed[0], payload=signed[0].payload[:-1] + b"!")
            async with member_of(siege, folder) as attacker:
                for _ in range(2 * blame.BORNE):
                    attacker.send(as_event(bad))
                await until(lambda: siege.count("ended: bad signatures"))
                await until(lambda: ME not in siege.node.neighbours)
            assert rejected(siege.node) <= blame.BORNE + 100
            again = await Attacker.dial(siege.node.address, credulous(Tls.from_folder(folder, "evil")))
            again.send(hello(cluster=CLUSTER))
            answer = await again.answer()
            assert isinstance(answer, Refusal)
            assert answer.reason.startswith("bad signatures")
            await siege.stands()
            await asyncio.sleep(2)
            async with member_of(siege, folder):
                await siege.stands()

    run(attack())
