"""One process at a time writes into a folder. The system lets go of the lock when the process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def acquire(folder: Path) -> int | None:
    """A handle to give to `release`, or None if another run holds the folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:
        pass  # a file system without locks: go on without one
    return handle


def release(handle: int) -> None:
    os.close(handle)


def is_held(folder: Path) -> bool:
    """True if a living process writes there."""
    handle = acquire(folder)
    if handle is None:
        return True
    release(handle)
    return False
