"""How much memory this process takes."""

from __future__ import annotations

import sys
from pathlib import Path


def resident_bytes() -> int:
    """Now, where the system tells; else the most that it ever was."""
    import resource

    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
