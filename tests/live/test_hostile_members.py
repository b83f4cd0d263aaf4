"""Members that send what they may, and mean ill: they part no friends, silence nobody and fill no tables."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import msgspec
import pytest

from epicast.core.message import LIST_LENGTH_MAX, Position
from epicast.dissemination.brisa_messages import BOOTSTRAP, UPWARD, Activate, Baseline, Whereabouts
from epicast.live.envelope import pack_plain
from epicast.live.node import Node
from epicast.membership.hyparview_messages import ForwardJoin, KeepAlive, NeighbourReply, Shuffle
from epicast.wire.codec import frame
from epicast.wire.frames import event_frame
from epicast.wire.streams import STREAMS_MAX
from tests.live.attacker import ME, Attacker, data, head, hello, stream_of
from tests.live.neighbour import FAR, FLOW, neighbour_of, published
from tests.live.siege import DEADLINE_S, LIMITS, Siege, besieged, quick, run, until

PATH = (ME,)


def nothing_of(siege: Siege) -> None:
    assert siege.friend._hub.counters["nonsense"] == 0
    assert siege.node._hub.counters["slow peers cut"] == 0


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes do at once whatever a peer asks for, so that tables fill up while we look."""
    monkeypatch.setattr("epicast.live.effort.BURST_NS", 1 << 40)


# What others say must not make us say what they cannot bear


def test_a_message_that_has_come_too_far_does_not_part_friends() -> None:
    async def attack() -> None:
        async with besieged() as siege, neighbour_of(siege) as attacker:
            siege.said.add(b"far")
            conn = siege.node._hub.links[siege.friend.id].conn
            attacker.send(published(0, pack_plain(1, b"far"), hops=(1 << 15) - 1))
            await until(lambda: siege._take() and b"far" in siege.got[siege.node])
            await siege.goes_on()
            nothing_of(siege)
            assert siege.node._hub.links[siege.friend.id].conn is conn
            await siege.stands()

    run(attack())


def test_a_long_list_of_failed_processes_does_not_part_friends() -> None:
    async def attack() -> None:
        async with besieged() as siege, neighbour_of(siege) as attacker:
            conn = siege.node._hub.links[siege.friend.id].conn
            flows = siege.node._stack_node.dissemination.flows
            while FLOW not in flows or flows[FLOW].parent is None:
                attacker.send(Whereabouts(Position(FLOW, PATH)))
                await asyncio.sleep(0.02)
            failed = tuple(f"127.0.0.1:9/dead{n}" for n in range(LIST_LENGTH_MAX))
            attacker.send(Activate(FLOW, True, failed))
            await until(lambda: flows[FLOW].repair is not None and flows[FLOW].repair.hard)
            assert len(flows[FLOW].repair.taint) <= LIST_LENGTH_MAX
            await siege.goes_on()
            nothing_of(siege)
            assert siege.node._hub.links[siege.friend.id].conn is conn
            await siege.stands()

    run(attack())


@pytest.mark.usefixtures("patient")
def test_many_flows_with_many_publishers_do_not_part_friends() -> None:
    async def attack() -> None:
        async with besieged() as siege, neighbour_of(siege) as attacker:
            conn = siege.node._hub.links[siege.friend.id].conn
            sources = [f"{n}".rjust(115, "x") + ":1/x" for n in range(256)]
            flags = BOOTSTRAP | UPWARD  # to be handed on, and not delivered
            for number in range(40):
                flow = (ME, number)
                attacker.send(*(data(flow, source, FAR, b"", path=(), flags=flags) for source in sources))
            flows = siege.node._stack_node.dissemination.flows
            await until(lambda: sum(len(flow.windows) for flow in flows.values()) > 32 * 255)
            await asyncio.sleep(1)  # five keep-alives
            await siege.goes_on()
            nothing_of(siege)
            assert siege.node._hub.links[siege.friend.id].conn is conn
            await siege.stands()

    run(attack())


def test_many_topics_do_not_part_friends() -> None:
    async def attack() -> None:
        async with besieged(stack=quick("flood")) as siege:
            for number in range(STREAMS_MAX + 100):
                payload = f"topic {number}".encode()
                siege.said.add(payload)
                await siege.friend.publish(f"t/{number}", payload)
            await until(lambda: siege._take() and siege.said == set(siege.got[siege.node]))
            assert siege.count("ended: ") == 0
            await siege.stands()

    run(attack())


# Tables that peers fill


def test_names_of_counters_do_not_depend_on_what_peers_say() -> None:
    async def attack() -> None:
        async with besieged() as siege:
            known = len(siege.counters)
            for number in range(100):
                attacker = await Attacker.dial(siege.node.address)
                attacker.send(hello(version=number + 2))
                await attacker.gone()
                attacker = await Attacker.dial(siege.node.address)
                attacker.send((LIMITS.frame_bytes + number).to_bytes(4, "big"))
                await attacker.gone()
                member = await Attacker.greeted(siege.node.address)
                member.send((LIMITS.frame_bytes + number + 1).to_bytes(4, "big"))
                await member.gone()
            assert len(siege.counters) < known + 20
            await siege.stands()

    run(attack())


UNRESOLVABLE = ["a..b:1/x{}", "\0:1/x{}", "{}.".rjust(80, "y") + "z:1/x", "é{}..:1/x"]


def test_names_that_cannot_be_looked_up_take_no_room() -> None:
    async def attack() -> None:
        async with besieged() as siege, neighbour_of(siege) as attacker:
            for number in range(LIMITS.connections + 10):
                name = UNRESOLVABLE[number % len(UNRESOLVABLE)].format(number)
                attacker.send(Shuffle(name, 0, ()))
            await until(lambda: siege.count("dropped: unreachable") + len(siege.node._hub.links) >= LIMITS.connections)
            await until(lambda: set(siege.node._hub.links) == {siege.friend.id, ME}, "links that nobody needs are left")
            (await Attacker.greeted(siege.node.address, node="127.0.0.1:9/late")).close()
            await siege.stands()

    run(attack())


def test_processes_that_are_not_there_are_forgotten() -> None:
    """Messages that name third parties make us dial them, but not more than there is room for, and not for ever."""

    async def attack() -> None:
        async with besieged() as siege, neighbour_of(siege) as attacker:
            hub = siege.node._hub
            for number in range(300):
                name = f"127.0.0.1:{1 + number % 8}/x{number}"
                attacker.send(Shuffle(name, 0, (name,) * 30), ForwardJoin(name, 0), NeighbourReply(False, (name,)))
                siege.bounded()
            await siege.stands()
            assert len(siege.node._stack_node.membership.passive) <= 30
            await until(lambda: set(hub.links) <= {siege.friend.id, ME})
            await siege.stands()

    run(attack())


@asynccontextmanager
async def newcomer(siege: Siege) -> AsyncIterator[Node]:
    """One more honest node, that has not published anything yet."""
    async with Node(stack=quick(), limits=LIMITS, seeds=[siege.node.address]) as third:
        await third.ready(DEADLINE_S)
        await until(lambda: third.id in siege.node.neighbours)
        yield third


async def is_heard(siege: Siege, third: Node, count: int = 8) -> None:
    for number in range(count):
        payload = f"{third.id} {number}".encode()
        siege.said.add(payload)
        await third.publish("new", payload)
        await until(partial(has_got, siege, payload), f"message {number} of the newcomer was lost")
        await asyncio.sleep(0.1)  # so that the watchdog looks in between


def has_got(siege: Siege, payload: bytes) -> bool:
    return siege._take() and payload in siege.got[siege.node]


def flows_max(node: Node) -> int:
    return node._stack_node.dissemination.config.flows_max


def named(flows: list[tuple[str, int]], how: str) -> bytes:
    """What a member says to name flows."""
    positions = [Position(flow, (flow[0], ME)) for flow in flows]
    if how == "keep-alive":
        return frame(KeepAlive(1, 4, tuple(positions)))
    asked = [frame(Activate(flow)) for flow in flows] if how != "whereabouts" else []
    return b"".join([*asked, *(frame(Whereabouts(position)) for position in positions)])


@pytest.mark.parametrize("how", ["keep-alive", "whereabouts", "activate, whereabouts"])
def test_nobody_can_forbid_a_node_to_publish(how: str) -> None:
    """Flows are numbered: whoever knows a node knows what its flows are called before it has any."""

    async def attack() -> None:
        async with Node(stack=quick(), limits=LIMITS) as node, neighbour_of(Siege(node, node)) as attacker:
            brisa = node._stack_node.dissemination
            flows = [(node.id, number) for number in range(2 * brisa.config.flows_of_one_max)]
            while not brisa.flows:  # of a keep-alive nothing is heard before the next round
                attacker.send(named([*flows, ("127.0.0.1:9/other", 0)], how))
                await asyncio.sleep(0.02)
            receipt = await node.publish("t", b"x")
            assert receipt.id[0] == node.id
            assert [flow for flow in brisa.flows if flow[0] == node.id] == [(node.id, 0)]

    run(attack())


@pytest.mark.parametrize("how", ["whereabouts", "activate, whereabouts"])
def test_flows_invented_for_a_publisher_silence_nobody(how: str) -> None:
    async def attack() -> None:
        async with besieged() as siege, neighbour_of(siege) as attacker, newcomer(siege) as third:
            brisa = siege.node._stack_node.dissemination
            flows = [(third.id, 100 + number) for number in range(2 * brisa.config.flows_of_one_max)]
            attacker.send(named(flows, how))
            await until(lambda: sum(root == third.id for root, _ in brisa.flows) >= brisa.config.flows_of_one_max)
            await is_heard(siege, third, 3)
            friends = siege.friend._stack_node.dissemination.flows
            assert [flow for flow in friends if flow[0] == third.id] == [(third.id, 0)], "lies are not told on"
            await siege.stands()

    run(attack())


FLOWS = {
    "that nobody has seen": lambda n: frame(KeepAlive(1, 4, (Position((f"127.0.0.1:9/y{n}", 0), ()),))),
    "that somebody tells of": lambda n: frame(
        Whereabouts(Position((f"127.0.0.1:9/y{n}", 0), (f"127.0.0.1:9/y{n}", ME)))
    ),
    "with messages": lambda n: frame(data((f"127.0.0.1:9/y{n}", 0), f"127.0.0.1:9/y{n}", 0, b"", flags=BOOTSTRAP)),
    "of its own": lambda n: frame(data((ME, n), ME, 0, b"", flags=BOOTSTRAP)),
}


@pytest.mark.parametrize(
    "sort",
    [
        "that nobody has seen",
        "that somebody tells of",
        "with messages",
        "of its own",
    ],
)
def test_invented_flows_leave_room_for_true_ones(sort: str) -> None:
    async def attack() -> None:
        async with besieged() as siege, neighbour_of(siege) as attacker, newcomer(siege) as third:
            flows, cap = siege.node._stack_node.dissemination.flows, flows_max(siege.node)
            attacker.send(*map(FLOWS[sort], range(2 * cap)))
            stopped = ("record nonsense", "peers held back")
            await until(lambda: len(flows) >= cap or any(map(siege.count, stopped)) or sort == "that nobody has seen")
            await is_heard(siege, third, 3)
            assert len(flows) <= 2 * cap
            await siege.goes_on(topic="another")

    run(attack())


# Lies about what others have published


@asynccontextmanager
async def hermit() -> AsyncIterator[Node]:
    """A publisher of whom the others do not know yet."""
    async with Node(stack=quick(), limits=LIMITS) as third:
        await third.publish("new", b"to nobody")
        yield third


async def comes_in(siege: Siege, third: Node) -> None:
    siege.said.add(b"to nobody")  # whoever is new to a stream asks for its past
    third._stack_node.membership.meet(siege.node.id)
    await until(lambda: third.id in siege.node.neighbours)


def test_who_comes_late_is_heard() -> None:
    async def calm() -> None:
        async with besieged() as siege, hermit() as third:
            await comes_in(siege, third)
            await is_heard(siege, third)
            await siege.stands()

    run(calm())


def test_a_baseline_that_nobody_asked_for_silences_nobody() -> None:
    async def attack() -> None:
        async with besieged() as siege, neighbour_of(siege) as attacker, hermit() as third:
            flow, flows = (third.id, 0), siege.node._stack_node.dissemination.flows
            attacker.send(Whereabouts(Position(flow, (third.id, ME))), Baseline(flow, ((third.id, FAR),), FAR))
            await until(lambda: flow in flows)
            await comes_in(siege, third)
            await is_heard(siege, third)
            await siege.stands()

    run(attack())


def test_progress_that_nobody_made_silences_nobody() -> None:
    async def attack() -> None:
        async with besieged() as siege, neighbour_of(siege) as attacker, hermit() as third:
            flow, flows = (third.id, 0), siege.node._stack_node.dissemination.flows
            lie = KeepAlive(1, 4, (Position(flow, (third.id, ME), ((third.id, FAR),)),))
            for _ in range(100):  # what a keep-alive tells is heard at the next round, unless another comes before
                attacker.send(lie)
                await asyncio.sleep(0.02)
                if flow in flows and third.id in flows[flow].windows:
                    break
            await comes_in(siege, third)
            await is_heard(siege, third)
            await siege.stands()

    run(attack())


def test_what_makes_room_for_others_does_not_come_again() -> None:
    async def attack() -> None:
        async with besieged() as siege, neighbour_of(siege) as attacker, hermit() as third:
            await comes_in(siege, third)
            await is_heard(siege, third, 2)
            flow, flows = (third.id, 0), siege.node._stack_node.dissemination.flows
            recorded = third._stack_node.dissemination.flows[flow].buffer[-1][1]
            await third.stop()
            await until(lambda: flows[flow].repair is not None)
            attacker.send(*map(FLOWS["with messages"], range(flows_max(siege.node) + 100)))
            await until(lambda: flow not in flows or siege.count("record nonsense"))
            await until(lambda: all(each.repair or each.parent or each.path for each in flows.values()))  # their turn
            again = msgspec.structs.replace(recorded, path=(third.id, ME))
            attacker.send(head(again), event_frame(stream_of(again), again.seq, again.payload))
            await siege.goes_on()
            siege.no_lies()

    run(attack())
