"""Arithmetic of spans: which numbers of a source somebody has, as (first, last) pairs in order, none touching another.

Everything here is linear in what goes in, but for sorting: whatever a peer sends can be long.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from epicast.core.window import SeqWindow

Span = tuple[int, int]


def merged(spans: Iterable[Span]) -> list[Span]:
    """In order, and one where they overlap or touch. A span that ends before it begins is nothing."""
    found: list[Span] = []
    for first, last in sorted(spans):
        if last < first:
            continue
        if found and first <= found[-1][1] + 1:
            if last > found[-1][1]:
                found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return found


def minus(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """What is in `spans` and not in `others`; both merged."""
    left: list[Span] = []
    at = 0
    for first, last in spans:
        while at < len(others) and others[at][1] < first:
            at += 1
        look = at
        while look < len(others) and others[look][0] <= last:
            if others[look][0] > first:
                left.append((first, others[look][0] - 1))
            first = others[look][1] + 1
            look += 1
        at = max(at, look - 1)  # the last one may reach into the next span
        if first <= last:
            left.append((first, last))
    return left


def holds(spans: Sequence[Span], number: int) -> bool:
    """Is the number in one of them? They are merged."""
    at = bisect_right(spans, number, key=_first) - 1
    return at >= 0 and number <= spans[at][1]


def _first(span: Span) -> int:
    return span[0]


def of_window(window: SeqWindow) -> list[Span]:
    """The numbers that are old news: received, given up, or too many to be remembered below where we began."""
    before, ahead = window.before, window.ahead
    low = window.first if before is not None and len(before) < window.cap else 0
    if not (ahead or before):
        return [(low, window.next - 1)] if window.next > low else []
    singles = [(number, number) for table in (before or (), ahead) for number in table]
    return merged([(low, window.next - 1), *singles])
