"""Neighbours that bring messages which may not be let in: how many of them are borne, and what comes then.

Nodes that sign check what they pass on, so whoever brings a bad signature is at fault: it changes messages, or does not
check them. A few are borne, since what is under way still comes after the protocols have asked to stop. One that
goes on is cut off and left alone for a term, which doubles each time.

Invariant: between two terms a neighbour can bring `BORNE` bad messages and `REGAINED_PER_S` a second, and no more.
"""

from __future__ import annotations

# Why a message is not let in. Relays check what they pass on, so of these the first three are the doing of whoever
# brought it; for the others it may be innocent: its clock is another one, or it met another certificate first.
UNSIGNED = "no signature"
FORGED = "bad signature"
BAD_CERTIFICATE = "bad certificate"
EXPIRED = "certificate out of date"
OTHER_NAME = "two certificates for one source"
CROWDED = "too many sources of one host"
BLAMED = frozenset({UNSIGNED, FORGED, BAD_CERTIFICATE})

# Our guesses. Judging a bad signature takes some 0.2 ms: a whole allowance takes a fifth of a second.
BORNE = 1024
REGAINED_PER_S = 16
TERM_US = 10_000_000
TERM_MAX_US = 600_000_000
PEERS_MAX = 1024  # remembered; at the cap the one that brought something longest ago is forgotten


class _Account:
    __slots__ = ("brought", "since_us", "term_us", "until_us")

    def __init__(self, now_us: int) -> None:
        self.brought, self.since_us = 0.0, now_us
        self.until_us = self.term_us = 0


class Blame:
    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}  # the one that brought something last is at the end

    def __len__(self) -> int:
        return len(self._accounts)

    def knows(self, peer: str) -> bool:
        return peer in self._accounts

    def brought(self, peer: str, now_us: int) -> bool:
        """One more. True if that is too many: it is to be left alone from now on."""
        account = self._accounts.pop(peer, None) or _Account(now_us)
        self._accounts[peer] = account
        if len(self._accounts) > PEERS_MAX:
            del self._accounts[next(iter(self._accounts))]
        regained = (now_us - account.since_us) * REGAINED_PER_S / 1e6
        account.brought, account.since_us = max(0.0, account.brought - regained) + 1, now_us
        if account.brought <= BORNE:
            return False
        account.brought = 0.0
        account.term_us = min(max(TERM_US, 2 * account.term_us), TERM_MAX_US)
        account.until_us = now_us + account.term_us
        return True

    def left_alone(self, peer: str, now_us: int) -> bool:
        account = self._accounts.get(peer)
        return account is not None and now_us < account.until_us
