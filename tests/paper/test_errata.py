"""What the documents print and what we do instead, each in a situation where the printed rule goes wrong.

Every test runs twice, with our rule and with the printed one, and asserts that the property holds with ours alone: so
it shows that the property can fail, and that the correction is what keeps it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from epicast.core.ids import NodeId
from epicast.core.recording import Send
from epicast.dissemination.brisa import Brisa
from epicast.dissemination.brisa_flow import FlowState, Repair
from epicast.dissemination.brisa_messages import UPWARD, Activate, Data, Deactivate
from epicast.dissemination.flood import Flood, Gossip
from epicast.membership.hyparview import HyParView
from epicast.membership.hyparview_messages import (
    Disconnect,
    ForwardJoin,
    Join,
    Neighbour,
    NeighbourReply,
    Priority,
    ShuffleReply,
)
from tests.support.neighbours import STRANGER, Tree, data, exchange, hyparview
from tests.support.overlays import (
    FLOW,
    MS,
    SECOND,
    Delays,
    Overlay,
    chain,
    cycles,
    is_tree,
    one_sided,
    random_edges,
    while_running,
)

CORRECTED, PRINTED = "corrected", "as printed"
both = pytest.mark.parametrize("rule", [CORRECTED, PRINTED])


def held(rule: str) -> bool:
    """Should the property hold?"""
    return rule == CORRECTED


# E-B2: symmetric deactivation


class SilentSymmetry(Brisa):
    """Whoever gets a duplicate, of whatever message, stops sending to its sender as well. It does not say so, and
    nobody would object."""

    def _symmetric(self, flow: FlowState, msg: Data) -> bool:
        return True

    def prune(self, flow: FlowState, peer: NodeId, *, mutual: bool = False) -> None:
        if mutual:
            flow.discard_out(peer)
        super().prune(flow, peer)

    def on_deactivate(self, sender: NodeId, msg: Deactivate) -> None:
        if msg.flow in self.flows:
            self.flows[msg.flow].discard_out(sender)


@both
@pytest.mark.parametrize("late", [0, 1], ids=["of the first message", "of a later message"])
def test_a_child_gets_its_parents_messages(rule: str, late: int) -> None:
    """E-B2. C = 6 loses its parent 9 and asks A = 5. Before A's answer is there, a last message of 9 comes in, and C
    passes it on to A, which has it already."""
    kind = Brisa if rule == CORRECTED else SilentSymmetry
    a, c = Tree(me=5, neighbours=(0, 6), kind=kind), Tree(me=6, neighbours=(9, 5), kind=kind)
    c.hears(9, (0, 9))
    c.told(9, (0, 9))  # attached to 9, even before any data
    a.brisa.on_data(0, data(0, (0,)))
    if late == 1:
        c.brisa.on_data(9, data(0, (0, 9)))
        a.brisa.on_data(0, data(1, (0,)))
    a.take()  # its copies for C are late, too late to matter
    c.take()
    c.hears(5, (0, 5), last=late)
    c.flow().add_out(5)  # all links carry payload as long as the first message is under way
    c.brisa.neighbour_down(9, True)
    assert c.env.sent(Activate) == [Send(5, Activate(FLOW))]
    c.brisa.on_data(9, data(late, (0, 9)))
    assert len(c.env.sent(Data)) == 1
    exchange({5: a.brisa, 6: c.brisa})
    assert c.flow().parent == 5
    a.brisa.on_data(0, data(late + 1, (0,)))
    exchange({5: a.brisa, 6: c.brisa})
    assert ((0, late + 1) in c.got) is held(rule)


# E-B3: forwarding to the sender


class BackToTheSenderFlood(Flood):
    """First receivers forward to everyone in their view."""

    def on_gossip(self, sender: NodeId, msg: Gossip) -> bool:
        had = super().on_gossip(sender, msg)
        if not had:
            self.env.send(sender, msgspec.structs.replace(msg, hops=msg.hops + 1))
        return had


class BackToTheSenderBrisa(Brisa):
    def _pass_on(self, flow: FlowState, msg: Data, sender: NodeId) -> None:
        flow.downstream = list(flow.out_active)
        super()._pass_on(flow, msg, self.env.me)


@both
@pytest.mark.parametrize(
    ("ours", "printed", "kind"), [(Flood, BackToTheSenderFlood, Gossip), (Brisa, BackToTheSenderBrisa, Data)]
)
def test_a_flood_costs_two_transmissions_a_link_less_one_for_each_receiver(
    rule: str, ours: type, printed: type, kind: Any
) -> None:
    """E-B3."""
    overlay = Overlay(random_edges(20, 4), ours if rule == CORRECTED else printed, static=True)
    overlay.publish()
    overlay.run(5 * SECOND)
    assert (len(overlay.sends(kind)) == 2 * 40 - 19) is held(rule)


# E-B4: cycles that no data reach


class DataOnly(Brisa):
    """Paths are looked at when data come in, and only then."""

    def positions(self) -> tuple[Any, ...]:
        return ()

    def _announce(self, flow: FlowState) -> None:
        flow.waiting.clear()

    def _on_watch(self) -> None:
        pass


@both
def test_a_cycle_that_is_cut_off_from_the_source_is_found(rule: str) -> None:
    """E-B4. Processes 2 and 3 adopted each other, from positions that were out of date."""
    overlay = Overlay([(0, 1), (1, 2), (1, 3), (2, 3)], Brisa if rule == CORRECTED else DataOnly)
    overlay.publish()
    overlay.run(3 * SECOND)
    for me, other in ((2, 3), (3, 2)):
        flow = overlay.flow(me)
        flow.parent, flow.parent_path, flow.path, flow.downstream = other, (0, 1, other), (0, 1, other, me), None
        flow.add_out(other)
        overlay.flow(1).discard_out(me)
    assert cycles(overlay.parents()) == [2, 3]
    overlay.stream(20)
    assert (cycles(overlay.parents()) == []) is held(rule)
    assert all(len(overlay.delivered[node]) == 21 for node in (2, 3)) is held(rule)


# E-B5: orphans that adopt each other


class Trusting(Brisa):
    """Any neighbour will do whose last known path does not run through us, and it is adopted without being asked."""

    def eligible(self, flow: FlowState, peer: NodeId) -> bool:
        position = flow.known.get(peer)
        return position is not None and bool(position.path) and self._safe_path(position.path)

    def _ask(self, flow: FlowState, repair: Repair, peer: NodeId) -> None:
        self.env.send(peer, Activate(flow.id))
        self.adopt(flow, peer)


@both
def test_siblings_orphaned_together_never_adopt_each_other(rule: str) -> None:
    """E-B5. Process 1 fails; its children 2 and 3 are neighbours, and each has a longer way round by 7."""
    edges = [(0, 1), (1, 2), (1, 3), (2, 3), (0, 4), (4, 5), (5, 6), (6, 7), (7, 2), (7, 3)]
    overlay = Overlay(edges, Brisa if rule == CORRECTED else Trusting, latency=Delays(10 * MS))
    overlay.publish()
    overlay.run(3 * SECOND)
    assert [overlay.parents()[node] for node in (2, 3)] == [1, 1]
    overlay.crash(1)
    ever: list[int] = []
    while_running(overlay, 5 * SECOND, 1 * MS, lambda: ever.extend(cycles(overlay.parents())))
    assert (ever == []) is held(rule)
    assert is_tree(overlay.parents())  # keep-alives have put things right by now, whichever the rule


@both
def test_a_child_of_a_fresh_process_never_adopts_one_that_hangs_on_it(rule: str) -> None:
    """E-B5. The parent 1 has forgotten its place; neighbour 2 is below 1 and does not know it yet, neighbour 3 has a
    longer path that is sound."""
    tree = Tree(kind=Brisa if rule == CORRECTED else Trusting).attached()
    tree.hears(2, (0, 1, 2))
    tree.hears(3, (0, 7, 8, 3))
    tree.take()
    tree.brisa.on_activate(1, Activate(FLOW, fresh=True, taint=(9, 1)))
    assert (tree.env.sent(Activate) == [Send(3, Activate(FLOW))]) is held(rule)


# E-B9: what an upward message tells


class UpwardTellsPaths(Brisa):
    """An upward message carries the way that it took, and is treated like any other."""

    def _place(self, flow: FlowState, sender: NodeId, msg: Data, new: bool) -> None:
        super()._place(flow, sender, msgspec.structs.replace(msg, flags=msg.flags & ~UPWARD), new)

    def _pass_on(self, flow: FlowState, msg: Data, sender: NodeId) -> None:
        if not msg.flags & UPWARD:
            super()._pass_on(flow, msg, sender)
            return
        tree = [*flow.targets(), *([flow.parent] if flow.parent is not None else [])]
        way = (*msg.path, self.env.me)
        self.env.send_many([peer for peer in tree if peer != sender], msgspec.structs.replace(msg, path=way))


@both
def test_an_upward_message_changes_neither_paths_nor_parents(rule: str) -> None:
    """E-B9."""
    overlay = Overlay(random_edges(20, 4), Brisa if rule == CORRECTED else UpwardTellsPaths, static=True)
    overlay.publish()
    overlay.run(5 * SECOND)
    before = overlay.parents()
    publisher = max(before, key=lambda node: len(overlay.flow(node).path))
    overlay.nodes[publisher].dissemination.publish_on(FLOW, "t", b"x")  # type: ignore[attr-defined]
    overlay.run(5 * SECOND)
    sound = all(overlay.flow(node).path == chain(before, node) for node in before)
    assert (sound and overlay.parents() == before) is held(rule)


# E-H1: whom to promote


class PromotesNeighbours(HyParView):
    """A lost neighbour is replaced from the active view."""

    def _fill(self) -> None:
        wanted = self.config.active_size - len(self.active) - len(self.asked)
        for peer in self._some(self.active.items, wanted):
            self._ask(peer, Neighbour(Priority.LOW))


@both
def test_a_lost_neighbour_is_replaced(rule: str) -> None:
    """E-H1."""
    kind = HyParView if rule == CORRECTED else PromotesNeighbours
    view, env, _ = hyparview(active=[1, 2, 3, 4], passive=[5, 6, 7, 8], kind=kind, active_size=4)
    view.on_link_down(1)
    for request in env.sent(Neighbour):
        view.on_neighbour_reply(request.to, NeighbourReply(True))
    assert (len(view.active) == 4) is held(rule)


# E-H2: how many neighbours a joiner gets


class AsManyAsIHave(HyParView):
    """The joiner gets an active view of the size of its contact's."""

    def on_join(self, sender: NodeId, msg: Join) -> None:
        self._add(sender)
        self.env.send(sender, NeighbourReply(True))
        others = [peer for peer in self.active if peer != sender]
        self.env.send_many(others, ForwardJoin(sender, self.config.join_walk_length))


@both
def test_a_joiner_is_not_offered_more_neighbours_than_it_wants(rule: str) -> None:
    """E-H2: the contact is above target."""
    view, env, _ = hyparview(active=range(1, 8), active_size=4, kind=HyParView if rule == CORRECTED else AsManyAsIHave)
    view.on_join(9, Join())
    assert (1 + len(env.sent(ForwardJoin)) <= 4) is held(rule)


# E-CLON-6 to E-CLON-10


class AddsOnlyMembers(HyParView):
    """E-CLON-6: adds a process if it is in the view."""

    def _add(self, peer: NodeId) -> None:
        if peer in self.active:
            super()._add(peer)


class EvictsTheNewcomer(HyParView):
    """E-CLON-7: a full passive view removes the newcomer, and never inserts it."""

    def _add_passive(self, peer: NodeId, spare: list[NodeId] | None = None) -> None:
        if len(self.passive) >= self.config.passive_size:
            self.passive.discard(peer)
        else:
            super()._add_passive(peer)


class DisconnectsPassivePeers(HyParView):
    """E-CLON-8: looks for the sender of a Disconnect in the passive view."""

    def on_disconnect(self, sender: NodeId, msg: Disconnect) -> None:
        if sender in self.passive:
            super().on_disconnect(sender, msg)


class StopsOnlyWhenAlone(HyParView):
    """E-CLON-9: a walk ends early only where the active view is empty."""

    def on_forward_join(self, sender: NodeId, msg: ForwardJoin) -> None:
        if msg.ttl == 0 or not len(self.active) or any(peer not in (sender, msg.joiner) for peer in self.active):
            super().on_forward_join(sender, msg)


class AddsWithoutAWord(HyParView):
    """E-CLON-10: a walk ends with an insertion that the joiner never hears of."""

    def on_forward_join(self, sender: NodeId, msg: ForwardJoin) -> None:
        self._add(msg.joiner)


def adds_a_joiner(kind: type[HyParView]) -> bool:
    view, _, _ = hyparview(active=[1], kind=kind)
    view.on_forward_join(1, ForwardJoin(9, 0))
    view.on_neighbour_reply(9, NeighbourReply(True))
    return 9 in view.active


def takes_in_a_newcomer(kind: type[HyParView]) -> bool:
    view, _, _ = hyparview(passive=[1, 2, 3], passive_size=3, kind=kind)
    view.on_shuffle_reply(STRANGER, ShuffleReply((9,)))
    return 9 in view.passive and len(view.passive) == 3


def lets_go_of_a_neighbour(kind: type[HyParView]) -> bool:
    view, _, _ = hyparview(active=[1, 2], kind=kind)
    view.on_disconnect(1, Disconnect(leaving=False))
    return 1 not in view.active and 1 in view.passive


def ends_a_walk_that_cannot_go_on(kind: type[HyParView]) -> bool:
    view, env, _ = hyparview(active=[1], kind=kind)
    view.on_forward_join(1, ForwardJoin(9, 5))
    return env.sent(Neighbour) == [Send(9, Neighbour(Priority.WALK))]


def joins_symmetrically(kind: type[HyParView]) -> bool:
    """Process 2 joins through 0 and is content with one neighbour; a walk ends at 1."""
    contact, _, _ = hyparview(me=0, active=[1], kind=kind)
    walked, _, _ = hyparview(me=1, active=[0], kind=kind)
    joiner, _, _ = hyparview(me=2, kind=kind, active_size=1)
    processes = {0: contact, 1: walked, 2: joiner}
    joiner.start((0,))
    exchange(processes)
    assert 0 in joiner.active
    return one_sided({me: list(process.active) for me, process in processes.items()}) == []  # type: ignore[misc]


LISTING_2_3: dict[str, tuple[Callable[[type[HyParView]], bool], type[HyParView]]] = {
    "E-CLON-6": (adds_a_joiner, AddsOnlyMembers),
    "E-CLON-7": (takes_in_a_newcomer, EvictsTheNewcomer),
    "E-CLON-8": (lets_go_of_a_neighbour, DisconnectsPassivePeers),
    "E-CLON-9": (ends_a_walk_that_cannot_go_on, StopsOnlyWhenAlone),
    "E-CLON-10": (joins_symmetrically, AddsWithoutAWord),
}


@both
@pytest.mark.parametrize("erratum", list(LISTING_2_3))
def test_listing_2_3_works_as_corrected_only(rule: str, erratum: str) -> None:
    """E-CLON-6 to E-CLON-10."""
    property_holds, printed = LISTING_2_3[erratum]
    assert property_holds(HyParView if rule == CORRECTED else printed) is held(rule)
