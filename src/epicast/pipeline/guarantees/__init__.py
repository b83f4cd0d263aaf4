"""Executable guarantees: what stacks promise, checked over the tables of a run.

Each check counts what it looked at and what is wrong, and lists the first violations with the rows that prove them. All
are questions to a kernel, so simulated and live runs, small and large ones are judged alike.
"""

from epicast.pipeline.guarantees.judge import judge
from epicast.pipeline.guarantees.verdict import FINDINGS_MAX, GUARANTEES, Finding, Guarantee, Verdict

__all__ = ["FINDINGS_MAX", "GUARANTEES", "Finding", "Guarantee", "Verdict", "judge"]
