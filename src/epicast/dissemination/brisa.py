"""BRISA trees (Matos et al., JPDC 2013): flood once, then keep of every process's inbound links only the first one.

A flow starts as a flood over the whole overlay. Each process keeps the link over which the first message came, its
*parent*, and deactivates the others: what remains active is a tree. Inactive links stay in the overlay, to repair from.
Every message carries the path from the source to its sender, so that nobody adopts its own descendant.

    no position --first data, or a neighbour's position confirmed--> attached
    attached --parent gone--> repairing softly --nobody will do--> fresh (repairing hard) --anyone attached--> attached

At quiescence every process but the source has one parent and parents lead to the source (B-I2); then a message costs
N - 1 transmissions and no duplicate (B-I3).

Errata obeyed: symmetric deactivation is announced, limited to the message that built the tree, and undone by a child
that depends on the link (E-B2); never back to the sender (E-B3); positions travel on keep-alives, and cycles and
orphaned parents are found without data (E-B4); taint rule and confirmation (E-B5, `brisa_repair.py`); upward messages
neither carry nor change positions (E-B9).

Departures: a link that was faster than the parent's is deactivated only when the parent's copy comes, since a parent
that no longer sends may be dead; a process that hears of a flow attaches at once rather than with the next message;
whoever moves tells its children at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from epicast.core.env import Env
from epicast.core.errors import EpicastError
from epicast.core.ids import FlowId, NodeId
from epicast.core.message import DELAY_UNKNOWN, Message, Payloads, Position
from epicast.core.periodic import Periodic
from epicast.core.records import Kind
from epicast.core.roles import Deliver, Membership
from epicast.core.window import NOTHING, SeqWindow
from epicast.dissemination.brisa_flow import FlowState
from epicast.dissemination.brisa_life import SignsOfLife
from epicast.dissemination.brisa_messages import (
    BOOTSTRAP,
    FIRST_IN_STREAM,
    RECOVERED,
    STREAM_SHIFT,
    UPWARD,
    Activate,
    Baseline,
    BrisaConfig,
    Data,
    Deactivate,
    Recover,
    Whereabouts,
    context_of,
)
from epicast.dissemination.brisa_repair import TreeRepair
from epicast.dissemination.brisa_strategy import Strategy
from epicast.dissemination.flow_table import by_turns
from epicast.dissemination.refused import WHY

__all__ = ["Brisa", "BrisaConfig"]


class Brisa(TreeRepair):
    __slots__ = ("_recent", "_told", "_watch", "next_seq", "own")

    handles: ClassVar[tuple[type[Message], ...]] = (Data, Deactivate, Activate, Whereabouts, Recover, Baseline)

    def __init__(self, env: Env, config: BrisaConfig, members: Membership, deliver: Deliver) -> None:
        super().__init__(env, config, members, deliver)
        self.own: dict[str, FlowId] = {}  # the flow on which we publish a topic
        self.next_seq: dict[FlowId, int] = {}  # of our own messages, by flow
        self._recent: FlowState | None = None  # of the last message: most often of the next one too
        self._told = 0  # which flow's position goes first on the next keep-alive
        self.life = SignsOfLife(env, config, members)
        self.strategy = Strategy(config, members)
        self._watch = Periodic(env, config.watch_us, self._on_watch)

    # Calls

    def start(self) -> None:
        self._watch.start()

    def leave(self) -> None:
        self.left = True
        self._watch.stop()
        for flow in self.flows.values():
            if flow.repair is not None:
                flow.repair.stop_timer()

    def broadcast(self, topic: str, payload: bytes) -> tuple[NodeId, int]:
        return self.publish_on(self._flow_for(topic), topic, payload)

    def next_id(self, topic: str) -> tuple[NodeId, int]:
        return self.env.me, self._next_number(self._flow_for(topic))

    def next_context(self, topic: str) -> str:
        return context_of(self._flow_for(topic))

    def _flow_for(self, topic: str) -> FlowId:
        if self.config.one_flow:
            topic = ""
        flow_id = self.own.get(topic)
        if flow_id is None or (flow_id[0] != self.env.me and self._is_over(flow_id)):
            flow_id = self.own[topic] = self._reusable() or self.new_flow()
        return flow_id

    def _is_over(self, flow_id: FlowId) -> bool:
        """Has somebody else's tree, on which we publish, lost its source? Then nothing holds it together."""
        flow = self.flows.get(flow_id)
        return flow is None or self.life.is_gone(flow)

    def _next_number(self, flow_id: FlowId) -> int:
        seq = self.next_seq.get(flow_id)
        return len(self.next_seq) << STREAM_SHIFT if seq is None else seq

    def bootstrap(self, topic: str) -> FlowId:
        """Build the tree of a topic with an empty message, where flooding a real payload would cost too much."""
        flow_id = self.own.get(topic)
        if flow_id is None:
            flow_id = self.own[topic] = self.new_flow()
        self.publish_on(flow_id, topic, b"", BOOTSTRAP)
        return flow_id

    def new_flow(self, siblings: frozenset[FlowId] = frozenset()) -> FlowId:
        """A tree of our own. `siblings` share a split stream with it: none of them may be reused for another."""
        flow = self.table.own()
        if flow is None:
            raise EpicastError(
                f"more than {self.table.own_max} trees of our own: raise flows_max and flows_of_one_max on all nodes, "
                "or publish on one_flow"
            )
        flow.siblings = siblings
        return flow.id

    def _reusable(self) -> FlowId | None:
        """A tree whose root is near enough to publish on it instead of building one more. A tree of a split stream
        would not do for that stream's other parts, so a flow with siblings is never taken."""
        near = [
            flow
            for flow in self.flows.values()
            if flow.parent is not None and len(flow.path) - 1 <= self.config.reuse_depth and not flow.siblings
        ]
        return min(near, key=lambda flow: len(flow.path)).id if near else None

    def publish_on(self, flow_id: FlowId, topic: str, payload: bytes, flags: int = 0) -> tuple[NodeId, int]:
        flow, me = self.flows[flow_id], self.env.me
        seq = self._next_number(flow_id)
        self.next_seq[flow_id] = seq + 1
        flow.window(me, seq, self.config.buffer_messages).add(seq)
        if flow.root != me:
            flags |= UPWARD
        data = Data(flow_id, me, seq, 0, () if flags & UPWARD else flow.path, flags, topic, payload)
        if not flags & BOOTSTRAP:
            self.deliver(data, me)
        self._pass_on(flow, data, me)
        return me, seq

    def published(self) -> int:
        """How many messages were, on flows that we have forgotten since too."""
        return sum(seq & FIRST_IN_STREAM for seq in self.next_seq.values())

    def parents(self) -> dict[FlowId, NodeId | None]:
        """Our parent in every flow of which we are not the source."""
        return {flow.id: flow.parent for flow in self.flows.values() if flow.root != self.env.me}

    # Data

    def on_data(self, sender: NodeId, msg: Data) -> bool:
        flow = self._recent
        if flow is None or flow.id is not msg.flow:
            flow = self._recent = self.flows.get(msg.flow) or self.table.meet(msg.flow)
            if flow is None:
                return False
            if flow.hearsay:
                self._confirm(flow)
        window = flow.root_window
        if msg.flags or window is None or msg.source != flow.root:
            msg = self._straight(flow, sender, msg)
            window = flow.windows.get(msg.source) or self._meet_source(flow, msg)
            if window is None:
                return msg.source == self.env.me
            if msg.source == self.env.me and msg.seq >= window.next:
                self.env.record(Kind.NONSENSE, sender, msg.source, msg.seq, detail="we have not published that")
                return False
        if msg.seq == window.next and window.ahead is NOTHING:
            window.next += 1
            new = True
        elif flow.evidence.probed is not None and self.parents_watched.proves(flow, sender, msg):
            return True  # we asked for it as proof only: the messages before it are still under way
        else:
            new = window.add(msg.seq)
        if sender != flow.parent or msg.path is not flow.parent_path:
            self._place(flow, sender, msg, new)
        if not new:
            if flow.rivals and sender == flow.parent:
                self._dismiss_rivals(flow)
            return True
        if window.lost != flow.lost_reported:
            self._report_lost(flow, msg)
        if not msg.flags & BOOTSTRAP:
            self.deliver(msg, sender)
        self._pass_on(flow, msg, sender)
        return False

    def _confirm(self, flow: FlowState) -> None:
        """The first message came: now neighbours may be told that there is such a flow."""
        self.table.confirm(flow)
        untold = [peer for peer in self.neighbours if peer not in flow.known and peer not in flow.out_active]
        if flow.path and untold:
            self.env.send_many(untold, Whereabouts(self.whereabouts(flow)))

    def _straight(self, flow: FlowState, sender: NodeId, msg: Data) -> Data:
        """Flags are told anew on each link and nobody signs them. Whether a message is upward follows from its source,
        and none that has a payload may be withheld: where the flags say otherwise, a relay lies."""
        upward = UPWARD if msg.source != flow.root else 0
        withheld = msg.flags & BOOTSTRAP and not msg.payload
        flags = upward | (BOOTSTRAP if withheld else 0) | msg.flags & RECOVERED
        if flags == msg.flags:
            return msg
        self.env.record(Kind.NONSENSE, sender, msg.source, msg.seq, detail="flags that do not fit the message")
        return Data(msg.flow, msg.source, msg.seq, msg.hops, msg.path, flags, msg.topic, msg.payload)

    def take_run(self, sender: NodeId, like: Data, payloads: Payloads) -> tuple[Sequence[NodeId], Data] | None:
        """Messages that came together and are all like this one but for number and payload: what `on_data` does with
        each, at once, in the usual case that they continue what the parent sent. Answers to whom they go on, and what
        they are like then; the driver delivers and sends. None: the case is not usual, take them one by one."""
        flow = self.flows.get(like.flow)
        if flow is None or sender != flow.parent or like.path != flow.parent_path or like.flags or flow.rivals:
            return None
        if flow.hearsay:
            self._confirm(flow)
        window = flow.root_window
        if window is None or like.source != flow.root or window.next != payloads.seq or window.ahead is not NOTHING:
            return None
        window.next += len(payloads)
        flow.buffer.add_run(self.env.now_us(), like, payloads)
        targets: Sequence[NodeId] = flow.downstream if flow.downstream is not None else flow.targets()
        if targets and (flow.onward is None or flow.onward_of is not like or flow.onward.path is not flow.path):
            flow.onward_of = like
            flow.onward = Data(like.flow, like.source, 0, like.hops + 1, flow.path, 0, like.topic, b"")
        return targets, flow.onward or like

    def _meet_source(self, flow: FlowState, msg: Data) -> SeqWindow | None:
        full = len(flow.windows) >= self.config.sources_max and msg.source != flow.root  # others may come before it
        if full or msg.source == self.env.me:
            return None
        return flow.window(msg.source, msg.seq, self.config.buffer_messages)

    def _pass_on(self, flow: FlowState, msg: Data, sender: NodeId) -> None:
        flow.buffer.add(self.env.now_us(), msg)
        targets: Sequence[NodeId] = flow.downstream if flow.downstream is not None else flow.targets()
        path, flags = flow.path, msg.flags
        if flags:
            if flags & RECOVERED:
                self.took_again(flow, sender, msg)
                flags &= ~RECOVERED
            if flags & UPWARD:
                path = ()
                if flow.parent is not None:
                    targets = [*targets, flow.parent]  # tree edges both ways
        if sender != self.env.me and (sender != flow.parent or path is not flow.path):
            targets = [peer for peer in targets if peer != sender]  # E-B3
        if targets:
            forwarded = Data(msg.flow, msg.source, msg.seq, msg.hops + 1, path, flags, msg.topic, msg.payload)
            self.env.send_many(targets, forwarded)

    def _report_lost(self, flow: FlowState, msg: Data) -> None:
        """The window reached its cap and gave up its oldest hole."""
        lost = sum(window.lost for window in flow.windows.values())
        if lost > flow.lost_reported:
            self.env.record(Kind.GAP, source=msg.source, seq=msg.seq, detail=f"{lost - flow.lost_reported} lost")
            flow.lost_reported = lost

    def _place(self, flow: FlowState, sender: NodeId, msg: Data, new: bool) -> None:
        """What a message tells about the tree, besides its payload."""
        if sender not in self.neighbours:
            return
        if msg.flags & UPWARD:
            if not new:
                self._place_upward(flow, sender)
            return
        if sender == flow.parent:
            if msg.path != flow.parent_path:
                self._know_path(flow, sender, msg)
                self.parent_moved(flow, msg.path)
            return
        if msg.flags & RECOVERED:
            return
        self._know_path(flow, sender, msg)
        if not self._safe_path(msg.path):
            self.prune(flow, sender)  # our own descendant
        elif flow.parent is None:
            if self.eligible(flow, sender) and self.welcome(flow, sender):
                self._adopt_sender(flow, sender, msg)
        elif new:
            flow.rivals[sender] = None
        elif self._prefers(flow, sender):
            self.start_switch(flow, sender)
        elif sender != flow.switch:
            self.prune(flow, sender, mutual=self._symmetric(flow, msg))

    def _place_upward(self, flow: FlowState, sender: NodeId) -> None:
        """A copy too many of a message that crosses tree edges both ways. It says nothing about paths (E-B9), but if
        its sender is neither our parent nor our child, no edge of the tree is between us."""
        known = flow.known.get(sender)
        if flow.parent is None or sender in (flow.parent, flow.switch) or known is None or known.pending:
            return
        if known.path and known.path[-2:-1] != (self.env.me,):
            self.prune(flow, sender, mutual=True)

    def _adopt_sender(self, flow: FlowState, sender: NodeId, msg: Data) -> None:
        if flow.repair is not None:
            self.env.send(sender, Activate(flow.id))  # it may believe that we have another parent
        elif flow.first_id is None:
            flow.first_id = (msg.source, msg.seq)
        self.adopt(flow, sender)
        if flow.mid_stream:
            self.ask_for_past(flow, sender)

    def _know_path(self, flow: FlowState, sender: NodeId, msg: Data) -> None:
        known = flow.known.get(sender)
        flow.told_us[sender] = self.env.now_us()
        if known is None:
            flow.known[sender] = Position(flow.id, msg.path, delay=DELAY_UNKNOWN)
        else:
            flow.known[sender] = Position(flow.id, msg.path, known.progress, False, known.age, known.delay)

    def _dismiss_rivals(self, flow: FlowState) -> None:
        """The parent's copy came too: it is alive, and the faster links are spare, unless we prefer one of them."""
        for rival in list(flow.rivals):
            if self._prefers(flow, rival):
                self.start_switch(flow, rival)
            elif rival != flow.switch:
                self.prune(flow, rival)

    def _symmetric(self, flow: FlowState, msg: Data) -> bool:
        """The sender had this message before ours could reach it, so it will not choose us. True only of the message
        that built the tree, and only while nothing has been repaired (E-B2)."""
        return (
            self.config.symmetric
            and self.config.strategy == "first-come"
            and flow.repairs == 0
            and flow.first_id == (msg.source, msg.seq)
        )

    def _prefers(self, flow: FlowState, peer: NodeId) -> bool:
        if flow.switch is not None or flow.parent is None or self.parents_watched.avoids(peer):
            return False
        return self.strategy.nearer(peer, flow.parent) and self.eligible(flow, peer)

    def on_deactivate(self, sender: NodeId, msg: Deactivate) -> None:
        flow = self.flows.get(msg.flow)
        if flow is None:
            return
        flow.discard_out(sender)
        flow.told_us[sender] = self.env.now_us()
        if msg.mutual:
            if sender == flow.parent:
                self.env.send(sender, Activate(flow.id))  # we depend on it (E-B2)
            else:
                flow.in_active.pop(sender, None)

    # Neighbours

    def neighbour_up(self, peer: NodeId) -> None:
        """A new link carries no payload until one end asks for it: if both are attached, no tree needs it."""
        self.neighbours[peer] = None
        for flow in self.flows.values():
            if flow.path and not flow.hearsay:
                self.env.send(peer, Whereabouts(self.whereabouts(flow)))
            if flow.repair is not None:
                flow.waiting[peer] = None  # it is told as soon as we have a place

    def neighbour_down(self, peer: NodeId, gone: bool) -> None:
        self.neighbours.pop(peer, None)
        self.table.teller_gone(peer)
        for flow in self.flows.values():
            flow.forget(peer)
            if flow.switch == peer:
                flow.switch = None
            if flow.parent == peer:
                self.lose_parent(flow, (peer,) if gone else ())
            elif flow.repair is not None and flow.repair.asked == peer:
                self._on_no_confirmation(flow, flow.repair)

    def uses(self, peer: NodeId) -> bool:
        return any(peer == flow.parent or self._may_be_child(flow, peer) for flow in self.flows.values())

    def _may_be_child(self, flow: FlowState, peer: NodeId) -> bool:
        """It tells where it stands only with its next keep-alive. A tree is young until then, and cutting off the
        source's only child would leave everybody without a way to the source."""
        position = flow.known.get(peer)
        if position is not None and position.path:
            return position.path[-2:-1] == (self.env.me,)
        return bool(flow.path) and peer in flow.out_active

    def positions(self) -> tuple[Position, ...]:
        flows = self.life.worth_telling(self.flows.values())
        if not flows:
            return ()
        now = self.env.now_us()
        chosen, self._told = by_turns(flows, self.env.me, self._told, self.config.positions_max)
        return tuple([flow.position(now, self.strategy.delay(flow)) for flow in chosen])

    def heard(self, peer: NodeId, positions: tuple[Position, ...], at_us: int) -> None:
        if peer not in self.neighbours:
            return
        me = self.env.me
        for position in positions:
            flow = self._recent
            if flow is None or flow.id is not position.flow:
                flow = self.flows.get(position.flow)
                if flow is None or flow.hearsay:
                    flow = self.hear_of(position, peer)
                if flow is None:
                    continue
            flow.hear_age(position.age, at_us)
            if flow.told_us and flow.told_us.pop(peer, -1) > at_us:
                continue  # it has told us something newer itself
            if flow.parent is not None and flow.parent != peer and flow.switch is None:
                flow.known[peer] = position  # the usual case: good to know
                flow.see_link(peer, position, me)
            else:
                self.hear_position(flow, peer, position)
            for source, last in position.progress:
                window = flow.windows.get(source)
                if window is None or last >= window.next:
                    flow.behind = True

    # The watchdog

    def _on_watch(self) -> None:
        now = self.env.now_us()
        self.table.look()
        for source, highest, lost in self.table.refused.take_lost():
            self.env.record(Kind.GAP, source=source, seq=highest + 1, detail=f"{lost} {WHY}")
        for flow in list(self.flows.values()):
            if flow.root != self.env.me:
                flow.hear_source(now)
                self.watch_parent(flow, now)
            if flow.behind or flow.suspect or flow.mid_stream:
                self.look_for_gaps(flow)

    def on_forget(self) -> None:
        self._recent = None
