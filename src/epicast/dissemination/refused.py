"""Copies that the driver does not let in, since their signature is bad: what is remembered of them.

Whoever brought a bad copy of a flow is not asked for the flow, and is no parent in it, for a *term*. The term doubles
with each bad copy that comes after the last one. If it was the publisher itself that brought the copy, there is no
better one: the number is given up, and said so, once a watch period for all that came meanwhile.

Invariant: bounded tables, whatever comes.
"""

from __future__ import annotations

from epicast.core.ids import FlowId, NodeId

WHY = "bad signature"
TERM_US = 8_000_000  # our guess: some watch periods
TERM_MAX_US = 600_000_000  # our guess
TERMS_MAX = 1024  # at the cap the one that began first is forgotten
TELL_AGAIN_US = 500_000  # a request to stop that was not heeded for so long was lost


class Term:
    __slots__ = ("highest", "long_us", "lost", "told_us", "until_us")

    def __init__(self) -> None:
        self.until_us = self.long_us = 0
        self.told_us = -TELL_AGAIN_US
        self.highest = -1  # of the numbers that the publisher itself brought
        self.lost = 0  # of these, how many are not yet reported


class Refused:
    __slots__ = ("_spoilt", "_terms")

    def __init__(self) -> None:
        self._terms: dict[tuple[FlowId, NodeId], Term] = {}
        self._spoilt: dict[tuple[FlowId, NodeId], int] = {}  # the lowest bad number of a publisher, from whomever

    def __len__(self) -> int:
        return len(self._terms)

    def add(self, flow_id: FlowId, peer: NodeId, now_us: int, first_us: int = TERM_US) -> Term:
        """This peer brought a bad copy."""
        term = self._terms.get((flow_id, peer))
        if term is None:
            term = self._terms[flow_id, peer] = Term()
            if len(self._terms) > TERMS_MAX:
                del self._terms[next(iter(self._terms))]
        if now_us >= term.until_us:
            term.long_us = min(max(first_us, 2 * term.long_us), TERM_MAX_US)
            term.until_us = now_us + term.long_us
        return term

    def holds(self, flow_id: FlowId, peer: NodeId, now_us: int) -> bool:
        term = self._terms.get((flow_id, peer))
        return term is not None and now_us < term.until_us

    def good(self, flow_id: FlowId, peer: NodeId) -> None:
        """A good copy of the flow came from it, or from its publisher."""
        self._terms.pop((flow_id, peer), None)

    # What is given up

    def spoilt(self, flow_id: FlowId, source: NodeId, seq: int) -> None:
        lowest = self._spoilt.pop((flow_id, source), seq)
        self._spoilt[flow_id, source] = min(lowest, seq)
        if len(self._spoilt) > TERMS_MAX:
            del self._spoilt[next(iter(self._spoilt))]

    def why_lost(self, flow_id: FlowId, source: NodeId, following: int) -> str:
        """Of numbers below this one, that nobody could give us."""
        lowest = self._spoilt.get((flow_id, source))
        return WHY if lowest is not None and lowest < following else "lost"

    def take_lost(self) -> list[tuple[NodeId, int, int]]:
        """Publisher, highest number and how many, of all that was given up since the last call."""
        found = [(peer, term.highest, term.lost) for (_, peer), term in self._terms.items() if term.lost]
        for term in self._terms.values():
            term.lost = 0
        return found
