"""How much memory and processor time this process and those that it started have taken, where the system tells."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def peak_bytes() -> dict[str, int]:
    """The most memory that each part ever had: `driver` is this process, `jvm` is Spark, `workers` run its tasks."""
    found: dict[str, int] = {}
    for process in _family():
        part = _part(process)
        if part:
            found[part] = found.get(part, 0) + _peak(process)
    return found


def processor_seconds() -> float | None:
    """Of all together; None where there is no /proc."""
    if not PROC.is_dir():
        return None
    ticks = sum(sum(map(int, _status(process)[11:15])) for process in _family())
    return ticks / os.sysconf("SC_CLK_TCK")


def _family() -> Iterator[Path]:
    """This process, its children and theirs."""
    parents: dict[int, int] = {}
    for entry in PROC.glob("[0-9]*"):
        with suppress(OSError):
            parents[int(entry.name)] = int(_status(entry)[1])
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return (PROC / str(pid) for pid in sorted(ours) if pid in parents)


def _status(process: Path) -> list[str]:
    """The fields of `stat` behind the command, which is in parentheses and may hold spaces."""
    return (process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def _part(process: Path) -> str:
    if process.name == str(os.getpid()):
        return "driver"
    with suppress(OSError):
        command = (process / "cmdline").read_bytes().split(b"\0")
        if command[0].endswith(b"java"):
            return "jvm"
        return "workers" if any(b"pyspark" in word for word in command) else ""
    return ""


def _peak(process: Path) -> int:
    with suppress(OSError):
        for line in (process / "status").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0
