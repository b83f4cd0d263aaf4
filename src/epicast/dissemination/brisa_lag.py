"""When a BRISA parent is no good although it is there: it lags behind others, or does not send what it says it has.

Others are always a little ahead, and a claim to be ahead proves nothing. So a parent is left only on evidence:

- *It lags.* A neighbour claims a number that the parent does not have. The neighbour is asked for that message. If it
  delivers, and the parent says `patience_us` later that it still has not got so far, the parent lags.
- *It does not forward.* Links are in order: what a parent has received since it adopted us, it sent to us before it
  told so. If its claims grow and nothing comes, or only what we ask for, it does not pass on what it has.
- *Its claims are false.* It was asked for the last number that it claims and stays silent, or the source says that
  there is no such number (see `brisa_claims.py`).

A parent that was left is avoided for a minute, twice as long each time, as long as another neighbour will do.
"""

from __future__ import annotations

from epicast.core.env import Env
from epicast.core.ids import NodeId
from epicast.dissemination.brisa_claims import Claims, Doubts
from epicast.dissemination.brisa_flow import FlowState
from epicast.dissemination.brisa_messages import BrisaConfig, Data, Recover

AVOIDED_US = 60_000_000  # our guess
AVOIDED_MAX_US = 3_600_000_000  # our guess
HOLLOW_MAX = 5  # our guess: watch periods in which the parent claimed more than came


class ParentWatch:
    __slots__ = ("_claims", "_config", "_env", "avoided")

    def __init__(self, env: Env, config: BrisaConfig, claims: Claims) -> None:
        self._env, self._config, self._claims = env, config, claims
        self.avoided = Doubts(AVOIDED_MAX_US)

    def left(self, peer: NodeId) -> None:
        self.avoided.add(peer, self._env.now_us(), AVOIDED_US)

    def avoids(self, peer: NodeId) -> bool:
        return bool(self.avoided) and self.avoided.hold(peer, self._env.now_us())

    def adopted(self, flow: FlowState) -> None:
        """A new parent: what it has already is not owed to us by itself, what it gets from now on is."""
        evidence = flow.evidence
        evidence.false_parent, evidence.hollow = False, 0
        position = flow.known.get(flow.parent) if flow.parent is not None else None
        evidence.claimed_at_first = dict(position.progress) if position is not None else {}

    def moved(self, flow: FlowState) -> None:
        """On the new way messages may come sooner."""
        flow.evidence.awaited, flow.evidence.probed, flow.evidence.proven = {}, None, False

    # Lag

    def look(self, flow: FlowState, overdue: dict[NodeId, int]) -> None:
        """Once a watch period: others claim what the parent does not have. Is it true, and since when? What is overdue
        is asked for anyway."""
        if flow.parent is None:
            return
        has = self.parent_has(flow)
        flow.evidence.awaited = {s: number for s, number in flow.evidence.awaited.items() if number > has.get(s, -1)}
        if not flow.evidence.awaited:
            flow.evidence.probed, flow.evidence.proven = None, False
            nearest = self._nearest_ahead(flow, has)
            if nearest is not None:
                flow.evidence.awaited = {nearest[1]: nearest[2]}
                flow.evidence.awaited_since_us = self._env.now_us()
        elif not flow.evidence.proven:
            self._seek_proof(flow, has, overdue)

    def _seek_proof(self, flow: FlowState, has: dict[NodeId, int], overdue: dict[NodeId, int]) -> None:
        """The parent has told again where it stands, and is still behind that claim."""
        if any(s in flow.windows and flow.windows[s].last >= number for s, number in flow.evidence.awaited.items()):
            self._prove(flow, flow.evidence.awaited)  # it came by another way
            return
        if flow.evidence.parent_told_us <= flow.evidence.awaited_since_us:
            return
        if flow.evidence.probed is not None:
            self._claims.silent(flow, flow.evidence.probed[0])
        nearest = flow.evidence.probed = self._nearest_ahead(flow, has)
        flow.evidence.awaited = {}
        if nearest is None:
            return
        peer, source, number = nearest
        flow.evidence.awaited = {source: number}
        if source in overdue:
            flow.evidence.probed = None
        else:
            self._env.send(peer, Recover(flow.id, ((source, number, number),)))

    def _nearest_ahead(self, flow: FlowState, has: dict[NodeId, int]) -> tuple[NodeId, NodeId, int] | None:
        """The most modest of all claims that go beyond the parent's: a boaster must not hide the others."""
        nearest: tuple[int, NodeId, NodeId, int] | None = None
        for peer, position in flow.known.items():
            if peer == flow.parent:
                continue
            for source, last in self._claims.believed(flow, peer, position):
                if source in (self._env.me, flow.parent) or source not in flow.windows:
                    continue
                beyond = last - has.get(source, -1)
                if beyond > 0 and (nearest is None or beyond < nearest[0]):
                    nearest = beyond, peer, source, last
        return nearest[1:] if nearest is not None else None

    def parent_has(self, flow: FlowState) -> dict[NodeId, int]:
        """What the parent says that it has, as far as anything shows it: it sends us what it gets before it tells."""
        position = flow.known.get(flow.parent) if flow.parent is not None else None
        if position is None:
            return {}
        windows, at_first = flow.windows, flow.evidence.claimed_at_first
        return {
            source: min(last, max(windows[source].last, at_first.get(source, -1))) if source in windows else last
            for source, last in position.progress
        }

    def proves(self, flow: FlowState, sender: NodeId, msg: Data) -> bool:
        """Is this the message that we asked a neighbour for, to see whether its claim is true?"""
        if flow.evidence.probed != (sender, msg.source, msg.seq):
            return False
        self._claims.answered(flow, sender)
        self._prove(flow, {msg.source: msg.seq})
        return True

    def _prove(self, flow: FlowState, awaited: dict[NodeId, int]) -> None:
        flow.evidence.awaited, flow.evidence.probed, flow.evidence.proven = awaited, None, True
        flow.evidence.awaited_since_us = self._env.now_us()

    def lags(self, flow: FlowState) -> bool:
        """Long after another neighbour had delivered it, the parent tells that it has not got so far."""
        if (
            not flow.evidence.proven
            or flow.evidence.parent_told_us <= flow.evidence.awaited_since_us + self._config.patience_us
        ):
            return False
        has = self.parent_has(flow)
        return any(number > has.get(source, -1) for source, number in flow.evidence.awaited.items())

    # Claims without messages

    def look_for_hollow(self, flow: FlowState, overdue: dict[NodeId, int]) -> None:
        """Once a watch period: does the parent claim more and more, and nothing comes but what we ask for?"""
        position = flow.known.get(flow.parent) if flow.parent is not None else None
        if position is None:
            return
        now = self._env.now_us()
        for source, last in position.progress:
            window = flow.windows.get(source)
            if window is None:
                continue
            if source not in overdue:
                if window.last > flow.evidence.tail_again.get(source, -1):
                    flow.evidence.hollow = 0  # it came by itself
            elif last > max(window.last, flow.evidence.claimed_at_first.get(source, -1)):
                lately = now - flow.evidence.hollow_us <= HOLLOW_MAX * self._config.watch_us
                flow.evidence.hollow, flow.evidence.hollow_us = flow.evidence.hollow + 1 if lately else 1, now
                return

    def no_good(self, flow: FlowState) -> bool:
        return flow.evidence.false_parent or flow.evidence.hollow >= HOLLOW_MAX or self.lags(flow)
