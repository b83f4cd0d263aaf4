"""Every message with fields at the ends of what a decoder takes: whatever a node makes of them, its friends read on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from epicast.core.message import Message
from epicast.live.orders import protocols, with_order
from epicast.membership.hyparview_messages import Disconnect, Join, KeepAlive
from epicast.stacks import stack as stacks
from epicast.stacks.stack import Stack
from epicast.wire.codec import frame
from tests.live.attacker import Attacker
from tests.live.siege import Siege, besieged, quick, run, until
from tests.support.extremes import extremes

LIAR, NOBODY = "127.0.0.1:9/badc0de1", "127.0.0.1:9/c0fe1234"
PATIENCE_S = 3.0  # many keep-alives, rounds and looks


def over_hyparview(**dissemination: Any) -> Stack:
    members = {"protocol": "hyparview", **quick().source["membership"]}
    return stacks.from_table({"membership": members, "dissemination": {**dissemination}})


STACKS: dict[str, Callable[[], Stack]] = {
    "brisa": quick,
    "brisa, total order": lambda: with_order(
        quick(), "total", {"total": {"balls": {"count_interval": "100ms", "epoch_intervals": 4}}}
    ),
    "flood": lambda: quick("flood"),
    "gossip": lambda: over_hyparview(protocol="gossip", push="mixed", pull="exchange"),
    "emergent": lambda: over_hyparview(protocol="emergent"),
}


@pytest.mark.parametrize("which", STACKS)
def test_no_value_of_any_field_parts_friends(which: str) -> None:
    async def attack() -> None:
        stack = STACKS[which]()
        async with AsyncExitStack() as parts:
            siege = await parts.enter_async_context(besieged(stack=stack))
            unread: list[str] = []
            siege.friend._hub.nonsense = unread_by(siege.friend._hub, unread)  # type: ignore[method-assign]
            for message in extremes(stack, [LIAR, NOBODY, siege.node.id, siege.friend.id]):
                if not isinstance(message, Disconnect):
                    await say(siege, stack, message)
            await asyncio.sleep(PATIENCE_S)
            assert unread == [], "of what the node has made of it"
            assert siege.errors == []
            for one, other in ((siege.node, siege.friend), (siege.friend, siege.node)):
                assert other.id in one.neighbours

    run(attack())


def unread_by(hub: Any, unread: list[str]) -> Callable[[Any, str], None]:
    nonsense = hub.nonsense

    def note(conn: Any, what: str) -> None:
        unread.append(what)
        nonsense(conn, what)

    return note


async def say(siege: Siege, stack: Stack, message: Message) -> None:
    """Each over a connection of its own: the member may be cut for it."""
    liar = await Attacker.greeted(siege.node.address, stack=protocols(stack), node=LIAR)
    liar.send(Join())
    await until(lambda: LIAR in siege.node.neighbours)
    liar.send(KeepAlive(0, 1), frame(message))
    conn = siege.node._hub.links[LIAR].conn
    await asyncio.sleep(0.02)
    liar.close()
    await until(lambda: siege.node._hub.links.get(LIAR) is None or siege.node._hub.links[LIAR].conn is not conn)
