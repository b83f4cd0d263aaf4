"""Blocks of the documentation that are kept true by a test.

A comment before a fenced block says where its content comes from:

    <!-- checked: output of: epicast stacks -->     what the command prints
    <!-- checked: transcript of: brisa_repair -->   a story of stories.py
    <!-- checked: file: tests/unit/docs/rumor.py -->
    <!-- checked: python -->                        it runs
    <!-- checked: output of the python above -->
    <!-- checked: scenario -->                      it loads; so do `churn` and `latency`, line by line
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tests.tidy.commands import documents
from tests.tidy.source import ROOT, shown

MARKED = re.compile(r"^<!-- checked: (?P<what>.+?) -->\n```\w*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    document: Path
    what: str
    text: str
    number: int = 0  # in its document: two blocks may say the same

    def __str__(self) -> str:
        return f"{shown(self.document)}: {self.what}"


def blocks_in(document: Path, text: str) -> list[Block]:
    found = enumerate(MARKED.finditer(text))
    return [Block(document, match["what"], match["text"], number) for number, match in found]


def blocks() -> list[Block]:
    return [block for path in documents(ROOT) for block in blocks_in(path, path.read_text(encoding="utf-8"))]


def rewrite(block: Block, text: str) -> None:
    old = block.document.read_text(encoding="utf-8")
    match = list(MARKED.finditer(old))[block.number]
    block.document.write_text(old[: match.start("text")] + text + old[match.end("text") :], encoding="utf-8")
