"""The messages and settings of BRISA; see `brisa.py` for how they are used."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from epicast.core.config import Config, Duration, PositiveDuration
from epicast.core.ids import NodeId
from epicast.core.message import LIST_LENGTH_MAX, Count, Hops, Last, Message, Path, Payload, Peers, Position, Topic

Flow = tuple[NodeId, int]

# Flags of Data
UPWARD = 1  # published by a process that is not the flow's source: crosses tree edges both ways, says nothing of paths
BOOTSTRAP = 2  # builds the tree and is not delivered
RECOVERED = 4  # answers a Recover: says nothing about which links are active

# A source numbers the messages of each flow it publishes on from (stream << STREAM_SHIFT), so that a (source, seq) pair
# is unique and the numbers of one flow have no holes.
STREAM_SHIFT = 40
FIRST_IN_STREAM = (1 << STREAM_SHIFT) - 1  # mask: zero for the first message of a stream


class TreeMessage(Message):
    layer: ClassVar[str] = "dissemination"


class Data(TreeMessage, tag=50):
    """A published event. `path` runs from the flow's source to the sender."""

    flow: Flow
    source: NodeId
    seq: Count
    hops: Hops
    path: Path
    flags: Annotated[int, msgspec.Meta(ge=0, le=7)]
    topic: Topic
    payload: Payload

    @property
    def context(self) -> str:
        return context_of(self.flow)


def context_of(flow: Flow) -> str:
    return f"{flow[1]} {flow[0]}"


class Deactivate(TreeMessage, tag=51):
    """Stop sending me this flow. `mutual`: and I have stopped sending it to you."""

    flow: Flow
    mutual: bool = False


class Activate(TreeMessage, tag=52):
    """Send me this flow, and say where you stand. `fresh`: I have forgotten my own position (hard repair); `taint`
    names the processes that are known to have failed or to be fresh."""

    flow: Flow
    fresh: bool = False
    taint: Peers = ()


class Whereabouts(TreeMessage, tag=53):
    """Answers Activate, greets a new neighbour, and tells children that their parent moved."""

    position: Position


class Recover(TreeMessage, tag=54):
    """Send again what I miss: ranges of (source, first, last). Or, with `age_us`, for a newcomer: all that came within
    that time, of the publishers that the ranges name if there are any; `anything`: even from a process that was not
    there for all of that time."""

    flow: Flow
    ranges: Annotated[tuple[tuple[NodeId, Count, Count], ...], msgspec.Meta(max_length=LIST_LENGTH_MAX)]
    age_us: Count = 0
    anything: bool = False


class Baseline(TreeMessage, tag=55):
    """The lowest number of each source that I can give you. `age_us` is that of the request. `following` is the next
    number that I will publish on this flow myself, if I was asked for numbers that do not exist yet, else -1: it is
    believed of nobody but the flow's source, and about its own numbers."""

    flow: Flow
    firsts: Annotated[tuple[tuple[NodeId, Count], ...], msgspec.Meta(max_length=LIST_LENGTH_MAX)]
    age_us: Count = 0
    following: Last = -1


class BrisaConfig(Config):
    # The documents' first two; near-first changes for a parent in a nearer place, for overlays that know about places.
    strategy: Literal["first-come", "delay-aware", "near-first"] = "first-come"
    gain_us: PositiveDuration = 2_000  # delay-aware: the least that a change of parents must gain; our guess
    settle_us: Duration = 10_000_000  # delay-aware: from one change to the next; our guess: ten keep-alives
    symmetric: bool = True  # symmetric deactivation, with first-come only
    reuse_depth: Annotated[int, msgspec.Meta(ge=0, le=64)] = 0  # publish on a tree whose root is so near; 0: never
    one_flow: bool = False  # all topics on one tree, for publishers of many topics; the documents have one for each
    buffer_messages: Annotated[int, msgspec.Meta(ge=1)] = 512  # our guess: 100 s at the documents' 5 messages a second
    buffer_bytes: Annotated[int, msgspec.Meta(ge=1)] = 1 << 24
    recover_max: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 256  # messages sent again for one request
    recover_bytes: Annotated[int, msgspec.Meta(ge=1)] = 1 << 19  # of payloads in such an answer; our guess
    flows_max: Annotated[int, msgspec.Meta(ge=1)] = 1_024  # at the cap a flow without parent is forgotten, or none met
    flows_of_one_max: Annotated[int, msgspec.Meta(ge=1)] = 1_024  # with the same source; further ones are not met
    hearsay_max: Annotated[int, msgspec.Meta(ge=1)] = 64  # flows of which one neighbour told and no message came yet
    sources_max: Annotated[int, msgspec.Meta(ge=1)] = 256  # publishers on one flow; further ones are dropped
    positions_max: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 32  # told on one keep-alive; more flows take turns
    path_max: Annotated[int, msgspec.Meta(ge=2, le=1024)] = 256  # a longer path is taken for a cycle
    watch_us: PositiveDuration = 1_000_000  # our guess: one keep-alive
    confirm_us: PositiveDuration = 1_000_000  # our guess: how long a candidate may take to answer
    patience_us: PositiveDuration = 4_000_000  # our guess: a parent may be an orphan, or lag, for so long
    hard_wait_us: Duration = 2_500_000  # for fresh positions before going hard; measured, see brisa.md
    hard_retry_us: PositiveDuration = 1_000_000  # our guess; doubles with every attempt
    hard_retry_max_us: PositiveDuration = 16_000_000  # our guess
    gone_us: PositiveDuration = 30_000_000  # our guess: a source not heard of for so long is gone; see brisa.md
    forget_us: PositiveDuration = 600_000_000  # our guess: a flow without a sign of its source for so long is over
    prune_again_us: PositiveDuration = 500_000  # our guess: a Deactivate unheeded for so long was lost
