"""What a node knows of itself, as plain data: for the admin pages, for metrics, for whoever looks at a cluster.

Everything here is read, nothing is kept. Lists that others can make long are cut, and their full length is told.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

from epicast import __version__

if TYPE_CHECKING:
    from epicast.live.node import Node

FLOWS_MAX = SUBSCRIPTIONS_MAX = 1000
COUNTERS_MAX = 200
WHY_LENGTH_MAX = 1000
CHILDREN_MAX = TOPICS_MAX = PUBLISHERS_MAX = 20

Table = dict[str, Any]


def status(node: Node) -> Table:
    """All of it, fit for JSON. The node must have been started."""
    neighbours, flows, subscriptions = _neighbours(node), _flows(node), _subscriptions(node)
    return {
        "id": node.id,
        "address": node.address,
        "cluster": node.cluster,
        "stack": node._stack.name,
        "membership": node._stack.membership.protocol,
        "dissemination": node._stack.dissemination.protocol,
        "area": node._area,
        "version": __version__,
        "started_us": node.started_us,
        "uptime_s": max(0, node.unix_us() - node.started_us) / 1e6,
        "joined": joined(node),
        "first": node._readiness.first(),
        "waits_for": "" if joined(node) else printable(node._readiness.why(), WHY_LENGTH_MAX),
        "secure": node._tls is not None,
        "signed": node._sign,
        "neighbours": neighbours,
        "connections": len(connections(node)),
        "known": known(node),
        "flows": flows[:FLOWS_MAX],
        "flows_total": len(flows),
        "flows_without_parent": sum(each["cut_off"] for each in flows),
        "subscriptions": subscriptions[:SUBSCRIPTIONS_MAX],
        "subscriptions_total": len(subscriptions),
        "queues": _queues(node, subscriptions),
        "sent_bytes": dict(zip(("near", "far"), node._hub.sent_bytes(), strict=True)),
        "counters": counters(node),
        "discovery": [dict(found) for each in node._discovery if (found := getattr(each, "counters", None))],
        "trace": _trace(node),
    }


def joined(node: Node) -> bool:
    """Has it neighbours, or is it the first and needs none?"""
    return node._readiness.joined()


def known(node: Node) -> list[str]:
    """The processes of the passive view: known, and not neighbours."""
    return [str(peer) for peer in getattr(node._stack_node.membership, "passive", ())]


def connections(node: Node) -> dict[str, Any]:
    """Those that are up, by process; neighbours or not."""
    return {peer: link.conn for peer, link in node._hub.links.items() if link.conn is not None}


def counters(node: Node) -> dict[str, int]:
    """By name. Some names hold what peers said: of too many, the small ones are put together."""
    found: Counter[str] = Counter()
    for name, count in counted(node).items():
        found[printable(name)] += count
    kept = found.most_common(COUNTERS_MAX)
    rest = found.total() - sum(count for _, count in kept)
    return dict(sorted(kept)) | ({"others": rest} if rest else {})


def counted(node: Node) -> dict[str, int]:
    """All that the node counts."""
    return {**node._hub.counters, "published": _published(node)}


def _published(node: Node) -> int:
    """The numbers that our own messages have got."""
    dissemination: Any = node._stack_node.dissemination
    return int(dissemination.published() if hasattr(dissemination, "published") else getattr(dissemination, "seq", 0))


def _neighbours(node: Node) -> list[Table]:
    up, membership, now_us = connections(node), node._stack_node.membership, node._driver.now_us()
    return [_neighbour(str(peer), up.get(str(peer)), membership.rtt_us(peer), now_us) for peer in membership.peers()]


def _neighbour(peer: str, conn: Any, rtt_us: int | None, now_us: int) -> Table:
    return {
        "id": peer,
        "up": conn is not None,
        "dialled": conn is not None and conn.dialled,
        "round_trip_ms": None if rtt_us is None else rtt_us / 1e3,
        "queue_bytes": 0 if conn is None else conn.waiting_bytes,
        "received_bytes": 0 if conn is None else conn.received_bytes,
        "sent_bytes": 0 if conn is None else conn.sent_bytes,
        "since_s": None if conn is None else max(0, now_us - conn.since_us) / 1e6,
    }


def _flows(node: Node) -> list[Table]:
    """Our place in every tree, where the dissemination builds trees."""
    dissemination: Any = node._stack_node.dissemination
    flows = getattr(dissemination, "flows", None) or {}
    topics: dict[Any, list[str]] = {}
    for topic, flow_id in getattr(dissemination, "own", {}).items():
        if topic:  # one tree for all of them has none
            topics.setdefault(flow_id, []).append(topic)
    return [
        {**_flow(flow, node.id, topics.get(flow.id, [])), "cut_off": dissemination.is_cut_off(flow)}
        for flow in flows.values()
    ]


def _flow(flow: Any, me: str, topics: list[str]) -> Table:
    children = [str(peer) for peer in flow.targets()]
    return {
        "source": str(flow.root),
        "number": flow.id[1],
        "own": flow.root == me,
        "topics": topics[:TOPICS_MAX],  # that we publish on it
        "parent": None if flow.parent is None else str(flow.parent),
        "children": children[:CHILDREN_MAX],
        "children_total": len(children),
        "depth": len(flow.path) - 1 if flow.path else None,
        "repairing": flow.repair is not None,
        "lost": sum(window.lost for window in flow.windows.values()),
        "reached": _reached(flow),
    }


def _reached(flow: Any) -> dict[str, int]:
    """By publisher, the number before which nothing is missing: it was received, or given up. Not of all, if many."""
    return {str(publisher): window.next for publisher, window in islice(flow.windows.items(), PUBLISHERS_MAX)}


def _subscriptions(node: Node) -> list[Table]:
    return [
        {
            "pattern": each.pattern,
            "policy": each.policy,
            "waiting": each.waiting,
            "taken": each.delivered,
            "lost": each.lost,
        }
        for each in node._board.subscriptions
    ]


def _queues(node: Node, subscriptions: list[Table]) -> Table:
    waiting = [conn.waiting_bytes for conn in connections(node).values()]
    return {
        "peers_bytes": sum(waiting),
        "slowest_peer_bytes": max(waiting, default=0),
        "congested": bool(node._hub.congestion),
        "subscribers_messages": sum(each["waiting"] for each in subscriptions),
        "reassembly_bytes": node._board.reassembly.waiting_bytes,
    }


def _trace(node: Node) -> Table | None:
    recorder = node._recorder
    if recorder is None:
        return None
    return {"folder": str(node._trace), "level": node._trace_level, "rows_lost": recorder.lost}


def printable(text: str, most: int = 200) -> str:
    """What others say, fit for a terminal and a log."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:most])
