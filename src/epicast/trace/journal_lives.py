"""From when to when each process of a live run was up, and when the run was over.

A simulated run ends and its processes are still up. Live nodes are stopped one after the other, and to judge what they
owe each other during that would be unfair. So a live run is over with the first goodbye (a process unsubscribes or
leaves) after which nothing new begins: nobody publishes, delivers, subscribes or joins any more. Whoever was up then
was up to the end. Where there is no such moment, everyone has ended, and nobody is owed anything at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from epicast.trace.journal_survey import Survey

NEVER_US = 1 << 62


@dataclass(frozen=True)
class Life:
    """In the time of the run."""

    shift_us: int  # from the process's own clock
    joined_us: int
    ended_us: int | None  # None: it was up to the end of the run
    how: str
    add_join: bool  # its journal lacks the row, as in the next
    add_end: bool

    def is_up(self, at_us: int) -> bool:
        return self.joined_us <= at_us and (self.ended_us is None or self.ended_us > at_us)


def over_us(surveys: Sequence[Survey], shift_us: Mapping[int, int]) -> int:
    """When the run was over, or NEVER_US."""
    begun = [_joined_us(each, shift_us) for each in surveys]
    begun += [each.active_us + shift_us[each.number] for each in surveys if each.active_us is not None]
    last_us = max(begun)
    goodbyes = [_goodbyes_us(each) + shift_us[each.number] for each in surveys]
    return min((int(each[each > last_us].min()) for each in goodbyes if (each > last_us).any()), default=NEVER_US)


def lives(
    surveys: Sequence[Survey], shift_us: Mapping[int, int], crashes: Mapping[str, int], until_us: int
) -> list[Life]:
    return [_life(each, shift_us, crashes, until_us) for each in surveys]


def _life(each: Survey, shift_us: Mapping[int, int], crashes: Mapping[str, int], until_us: int) -> Life:
    shift = shift_us[each.number]
    joined_us = _joined_us(each, shift_us)
    last_us = joined_us if each.last_us is None else each.last_us + shift
    if each.ended is not None:
        ended_us, how = each.ended[0] + shift, each.ended[1]
    elif each.journal.ended_us is not None:
        ended_us, how = max(last_us, each.journal.ended_us + shift), each.journal.how
    else:
        ended_us, how = max(last_us, crashes.get(each.journal.who.node_id, last_us)), "crash"
    if ended_us >= until_us:
        return Life(shift, joined_us, None, "", each.joined_us is None, add_end=False)
    return Life(shift, joined_us, ended_us, how, each.joined_us is None, add_end=each.ended is None)


def _joined_us(each: Survey, shift_us: Mapping[int, int]) -> int:
    """By its row, else by its start."""
    own_us = each.starts_us if each.joined_us is None else each.joined_us
    assert own_us is not None, "a journal that tells no time has no place in a run"
    return own_us + shift_us[each.number]


def _goodbyes_us(each: Survey) -> np.typing.NDArray[np.int64]:
    ended_us = each.journal.ended_us
    tail = [] if ended_us is None or each.ended is not None or each.journal.how != "leave" else [ended_us]
    return np.append(each.goodbyes_us, np.array(tail, np.int64))
