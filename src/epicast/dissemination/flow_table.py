"""Which flows a process knows, how it comes to know one, and which it forgets when there are too many.

    a message of it came         met: one of the flows that nobody has seen makes room, or one without a parent
    a neighbour told of it       met while there is room for one more by hearsay of that neighbour; flows that another
                                 neighbour may have invented make room
    we publish on it             made by us, and by nobody else's word: nobody can tell us about flows of our own

A forgotten flow leaves behind which numbers have come on it, so that nothing is delivered twice should it come back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from epicast.core.env import Env
from epicast.core.ids import FlowId, NodeId
from epicast.core.records import Kind
from epicast.dissemination.brisa_flow import Buffer, FlowState
from epicast.dissemination.brisa_messages import BrisaConfig
from epicast.dissemination.hearsay import Hearsay
from epicast.dissemination.refused import Refused

PROGRESS_MAX = 4096  # names told on one keep-alive: half a megabyte at most
FORGET_AT_ONCE = 256  # of so many flows one: looking for them takes long
PAST_MAX, PAST_SOURCES_MAX = 1024, 16  # forgotten flows of which something is remembered, and publishers of each


class FlowTable:
    __slots__ = (
        "_config",
        "_env",
        "_neighbours",
        "_of_root",
        "_on_forget",
        "flows",
        "full_until_us",
        "hearsay",
        "own_max",
        "past",
        "refused",
    )

    def __init__(
        self, env: Env, config: BrisaConfig, neighbours: dict[NodeId, None], on_forget: Callable[[], None]
    ) -> None:
        self._env, self._config, self._neighbours, self._on_forget = env, config, neighbours, on_forget
        self.flows: dict[FlowId, FlowState] = {}
        self._of_root: Counter[NodeId] = Counter()  # how many of them have this source
        self.hearsay = Hearsay(config.hearsay_max)
        self.past: dict[FlowId, dict[NodeId, int]] = {}  # the highest number that came on forgotten flows, by publisher
        self.refused = Refused()
        self.full_until_us = 0  # there is no room for another flow
        self.own_max = min(config.flows_max, config.flows_of_one_max)  # nobody would know more of them

    def own(self) -> FlowState | None:
        """One more of which we are the source; None at the cap. What others have does not stand in its way."""
        count = self._of_root[self._env.me]
        return self._make((self._env.me, count)) if count < self.own_max else None

    def meet(self, flow_id: FlowId) -> FlowState | None:
        """The flow of a message that came. None at the cap, and if we are its source and have not made it."""
        flow = self.flows.get(flow_id)
        if flow is None and flow_id[0] != self._env.me:
            self.refused.good(flow_id, flow_id[0])
            if self._room_beside(flow_id[0]) and (len(self.flows) < self._config.flows_max or self._make_room()):
                return self._make(flow_id)
            self._env.record(Kind.NONSENSE, detail="too many flows")
        return flow

    def hear_of(self, flow_id: FlowId, teller: NodeId) -> FlowState | None:
        """A flow that a neighbour names."""
        flow = self.flows.get(flow_id)
        if flow is not None or flow_id[0] == self._env.me:
            if flow is not None and flow.hearsay:
                self.hearsay.again(flow_id, self._env.now_us())
            return flow
        config, root, now_us = self._config, flow_id[0], self._env.now_us()
        if self.refused and self.refused.holds(flow_id, root, now_us):
            return None  # its source publishes nothing that may be let in
        crowded = self._of_root[root] >= config.flows_of_one_max or not self.hearsay.has_room(teller)
        if crowded or (len(self.flows) >= config.flows_max and not self._make_room_by(self._dubious)):
            self._env.record(Kind.NONSENSE, teller, detail="too many flows")
            return None
        flow = self._make(flow_id)
        if not flow.windows:
            flow.hearsay = True
            self.hearsay.add(flow_id, teller, now_us)
        return flow

    def confirm(self, flow: FlowState) -> None:
        """A message of it came."""
        flow.hearsay = False
        self.hearsay.discard(flow.id)

    def teller_gone(self, teller: NodeId) -> None:
        """What nobody else has told of goes with it."""
        for flow_id in self.hearsay.of(teller):
            flow = self.flows[flow_id]
            self.hearsay.discard(flow_id)
            other = next((peer for peer in flow.known if peer != teller and self.hearsay.has_room(peer)), None)
            if other is None:
                self.forget(flow)
            else:
                self.hearsay.add(flow_id, other, self._env.now_us())

    def look(self) -> None:
        """Once a watch period: forget what nobody has seen, and nobody tells of any more."""
        while (over := self.hearsay.not_told_since(self._env.now_us() - self._config.forget_us)) is not None:
            self.forget(self.flows[over])

    def forget(self, flow: FlowState) -> None:
        """But for the numbers that came already: they are not to be delivered again, should the flow come back."""
        if flow.repair is not None:
            flow.repair.stop_timer()
        del self.flows[flow.id]
        self._of_root[flow.root] -= 1
        if not self._of_root[flow.root]:
            del self._of_root[flow.root]
        self.hearsay.discard(flow.id)
        came = [(source, window.highest) for source, window in flow.windows.items() if window.highest is not None]
        if came:
            self.past[flow.id] = dict(came[-PAST_SOURCES_MAX:])
        if len(self.past) > PAST_MAX:
            del self.past[next(iter(self.past))]
        self._on_forget()

    def _make(self, flow_id: FlowId) -> FlowState:
        config = self._config
        buffer = Buffer(config.buffer_messages, config.buffer_bytes)
        flow = self.flows[flow_id] = FlowState(flow_id, self._env.me, self._neighbours, buffer)
        flow.heard_us = self._env.now_us()
        self._of_root[flow_id[0]] += 1
        for source, highest in self.past.pop(flow_id, {}).items():
            window = flow.window(source, highest, config.buffer_messages)
            window.settle(highest)
            window.add(highest)
            flow.mid_stream = False
        return flow

    # Room

    def _room_beside(self, root: NodeId) -> bool:
        """For one more flow of this source? Those that others only say it has do not count."""
        if self._of_root[root] < self._config.flows_of_one_max:
            return True
        return self._forget_hearsay(self.hearsay.of_root(root))

    def _forget_hearsay(self, flow_id: FlowId | None) -> bool:
        if flow_id is not None:
            self.forget(self.flows[flow_id])
        return flow_id is not None

    def _make_room(self) -> bool:
        """For another flow. First goes one that nobody has seen; then those that have been without a parent for
        longest, as their source may be gone; else those that one neighbour may have invented."""
        if self._forget_hearsay(self.hearsay.oldest()):
            return True
        return self._make_room_by(lambda now: self._lost() or self._dubious(now))

    def _make_room_by(self, candidates: Callable[[int], list[FlowState]]) -> bool:
        now = self._env.now_us()
        if now < self.full_until_us:
            return False
        for flow in candidates(now)[: max(1, len(self.flows) // FORGET_AT_ONCE)]:
            self.forget(flow)
        if len(self.flows) >= self._config.flows_max:
            self.full_until_us = now + self._config.watch_us // 10
        return len(self.flows) < self._config.flows_max

    def _lost(self) -> list[FlowState]:
        """Without a parent, the one that lost its parent first comes first."""
        lost = [(flow.repair.since_us, flow) for flow in self.flows.values() if flow.repair is not None]
        lost.sort(key=lambda each: each[0])
        return [flow for _, flow in lost]

    def _dubious(self, now: int) -> list[FlowState]:
        """Silent flows that somebody may have invented, the longest silent first: if most flows come from one
        neighbour, all of its; otherwise those of which one message came at most."""
        parents = Counter(flow.parent for flow in self.flows.values() if flow.parent is not None)
        parent, count = parents.most_common(1)[0] if parents else (None, 0)
        if 2 * count > len(self.flows):
            doubted = [flow for flow in self.flows.values() if flow.parent == parent]
        else:
            doubted = [flow for flow in self.flows.values() if flow.root != self._env.me and _has_hardly_begun(flow)]
        silent_us = now - self._config.watch_us
        last_us = {flow: flow.buffer[-1][0] if flow.buffer else flow.heard_us for flow in doubted}
        return sorted((flow for flow, last in last_us.items() if last <= silent_us), key=last_us.__getitem__)


def by_turns(flows: list[FlowState], me: NodeId, told: int, most: int) -> tuple[list[FlowState], int]:
    """Which flows to tell of, if there are too many to tell of all, and where the next turn begins. Our own flows come
    each time, up to half of the room, since nobody else knows as well that they exist."""
    own = [flow for flow in flows if flow.root == me][: most // 2] if len(flows) > most else []
    start, room = told % len(flows), PROGRESS_MAX
    chosen: list[FlowState] = []
    for flow in dict.fromkeys(own + flows[start:] + flows[:start]):
        room -= len(flow.windows) + len(flow.path)
        if len(chosen) == most or (room < 0 and chosen):
            break
        chosen.append(flow)
    turn = len(chosen) - len(own)
    return chosen, start + max(1, turn) if turn < len(flows) else 0


def _has_hardly_begun(flow: FlowState) -> bool:
    return sum(window.next - window.first for window in flow.windows.values()) <= 1
