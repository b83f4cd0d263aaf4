"""What a stack can promise. Checkers judge a run by these names; `run.json` carries those that its stack gave."""

from __future__ import annotations

PROMISES = (
    "integrity",
    "validity",
    "agreement",
    "fifo",
    "causal",
    "total",
    "no-parasites",
    "tree",
    "accounting",
)
