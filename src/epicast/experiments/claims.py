"""Claims of documents, and how each is held against what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isclose

from epicast.experiments.evaluation import check
from epicast.pipeline.confidence import Stat
from epicast.pipeline.report.data import CheckRow
from epicast.pipeline.results import Distribution, Results

NO_DAG = "Not built yet: epicast makes trees only, and BRISA's variant with several parents (a DAG) is still to come."

UNEXPECTED = "That the claim fails was not expected, and is not explained yet."


class NotMeasured(Exception):
    """No run gave the number that a claim is about."""


@dataclass(frozen=True)
class Finding:
    """What was measured, whether the claim holds, and what explains a difference from what was published: one of
    numbers while the claim holds, and one that makes it fail."""

    measured: str
    holds: bool | None
    reason: str = ""
    why_not: str = ""

    def explained(self) -> str:
        parts = [self.reason, (self.why_not or UNEXPECTED) if self.holds is False else ""]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class Claim:
    id: str
    claim: str  # one sentence
    published: str
    judge: Callable[[Results], Finding]

    def against(self, results: Results) -> CheckRow:
        try:
            found = self.judge(results)
        except NotMeasured as error:
            found = Finding("nothing", None, f"{error}.")
        return check(self.id, self.claim, self.published, found.measured, found.holds, found.explained())


def judged(claims: Iterable[Claim], results: Results) -> tuple[CheckRow, ...]:
    return tuple(claim.against(results) for claim in claims)


def of_dags(id: str, claim: str, published: str) -> Claim:  # noqa: A002
    """A claim about a structure that epicast does not build."""
    return Claim(id, claim, published, lambda results: Finding("nothing", None, NO_DAG))


# Reading


def stat(results: Results, metric: str, **labels: object) -> Stat:
    """Over the seeds of one point."""
    found = results.stat(metric, **labels)
    if found is None:
        raise NotMeasured(f"No run {_where(labels)} measured {metric}")
    return found


def distribution(results: Results, name: str, **labels: object) -> Distribution:
    """Over the seeds of one point, all together."""
    found = results.distribution(name, **labels)
    if found is None:
        raise NotMeasured(f"No run {_where(labels)} has a distribution of {name}")
    return found


def _where(labels: dict[str, object]) -> str:
    return "with " + ", ".join(f"{axis} {label}" for axis, label in labels.items()) if labels else "at all"


def labels_of(results: Results, axis: str) -> list[str]:
    """The values of an axis, in their order."""
    return list(dict.fromkeys(point[axis] for point in results.points if axis in point))


def quotient(part: float, whole: float) -> float:
    if not whole:
        raise NotMeasured("What is to be divided by is nothing")
    return part / whole


def rising(values: Sequence[float]) -> bool:
    """Strictly."""
    return all(a < b for a, b in pairwise(values))


def spread(found: Stat) -> list[float]:
    """Mean, extremes and quartiles over the seeds; with up to five seeds these are all the values that there are."""
    return [found.mean, found.min, found.q1, found.median, found.q3, found.max]


def same(a: Sequence[float], b: Sequence[float]) -> bool:
    """But for what doubles leave open."""
    return all(isclose(x, y, rel_tol=1e-9, abs_tol=1e-9) for x, y in zip(a, b, strict=True))
