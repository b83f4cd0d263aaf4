"""Whether a run had come to rest when its last picture was taken: repairs take a while, and are no violation."""

from __future__ import annotations

from collections.abc import Iterable

from epicast.pipeline.guarantees.asking import names_of, number_of, rows_of
from epicast.pipeline.guarantees.ground import STILL, Ground
from epicast.pipeline.guarantees.verdict import counted
from epicast.pipeline.kernel import Kernel

REST_US = 10_000_000
"""What BRISA takes by default to mend a tree in the worst order of events: 3.5 s of silence until a neighbour is given
up, 4 s of patience with a parent that has lost its own way, 2.5 s of waiting for fresh positions."""

SAYS = {"join": "joined", "leave": "left", "crash": "crashed", "pause": "paused", "resume": "resumed"}
CUTS = ("partition", "isolate", "cut")  # reasons of drops that separate processes


def unrest(ground: Ground, at: int) -> str:
    """What was going on less than REST_US before; nothing if nothing was. Faults of the network leave no rows of their
    own: a cut is seen only in a trace that says what was dropped."""
    kernel = ground.kernel
    return _changes(kernel, at) or _pauses(kernel, at) or (_cuts(kernel, at) if ground.run.full else "")


def _changes(kernel: Kernel, at: int) -> str:
    sql = f"""
    SELECT node, kind, time_us FROM check_marks
    WHERE kind IN ({_texts(SAYS)}) AND {_lately(at)} ORDER BY row DESC LIMIT 1
    """
    for row in rows_of(kernel, sql):
        who = names_of(kernel, [row["node"]])[row["node"]]
        return f"process {who} {SAYS[row['kind']]} {_before(at - row['time_us'])}"
    return ""


def _pauses(kernel: Kernel, at: int) -> str:
    still = number_of(kernel, f"SELECT count(*) AS n FROM ({STILL.format(until=f' AND time_us <= {at}')}) AS s")["n"]
    return f"{counted(still, 'process', 'processes')} paused in the last picture" if still else ""


def _cuts(kernel: Kernel, at: int) -> str:
    sql = (
        f"SELECT max(time_us) AS last FROM events WHERE kind = 'drop' AND detail IN ({_texts(CUTS)}) AND {_lately(at)}"
    )
    last = rows_of(kernel, sql)[0]["last"]
    return "" if last is None else f"the network was cut until {_before(at - last)}"


def _lately(at: int) -> str:
    return f"time_us > {at - REST_US} AND time_us <= {at}"


def _before(us: int) -> str:
    return f"{us / 1e6:.1f} s before the last picture: repair may take {REST_US / 1e6:.0f} s"


def _texts(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)
