"""Many journals of live processes become one run folder, which is judged and measured like that of a simulated run.

    journal of each process -> survey -> clocks -> lives -> rows in order -> events, snapshots, nodes, run.json

What a run cannot be judged without makes it incomplete: rows for which there was no room, or a process whose messages
arrived but whose journal is missing. How many messages were under way at the end is not known of a live run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from epicast.core.errors import EpicastError
from epicast.core.records import Level
from epicast.trace.batch import Names
from epicast.trace.digest import TraceDigest
from epicast.trace.journal_clocks import shifts
from epicast.trace.journal_lives import NEVER_US, Life, lives, over_us
from epicast.trace.journal_order import in_order
from epicast.trace.journal_pictures import pictures, seen
from epicast.trace.journal_read import StoredJournal, find_journals, open_journal
from epicast.trace.journal_survey import Survey, survey
from epicast.trace.run import OpenRun, RunFolder
from epicast.trace.tables import Nodes

ENGINE = "live"
REASONS_MAX = 3

__all__ = ["find_journals", "merge"]


def merge(
    folders: Sequence[str | Path],
    out: str | Path,
    *,
    command: Sequence[str],
    crashes: Mapping[str, int] | None = None,
    until_us: int | None = None,
    overwrite: bool = False,
) -> RunFolder:
    """The run of the processes that wrote these journals, up to `until_us` or, if that is not given, to its own end.
    `crashes` tells when processes crashed whose last row is not the best guess."""
    surveys = _surveyed([open_journal(Path(folder)) for folder in folders])
    journals = [each.journal for each in surveys]
    shift_us = shifts(surveys)
    end_us = over_us(surveys, shift_us) if until_us is None else until_us
    found = lives(surveys, shift_us, crashes or {}, end_us)
    level = min(journal.level for journal in journals)
    names = Names()
    digest = TraceDigest(names)
    with _create(journals, level, out, command, overwrite=overwrite) as run:
        events = run.events(names)
        for batch in in_order(journals, found, names, level, end_us):
            events.write(batch)
            digest.update(batch)
        for picture in pictures(seen(surveys, found, end_us)):
            run.write_snapshot(picture)
        run.write_nodes(_nodes(journals, found))
        reasons = _shortfalls(surveys)
        if reasons:
            run.fail("; ".join(reasons[:REASONS_MAX]))
        else:
            run.finish(_counters(journals, found, end_us), digest.hexdigest())
    return run


def _surveyed(journals: Sequence[StoredJournal]) -> list[Survey]:
    if not journals:
        raise EpicastError("there are no journals to merge: give folders that nodes have written")
    _require_one_run(journals)
    found = [each for each in map(survey, journals) if each.starts_us is not None]
    if not found:
        raise EpicastError(f"the journal in {journals[0].path} is empty: there is nothing to merge")
    return found


def _require_one_run(journals: Sequence[StoredJournal]) -> None:
    first = journals[0]
    known: dict[int, StoredJournal] = {}
    for journal in journals:
        for what in ("cluster", "stack", "promises"):
            one, other = (_shown(getattr(each.who, what)) for each in (first, journal))
            if one != other:
                raise EpicastError(
                    f"{first.path} and {journal.path} are of different runs: {what} {one} and {other}; merge them apart"
                )
        twin = known.setdefault(journal.who.number, journal)
        if twin is not journal:
            raise EpicastError(
                f"{twin.path} and {journal.path} are both of {journal.who.node_id}: leave one of them out"
            )


def _shown(value: str | list[str]) -> str:
    return repr(value) if isinstance(value, str) else ", ".join(sorted(value)) or "none"


def _create(
    journals: Sequence[StoredJournal], level: Level, out: str | Path, command: Sequence[str], *, overwrite: bool
) -> OpenRun:
    who = journals[0].who
    scenario: dict[str, Any] = {"stack": who.stack, "cluster": who.cluster, **(who.scenario or {})}
    text = "".join(f"{key} = {json.dumps(scenario[key])}\n" for key in ("stack", "cluster"))
    return RunFolder.create(
        out,
        scenario=scenario,
        scenario_text=f"# {len(journals)} live processes\n{text}",
        seed=0,
        level=level,
        engine=ENGINE,
        command=command,
        promises=who.promises,
        overwrite=overwrite,
    )


def _nodes(journals: Sequence[StoredJournal], found: Sequence[Life]) -> Nodes:
    order = sorted(range(len(journals)), key=lambda at: (found[at].joined_us, journals[at].who.number))
    ends = (found[at].ended_us for at in order)
    return Nodes(
        node=np.array([journals[at].who.number for at in order], np.int64),
        name=[journals[at].who.node_id for at in order],
        area=[journals[at].who.area for at in order],
        joined_us=np.array([found[at].joined_us for at in order], np.int64),
        ended_us=np.array([-1 if ended_us is None else ended_us for ended_us in ends], np.int64),
        how=[found[at].how for at in order],
    )


def _shortfalls(surveys: Sequence[Survey]) -> list[str]:
    """Why the run is not complete."""
    found = [f"{each.journal.who.node_id}: {each.journal.shortfall}" for each in surveys if each.journal.shortfall]
    there = {each.number for each in surveys}
    names = {number: name for each in surveys for number, name in each.journal.names.items()}
    missing = sorted({number for each in surveys for number in each.partners} - there)
    return found + [f"the journal of {names.get(number, number)} is missing" for number in missing]


def _counters(journals: Sequence[StoredJournal], found: Sequence[Life], end_us: int) -> dict[str, Any]:
    how = Counter(life.how for life in found)
    totals: Counter[str] = Counter()
    for journal in journals:
        totals.update({key: value for key, value in journal.counters().items() if type(value) is int})
    return {
        "nodes": {"started": len(found), "up_at_end": how[""], "crashed": how["crash"], "left": how["leave"]},
        "over_us": None if end_us == NEVER_US else end_us,
        "clock_shift_us_max": max(life.shift_us for life in found),
        "totals": dict(sorted(totals.items())),
    }
