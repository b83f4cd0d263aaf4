"""Writing files so that a crash cannot leave one that looks whole and is not.

A file is written under a temporary name, forced to disk, and only then renamed: whoever sees the name sees all of it.
"""

from __future__ import annotations

import os
from pathlib import Path

TEMPORARY = ".tmp"


def temporary(path: Path) -> Path:
    return path.with_name(path.name + TEMPORARY)


def sync(path: Path) -> None:
    """Force a file, or the names in a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Replace the file as a whole or not at all."""
    temporary(path).write_text(text, encoding="utf-8")
    sync(temporary(path))
    os.replace(temporary(path), path)
    sync(path.parent)


def one_line(error: BaseException) -> str:
    """What went wrong, without the call that failed."""
    text = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return text.splitlines()[0] if text else type(error).__name__
