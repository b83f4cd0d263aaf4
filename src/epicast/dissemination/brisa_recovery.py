"""BRISA, part 1: messages that were missed are asked for again, from whoever still has them.

A gap is nothing unusual: it closes by itself when the parent recovers and forwards. So nothing is asked for unless it
lacked at two looks in a row, a watch period apart. Nor is a lag a gap: as long as numbers come in turn, those that
others have already are under way, in somebody's queue, and asking for them would make it longer.

What no neighbour has any more is given up, and said so in the trace; it is never skipped silently.
"""

from __future__ import annotations

from epicast.core.env import Env
from epicast.core.ids import NodeId
from epicast.core.message import Position
from epicast.core.records import Kind
from epicast.core.roles import Deliver, Membership
from epicast.dissemination.brisa_flow import FlowState
from epicast.dissemination.brisa_messages import (
    FIRST_IN_STREAM,
    RECOVERED,
    UPWARD,
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


class Recovery:
    __slots__ = (
        "__weakref__",
        "config",
        "deliver",
        "env",
        "flows",
        "left",
        "members",
        "neighbours",
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

    def on_forget(self) -> None:
        """A flow is not known any more."""

    # Asking

    def ask_for_past(self, flow: FlowState, peer: NodeId) -> None:
        """We are new to this flow: whatever was published since we came up has reached others no longer ago than that.
        Only who has been there for as long can speak for all of it; after many tries anyone will do."""
        flow.past_asks += 1
        # The request takes a while to get there, and what it asks for recedes meanwhile.
        age_us = self._uptime_us() + self.config.confirm_us
        self.env.send(peer, Recover(flow.id, (), age_us, flow.past_asks > PAST_ASKS_MAX))

    def _uptime_us(self) -> int:
        return max(1, self.env.now_us() - self.started_us)

    def ask_for_missing(self, flow: FlowState, peer: NodeId, up_to: dict[NodeId, int]) -> bool:
        ranges: list[tuple[NodeId, int, int]] = []
        for source, last in up_to.items():
            window = flow.windows.get(source)
            if window is not None:
                ranges += [(source, a, b) for a, b in window.missing(last, RANGES_MAX - len(ranges))]
        flow.asked_for = min(sum(b - a + 1 for _, a, b in ranges), self.config.recover_max)
        flow.sent_again = flow.seen_again = flow.bytes_again = 0
        if ranges:
            self.env.send(peer, Recover(flow.id, tuple(ranges)))
        return bool(ranges)

    def look_for_gaps(self, flow: FlowState) -> None:
        """Once a watch period: ask for what lacked the last time and still does."""
        if flow.mid_stream:
            ahead = [peer for peer, position in flow.known.items() if position.progress]
            if ahead:  # whom we asked first is as new as we are, or the answer was lost
                # Are all neighbours new? The source was there before any of us; it is asked before we take anything.
                last_resort = PAST_ASKS_MAX - ROOT_ASKS_MAX <= flow.past_asks < PAST_ASKS_MAX
                self.ask_for_past(flow, flow.root if last_resort else self._one(ahead))
        overdue = {s: last for s, (first, last) in flow.suspect.items() if self._is_overdue(flow, s, first, last)}
        flow.suspect = {source: (flow.windows[source].next, last) for source, last in self._lacking(flow).items()}
        flow.behind = bool(flow.suspect)
        self._watch_lag(flow)
        comes = flow.sent_again > flow.seen_again
        flow.seen_again = flow.sent_again
        flow.fruitless = flow.fruitless + 1 if overdue and not comes else 0
        if not overdue:
            flow.denied.clear()
            flow.root_looks = 0
            return
        if comes:
            flow.root_looks = 0
        able = self._who_has(flow, overdue)
        answer_under_way = comes and flow.sent_again < flow.asked_for
        # Neighbours tell how far they are, not what they lack on the way. Where a whole part of a tree lacks the same,
        # all would ask each other for ever.
        if not able or flow.fruitless >= FRUITLESS_MAX:
            self._ask_as_last_resort(able, flow, overdue)
        elif not answer_under_way:
            self._ask_one_of(able, flow, overdue)

    def _is_overdue(self, flow: FlowState, source: NodeId, first: int, last: int) -> bool:
        """These lacked at the last look, but for what we have in between. And now?"""
        window = flow.windows[source]
        comes_in_turn = window.next > first and not window.ahead and flow.sent_again == flow.seen_again
        return window.next <= last and not comes_in_turn

    def took_again(self, flow: FlowState, sender: NodeId, msg: Data) -> None:
        """A message that we had asked for came. One request is answered with so much at most: then we ask for more at
        once, since what we lack may soon be too old for anybody to have."""
        flow.sent_again += 1
        flow.bytes_again += len(msg.payload)
        if flow.sent_again == self.config.recover_max or flow.bytes_again >= self.config.recover_bytes:
            known = flow.known.get(sender)
            up_to = dict(known.progress) if known is not None else {}
            up_to[msg.source] = max(flow.windows[msg.source].last, up_to.get(msg.source, -1))
            self.ask_for_missing(flow, sender, up_to)
            flow.seen_again = -1  # the next look is to see that something came

    def _watch_lag(self, flow: FlowState) -> None:
        """Others have had what the parent has not; since when?"""
        has = self._parent_has(flow)
        ahead = {s: last for s, last in self._known_of(flow).items() if last > has.get(s, -1)}
        awaited = {s: min(last, ahead[s]) for s, last in flow.awaited.items() if s in ahead and last > has.get(s, -1)}
        if not awaited:
            awaited, flow.awaited_since_us = ahead, self.env.now_us()
        flow.awaited = awaited

    def parent_lags(self, flow: FlowState) -> bool:
        """Long after others had something, the parent tells that it has not."""
        if not flow.awaited or flow.parent_told_us <= flow.awaited_since_us + self.config.patience_us:
            return False
        has = self._parent_has(flow)
        return any(last > has.get(source, -1) for source, last in flow.awaited.items())

    def _parent_has(self, flow: FlowState) -> dict[NodeId, int]:
        position = flow.known.get(flow.parent) if flow.parent is not None else None
        return dict(position.progress) if position is not None else {}

    def _known_of(self, flow: FlowState) -> dict[NodeId, int]:
        """The highest number of each publisher that a neighbour has told of."""
        most: dict[NodeId, int] = {}
        for position in flow.known.values():
            for source, last in position.progress:
                if source != self.env.me and last > most.get(source, -1):
                    most[source] = last
        return most

    def _lacking(self, flow: FlowState) -> dict[NodeId, int]:
        """Up to which number of each publisher somebody is known to have more than we do."""
        most = self._known_of(flow)
        for source, last in most.items():
            if source not in flow.windows and len(flow.windows) < self.config.sources_max:
                flow.window(source, last, self.config.buffer_messages)
        return {
            source: max(last, flow.windows[source].last)
            for source, last in most.items()
            if source in flow.windows and flow.windows[source].next <= max(last, flow.windows[source].last)
        }

    def _who_has(self, flow: FlowState, overdue: dict[NodeId, int]) -> list[NodeId]:
        """Neighbours that have gone further than we have, and have not denied it."""
        able = [peer for peer, position in flow.known.items() if self._can_help(flow, position, overdue)]
        return [peer for peer in able if peer not in flow.denied]

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

    def _can_help(self, flow: FlowState, position: Position, overdue: dict[NodeId, int]) -> bool:
        return any(s in overdue and last >= flow.windows[s].next for s, last in position.progress)

    def _ask_as_last_resort(self, able: list[NodeId], flow: FlowState, overdue: dict[NodeId, int]) -> None:
        """All neighbours who might help were asked, and have it no more or never answer: the source itself is asked, in
        turn with those who may have got it by now."""
        if not flow.denied and flow.fruitless < FRUITLESS_MAX:
            return  # nobody can help now; somebody may later
        if flow.root in flow.denied or flow.root_looks >= LAST_RESORT_MAX:
            self._give_up(flow, overdue)
            return
        if flow.root_looks % (2 if flow.root_looks < OFTEN_MAX else 8) == 0:
            self.ask_for_missing(flow, flow.root, overdue)
        elif able:
            self._ask_one_of(able, flow, overdue)
        flow.root_looks += 1

    def _give_up(self, flow: FlowState, overdue: dict[NodeId, int]) -> None:
        flow.denied.clear()
        flow.root_looks = flow.fruitless = 0
        for source in overdue:
            window = flow.windows[source]
            lost = window.skip_hole()
            flow.lost_reported += lost
            if lost:
                self.env.record(Kind.GAP, source=source, seq=window.next, detail=f"{lost} lost")

    # Answering

    def on_recover(self, sender: NodeId, msg: Recover) -> None:
        flow = self.flows.get(msg.flow)
        if flow is None or (sender not in self.neighbours and flow.root != self.env.me):
            return
        found, firsts = self._past(flow, msg) if msg.age_us else self._ranges(flow, msg.ranges[:RANGES_MAX])
        if firsts:
            self.env.send(sender, Baseline(flow.id, tuple(firsts.items()), msg.age_us))
        room = self.config.recover_bytes
        for data in found[: self.config.recover_max]:
            flags = data.flags | RECOVERED
            path = () if flags & UPWARD else flow.path
            hops = data.hops + 1
            self.env.send(sender, Data(flow.id, data.source, data.seq, hops, path, flags, data.topic, data.payload))
            room -= len(data.payload)
            if room <= 0:
                return  # it will ask for the rest

    def _past(self, flow: FlowState, msg: Recover) -> tuple[list[Data], dict[NodeId, int]]:
        """What came lately, and with which number each publisher begins in it. We cannot speak for a time before our
        own, unless we have the stream from its start, nor while we are catching up ourselves."""
        from_the_start = all(window.first & FIRST_IN_STREAM == 0 for window in flow.windows.values())
        can_speak = from_the_start or msg.age_us - self.config.confirm_us <= self._uptime_us()
        if (flow.mid_stream or not can_speak) and not msg.anything:
            return [], {}
        found = flow.buffer.since(self.env.now_us() - msg.age_us)
        # What we lack ourselves may be owed to the asker as well: it begins there.
        firsts = {source: window.next for source, window in flow.windows.items()}
        for data in found:
            firsts[data.source] = min(firsts.get(data.source, data.seq), data.seq)
        return found, firsts

    def _ranges(
        self, flow: FlowState, ranges: tuple[tuple[NodeId, int, int], ...]
    ) -> tuple[list[Data], dict[NodeId, int]]:
        """What we have of it, and where we begin if the start of a range has left our buffer. What we lack ourselves
        we may still get: it is not denied."""
        found = flow.buffer.within(ranges)
        firsts: dict[NodeId, int] = {}
        for source, first, last in ranges:
            window = flow.windows.get(source)
            if window is not None and first in window and source not in firsts:
                lowest = min((d.seq for d in found if d.source == source), default=last + 1)
                if lowest > first:
                    firsts[source] = lowest
        return found, firsts

    def on_baseline(self, sender: NodeId, msg: Baseline) -> None:
        flow = self.flows.get(msg.flow)
        if flow is None:
            return
        if msg.age_us and self._answers_too_late(flow, msg.age_us):
            return  # it may have missed something; the request is repeated
        for source, first in msg.firsts:
            if source == self.env.me:
                continue
            window = flow.windows.get(source)
            if window is None:
                continue  # the first of its messages will say more than anyone else can
            if window.provisional:
                if msg.age_us:
                    window.settle(first)
            elif window.next < first:
                flow.denied[sender] = first
        flow.mid_stream = any(window.provisional for window in flow.windows.values())

    def _answers_too_late(self, flow: FlowState, age_us: int) -> bool:
        """The request asked for some more than our uptime, but the answer took longer than that: what was published
        right after we came up may not be in it."""
        asked_us = self.started_us + age_us - self.config.confirm_us
        return flow.past_asks <= PAST_ASKS_MAX and self.env.now_us() - asked_us > self.config.confirm_us

    def _one(self, peers: list[NodeId]) -> NodeId:
        return peers[int(self.env.rng.random() * len(peers))]
