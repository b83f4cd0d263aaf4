"""Messages with every type of field that the project's messages use, and how to draw them."""

from __future__ import annotations

from hypothesis import strategies as st

from epicast.core.message import Count, Hops, Message, Path, Payload, Peers, Position, Topic


class Hello(Message, tag=1_000_030):
    """Nothing but itself."""


class Gossip(Message, tag=1_000_031):
    source: int | str
    seq: Count
    topic: Topic
    hops: Hops
    payload: Payload
    path: Path = ()


class Shuffle(Message, tag=1_000_032):
    peers: Peers
    positions: tuple[Position, ...] = ()
    weight: float = 0.0
    asked: bool = False


class Ball(Message, tag=1_000_033):
    levels: tuple[tuple[int, dict[bytes, tuple[Topic, Payload]]], ...]


KINDS: tuple[type[Message], ...] = (Hello, Gossip, Shuffle, Ball)

node_ids = st.integers(-(1 << 63), (1 << 63) - 1) | st.text(max_size=20)
counts = st.integers(0, (1 << 63) - 1)
paths = st.lists(node_ids, max_size=20).map(tuple)
positions = st.builds(
    Position,
    flow=st.tuples(node_ids, counts),
    path=paths,
    progress=st.lists(st.tuples(node_ids, counts), max_size=5).map(tuple),
    pending=st.booleans(),
)
messages: st.SearchStrategy[Message] = st.one_of(
    st.just(Hello()),
    st.builds(
        Gossip,
        source=node_ids,
        seq=counts,
        topic=st.text(max_size=255),
        hops=st.integers(0, (1 << 15) - 1),
        payload=st.binary(max_size=300),
        path=paths,
    ),
    st.builds(
        Shuffle,
        peers=paths,
        positions=st.lists(positions, max_size=3).map(tuple),
        weight=st.floats(allow_nan=False),
        asked=st.booleans(),
    ),
    st.builds(
        Ball,
        levels=st.lists(
            st.tuples(
                st.integers(0, 64),
                st.dictionaries(
                    st.binary(max_size=40), st.tuples(st.text(max_size=20), st.binary(max_size=40)), max_size=4
                ),
            ),
            max_size=4,
        ).map(tuple),
    ),
)
