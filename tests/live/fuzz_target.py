"""A whole node without a network, for bytes that nobody would send: what any fuzzer calls is `one_input`.

The node has two neighbours, a friend and an enemy. The bytes are frames from the enemy, each with two bytes in front
that give its length. Whatever they are, three things hold: nothing is raised, nothing grows beyond its cap, and all
that the node says from then on can be read by its friend.

With `atheris` installed, `python -m tests.live.fuzz_target -max_total_time=60` lets that fuzzer try.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from epicast.core.errors import WireError
from epicast.core.message import Message, Position
from epicast.core.recording import RecordingEnv, Send
from epicast.dissemination.brisa_messages import Activate, Baseline, Deactivate, Recover, Whereabouts
from epicast.live import envelope, hello
from epicast.live.reassembly import Reassembly
from epicast.live.text_ids import TextIdDecoder
from epicast.live.tuning import tuned
from epicast.membership import hyparview_messages as hyparview
from epicast.stacks import stack as stacks
from epicast.stacks.node import Node, handler_table, message_types
from epicast.wire.codec import encode, frame
from epicast.wire.frames import Run, event_frame
from epicast.wire.streams import STREAMS_MAX, Head, Known, Shapes
from tests.live.attacker import data, framed, head, stream_of
from tests.live.readers import Readers

ME, FRIEND, ENEMY = "127.0.0.1:1/me", "127.0.0.1:2/friend", "127.0.0.1:3/enemy"
FRAME_BYTES = 1 << 20
S = 1_000_000

STACK = tuned(stacks.load("brisa"))
_kinds = message_types(STACK)
_decoder, _shapes = TextIdDecoder([*_kinds, Head]), Shapes(_kinds)
_handlers = handler_table(STACK)


class Cell:
    """The node, and what it hears from the enemy."""

    def __init__(self) -> None:
        self.env = RecordingEnv(ME)
        self.node = Node(self.env, STACK)
        self.reader, self.known = Readers(FRAME_BYTES), Known(_decoder, _shapes)
        self.given_up = 0
        self.pieces = Reassembly(1 << 16, 1 << 15, 30 * S, self._gave_up)
        self.node.start(())
        for peer in (FRIEND, ENEMY):
            self._handle(peer, hyparview.Join())
        for seq in range(2):
            self._handle(FRIEND, data((FRIEND, 0), FRIEND, seq, envelope.pack_plain(1, b"friendly")))
        self.node.publish("t", envelope.pack_plain(1, b"own"))

    def _gave_up(self, source: str, why: str) -> None:
        self.given_up += 1

    def _handle(self, sender: str, msg: Message) -> None:
        slot, handle = _handlers[type(msg)]
        handle(self.node.parts()[slot], sender, msg)

    def hear(self, stream: bytes) -> None:
        """Raises WireError where a connection would be cut."""
        for each in self.reader.feed(stream):
            if isinstance(each, Run):
                self._run(each)
                continue
            msg = _decoder.decode(each)
            if isinstance(msg, Head):
                self.known.learn(msg)
            else:
                self._handle(ENEMY, msg)

    def _run(self, run: Run) -> None:
        like = self.known.find(run.stream)
        shape = _shapes.get(type(like))
        assert shape is not None
        if run.seq + len(run) > (1 << 63) - 1:
            raise WireError("as the driver has it")
        taken = self.node.dissemination.take_run(ENEMY, like, run)  # type: ignore[attr-defined]
        if taken is not None:
            self.env.send_many(*taken)
            return
        for event in shape.events(like, run.seq, run):
            self._handle(ENEMY, event)

    def wait(self, us: int) -> None:
        """The friend keeps in touch."""
        self._handle(FRIEND, hyparview.KeepAlive(self.env.now_us(), 2))
        self.env.advance(us)

    def open_envelopes(self) -> None:
        for event, _ in self.env.delivered:
            try:
                opened = envelope.unpack(event.payload)
            except WireError:
                continue
            if opened.fragment is not None:
                self.pieces.add(str(event.source), event.seq, opened, self.env.now_us())

    # What must hold

    def check(self) -> None:
        for effect in self.env.take():
            if isinstance(effect, Send):
                require_readable(effect.msg)
        membership: Any = self.node.membership
        flows: Any = self.node.dissemination.flows  # type: ignore[attr-defined]
        assert self.reader.waiting <= FRAME_BYTES + 4
        assert len(membership.active) <= membership.size_max
        assert len(membership.passive) <= membership.config.passive_size
        assert len(membership.lost) <= membership.config.lost_size
        assert len(flows) <= 2 * STACK.dissemination.config.flows_max  # type: ignore[attr-defined]
        assert len(self.known.heads) <= STREAMS_MAX
        assert FRIEND in membership.active.items or len(membership.active) >= membership.config.active_size


def require_readable(msg: Message) -> None:
    """As a live node says it: what the events of a stream have in common is told before them."""
    shape = _shapes.get(type(msg))
    if shape is not None:
        msg = shape.head(msg, shape.stream_of(msg))
    said = frame(msg)
    assert len(said) <= FRAME_BYTES, f"{type(msg).__name__} of {len(said)} bytes"
    try:
        read = _decoder.unframe(said)
        if isinstance(read, Head):
            Known(_decoder, _shapes).learn(read)
    except WireError as error:
        raise AssertionError(f"the friend cannot read {type(msg).__name__}: {error}") from None


def bodies_in(content: bytes) -> Iterator[bytes]:
    at = 0
    while at + 2 < len(content):
        size = int.from_bytes(content[at : at + 2], "big")
        yield content[at + 2 : at + 2 + size]
        at += 2 + size


def as_input(bodies: Sequence[bytes]) -> bytes:
    return b"".join(len(body).to_bytes(2, "big") + body for body in bodies if len(body) < 1 << 16)


def one_input(content: bytes) -> None:
    cell = Cell()
    cell.env.take()
    try:
        for body in bodies_in(content):
            greet(body)
            cell.hear(framed(body))
            cell.wait(S // 4)
            cell.check()
    except WireError:
        cell.node.membership.on_link_down(ENEMY)
    cell.open_envelopes()
    for _ in range(8):
        cell.wait(S)
        cell.check()
    cell.node.publish("t", b"still there")
    cell.check()


def greet(body: bytes) -> None:
    try:
        hello.decode(body)
    except WireError:
        return


def seeds() -> list[bytes]:
    """What members say, one of each sort, and some in the order in which they would."""
    flow, path = (ENEMY, 0), (ENEMY,)
    event = data(flow, ENEMY, 0, envelope.pack_plain(1, b"x"))
    piece = envelope.pack(1, b"x", envelope.pack_headers({"a": "b"}), envelope.Fragment(1, 0, 2))
    told = Position(flow, path, ((ENEMY, 3),))
    stream = stream_of(event)
    messages: list[Message] = [
        hyparview.Join(),
        hyparview.ForwardJoin(ENEMY, 3),
        hyparview.Neighbour(hyparview.Priority.HIGH),
        hyparview.NeighbourReply(True, (FRIEND,)),
        hyparview.Disconnect(leaving=False),
        hyparview.Shuffle(ENEMY, 1, (ENEMY, FRIEND)),
        hyparview.ShuffleReply((ENEMY,)),
        hyparview.KeepAlive(1, 4, (told, Position((FRIEND, 0), (FRIEND, ENEMY), ((FRIEND, 9),)))),
        hyparview.KeepAliveAck(1),
        Deactivate((FRIEND, 0), mutual=True),
        Activate(flow, True, (ENEMY,)),
        Whereabouts(told),
        Recover((ME, 0), ((ME, 0, 5),), 0, False),
        Recover((ME, 0), (), 5 * S, True),
        Baseline(flow, ((ENEMY, 0),), S),
        data((FRIEND, 0), ENEMY, 7, piece, path=(), flags=1),
    ]
    alone = [as_input([encode(msg)]) for msg in messages]
    events = [head(event)[4:], *(event_frame(stream, seq, event.payload)[4:] for seq in range(3))]
    child = [encode(Whereabouts(told)), encode(Whereabouts(told)), *events, encode(Activate(flow, True, (ENEMY,)))]
    ahead = Position((FRIEND, 0), (FRIEND, ENEMY), ((FRIEND, 9),))
    lies = [encode(hyparview.KeepAlive(1, 4, (ahead,))) for _ in range(8)]
    lies.append(encode(Baseline((FRIEND, 0), ((FRIEND, 9),), 0)))
    together = [events, child, lies, [encode(msg) for msg in messages]]
    return [*alone, *map(as_input, together)]


if __name__ == "__main__":
    import sys

    import atheris

    atheris.instrument_all()
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
