"""All histories that break a guarantee, by name."""

from __future__ import annotations

from tests.pipeline import bad_deliveries, bad_orders, bad_structures
from tests.pipeline.cases import BAD, Case

__all__ = ["BAD", "Case", "bad_deliveries", "bad_orders", "bad_structures"]
