"""Ids in messages of live processes are texts, wherever they stand."""

from __future__ import annotations

import pytest

from epicast.core.errors import WireError
from epicast.core.ids import FlowId, NodeId
from epicast.core.message import Message, Peers, Position
from epicast.live.text_ids import TextIdDecoder
from epicast.wire.codec import encode


class Everywhere(Message, tag=1_000_070):
    one: NodeId
    many: Peers
    flow: FlowId
    ranges: tuple[tuple[NodeId, int, int], ...]
    positions: tuple[Position, ...]
    count: int


GOOD = Everywhere("a", ("b",), ("c", 0), (("d", 1, 2),), (Position(("e", 0), ("f",), (("g", 3),)),), 7)
BAD = {
    "a field": Everywhere(1, ("b",), ("c", 0), (), (), 7),
    "a list": Everywhere("a", ("b", 1), ("c", 0), (), (), 7),
    "a flow": Everywhere("a", (), (1, 0), (), (), 7),
    "a range": Everywhere("a", (), ("c", 0), (("d", 1, 2), (1, 1, 2)), (), 7),
    "a path": Everywhere("a", (), ("c", 0), (), (Position(("e", 0), (1,)),), 7),
    "progress": Everywhere("a", (), ("c", 0), (), (Position(("e", 0), (), ((1, 3),)),), 7),
}


def test_texts_are_taken() -> None:
    assert TextIdDecoder([Everywhere]).decode(encode(GOOD)) == GOOD


@pytest.mark.parametrize("what", BAD)
def test_numbers_are_not(what: str) -> None:
    with pytest.raises(WireError, match="an id that is not a text"):
        TextIdDecoder([Everywhere]).decode(encode(BAD[what]))


class Perhaps(Message, tag=1_000_071):
    one: NodeId | None


def test_a_type_in_which_ids_cannot_be_told_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="use a tuple of ids"):
        TextIdDecoder([Perhaps])
