"""The metrics of a run: every part is asked in turn, and the names of all parts are listed.

The trace is read three times from end to end: for the tally of who did what how often, for the series, and, where every
message is in it, for the duplicates of each message at each process; a fourth time, where it is known where processes
are, for who received what from whom. Repairs, of which there are few, are read apart.
"""

from __future__ import annotations

from epicast.pipeline.kernel import DROPS, Kernel, RunFacts
from epicast.pipeline.metrics import (
    contacts,
    delivery,
    distributions,
    drops,
    healing,
    locality,
    order,
    overlay,
    pace,
    places,
    repairs,
    scope,
    ties,
    timeline,
    traffic,
    trees,
)
from epicast.pipeline.metrics.distributions import Distribution
from epicast.pipeline.metrics.measures import Measures

_PARTS = (delivery, traffic, repairs, healing, locality, ties, order)
_DISTRIBUTIONS: tuple[Distribution, ...] = tuple(each for part in _PARTS for each in part.DISTRIBUTIONS)

METRICS: dict[str, str] = {
    **scope.NAMES,
    **contacts.NAMES,
    **delivery.NAMES,
    **traffic.NAMES,
    **repairs.NAMES,
    **trees.NAMES,
    **overlay.NAMES,
    **healing.NAMES,
    **locality.NAMES,
    **ties.NAMES,
    **order.NAMES,
    **drops.NAMES,
    **{name: meaning for each in _DISTRIBUTIONS for name, meaning in each.metrics().items()},
}
"""Every name that `measure` may give, with its meaning and unit."""
HISTOGRAMS: dict[str, str] = {
    **{each.name: each.meaning for each in _DISTRIBUTIONS},
    **trees.HISTOGRAMS,
    **overlay.HISTOGRAMS,
    **order.HISTOGRAMS,
}
SERIES: dict[str, str] = {**timeline.NAMES, **pace.NAMES, **overlay.SERIES, **ties.SERIES}


def measure(kernel: Kernel, run: RunFacts) -> Measures:
    """All that can be said about the run. Its tables are known to the kernel (see `pipeline/tables.py`)."""
    when = scope.scope_of(kernel)
    if when is None:
        return Measures()
    delivery.define(kernel, run)
    speaks_of_parents = bool(when.count("parent"))
    if speaks_of_parents:
        repairs.define(kernel)
    found = Measures(
        scope.metrics(kernel, when)
        | contacts.metrics(kernel, when)
        | delivery.metrics(kernel, run, when)
        | repairs.metrics(kernel, when),
        series=timeline.measure(kernel, run, when) + pace.measure(kernel, when),
    )
    counts = delivery.counts(run, when) | (repairs.counts() if speaks_of_parents else {})
    if run.full:
        traffic.define(kernel, when)
        found += Measures(traffic.metrics(kernel, when))
        counts |= traffic.counts()
    failed = healing.define(kernel)
    found += Measures(healing.metrics(kernel, failed=failed))
    counts |= healing.counts() if failed else {}
    if places.define(kernel):
        found += _near_and_far(kernel, run, when, counts)
    if order.define(kernel, run):
        found += order.measure(kernel, when)
        counts |= order.counts(when)
    found += distributions.measure(kernel, counts)
    found += overlay.measure(kernel, when)
    if DROPS in run.extra:
        found += drops.measure(kernel, run)
    return (found + _trees(kernel, run)).sound()


def _near_and_far(kernel: Kernel, run: RunFacts, when: scope.Scope, counts: dict[Distribution, str]) -> Measures:
    """Adds its own to the counts."""
    found = Measures()
    if run.full:
        locality.define(kernel)
        counts |= locality.counts(when)
        found += Measures(locality.metrics(kernel, when))
    if ties.define(kernel):
        counts |= ties.counts()
        found += ties.measure(kernel, when)
    return found


def _trees(kernel: Kernel, run: RunFacts) -> Measures:
    picture_us = trees.last_picture_us(kernel)
    if picture_us is None:
        return Measures()
    correlation = traffic.children_correlation(kernel, picture_us) if run.full else {}
    return trees.measure(kernel, picture_us) + Measures(correlation)
