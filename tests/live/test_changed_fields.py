"""Every field of every message that carries an event, changed by the relay that brings it first: the true message gets
through to all all the same, from the next neighbour if need be, and nothing else does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from epicast.core.message import HOPS_MAX
from epicast.dissemination.anti_entropy import Copy
from epicast.dissemination.brisa_messages import Data
from epicast.dissemination.emergent_messages import Msg
from epicast.dissemination.flood import Gossip
from epicast.dissemination.gossip_messages import Rumor
from epicast.live.node import Node
from epicast.live.orders import protocols
from epicast.live.tls import Tls
from epicast.membership.hyparview_messages import Join
from epicast.stacks import stack as stacks
from epicast.stacks.stack import Stack
from epicast.wire.codec import frame
from epicast.wire.frames import event_frame
from epicast.wire.streams import Shape, carries_event
from tests.live.attacker import Attacker
from tests.live.certified import make_cluster
from tests.live.relays import CLUSTER, credulous
from tests.live.siege import LIMITS, Siege, besieged, quick, run, until
from tests.tidy.test_messages import messages

FRIEND, NODE = "the friend", "the node"  # in a path: their ids are put there
LIAR, COURIER = "127.0.0.1:9/badc0de1", "127.0.0.1:9/c0fe1234"  # nobody listens there
COUNT = 8
ROUNDS = 6  # enough for the few processes here; a relay may say that all are behind a message

Change = Callable[[Any], Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cluster(tmp_path_factory.mktemp("fields") / "keys", "n1", "n2", "evil", cluster=CLUSTER)


def over_hyparview(dissemination: dict[str, Any]) -> Stack:
    """Where nobody asks for what a lie keeps from it."""
    members = {"protocol": "hyparview", **quick().source["membership"]}
    return stacks.from_table({"membership": members, "dissemination": {"pull": "none", **dissemination}})


STACKS: dict[type, Callable[[], Stack]] = {
    Data: quick,
    Gossip: lambda: quick("flood"),
    Rumor: lambda: over_hyparview({"protocol": "gossip", "rounds_max": ROUNDS}),
    Msg: lambda: over_hyparview(
        {"protocol": "emergent", "eager": "all", "local_rounds": ROUNDS, "remote_rounds": ROUNDS}
    ),
}


# What a relay may do to a message


def flipped(at: int) -> Change:
    def change(msg: Any) -> Any:
        payload = bytearray(msg.payload)
        payload[at] ^= 1
        return replace(msg, payload=bytes(payload))

    return change


def with_(**fields: Any) -> Change:
    return lambda msg: replace(msg, **fields)


def as_copy(msg: Any) -> Copy:
    """As if it had been asked for."""
    return Copy(msg.source, msg.seq, msg.hops, msg.topic, msg.payload)


FORGERIES: dict[str, dict[str, Change]] = {
    "flow": {
        "of the relay": with_(flow=(LIAR, 0)),
        "another one of the source": lambda msg: replace(msg, flow=(msg.flow[0], 7)),
    },
    "source": {
        "the relay": with_(source=LIAR),
        "no id": with_(source="nobody"),
    },
    "seq": {
        "the next": lambda msg: replace(msg, seq=msg.seq + 1),
        "far": lambda msg: replace(msg, seq=msg.seq + (1 << 62)),
        "of another stream": lambda msg: replace(msg, seq=msg.seq + (1 << 40)),
    },
    "topic": {"another": with_(topic="another"), "none": with_(topic="")},
    "payload": {
        "the kind of envelope": flipped(0),
        "the length of the certificate": flipped(2),
        "the certificate": flipped(60),
        "the signature": lambda msg: flipped(3 + int.from_bytes(msg.payload[1:3], "big") + 5)(msg),
        "the time": lambda msg: flipped(3 + int.from_bytes(msg.payload[1:3], "big") + 64 + 7)(msg),
        "the content": flipped(-1),
        "longer": lambda msg: replace(msg, payload=msg.payload + b"!"),
        "shorter": lambda msg: replace(msg, payload=msg.payload[:-1]),
        "nothing": with_(payload=b""),
    },
}
UNSIGNED: dict[str, dict[str, Change]] = {
    "hops": {"too far": with_(hops=HOPS_MAX), "none": with_(hops=0)},
    "path": {
        "none": with_(path=()),
        "from elsewhere": with_(path=("127.0.0.1:9/other", LIAR)),
        "through us": lambda msg: replace(msg, path=(msg.source, NODE, LIAR)),
        "through those below us": lambda msg: replace(msg, path=(msg.source, FRIEND, LIAR)),
        "long": with_(path=tuple(f"127.0.0.1:9/{number}" for number in range(1024))),
    },
    "flags": {str(flags): with_(flags=flags) for flags in range(1, 8)},
    "local_round": {"the last": with_(local_round=HOPS_MAX)},
    "remote_round": {"the last": with_(remote_round=HOPS_MAX)},
    "distance": {"far": with_(distance=255, local_round=1)},
    "type": {"a copy": as_copy, "a copy from far": lambda msg: as_copy(replace(msg, hops=HOPS_MAX))},
}
CASES = [
    (kind, field, what, sign)
    for kind in STACKS
    for table, signs in ((FORGERIES, (True,)), (UNSIGNED, (True, False)))
    for field, lies in table.items()
    if field in kind.__struct_fields__ or (field == "type" and kind in (Rumor, Msg))
    for what in lies
    for sign in signs
]


def test_there_is_a_lie_about_every_field_of_every_event() -> None:
    events = {kind for kind in messages() if carries_event(kind)}
    assert events == {*STACKS, Copy}
    for kind in events:
        assert set(kind.__struct_fields__) <= {*FORGERIES, *UNSIGNED}, kind


# Playing it


@asynccontextmanager
async def member(siege: Siege, stack: Stack, folder: Path, me: str) -> AsyncIterator[Attacker]:
    context = credulous(Tls.from_folder(folder, "evil"))
    one = await Attacker.greeted(siege.node.address, context, cluster=CLUSTER, stack=protocols(stack), node=me)
    one.send(Join())
    await until(lambda: me in siege.node.neighbours)
    staying = asyncio.create_task(one.stay())
    reading = asyncio.create_task(one.reader.read())
    try:
        yield one
    finally:
        staying.cancel()
        reading.cancel()
        one.close()


def sent_by(me: str, event: Any) -> Any:
    """As the first relay would pass it on."""
    changes: dict[str, Any] = {"hops": 1}
    if isinstance(event, Data):
        changes["path"] = (event.source, me)
    if isinstance(event, Msg):
        changes["local_round"] = 1
    return replace(event, **changes)


def placed(event: Any, siege: Siege) -> Any:
    if not isinstance(event, Data):
        return event
    ids = {FRIEND: siege.friend.id, NODE: siege.node.id}
    return replace(event, path=tuple(ids.get(str(each), each) for each in event.path))


def as_frames(event: Any) -> bytes:
    shape = Shape(type(event))
    stream = shape.stream_of(event)
    return frame(shape.head(event, stream)) + event_frame(stream, event.seq, event.payload)


@asynccontextmanager
async def published(folder: Path, stack: Stack, *, sign: bool) -> AsyncIterator[list[Any]]:
    tls = Tls.from_folder(folder, "n2")
    events: list[Any] = []
    async with Node(stack=stack, limits=LIMITS, tls=tls, cluster=CLUSTER, sign=sign) as node:
        node._board.deliver = events.append  # type: ignore[method-assign]
        for number in range(COUNT):
            await node.publish("new", b"true %d" % number)
        yield events


@pytest.mark.parametrize(("kind", "field", "what", "sign"), CASES)
def test_a_changed_message_never_takes_the_place_of_the_true_one(
    folder: Path, kind: type, field: str, what: str, sign: bool
) -> None:
    change = {**FORGERIES, **UNSIGNED}[field][what]

    async def attack() -> None:
        stack = STACKS[kind]()
        given = {"cluster": CLUSTER, "tls": Tls.from_folder(folder, "n1"), "friend_tls": Tls.from_folder(folder, "n2")}
        async with AsyncExitStack() as parts:
            siege = await parts.enter_async_context(besieged(stack=stack, sign=sign, **given))
            events = await parts.enter_async_context(published(folder, stack, sign=sign))
            liar, courier = [
                await parts.enter_async_context(member(siege, stack, folder, me)) for me in (LIAR, COURIER)
            ]
            link = siege.node._hub.links[LIAR].conn
            told = [placed(change(sent_by(LIAR, each)), siege) for each in events]
            assert link is not None
            before, lies = link.received_bytes, b"".join(map(as_frames, told))
            liar.send(lies)
            await until(lambda: link.closing or link.received_bytes >= before + len(lies))
            courier.send(*(as_frames(sent_by(COURIER, each)) for each in events))
            siege.said |= (payloads := {b"true %d" % number for number in range(COUNT)})
            await until(
                lambda: siege._take() and all(payloads <= set(got) for got in siege.got.values()), "a message vanished"
            )
            await siege.stands()

    run(attack())
