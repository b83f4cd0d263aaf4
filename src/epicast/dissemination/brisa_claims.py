"""What neighbours claim to have, and how much of it BRISA believes.

A neighbour tells on its keep-alives how far it has got. That is a *claim*: it is a reason to ask for messages, never
proof that they exist. Proof is a message that came, or the word of the process that publishes it.

An honest neighbour has received the last number that it claims, so it always answers a request for that number: with
the message, or by saying that the message has left its buffer. A neighbour that stays silent several times, or claims
numbers that the source has not published, is *doubted*: of its claims only those count that messages have proven. Doubt
ends by itself, and lasts twice as long each time.

Invariant: the tables are bounded, whatever neighbours say.
"""

from __future__ import annotations

from collections.abc import Iterable

from epicast.core.env import Env
from epicast.core.ids import NodeId
from epicast.core.message import Position
from epicast.dissemination.brisa_flow import FlowState
from epicast.dissemination.brisa_messages import BrisaConfig

Progress = tuple[tuple[NodeId, int], ...]

# Our guesses.
DOUBTED_MAX = 256  # peers remembered; at the cap the one whose term ends first is forgotten
UNANSWERED_MAX = 3  # requests in a row for the last number that a neighbour claims, until it is doubted
SILENT_US = 8_000_000  # the first doubt after silence: the neighbour may have been busy
CONTRADICTED_US = 60_000_000  # and after the source's word against it
DOUBT_MAX_US = 3_600_000_000
UNHEARD_MAX = 16  # publishers that one neighbour may make us ask for before any of their messages has come


class Doubts:
    """Peers that have given a reason to distrust them, each for a term that doubles with every new reason."""

    __slots__ = ("_most_us", "_terms")

    def __init__(self, most_us: int) -> None:
        self._most_us = most_us
        self._terms: dict[NodeId, tuple[int, int]] = {}  # until when, and how long that was

    def __len__(self) -> int:
        return len(self._terms)

    def add(self, peer: NodeId, now_us: int, first_us: int) -> None:
        until_us, term_us = self._terms.get(peer, (0, 0))
        if now_us > until_us + self._most_us:
            term_us = 0  # long ago
        term_us = min(max(first_us, 2 * term_us), self._most_us)
        self._terms[peer] = now_us + term_us, term_us
        if len(self._terms) > DOUBTED_MAX:
            del self._terms[min(self._terms, key=lambda each: self._terms[each][0])]

    def hold(self, peer: NodeId, now_us: int) -> bool:
        term = self._terms.get(peer)
        return term is not None and now_us < term[0]


class Claims:
    """How far neighbours say they are, without what is not believed."""

    __slots__ = ("_env", "_sources_max", "doubts")

    def __init__(self, env: Env, config: BrisaConfig) -> None:
        self._env, self._sources_max = env, config.sources_max
        self.doubts = Doubts(DOUBT_MAX_US)

    def believed(self, flow: FlowState, peer: NodeId, position: Position) -> Progress:
        """Of a doubted peer only what messages that came here, from whomever, prove to exist."""
        if not self.doubts or not self.doubts.hold(peer, self._env.now_us()):
            return position.progress
        windows = flow.windows
        return tuple([(s, min(last, windows[s].last)) for s, last in position.progress if s in windows])

    def highest(self, flow: FlowState) -> dict[NodeId, int]:
        """The highest number of each publisher that a neighbour claims. A publisher that nobody has heard yet takes
        room, so each neighbour may bring up a few of them only."""
        most: dict[NodeId, int] = {}
        room = self._sources_max - len(flow.windows)
        for peer, position in flow.known.items():
            unheard = 0
            for source, last in self.believed(flow, peer, position):
                if source == self._env.me or last <= most.get(source, -1):
                    continue
                if source not in flow.windows and source not in most:
                    if source != flow.root and (unheard == UNHEARD_MAX or room <= 0):
                        continue
                    unheard, room = unheard + 1, room - 1
                most[source] = last
        return most

    # What comes of asking

    def asked(self, flow: FlowState, peer: NodeId, ranges: Iterable[tuple[NodeId, int, int]]) -> None:
        """A request that the peer can answer if its claims are true: it contains the last number of one of them."""
        position = flow.known.get(peer)
        claimed = dict(position.progress) if position is not None else {}
        if any(first <= claimed.get(source, -1) <= last for source, first, last in ranges):
            flow.evidence.questioned = peer

    def answered(self, flow: FlowState, peer: NodeId) -> None:
        flow.evidence.unanswered.pop(peer, None)
        if flow.evidence.questioned == peer:
            flow.evidence.questioned = None
        if flow.evidence.probed is not None and flow.evidence.probed[0] == peer:
            flow.evidence.probed = None

    def silent(self, flow: FlowState, peer: NodeId) -> None:
        """A watch period later nothing has come of a request to this peer."""
        if peer not in flow.known:
            return
        flow.evidence.unanswered[peer] = flow.evidence.unanswered.get(peer, 0) + 1
        if flow.evidence.unanswered[peer] >= UNANSWERED_MAX:
            self.doubt(flow, peer, SILENT_US)

    def doubt(self, flow: FlowState, peer: NodeId, first_us: int) -> None:
        flow.evidence.unanswered.pop(peer, None)
        self.doubts.add(peer, self._env.now_us(), first_us)
        if peer == flow.parent:
            flow.evidence.false_parent = True

    def contradicted(self, flow: FlowState, following: int) -> None:
        """The source has told its next number. Whoever had claimed that number or a higher one before we asked has
        claimed what did not exist."""
        vouchers, flow.evidence.vouched = flow.evidence.vouched, {}
        for peer, claimed in vouchers.items():
            if claimed >= following:
                self.doubt(flow, peer, CONTRADICTED_US)
