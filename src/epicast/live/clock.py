"""Unix time that never jumps: the monotonic clock plus an offset taken once. A wall clock that is set moves nothing."""

from __future__ import annotations

import time

_OFFSET_US = (time.time_ns() - time.monotonic_ns()) // 1000


def unix_us() -> int:
    return time.monotonic_ns() // 1000 + _OFFSET_US
