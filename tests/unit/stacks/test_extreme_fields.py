"""A node of each stack hears every message with fields at the ends of what a decoder takes. Whatever it sends then,
others can read: a node that cannot be read is cut off by its neighbours, and would be for what a member has said."""

from __future__ import annotations

from typing import Any

import pytest

from epicast.core.message import Message
from epicast.core.recording import RecordingEnv, Send, Shout
from epicast.live.orders import with_order
from epicast.membership.hyparview_messages import KeepAlive
from epicast.stacks import stack as stacks
from epicast.stacks.node import Node, handler_table, message_types
from epicast.stacks.stack import Stack
from epicast.wire.codec import Decoder, encode, frame
from epicast.wire.streams import Shapes, carries_event
from tests.support.extremes import NUMBER_MAX, extremes

ME, FRIEND, LIAR, NOBODY = (f"127.0.0.1:{port}/k3f9a2c1" for port in (1, 2, 3, 4))
SECOND = 1_000_000


def all_stacks() -> dict[str, Stack]:
    named = {name: stacks.load(name) for name in stacks.names()}
    return {**named, "brisa, total": with_order(named["brisa"], "total", None)}


def playing(stack: Stack) -> tuple[Node, RecordingEnv]:
    env = RecordingEnv(ME)
    node = Node(env, stack)  # type: ignore[arg-type]
    node.start([FRIEND, LIAR])
    env.advance(SECOND)
    return node, env


def unreadable(effects: list[Any], stack: Stack) -> list[str]:
    decoder, shapes = Decoder(message_types(stack)), Shapes(message_types(stack))
    wrong = []
    for message in {id(each.msg): each.msg for each in effects if isinstance(each, Send | Shout)}.values():
        shape = shapes.get(type(message))
        try:
            told = message if shape is None else shape.blank(message)
            assert decoder.unframe(frame(told)) == told
            assert shape is None or message.seq < NUMBER_MAX  # type: ignore[attr-defined]
        except Exception as error:
            wrong.append(f"{message}: {error}")
    return wrong


@pytest.mark.parametrize("name", all_stacks())
def test_whatever_a_node_hears_others_can_read_what_it_says(name: str) -> None:
    stack = all_stacks()[name]
    decoder, table = Decoder(message_types(stack)), handler_table(stack)
    node, env = playing(stack)
    wrong: list[str] = []
    for sender in (LIAR, FRIEND):
        for message in extremes(stack, [LIAR, NOBODY, FRIEND, ME]):
            if carries_event(type(message)) and message.seq == NUMBER_MAX:  # type: ignore[attr-defined]
                continue  # the driver lets none in that has no next number
            heard: Message = decoder.decode(encode(message))
            slot, handle = table[type(heard)]
            handle(node.parts()[slot], sender, heard)
            env.advance(SECOND)
            wrong += unreadable(env.take(), stack)
    if node.has_room("t"):
        node.publish("t", b"x")
    env.advance(60 * SECOND)
    wrong += unreadable(env.take(), stack)
    assert wrong == []


def test_it_would_be_seen() -> None:
    stack = stacks.load("flood")
    assert unreadable([Send(FRIEND, KeepAlive(NUMBER_MAX, 0))], stack) == []
    assert len(unreadable([Send(FRIEND, KeepAlive(NUMBER_MAX + 1, 0))], stack)) == 1
