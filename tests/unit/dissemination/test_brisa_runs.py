"""Messages that come many at a time: the same outcome as one by one, in the cases in which they are taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from epicast.core.recording import Send
from epicast.dissemination.brisa_flow import Buffer
from epicast.dissemination.brisa_messages import UPWARD, Data
from tests.support.neighbours import Tree, data, position

PATH = (0, 1)


class Together(list[bytes]):
    """Payloads that came together."""

    def __init__(self, payloads: Iterable[bytes], seq: int) -> None:
        super().__init__(payloads)
        self.seq = seq

    @property
    def payload_bytes(self) -> int:
        return sum(map(len, self))


def several(first: int, count: int) -> list[Data]:
    return [msgspec.structs.replace(data(seq, PATH), payload=b"%d" % seq) for seq in range(first, first + count)]


def attached() -> Tree:
    """Its parent is 1, and it has forwarded one message to 2 and 3."""
    tree = Tree()
    tree.brisa.on_data(1, data(0, PATH))
    tree.take()
    return tree


def taken(tree: Tree, sender: int, messages: list[Data]) -> list[object] | None:
    """What a driver sends on of a run. None if it is declined."""
    outcome = tree.brisa.take_run(sender, messages[0], Together([each.payload for each in messages], messages[0].seq))
    if outcome is None:
        return None
    targets, onward = outcome
    effects: list[object] = tree.take()
    for each in messages:
        sent = msgspec.structs.replace(onward, seq=each.seq, payload=each.payload)
        effects += [Send(to, sent) for to in targets]
    return effects


def state(tree: Tree) -> tuple[object, ...]:
    flow = tree.flow((0, 0))
    return flow.parent, flow.path, flow.windows[0].next, flow.buffer.since(0), tree.brisa.positions()


@given(st.integers(1, 20))
def test_a_run_from_the_parent_is_the_same_as_its_messages(count: int) -> None:
    together, apart = attached(), attached()
    messages = several(1, count)
    effects = taken(together, 1, messages)
    for each in messages:
        apart.brisa.on_data(1, each)
    assert effects == apart.take()
    assert apart.got[1:] == [(0, each.seq) for each in messages], "all are delivered"
    assert state(together) == state(apart)


def declined(tree: Tree, sender: int, messages: list[Data]) -> bool:
    before = state(tree)
    outcome = taken(tree, sender, messages)
    assert outcome is not None or (state(tree) == before and tree.take() == [])
    return outcome is None


def test_whatever_is_not_usual_is_declined_and_changes_nothing() -> None:
    assert declined(attached(), 2, several(1, 3)), "not from the parent"
    assert declined(attached(), 1, several(0, 3)), "begins with what we have"
    assert declined(attached(), 1, several(2, 3)), "leaves a hole"
    moved = [msgspec.structs.replace(each, path=(0, 7, 1)) for each in several(1, 3)]
    assert declined(attached(), 1, moved), "the parent has moved"
    upward = [msgspec.structs.replace(each, flags=UPWARD) for each in several(1, 3)]
    assert declined(attached(), 1, upward), "says nothing of paths"
    stranger = [msgspec.structs.replace(each, source=9) for each in several(1, 3)]
    assert declined(attached(), 1, stranger), "another publisher"
    holed = attached()
    holed.brisa.on_data(1, data(5, PATH))
    holed.take()
    assert declined(holed, 1, several(1, 3)), "there is a hole to fill"
    rival = attached()
    rival.brisa.on_data(2, data(1, (0, 2)))
    rival.take()
    assert declined(rival, 1, several(2, 3)), "a rival was faster, and the parent's copy has not come"
    assert not declined(attached(), 1, several(1, 3))


def test_a_run_of_an_unknown_flow_is_declined() -> None:
    tree = Tree()
    assert tree.brisa.take_run(1, data(0, PATH), Together([b"x"], 0)) is None
    assert tree.brisa.flows == {}


def test_what_came_in_runs_can_be_asked_for_again() -> None:
    tree = attached()
    taken(tree, 1, several(1, 5))
    flow = tree.flow((0, 0))
    assert [each.seq for each in flow.buffer.within([(0, 2, 3)])[0]] == [2, 3]
    assert flow.buffer.within([(0, 2, 2)])[0][0].payload == b"2"
    assert position((0, 1, 5), last=5) == tree.brisa.positions()[0]


def test_a_buffer_of_runs_keeps_to_its_limits() -> None:
    def kept(buffer: Buffer) -> Iterator[int]:
        return (each.seq for each in buffer.since(0))

    buffer = Buffer(messages_max=5, bytes_max=1000)
    for first in (0, 2, 4, 6):
        buffer.add_run(0, several(9, 1)[0], Together([b"a", b"b"], first))
    assert list(kept(buffer)) == [4, 5, 6, 7]
    buffer.add(0, several(8, 1)[0])
    assert list(kept(buffer)) == [4, 5, 6, 7, 8]
    small = Buffer(messages_max=100, bytes_max=10)
    small.add_run(0, several(0, 1)[0], Together([b"12345"] * 2, 0))
    small.add_run(0, several(2, 1)[0], Together([b"1"], 2))
    assert list(kept(small)) == [2]
