"""What must hold of a world's overlay, trees and orders: at every instant (`unsafe`) and once it has come to rest.

Each check returns what is wrong, one line each, with the processes concerned; nothing means that all is well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epicast.sim.world import World


def unsafe(world: World) -> list[str]:
    """Invariants that no fault may break, not even for a moment."""
    return [line for node in world.up for line in _unsafe_node(node, world.nodes[node])]


def _unsafe_node(me: int, node: Any) -> Iterator[str]:
    members, spread = node.membership, node.dissemination
    if hasattr(members, "passive"):
        yield from _unsafe_views(me, members)
    elif hasattr(members, "ages"):
        yield from _unsafe_entries(me, members)
    for flow in getattr(spread, "flows", {}).values():
        yield from _unsafe_flow(me, spread, flow)
    if node.order is not None:
        yield from _unsafe_order(me, node.order)


def _unsafe_views(me: int, members: Any) -> Iterator[str]:
    active, passive, config = members.active, members.passive, members.config
    if len(active) > members.size_max:
        yield f"node {me} has {len(active)} neighbours; the limit is {members.size_max} (H-I2)"
    if len(passive) > config.passive_size:
        yield f"node {me} has a passive view of {len(passive)}; the limit is {config.passive_size}"
    if me in active or me in passive:
        yield f"node {me} is in its own view"
    if any(peer in passive for peer in active):
        yield f"node {me} has an active neighbour in its passive view"


def _unsafe_entries(me: int, members: Any) -> Iterator[str]:
    if len(members.ages) > members.config.view_size:
        yield f"node {me} has a view of {len(members.ages)}; the limit is {members.config.view_size}"
    if me in members.ages:
        yield f"node {me} is in its own view"


def _unsafe_order(me: int, order: Any) -> Iterator[str]:
    """Of the room of a FIFO or causal order, and of the events of a total one."""
    room, stable = getattr(order, "room", order), getattr(order, "order", None)
    if hasattr(room, "streams"):
        config = room.config
        fullest = max((len(stream.ahead) for stream in room.streams.values()), default=0)
        if len(room.waiting) > config.waiting_max or fullest > config.ahead_max:
            yield f"node {me} lets {len(room.waiting)} messages wait, {fullest} of one stream"
        if len(room.streams) > config.streams_max:
            yield f"node {me} keeps {len(room.streams)} streams; the limit is {config.streams_max}"
    if stable is not None and len(stable.pending) > stable.config.pending_max:
        yield f"node {me} lets {len(stable.pending)} events wait; the limit is {stable.config.pending_max}"


def _unsafe_flow(me: int, spread: Any, flow: Any) -> Iterator[str]:
    if flow.parent is not None and flow.parent not in spread.neighbours:
        yield f"node {me} has parent {flow.parent}, which is no neighbour"
    if flow.path and flow.path.count(me) != 1:
        yield f"node {me} has path {flow.path} (B-I4)"
    if flow.root == me and flow.parent is not None:
        yield f"node {me} is the source and has a parent"
    if flow.parent is None and flow.root != me and flow.path and flow.repair is None:
        yield f"node {me} has lost its parent and does nothing about it (B-I11)"
    if len(flow.buffer) > spread.config.buffer_messages:
        yield f"node {me} buffers {len(flow.buffer)} messages"


def is_symmetric(world: World) -> bool:
    """Do both ends of a link hold it? Otherwise views are entries about others, who may know nothing of it."""
    role: Any = world.stack.membership
    return role.protocol == "hyparview" or bool(getattr(role.config, "symmetric", False))


def overlay(world: World) -> list[str]:
    """At rest: neighbours are up and everyone reaches everyone (H-I5), whichever way an entry points."""
    views = _views(world)
    wrong = [f"node {a} holds {b}, which is gone" for a, view in views.items() for b in view if b not in views]
    return wrong or _connected(views if is_symmetric(world) else _both_ways(views))


def _both_ways(views: dict[int, list[Any]]) -> dict[int, list[Any]]:
    both = {node: list(view) for node, view in views.items()}
    for node, view in views.items():
        for peer in view:
            both[peer].append(node)
    return both


def thin(world: World) -> list[str]:
    """At rest: nobody has fewer neighbours than it wants, where others have room for more and there are enough."""
    short = []
    for node in world.up:
        members: Any = world.nodes[node].membership
        if not hasattr(members, "passive") or members.size_max == members.config.active_size:
            continue
        wanted = min(members.config.active_size, len(world.up) - 1)
        if len(members.active) < wanted:
            short.append(f"node {node} has fewer than {wanted} neighbours (H-I4)")
    return short


def stranded(world: World) -> list[int]:
    """Processes from which nobody alive leads to the source, or, without one, to most others: all that they, and those
    whom they know, ever heard of is gone. Nothing can bring them back but their operator, and so it is with islands."""
    up = set(world.up)
    knows = {node: [peer for peer in _known(world.nodes[node].membership) if peer in up] for node in world.up}
    source = next((node for node in sorted(world.protected) if node in up), None)
    if source is not None:
        known_by: dict[int, list[Any]] = {node: [] for node in world.up}
        for node, peers in knows.items():
            for peer in peers:
                known_by[peer].append(node)
        leading = _reached(known_by, source)
        return [node for node in world.up if node not in leading]
    return [node for node in world.up if 2 * len(_reached(knows, node)) <= len(knows)]


def _known(members: Any) -> Iterator[int]:
    for view in ("active", "passive", "lost", "contacts", "view", "in_view", "seeds", "ages", "partners"):
        yield from getattr(members, view, ())


def one_sided(world: World) -> list[str]:
    """Links that only one of the two holds (H-I1). One that is being made or ended looks so for a moment."""
    views = _views(world)
    pairs = [(a, b) for a, view in views.items() for b in view if b in views and a not in views[b]]
    return [f"node {a} holds {b}, but not the reverse (H-I1)" for a, b in pairs]


def _views(world: World) -> dict[int, list[Any]]:
    return {node: list(world.nodes[node].membership.peers()) for node in world.up}


def _reached(views: dict[Any, list[Any]], start: Any) -> set[Any]:
    reached, frontier = {start}, [start]
    while frontier:
        news = [peer for peer in views[frontier.pop()] if peer not in reached]
        reached.update(news)
        frontier += dict.fromkeys(news)
    return reached


def _connected(views: dict[Any, list[Any]]) -> list[str]:
    if not views:
        return []
    start = next(iter(views))
    reached = _reached(views, start)
    return [] if len(reached) == len(views) else [f"node {start} reaches {len(reached)} of {len(views)} processes"]


def trees(world: World) -> list[str]:
    """At rest: in every flow whose source is up, parents are neighbours and lead to the source (B-I2)."""
    flows = dict.fromkeys(
        flow
        for node in world.up
        for flow in getattr(world.nodes[node].dissemination, "flows", {})
        if flow[0] in world.nodes
    )
    return [line for flow in flows for line in _tree(world, flow)]


def _tree(world: World, flow: Any) -> Iterator[str]:
    parents = {node: _parent(world.nodes[node].dissemination, flow) for node in world.up if node != flow[0]}
    for node in parents:
        seen: dict[Any, None] = {}
        at: Any = node
        while at != flow[0] and at is not None and at not in seen:
            seen[at] = None
            at = parents.get(at)
        if at is None:
            yield f"node {node} of flow {flow} is cut off at {list(seen)[-1]}, which has no parent"
        elif at != flow[0]:
            yield f"node {node} of flow {flow} leads into the cycle of {at}"


def _parent(spread: Any, flow: Any) -> Any:
    state = spread.flows.get(flow)
    return state.parent if state is not None else None
