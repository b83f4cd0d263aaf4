"""Newcomers on their local network: how many contacts each heard of, and how many it took, near and far."""

from __future__ import annotations

from epicast.pipeline.kernel import Kernel
from epicast.pipeline.metrics.scope import Scope

NAMES = {
    "newcomers": "processes that asked their local network for contacts",
    "contacts_heard": "contacts that a newcomer heard of, on average",
    "contacts_taken": "contacts that a newcomer took into its view, on average",
    "contacts_taken_near": "contacts of its own area that a newcomer took, on average",
    "contacts_taken_far": "contacts of other areas that a newcomer took, on average",
    "contacts_near_share": "share of the contacts taken that are near",
}


def metrics(kernel: Kernel, scope: Scope) -> dict[str, float]:
    """Nothing for a run in which nobody asked. The first process of all had nobody to ask."""
    if not scope.count("contact"):
        return {}
    row = kernel.query(
        """
        SELECT count(*) FILTER (WHERE detail <> 'asked') AS heard, count(DISTINCT node) AS newcomers,
               count(*) FILTER (WHERE detail = 'near') AS near, count(*) FILTER (WHERE detail = 'far') AS far
        FROM marks WHERE kind = 'contact' AND node <> (SELECT min(node) FROM marks WHERE kind = 'join')
        """
    ).to_pylist()[0]
    newcomers, near, far = row["newcomers"], row["near"], row["far"]
    if not newcomers:
        return {}
    taken = near + far
    return {
        "newcomers": newcomers,
        "contacts_heard": row["heard"] / newcomers,
        "contacts_taken": taken / newcomers,
        "contacts_taken_near": near / newcomers,
        "contacts_taken_far": far / newcomers,
        **({"contacts_near_share": near / taken} if taken else {}),
    }
