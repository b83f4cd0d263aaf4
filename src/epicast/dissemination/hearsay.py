"""Flows that are known by the word of a neighbour alone: none of their messages has come yet.

Anybody can name a flow that does not exist. So each neighbour may introduce so many flows and no more, and a flow stays
with the neighbour that named it first until a message of it comes, or until that neighbour is gone. What is known by
hearsay is not told on, so an invented flow never gets farther than to the neighbours of its inventor.
"""

from __future__ import annotations

from epicast.core.ids import FlowId, NodeId


class Hearsay:
    __slots__ = ("_by_teller", "_each_max", "_tellers", "_told_us")

    def __init__(self, each_max: int) -> None:
        self._each_max = each_max
        self._by_teller: dict[NodeId, dict[FlowId, None]] = {}
        self._tellers: dict[FlowId, NodeId] = {}  # the flow that was introduced first comes first
        self._told_us: dict[FlowId, int] = {}  # when anybody told of it last; the one told of longest ago comes first

    def __contains__(self, flow_id: FlowId) -> bool:
        return flow_id in self._tellers

    def __len__(self) -> int:
        return len(self._tellers)

    def has_room(self, teller: NodeId) -> bool:
        """May this neighbour introduce one more?"""
        return len(self._by_teller.get(teller, ())) < self._each_max

    def add(self, flow_id: FlowId, teller: NodeId, now_us: int) -> None:
        self._tellers[flow_id] = teller
        self._by_teller.setdefault(teller, {})[flow_id] = None
        self.again(flow_id, now_us)

    def again(self, flow_id: FlowId, now_us: int) -> None:
        """Some neighbour told of it once more."""
        self._told_us.pop(flow_id, None)
        self._told_us[flow_id] = now_us

    def discard(self, flow_id: FlowId) -> None:
        """A message of the flow came, or the flow is forgotten."""
        teller = self._tellers.pop(flow_id, None)
        if teller is not None:
            del self._told_us[flow_id]
            told = self._by_teller[teller]
            del told[flow_id]
            if not told:
                del self._by_teller[teller]

    def of(self, teller: NodeId) -> list[FlowId]:
        return list(self._by_teller.get(teller, ()))

    def of_root(self, root: NodeId) -> FlowId | None:
        return next((flow_id for flow_id in self._tellers if flow_id[0] == root), None)

    def oldest(self) -> FlowId | None:
        return next(iter(self._tellers), None)

    def not_told_since(self, us: int) -> FlowId | None:
        """One of which nobody has told since then."""
        flow_id = next(iter(self._told_us), None)
        return flow_id if flow_id is not None and self._told_us[flow_id] <= us else None
