"""BRISA, part 1: messages that were missed are asked for again, from whoever still has them.

A gap is nothing unusual: it closes by itself when the parent recovers and forwards. So nothing is asked for unless it
lacked at two looks in a row, a watch period apart. Nor is a lag a gap: as long as numbers come in turn, those that
others have already are under way, in somebody's queue, and asking for them would make it longer.

What no neighbour has any more is given up, and said so in the trace; it is never skipped silently.

How far neighbours say that they are is a hint (`brisa_claims.py`): it is asked for at those who say so. The source is
asked for what only claims speak of a few times at most, and its word ends the matter. How requests are answered:
`brisa_answers.py`. When a parent is left because others have more: `brisa_lag.py`.
"""

from __future__ import annotations

from epicast.core.env import Env
from epicast.core.ids import FlowId, NodeId
from epicast.core.message import Position
from epicast.core.records import Kind
from epicast.core.roles import Deliver, Membership
from epicast.dissemination.brisa_answers import Answers
from epicast.dissemination.brisa_claims import SILENT_US, Claims
from epicast.dissemination.brisa_flow import FlowState
from epicast.dissemination.brisa_lag import ParentWatch
from epicast.dissemination.brisa_messages import (
    STREAM_SHIFT,
    Activate,
    Baseline,
    BrisaConfig,
    Data,
    Recover,
)
from epicast.dissemination.flow_table import FlowTable

RANGES_MAX = 64
PAST_ASKS_MAX = 20
ROOT_ASKS_MAX = 3
# Our guesses, in looks. A partition may last, and who is cut off must not lose what the source keeps for it meanwhile.
FRUITLESS_MAX = 20  # without an answer from those who should be able to help: then the source is asked
OFTEN_MAX = 20  # the source is asked at every second look, later at every eighth
LAST_RESORT_MAX = 600  # a source that is silent for so long is gone
# Of numbers above all that came, which may be invented, the source is asked less often, and not for as long.
CLAIMED_ASKS = (0, 4, 12)
CLAIMED_MAX = 20


class Recovery:
    __slots__ = (
        "__weakref__",
        "answers",
        "claims",
        "config",
        "deliver",
        "env",
        "flows",
        "left",
        "members",
        "neighbours",
        "parents_watched",
        "started_us",
        "table",
    )

    def __init__(self, env: Env, config: BrisaConfig, members: Membership, deliver: Deliver) -> None:
        self.env, self.config, self.members, self.deliver = env, config, members, deliver
        self.neighbours: dict[NodeId, None] = {}
        self.table = FlowTable(env, config, self.neighbours, self.on_forget)
        self.flows = self.table.flows
        self.started_us = env.now_us()
        self.left = False
        self.claims = Claims(env, config)
        self.parents_watched = ParentWatch(env, config, self.claims)
        self.answers = Answers(env, config, self.started_us, self._open_to)

    def on_forget(self) -> None:
        """A flow is not known any more."""

    # Asking

    def ask_for_past(self, flow: FlowState, peer: NodeId) -> None:
        """We are new to this flow: whatever was published since we came up has reached others no longer ago than that.
        Only a peer that has been there for as long can speak for all of it; after many tries any peer will do."""
        flow.past_asks += 1
        flow.evidence.past_asked[peer] = None
        # The request takes a while to get there, and what it asks for recedes meanwhile.
        age_us = self._uptime_us() + self.config.confirm_us
        self.env.send(peer, Recover(flow.id, self._unsettled(flow), age_us, flow.past_asks > PAST_ASKS_MAX))

    # For an order above

    def complete(self, source: NodeId, seq: int) -> bool:
        """Do we know where this source begins for us, and has all up to this number come or been given up?"""
        for flow in self.flows.values():
            window = flow.windows.get(source)
            if window is not None and window.first >> STREAM_SHIFT == seq >> STREAM_SHIFT:
                return not window.provisional and seq < window.next
        return False

    def hasten(self, *, unheard: bool) -> None:
        """Ask for the past now, rather than at the next look: the parent, or another one next time."""
        age_us = self._uptime_us() + self.config.confirm_us
        for flow in list(self.flows.values()):
            if not flow.mid_stream and not (unheard and not flow.windows):
                continue
            able = [p for p, position in flow.known.items() if position.progress and p != flow.parent]
            if flow.parent is not None and (not able or flow.parent not in flow.evidence.past_asked):
                able = [flow.parent]
            able = [peer for peer in able if not self._brings_bad(flow, peer)]
            if able:
                peer = able[len(flow.evidence.past_asked) % len(able)]
                flow.evidence.past_asked[peer] = None
                self.env.send(peer, Recover(flow.id, self._unsettled(flow), age_us))

    def _unsettled(self, flow: FlowState) -> tuple[tuple[NodeId, int, int], ...]:
        """The publishers of which we do not know yet what is owed to us; none are named if that is so of all."""
        unsettled = [(source, 0, window.first) for source, window in flow.windows.items() if window.provisional]
        return tuple(unsettled[:RANGES_MAX]) if len(unsettled) < len(flow.windows) else ()

    def _uptime_us(self) -> int:
        return max(1, self.env.now_us() - self.started_us)

    def ask_for_missing(self, flow: FlowState, peer: NodeId, up_to: dict[NodeId, int]) -> bool:
        ranges: list[tuple[NodeId, int, int]] = []
        for source, last in up_to.items():
            window = flow.windows.get(source)
            room = RANGES_MAX - len(ranges)
            if window is not None:
                ranges += [(source, a, b) for a, b in window.missing(last, room)]
            elif source in flow.evidence.unheard and room:
                ranges.append((source, last, last))
        flow.asked_for = min(sum(b - a + 1 for _, a, b in ranges), self.config.recover_max)
        flow.sent_again = flow.seen_again = flow.bytes_again = 0
        if ranges:
            self.env.send(peer, Recover(flow.id, tuple(ranges)))
            self.claims.asked(flow, peer, ranges)
        return bool(ranges)

    def look_for_gaps(self, flow: FlowState) -> None:
        """Once a watch period: ask for what was missing the last time and still is."""
        if flow.mid_stream:
            ahead = [p for p, position in flow.known.items() if position.progress and not self._brings_bad(flow, p)]
            if ahead:  # the peer that we asked first is as new as we are, or the answer was lost
                # Are all neighbours new? The source was there before any of us; it is asked before we take anything.
                last_resort = PAST_ASKS_MAX - ROOT_ASKS_MAX <= flow.past_asks < PAST_ASKS_MAX
                self.ask_for_past(flow, flow.root if last_resort else self._one(ahead))
        most = self.claims.highest(flow)
        overdue = self._overdue(flow, most)
        flow.suspect = {source: (flow.windows[source].next, last) for source, last in self._missing(flow, most).items()}
        flow.evidence.unheard = {source: last for source, last in most.items() if source not in flow.windows}
        flow.behind = bool(flow.suspect) or bool(flow.evidence.unheard)
        self.parents_watched.look(flow, overdue)
        self.parents_watched.look_for_hollow(flow, overdue)
        comes = flow.sent_again > flow.seen_again
        flow.seen_again = flow.sent_again
        flow.fruitless = flow.fruitless + 1 if overdue and not comes else 0
        questioned, flow.evidence.questioned = flow.evidence.questioned, None
        if not overdue:
            flow.denied.clear()
            flow.root_looks = 0
            return
        if comes:
            flow.root_looks = 0
        elif questioned is not None:
            self.claims.silent(flow, questioned)
        able = self._who_has(flow, overdue)
        answer_under_way = comes and flow.sent_again < flow.asked_for
        # Neighbours tell how far they are, not what they lack on the way. Where a whole part of a tree lacks the same,
        # all would ask each other for ever.
        if not able or flow.fruitless >= FRUITLESS_MAX:
            self._ask_as_last_resort(able, flow, overdue)
        elif not answer_under_way:
            self._ask_one_of(able, flow, overdue)

    def _overdue(self, flow: FlowState, most: dict[NodeId, int]) -> dict[NodeId, int]:
        """What was missing at the last watch and still is, as far as anybody still says that it exists."""
        overdue: dict[NodeId, int] = {}
        for source, (first, last) in flow.suspect.items():
            window = flow.windows.get(source)
            if window is not None and self._is_overdue(flow, source, first, last):
                last = min(last, max(window.last, most.get(source, -1)))
                if last >= window.next:
                    overdue[source] = last
        for source, last in flow.evidence.unheard.items():
            if source in most and source not in flow.windows:
                overdue[source] = last
        return overdue

    def _is_overdue(self, flow: FlowState, source: NodeId, first: int, last: int) -> bool:
        """These were missing at the last watch, but for what we have in between. And now?"""
        window = flow.windows[source]
        comes_in_turn = window.next > first and not window.ahead and flow.sent_again == flow.seen_again
        return window.next <= last and not comes_in_turn

    def took_again(self, flow: FlowState, sender: NodeId, msg: Data) -> None:
        """A message that we had asked for came. One request is answered with so much at most: then we ask for more at
        once, since what we lack may soon be too old for anybody to have."""
        flow.sent_again += 1
        flow.bytes_again += len(msg.payload)
        self.claims.answered(flow, sender)
        tail = flow.evidence.tail_again
        if msg.seq > tail.get(msg.source, -1) and msg.source in flow.windows:
            tail[msg.source] = msg.seq
        if flow.sent_again == self.config.recover_max or flow.bytes_again >= self.config.recover_bytes:
            known = flow.known.get(sender)
            up_to = dict(self.claims.believed(flow, sender, known)) if known is not None else {}
            up_to[msg.source] = max(flow.windows[msg.source].last, up_to.get(msg.source, -1))
            self.ask_for_missing(flow, sender, up_to)
            flow.seen_again = -1  # the next look is to see that something came

    def _missing(self, flow: FlowState, most: dict[NodeId, int]) -> dict[NodeId, int]:
        """Up to which number of each publisher a neighbour claims, or a message shows, that there is more than we have.
        A claim alone makes no window: it would be told on as our own progress, and take room."""
        highest = {s: max(last, flow.windows[s].last) for s, last in most.items() if s in flow.windows}
        return {source: last for source, last in highest.items() if flow.windows[source].next <= last}

    def _who_has(self, flow: FlowState, overdue: dict[NodeId, int]) -> list[NodeId]:
        """Neighbours that have gone further than we have, and have not denied it."""
        able = [peer for peer, position in flow.known.items() if self._can_help(flow, peer, position, overdue)]
        return [peer for peer in able if peer not in flow.denied and not self._brings_bad(flow, peer)]

    def _brings_bad(self, flow: FlowState, peer: NodeId) -> bool:
        refused = self.table.refused
        return bool(refused) and refused.holds(flow.id, peer, self.env.now_us())

    def _ask_one_of(self, able: list[NodeId], flow: FlowState, overdue: dict[NodeId, int]) -> None:
        """The parent if it can help, else any; another one each time."""
        if flow.parent in able and flow.helper != flow.parent:
            helper = flow.parent
        else:
            helper = self._one([peer for peer in able if peer != flow.helper] or able)
        flow.helper = helper
        if self.ask_for_missing(flow, helper, overdue) and helper == flow.parent:
            # The parent has what we lack, yet did not send it: perhaps it believes that we do not want it (E-B2).
            self.env.send(helper, Activate(flow.id))

    def _can_help(self, flow: FlowState, peer: NodeId, position: Position, overdue: dict[NodeId, int]) -> bool:
        return any(
            s in overdue and last >= self._next(flow, s) for s, last in self.claims.believed(flow, peer, position)
        )

    def _next(self, flow: FlowState, source: NodeId) -> int:
        window = flow.windows.get(source)
        return window.next if window is not None else 0

    def _ask_as_last_resort(self, able: list[NodeId], flow: FlowState, overdue: dict[NodeId, int]) -> None:
        """All neighbours that might help were asked, and have it no more or never answer: the source itself is asked,
        in turn with those who may have got it by now."""
        if not flow.denied and flow.fruitless < FRUITLESS_MAX:
            return  # nobody can help now; somebody may later
        proven = any(source in flow.windows and flow.windows[source].ahead for source in overdue)
        if flow.root in flow.denied or flow.root_looks >= (LAST_RESORT_MAX if proven else CLAIMED_MAX):
            self._give_up(flow, overdue)
            return
        often = flow.root_looks % (2 if flow.root_looks < OFTEN_MAX else 8) == 0
        if often if proven else flow.root_looks in CLAIMED_ASKS:
            self._ask_source(flow, overdue)
        elif able:
            self._ask_one_of(able, flow, overdue)
        flow.root_looks += 1

    def _ask_source(self, flow: FlowState, overdue: dict[NodeId, int]) -> None:
        """It also says how far it has published, if that is less than we ask for. Then those lie that claimed it."""
        told = {peer: dict(position.progress).get(flow.root, -1) for peer, position in flow.known.items()}
        flow.evidence.vouched = told
        self.ask_for_missing(flow, flow.root, overdue)

    def _give_up(self, flow: FlowState, overdue: dict[NodeId, int]) -> None:
        begins, flow.evidence.source_begins = flow.evidence.source_begins, -1
        flow.denied.clear()
        flow.root_looks = flow.fruitless = 0
        for source, last in overdue.items():
            window = flow.windows.get(source)
            first, lost = self._next(flow, source), 0
            if window is not None:
                lost = window.skip_to(begins) if source == flow.root and not window.ahead else window.skip_hole()
            if lost and window is not None:
                flow.lost_reported += lost
                why = self.table.refused.why_lost(flow.id, source, first + lost)
                self.env.record(Kind.GAP, source=source, seq=first + lost, detail=f"{lost} {why}")
            else:
                self._doubt_claims(flow, source, last)

    def _doubt_claims(self, flow: FlowState, source: NodeId, number: int) -> None:
        """Nobody can give what these neighbours say there is."""
        first = self._next(flow, source)
        for peer, position in list(flow.known.items()):
            if first <= dict(self.claims.believed(flow, peer, position)).get(source, -1):
                self.claims.doubt(flow, peer, SILENT_US)

    # Answering

    def on_recover(self, sender: NodeId, msg: Recover) -> None:
        if self._open_to(sender, msg.flow) is not None:
            self.answers.take(sender, msg)
        elif msg.flow[0] == self.env.me and msg.flow not in self.flows:
            self.env.send(sender, Baseline(msg.flow, (), 0, 0))  # we have published nothing on it

    def _open_to(self, peer: NodeId, flow_id: FlowId) -> FlowState | None:
        """The flow, if this peer may ask us for its messages."""
        flow = self.flows.get(flow_id)
        if flow is None or self.left or (peer not in self.neighbours and flow.root != self.env.me):
            return None
        return flow

    def on_baseline(self, sender: NodeId, msg: Baseline) -> None:
        flow = self.flows.get(msg.flow)
        if flow is None or (sender not in self.neighbours and sender != flow.root):
            return
        self.claims.answered(flow, sender)
        if sender == flow.root and msg.following >= 0:
            self.claims.contradicted(flow, msg.following)
            flow.root_looks = 0
        if msg.age_us and self._answers_too_late(flow, msg.age_us):
            return  # it may have missed something; the request is repeated
        for source, first in msg.firsts:
            if source == self.env.me:
                continue
            window = flow.windows.get(source)
            if window is None:
                continue  # the first of its messages will say more than anyone else can
            if window.provisional:
                if msg.age_us and sender in flow.evidence.past_asked:
                    window.settle(first)
            elif window.next < first:
                flow.denied[sender] = first
                if sender == source:
                    flow.evidence.source_begins = first
        flow.mid_stream = any(window.provisional for window in flow.windows.values())
        if not flow.mid_stream:
            flow.evidence.past_asked.clear()

    def _answers_too_late(self, flow: FlowState, age_us: int) -> bool:
        """The request asked for some more than our uptime, but the answer took longer than that: what was published
        right after we came up may not be in it."""
        asked_us = self.started_us + age_us - self.config.confirm_us
        return flow.past_asks <= PAST_ASKS_MAX and self.env.now_us() - asked_us > self.config.confirm_us

    def _one(self, peers: list[NodeId]) -> NodeId:
        return peers[int(self.env.rng.random() * len(peers))]
