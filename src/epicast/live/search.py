"""The search of a node that is alone: which addresses it asked, and what came of it.

Two things follow from that. *Why nobody lets us in*, for errors, logs and `/healthz`. And whether this node is *the
first*: it listens, then asks. A node is the first if its own address is among its seeds, every other address has been
asked since it is alone and no process is there, and for `patience_s` no other process was heard of.

Two nodes that name each other cannot both take themselves for the first while they can reach each other: the one that
begins to listen later asks afterwards, and finds the other. A process that is there and refuses us (another stack,
other keys) counts as there: it may be of the cluster that we are to join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

from epicast.live.ids import Address
from epicast.live.reasons import advice, is_absent
from epicast.live.seeds import SEEDS_MAX, Lookup
from epicast.live.status import printable

SHOWN_MAX = 3
NAMES_PATIENCE = 4
"""Times `patience_s`: a name server that cannot answer now may know other processes, but is not waited for forever."""


class Search:
    def __init__(self, mine: Sequence[Address], patience_s: float, clock: Callable[[], float]) -> None:
        self._mine = dict.fromkeys(mine)
        self._patience_s, self._clock = patience_s, clock
        self._lookups: list[Lookup] | None = None  # None: not finished yet
        self._addresses: dict[Address, None] = {}  # of seeds and discovery
        self._answers: dict[Address, str] = {}  # "": a process of the cluster; otherwise why it is none
        self._own: dict[Address, None] = {}  # where we have found ourselves
        self._began_s = self._heard_s = 0.0
        self.on = False

    def begin(self) -> None:
        """We are alone from now on. Earlier answers do not count."""
        self._answers.clear()
        self._own.clear()
        self._began_s = self._heard_s = self._clock()
        self.on = True

    def end(self) -> None:
        """We have neighbours."""
        self.on = False

    def looked_up(self, lookups: list[Lookup], discovered: Iterable[Address]) -> None:
        self._lookups = lookups
        found = dict.fromkeys([each for lookup in lookups for each in lookup.found])
        self._addresses = dict.fromkeys(list(found)[:SEEDS_MAX])
        self._addresses.update(dict.fromkeys(discovered))
        for kept in (self._answers, self._own):
            for gone in [address for address in kept if address not in self._addresses]:
                del kept[gone]

    def targets(self, rng: Random, most: int) -> list[Address]:
        """Some addresses where another process may be: those first that have not been asked."""
        others = self._others()
        rng.shuffle(others)
        others.sort(key=lambda address: address in self._answers)
        return others[:most]

    def _others(self) -> list[Address]:
        return [each for each in self._addresses if each not in self._mine and each not in self._own]

    def found_us(self, address: Address) -> None:
        """This node itself has answered there."""
        if address in self._addresses:
            self._own[address] = None

    def answered(self, address: Address, why: str) -> None:
        """Nothing: a process of the cluster is there. Or why we cannot talk to any."""
        if address in self._addresses:
            self._answers[address] = why

    def heard(self) -> None:
        """Another process of the cluster has connected to us."""
        self._heard_s = self._clock()

    # What follows

    @property
    def left_s(self) -> float:
        """Of our patience."""
        return self._heard_s + self._patience_s - self._clock()

    def is_first(self) -> bool:
        if not self.on or self.left_s > 0 or not self._names_us():
            return False
        answers = [self._answers.get(each) for each in self._others()]
        return all(answer is not None and is_absent(answer) for answer in answers) and not self._names_may_be_wrong()

    def _names_us(self) -> bool:
        entries = [lookup.address for lookup in self._lookups or ()]
        return any(each in self._mine for each in (*entries, *self._addresses)) or bool(self._own)

    def _names_may_be_wrong(self) -> bool:
        waited_s = self._clock() - self._began_s
        faults = any(lookup.temporary for lookup in self._lookups or ())
        return faults and waited_s < NAMES_PATIENCE * self._patience_s

    @property
    def knows_nobody(self) -> bool:
        """There are no seeds, and discovery has found no process."""
        return self._lookups == [] and not self._addresses

    def why(self) -> str:
        """What keeps us alone. Of many addresses, some."""
        if self._lookups is None:
            return "the seeds are still being looked up"
        said = [f"{lookup.entry}: {lookup.why}" for lookup in self._lookups if lookup.why]
        said += [f"{each}: {self._answer(each)}" for each in self._others()]
        if len(said) > SHOWN_MAX:
            said[SHOWN_MAX:] = [f"{len(said) - SHOWN_MAX} more"]
        if self._names_us():
            said.append(
                f"this node is itself among its seeds, and the first if nobody is heard for {self._patience_s:g} s"
            )
        return "; ".join(said)

    def _answer(self, address: Address) -> str:
        answer = self._answers.get(address)
        if answer is None:
            return "no answer yet"
        return printable(advice(answer)) if answer else "it answers, but we are no neighbours yet"
