"""Heads that nobody but others claims: how far they are believed, and how that is taken back.

A head is *proven* by a message with that number or a higher one, or by the word of the source. Anything else is a
claim, and claims may be false: whoever believed one would tell numbers as lost that do not exist yet, and take the true
messages that get these numbers later for old news.

    one process claims it --another one too--> believed --still missing after the grace--> the source is asked
                          --the source asked in vain, twice--> believed
    the source says less           nothing is lost, and the claim is forgotten
    the source does not answer     *presumed*: told as lost, and done
    the source speaks after all    what it has not published by then is not done: the window goes back

So a source that can be reached is never silenced by what others say of it. One that cannot be reached, but is up, is
asked again now and then.

Invariant: bounded tables, whatever others say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from epicast.core.ids import NodeId
from epicast.core.window import SeqWindow

CLAIMS_MAX = 4_096  # of each sort; at the cap the oldest is forgotten
CLAIMS_AT_ONCE = 64
ASK_SOURCE_AT, BELIEVED_AT = (3, 6), 9  # rounds after a claim of one process
ANSWER_ROUNDS = 3  # for which the source may take to say whether a claim is true
ASK_AGAIN, ASK_AGAIN_MAX = 16, 1_024  # rounds until a source that did not answer is asked again, doubling each time

Ask = Callable[[NodeId, int], None]


class Claim:
    """A head of a source that only one process has claimed so far."""

    __slots__ = ("height", "rounds", "teller")

    def __init__(self, teller: NodeId, height: int) -> None:
        self.teller, self.height = teller, height
        self.rounds = 0  # for which nobody else has said so


class Question:
    """To the source, before what others claim is told as lost."""

    __slots__ = ("height", "rounds")

    def __init__(self, height: int) -> None:
        self.height, self.rounds = height, 0


class Presumption:
    """Numbers of a silent source that were told as lost because others claimed them."""

    __slots__ = ("due", "last", "made", "proven", "wait")

    def __init__(self, proven: int, last: int, due: int, *, made: bool) -> None:
        self.proven, self.last = proven, last
        self.made = made  # the window is there for this alone
        self.due, self.wait = due, ASK_AGAIN  # when the source is asked again, and after how many rounds the next time


class HeadClaims:
    __slots__ = ("_ask", "_claims", "_presumed", "_questions", "_silent", "_windows")

    def __init__(self, ask: Ask, windows: Callable[[], dict[NodeId, SeqWindow]]) -> None:
        self._ask, self._windows = ask, windows
        self._claims: dict[NodeId, Claim] = {}  # all by source
        self._questions: dict[NodeId, Question] = {}
        self._silent: dict[NodeId, int] = {}  # asked in vain about a claim as high as that
        self._presumed: dict[NodeId, Presumption] = {}

    def __bool__(self) -> bool:
        return bool(self._claims or self._questions or self._presumed)

    # What others say

    def confirmed(self, sender: NodeId, source: NodeId, height: int) -> bool:
        """Does somebody else say so too, or the source itself?"""
        claim = self._claims.get(source)
        if sender == source or (claim is not None and claim.teller != sender and height <= claim.height):
            self._claims.pop(source, None)
            return True
        if claim is None:
            _put(self._claims, source, Claim(sender, height))
        elif height > claim.height:
            claim.teller, claim.height = sender, height
        return False

    def heard(self, source: NodeId, height: int) -> tuple[int, int]:
        """Take the source's own word on its head. Returns the highest head that we had believed on claims, and the one
        about which we have asked the source; -1 if there is none."""
        claim = self._claims.get(source)
        if claim is not None and height < claim.height:
            del self._claims[source]
        self._silent.pop(source, None)
        question, presumed = self._questions.pop(source, None), self._presumed.pop(source, None)
        window = self._windows().get(source)
        if presumed is not None and window is not None and _is_untouched(window, presumed):
            window.reopen(max(height, presumed.proven) + 1)
        asked = -1 if question is None else question.height
        return max(asked, -1 if presumed is None else presumed.last), asked

    # What is to be told as lost

    def is_to_be_asked(self, source: NodeId, last: int) -> bool:
        """Before numbers up to this one, which nothing proves, are told as lost."""
        if self._silent.pop(source, -1) >= last:
            return False
        question = self._questions.get(source)
        if question is None:
            _put(self._questions, source, Question(last))
            self._ask(source, last)
        else:
            question.height = max(question.height, last)
        return True

    def presume(self, source: NodeId, proven: int, last: int, now: int, *, made: bool) -> None:
        before = self._presumed.pop(source, None)
        if before is not None and before.last == proven:  # nothing has come in between
            proven, made = before.proven, before.made
        if len(self._presumed) >= CLAIMS_MAX:
            first = next(iter(self._presumed))
            self._drop(first, self._presumed.pop(first))
        self._presumed[source] = Presumption(proven, last, now + ASK_AGAIN, made=made)

    def _drop(self, source: NodeId, presumed: Presumption) -> None:
        """Forget the presumption, and the window if it was made for this presumption alone."""
        window = self._windows().get(source)
        if presumed.made and window is not None and _is_untouched(window, presumed):
            del self._windows()[source]

    # Once a round

    def old(self) -> Iterator[tuple[NodeId, int]]:
        """Claims about sources that do not answer, and that nobody has confirmed."""
        for source, claim in list(self._claims.items())[:CLAIMS_AT_ONCE]:
            claim.rounds += 1
            if claim.rounds in ASK_SOURCE_AT:
                self._ask(source, claim.height)
            elif claim.rounds == BELIEVED_AT:
                del self._claims[source]
                _put(self._silent, source, claim.height)
                yield source, claim.height

    def unanswered(self) -> Iterator[tuple[NodeId, int]]:
        for source, question in list(self._questions.items()):
            question.rounds += 1
            if question.rounds > ANSWER_ROUNDS:
                del self._questions[source]
                _put(self._silent, source, question.height)
                yield source, question.height

    def ask_again(self, now: int) -> None:
        """`now` counts rounds."""
        for source, presumed in list(self._presumed.items())[:CLAIMS_AT_ONCE]:
            if presumed.due <= now:
                presumed.wait = min(2 * presumed.wait, ASK_AGAIN_MAX)
                presumed.due = now + presumed.wait
                del self._presumed[source]
                self._presumed[source] = presumed
                self._ask(source, presumed.last)


def _is_untouched(window: SeqWindow, presumed: Presumption) -> bool:
    """Has nothing come above what was presumed? Otherwise the source did get that far."""
    return window.next == presumed.last + 1 and not window.ahead


def _put(table: dict[NodeId, Any], source: NodeId, value: Any) -> None:
    table.pop(source, None)
    table[source] = value
    if len(table) > CLAIMS_MAX:
        del table[next(iter(table))]
