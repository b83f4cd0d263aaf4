"""The commands that the documentation tells a reader to type."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"^ *```(\w*)")
SHELLS = {"sh", "bash", "shell", "console"}


class Command(NamedTuple):
    where: str  # "README.md:12"
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.where}: {shlex.join(self.words)}"


def commands_in(name: str, text: str) -> list[Command]:
    """Each command of the fenced shell blocks: prompts, comments and redirections left out, pipes taken apart."""
    return [Command(f"{name}:{number}", words) for number, line in shell_lines(text) for words in split(line) if words]


def shell_lines(text: str) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    shell, fenced, continued = False, False, False
    for number, line in enumerate(text.splitlines(), 1):
        if match := FENCE.match(line):
            fenced = not fenced
            shell = fenced and match[1] in SHELLS
        elif shell and continued:
            start, so_far = found[-1]
            found[-1] = (start, so_far.removesuffix("\\") + line)
        elif shell:
            found.append((number, line.strip().removeprefix("$ ")))
        continued = shell and line.endswith("\\")
    return found


def split(line: str) -> list[tuple[str, ...]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    parts: list[list[str]] = [[]]
    redirected = False
    for word in lexer:
        if set(word) <= set("|&;()"):
            parts.append([])
        elif set(word) <= set("<>"):
            redirected = True
        elif redirected:
            redirected = False
        else:
            parts[-1].append(word)
    return [tuple(without_settings(part)) for part in parts]


def without_settings(words: list[str]) -> list[str]:
    """`EPICAST_PURE=1 make demo` is a `make demo`."""
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    return words


def make_targets(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z][\w-]*):(?!=)", makefile, re.MULTILINE))


def documents(root: Path) -> list[Path]:
    return [path for path in [root / "README.md", *sorted((root / "docs").rglob("*.md"))] if path.is_file()]
