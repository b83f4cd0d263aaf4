"""All guarantees of one run, promised or not."""

from __future__ import annotations

from epicast.core.records import Level
from epicast.pipeline.guarantees.accounting import accounting
from epicast.pipeline.guarantees.agreement import agreement, validity
from epicast.pipeline.guarantees.causal import causal
from epicast.pipeline.guarantees.fifo import fifo
from epicast.pipeline.guarantees.ground import lay
from epicast.pipeline.guarantees.integrity import integrity
from epicast.pipeline.guarantees.parasites import no_parasites
from epicast.pipeline.guarantees.total import total
from epicast.pipeline.guarantees.tree import tree
from epicast.pipeline.guarantees.verdict import GUARANTEES, Outcome, Verdict, not_judged
from epicast.pipeline.kernel import Kernel, RunFacts


def judge(kernel: Kernel, run: RunFacts) -> list[Verdict]:
    """One verdict for each of GUARANTEES, in their order. `tables.define` was called before; this is called once."""
    outcomes = _outcomes(kernel, run)
    return [_verdict(guarantee.name, outcomes[guarantee.name], run) for guarantee in GUARANTEES]


def _outcomes(kernel: Kernel, run: RunFacts) -> dict[str, Outcome]:
    if run.level == Level.OFF:
        return {guarantee.name: not_judged("the run kept no trace") for guarantee in GUARANTEES}
    ground = lay(kernel, run)
    agreed = agreement(ground)
    return {
        "integrity": integrity(ground),
        "validity": validity(ground),
        "agreement": agreed,
        "fifo": fifo(ground),
        "causal": causal(ground),
        "total": total(ground, holes=agreed.violations),
        "no-parasites": no_parasites(ground),
        "tree": tree(ground),
        "accounting": accounting(ground),
    }


def _verdict(name: str, outcome: Outcome, run: RunFacts) -> Verdict:
    return Verdict(
        guarantee=name,
        promised=name in run.promises,
        judged=outcome.judged,
        checked=outcome.checked,
        violations=outcome.violations,
        reason=outcome.reason,
        findings=outcome.findings,
        numbers=outcome.numbers,
    )
