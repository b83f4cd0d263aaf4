"""BRISA, part 2: how a process that lost its parent finds another one without closing a cycle.

*Soft repair* asks one neighbour that is known to be attached, and adopts it when it confirms. *Hard repair*, when no
neighbour will do, forgets the own position and asks everybody; children learn of it, because the request comes from
their parent, and repair in turn.

Which neighbours will do (E-B5): their path must not run through us, nor through a process that is known to have
failed or to be fresh (the taint set), and they must not be looking for a parent themselves; that is checked again
when they confirm. Two processes orphaned by *different* failures can still adopt into each other's subtree. So
whoever moves tells its children at once, and a process that finds itself in its parent's path, by data, by such an
announcement or by a keep-alive, lets the parent go (E-B4).
"""

from __future__ import annotations

from collections.abc import Iterable

from epicast.core.ids import NOBODY, NodeId, precedes
from epicast.core.message import AGE_MAX, Position
from epicast.core.records import Kind
from epicast.dissemination.brisa_flow import AGE_UNIT_US, FlowState, Repair
from epicast.dissemination.brisa_life import SignsOfLife
from epicast.dissemination.brisa_messages import Activate, Data, Deactivate, Whereabouts
from epicast.dissemination.brisa_recovery import Recovery
from epicast.dissemination.brisa_strategy import Strategy
from epicast.dissemination.refused import TELL_AGAIN_US, TERM_MAX_US, TERM_US, Term

TAINT_MAX = 256  # as long as a path may be


class TreeRepair(Recovery):
    __slots__ = ("life", "strategy")

    life: SignsOfLife
    strategy: Strategy

    # Choosing

    def eligible(self, flow: FlowState, peer: NodeId) -> bool:
        position = flow.known.get(peer)
        if position is None or not position.path or position.pending or peer not in self.neighbours:
            return False
        if self.life.is_stale(position.age):
            return False
        taint = flow.repair.taint if flow.repair is not None else {}
        path = position.path
        if not _leads(flow, path, peer) or not self._safe_path(path) or any(node in taint for node in path):
            return False
        return not self.table.refused or not self.table.refused.holds(flow.id, peer, self.env.now_us())

    def welcome(self, flow: FlowState, peer: NodeId) -> bool:
        """As a parent, of its own accord: one that was left not long ago is not, if any other neighbour will do."""
        avoids = self.parents_watched.avoids
        return not avoids(peer) or not any(
            self.eligible(flow, other) and not avoids(other) for other in self.neighbours
        )

    def _safe_path(self, path: tuple[NodeId, ...]) -> bool:
        return self.env.me not in path and len(path) < self.config.path_max

    def whereabouts(self, flow: FlowState) -> Position:
        return flow.position(self.env.now_us(), self.strategy.delay(flow))

    def _best(self, flow: FlowState, candidates: list[NodeId]) -> NodeId:
        good = [peer for peer in candidates if not self.parents_watched.avoids(peer)]
        return self.strategy.best(flow, good or candidates)

    # Losing a parent

    def lose_parent(self, flow: FlowState, taint: Iterable[NodeId]) -> None:
        flow.parent, flow.parent_path, flow.downstream = None, (), None
        flow.unsteady_since_us = -1
        flow.switch = None
        self.table.full_until_us = 0  # it may have to make room
        self.env.record(Kind.PARENT, NOBODY, *flow.id)
        self.start_repair(flow, taint)

    def leave_parent(self, flow: FlowState, taint: Iterable[NodeId]) -> None:
        """The parent is there, but no good."""
        parent = flow.parent
        assert parent is not None
        flow.in_active.pop(parent, None)
        self.env.send(parent, Deactivate(flow.id))
        self.lose_parent(flow, taint)

    # Searching

    def start_repair(self, flow: FlowState, taint: Iterable[NodeId] = (), *, initial: bool = False) -> None:
        if flow.root == self.env.me or flow.parent is not None or self.left:
            return
        if flow.repair is None:
            flow.repair = Repair(self.env.now_us(), self.config.hard_retry_us, initial=initial)
        self._taint(flow, flow.repair, taint)
        if flow.repair.asked is None:
            self._try_next(flow)

    def _taint(self, flow: FlowState, repair: Repair, nodes: Iterable[NodeId]) -> None:
        """Every path begins at the source: tainting it would leave no candidate at all."""
        for node in nodes:
            if len(repair.taint) < TAINT_MAX and node not in (flow.root, self.env.me):
                repair.taint[node] = None

    def _try_next(self, flow: FlowState) -> None:
        repair = flow.repair
        assert repair is not None
        repair.stop_timer()
        candidates = [p for p in self.neighbours if p not in repair.tried and self.eligible(flow, p)]
        if candidates:
            self._ask(flow, repair, self._best(flow, candidates))
        elif repair.initial and not repair.hard:
            # Never attached, and nothing to forget: wait to hear of a neighbour with a path, or for data.
            repair.asked = None
            self._retry_later(flow, repair)
        elif not repair.waited and self.config.hard_wait_us:
            # Neighbours whose path ran through the failed process may have found another way by then.
            repair.waited, repair.asked = True, None
            repair.timer = self.env.after(self.config.hard_wait_us, self._on_waited, flow, repair)
        else:
            self._repair_hard(flow, repair)

    def _on_waited(self, flow: FlowState, repair: Repair) -> None:
        if flow.repair is repair:
            repair.tried.clear()
            self._try_next(flow)

    def _ask(self, flow: FlowState, repair: Repair, peer: NodeId) -> None:
        repair.asked = peer
        repair.tried[peer] = None
        flow.in_active[peer] = None
        self.env.send(peer, Activate(flow.id))
        repair.timer = self.env.after(self.config.confirm_us, self._on_no_confirmation, flow, repair)

    def _on_no_confirmation(self, flow: FlowState, repair: Repair) -> None:
        if flow.repair is repair:
            repair.asked = None
            self._try_next(flow)

    def _repair_hard(self, flow: FlowState, repair: Repair) -> None:
        repair.asked = None
        if repair.hard and self.life.is_gone(flow):
            self._retry_later(flow, repair)  # nobody around has a path; who finds one will tell
            return
        repair.hard = True
        flow.path = ()
        for peer in self.neighbours:
            flow.in_active[peer] = None
        taint = (*repair.taint, self.env.me)
        self.env.send_many(list(self.neighbours), Activate(flow.id, True, taint))
        self._retry_later(flow, repair)

    def _retry_later(self, flow: FlowState, repair: Repair) -> None:
        """Ever less often; at once when a neighbour tells of a path or sends data."""
        repair.timer = self.env.after(repair.delay_us, self._on_retry, flow, repair)
        most_us = self.config.forget_us if self.life.is_gone(flow) else self.config.hard_retry_max_us
        repair.delay_us = min(2 * repair.delay_us, most_us)

    def is_cut_off(self, flow: FlowState) -> bool:
        """We look for a parent, and either have just begun or a neighbour has a path: the source is not the trouble."""
        if flow.root == self.env.me or flow.parent is not None:
            return False
        searching = not self.life.is_gone(flow) and not flow.hearsay  # flows that do not exist have no parents
        return searching or any(self.eligible(flow, peer) for peer in flow.known)

    def _on_retry(self, flow: FlowState, repair: Repair) -> None:
        if flow.repair is repair:
            # Positions have been refreshed since: what was tainted may have found another way.
            repair.taint.clear()
            repair.tried.clear()
            self.members.widen()
            self._try_next(flow)

    def consider(self, flow: FlowState, peer: NodeId) -> None:
        """News of a neighbour's position, while we have no parent."""
        repair = flow.repair
        if repair is None:
            self.start_repair(flow, initial=not flow.path)
        elif repair.asked is None and self.eligible(flow, peer) and self.welcome(flow, peer):
            repair.tried.pop(peer, None)
            repair.stop_timer()
            self._ask(flow, repair, peer)

    # Finding

    def adopt(self, flow: FlowState, peer: NodeId) -> None:
        """The peer is our parent from now on; its position is known and will do."""
        repair, moved = flow.repair, bool(flow.path)
        if repair is not None:
            repair.stop_timer()
            flow.repair = None
            moved = True
            if not repair.initial:
                flow.repairs += 1
                self.env.record(Kind.REPAIR, peer, *flow.id, detail="hard" if repair.hard else "soft")
        flow.parent, flow.switch, flow.downstream = peer, None, None
        flow.unsteady_since_us = -1
        flow.in_active[peer] = None
        flow.pruned_us.pop(peer, None)
        flow.rivals.pop(peer, None)
        self._take_path(flow, flow.known[peer].path)
        self.parents_watched.adopted(flow)
        self.env.record(Kind.PARENT, peer, *flow.id)
        if moved:
            self._announce(flow)

    def _take_path(self, flow: FlowState, parent_path: tuple[NodeId, ...]) -> None:
        flow.parent_path = parent_path
        flow.path = (*parent_path, self.env.me)
        self.parents_watched.moved(flow)

    def _announce(self, flow: FlowState) -> None:
        """Tell those below us, and those who asked while we had no path."""
        told = [*flow.targets(), *(peer for peer in flow.waiting if peer not in flow.out_active)]
        if flow.hearsay:
            told = [peer for peer in told if peer in flow.known]  # those who have heard of it themselves
        flow.waiting.clear()
        if told:
            self.env.send_many(told, Whereabouts(self.whereabouts(flow)))

    def parent_moved(self, flow: FlowState, path: tuple[NodeId, ...]) -> None:
        """The parent's path is another one now."""
        if not path:
            self.leave_parent(flow, (flow.parent,) if flow.parent is not None else ())
        elif not self._safe_path(path) or not _leads(flow, path, flow.parent):
            self.leave_parent(flow, ())  # a cycle (E-B4), or nonsense
        else:
            self._take_path(flow, path)
            self._announce(flow)

    # The watchdog

    def watch_parent(self, flow: FlowState, now: int) -> None:
        adrift = flow.hearsay and flow.repair is not None and flow.repair.hard
        if adrift or self.life.is_over(flow, now):  # adrift: those who told of it have no place in it any more
            self.table.forget(flow)
            return
        if flow.parent is None:
            if flow.repair is None:
                self.start_repair(flow, initial=not flow.path)
            return
        if flow.switch is not None and flow.switch_us <= now - self.config.confirm_us:
            flow.switch = None  # no answer
        if self.config.strategy != "first-come" and flow.switch is None:
            self.look_for_better(flow, now)
        if self.parents_watched.no_good(flow):
            self.parents_watched.left(flow.parent)
            flow.discard_out(flow.parent)  # it has more to take than it can already
            self.leave_parent(flow, (flow.parent,))
        elif 0 <= flow.unsteady_since_us <= now - self.config.patience_us:
            self.leave_parent(flow, (flow.parent,))

    # Messages

    def on_activate(self, sender: NodeId, msg: Activate) -> None:
        if sender not in self.neighbours:
            return
        flow = self.flows.get(msg.flow)
        if flow is None:
            if msg.flow[0] != self.env.me:  # a searcher has no path, so its word brings no flow back; it may ask others
                self.env.send(sender, Whereabouts(Position(msg.flow, (), age=AGE_MAX)))
            return
        flow.add_out(sender)
        flow.pruned_us.pop(sender, None)
        if flow.switch == sender and precedes(sender, self.env.me):
            flow.switch = None  # both want each other as parent: the one with the lower id may
        self._forget_path(flow, sender)
        if msg.fresh:
            self._hear_fresh(flow, sender, msg.taint)
        if not flow.path or flow.repair is not None:
            flow.waiting[sender] = None
        self.env.send(sender, Whereabouts(self.whereabouts(flow)))

    def _forget_path(self, flow: FlowState, sender: NodeId) -> None:
        """Where it stood no longer holds: it will be our child, or has no place at all. Until it tells, the link to it
        must not be given up as one that no tree needs."""
        flow.told_us[sender] = self.env.now_us()
        flow.known[sender] = Position(flow.id, (), flow.known[sender].progress if sender in flow.known else ())

    def _hear_fresh(self, flow: FlowState, sender: NodeId, taint: tuple[NodeId, ...]) -> None:
        if sender == flow.parent:
            self.lose_parent(flow, (*taint, sender))
        elif flow.repair is not None:
            self._taint(flow, flow.repair, (sender, *taint))

    def on_whereabouts(self, sender: NodeId, msg: Whereabouts) -> None:
        if sender in self.neighbours:
            flow = self.hear_of(msg.position, sender)
            if flow is not None:
                now = flow.told_us[sender] = self.env.now_us()
                flow.hear_age(msg.position.age, now)
                self.hear_position(flow, sender, msg.position, answer=True)

    def hear_position(self, flow: FlowState, sender: NodeId, position: Position, *, answer: bool = False) -> None:
        flow.known[sender] = position
        flow.see_link(sender, position, self.env.me)
        if flow.repair is not None and position.path and not position.pending:
            flow.repair.taint.pop(sender, None)  # it was fresh, and has found its place since
        if sender == flow.parent:
            self._hear_parent(flow, position)
        elif flow.switch == sender and answer:
            self._end_switch(flow, sender)
        elif flow.repair is not None and flow.repair.asked == sender:
            if answer:
                self._hear_answer(flow, flow.repair, sender)
        elif flow.parent is None and flow.root != self.env.me:
            self.consider(flow, sender)

    def _hear_parent(self, flow: FlowState, position: Position) -> None:
        flow.evidence.parent_told_us = self.env.now_us()
        steady = bool(position.path) and not position.pending
        if steady:
            flow.unsteady_since_us = -1
        elif flow.unsteady_since_us < 0:
            flow.unsteady_since_us = self.env.now_us()
        if position.path != flow.parent_path:
            self.parent_moved(flow, position.path)

    def _hear_answer(self, flow: FlowState, repair: Repair, sender: NodeId) -> None:
        repair.asked = None
        if self.eligible(flow, sender):
            self.adopt(flow, sender)
            self.catch_up(flow, sender)
        else:
            self._try_next(flow)

    def catch_up(self, flow: FlowState, parent: NodeId) -> None:
        """Ask the new parent for what was missed."""
        if flow.mid_stream or not flow.windows:
            self.ask_for_past(flow, parent)
        self.ask_for_missing(flow, parent, dict(self.claims.believed(flow, parent, flow.known[parent])))

    # A better parent (delay-aware, near-first)

    def start_switch(self, flow: FlowState, peer: NodeId) -> None:
        flow.switch, flow.switch_us = peer, self.env.now_us()
        flow.in_active[peer] = None
        self.env.send(peer, Activate(flow.id))

    def look_for_better(self, flow: FlowState, now_us: int) -> None:
        """Leave a parent for a neighbour that is much better. By turns: two that move below each other at the same time
        would have to be parted again."""
        if self.strategy.may_look(flow, now_us, self.env.rng.random()):
            better = [
                peer
                for peer in self.strategy.worth_changing_for(flow, list(self.neighbours))
                if self.eligible(flow, peer) and not self.parents_watched.avoids(peer)
            ]
            if better:
                self.start_switch(flow, self.strategy.best(flow, better))

    def _end_switch(self, flow: FlowState, peer: NodeId) -> None:
        flow.switch = None
        old = flow.parent
        if old is None or not self.eligible(flow, peer):
            return
        self.adopt(flow, peer)
        self.prune(flow, old)

    def prune(self, flow: FlowState, peer: NodeId, *, mutual: bool = False) -> None:
        """Stop the peer from sending us this flow. What is under way may still come; only if it goes on for long was
        the request lost."""
        now = self.env.now_us()
        flow.in_active.pop(peer, None)
        flow.rivals.pop(peer, None)
        if mutual:
            flow.discard_out(peer)
        if now - flow.pruned_us.get(peer, -self.config.prune_again_us) >= self.config.prune_again_us:
            flow.pruned_us[peer] = now
            self.env.send(peer, Deactivate(flow.id, mutual))

    def hear_of(self, position: Position, teller: NodeId) -> FlowState | None:
        """The flow of which a neighbour tells."""
        known = position.flow in self.flows
        flow = self.table.hear_of(position.flow, teller) if known or self.life.may_meet(position) else None
        if flow is not None and not known:
            flow.heard_us = self.env.now_us() - (position.age + 1) * AGE_UNIT_US
        return flow

    # Copies with a bad signature

    def on_rejected(self, sender: NodeId, msg: Data, *, blamed: bool) -> None:
        """The driver did not let this message in. `blamed`: no honest relay passes such a message on."""
        flow_id, now, refused = msg.flow, self.env.now_us(), self.table.refused
        flow = self.flows.get(flow_id)
        if sender == msg.source:
            # Whether a process signs does not change in its life.
            term = refused.add(flow_id, sender, now, TERM_MAX_US if blamed else TERM_US)
            self._give_up_bad(flow, msg, term)
            if flow_id[0] != sender:
                return  # as a relay for others on this flow it may be good
            if flow is not None:
                self._disown(flow, sender)
        else:
            if flow is not None:
                flow.denied[sender] = msg.seq
                refused.spoilt(flow_id, msg.source, msg.seq)
            if not blamed:
                return
            term = refused.add(flow_id, sender, now)
            if flow is not None:
                flow.in_active.pop(sender, None)
                if flow.parent == sender:
                    self.lose_parent(flow, (sender,))
        if sender in self.neighbours and now - term.told_us >= TELL_AGAIN_US:
            term.told_us = now
            self.env.send(sender, Deactivate(flow_id))

    def _give_up_bad(self, flow: FlowState | None, msg: Data, term: Term) -> None:
        """The publisher itself brings it: nobody has a better copy."""
        window = flow.windows.get(msg.source) if flow is not None else None
        new = msg.seq > term.highest if window is None else window.add(msg.seq)
        term.highest = max(term.highest, msg.seq)
        term.lost += new

    def _disown(self, flow: FlowState, root: NodeId) -> None:
        """Its source publishes what may not be let in. Those below us are to know that nothing comes this way."""
        below = [peer for peer in flow.targets() if peer != root]
        self.table.forget(flow)
        if below:
            self.env.send_many(below, Whereabouts(Position(flow.id, ())))


def _leads(flow: FlowState, path: tuple[NodeId, ...], peer: NodeId | None) -> bool:
    """From the source to this neighbour? Obeying any other path, a source could get a parent."""
    return path[0] == flow.root and path[-1] == peer
