"""Seeded chance: every stream of randomness of a run is derived from its seed and the name of what it is for.

Separate streams keep comparisons fair: two stacks under one seed meet the same churn and the same publications, however
many draws their protocols make.
"""

from __future__ import annotations

from hashlib import blake2b
from random import Random


def derive_seed(seed: int, *purpose: str) -> int:
    """A 64-bit seed for one purpose, the same on every machine and Python."""
    name = "\0".join((str(seed), *purpose)).encode()
    return int.from_bytes(blake2b(name, digest_size=8).digest(), "big")


def stream(seed: int, *purpose: str) -> Random:
    return Random(derive_seed(seed, *purpose))
