"""A short name for the state of the code: results of another state are not taken for results of this one."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

from epicast import __version__

SIMULATION = ("core", "membership", "dissemination", "stacks", "wire", "trace", "sim")
"""The folders that decide what a run does."""
ANALYSIS = ("trace", "pipeline")
_SOURCES = (".py", ".pyx", ".pxd", ".toml")


@cache
def code_version(folders: tuple[str, ...] = SIMULATION) -> str:
    """The version of the package and a digest of the sources in these folders."""
    total = sha256()
    for folder in folders:
        for name, content in _sources(files("epicast").joinpath(folder), folder):
            total.update(f"{name}\n{len(content)}\n".encode())
            total.update(content)
    return f"{__version__}-{total.hexdigest()[:12]}"


def _sources(folder: Traversable, path: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name = f"{path}/{entry.name}"
        if entry.is_dir():
            found += _sources(entry, name)
        elif entry.name.endswith(_SOURCES):
            found.append((name, entry.read_bytes()))
    return found
