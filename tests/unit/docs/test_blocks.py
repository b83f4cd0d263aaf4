"""What the documentation shows is what happens: commands print it, examples run, protocols send it.

`EPICAST_REWRITE=1 .venv/bin/python -m pytest tests/unit/docs` writes today's content into the documents. Read the text
around it then: it may speak of what has changed.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from epicast.sim.churn import parse_churn
from epicast.sim.latency import parse_latency
from epicast.sim.scenario import Scenario
from tests.tidy.commands import commands_in
from tests.tidy.source import ROOT
from tests.unit.docs import stories
from tests.unit.docs.marked import Block, blocks, blocks_in, rewrite

REWRITE = bool(os.environ.get("EPICAST_REWRITE"))
SPEED = re.compile(r" · [\d.]+(?: [kMG])?/s \(\w+ engine\)")  # of the machine that ran it
EPICAST = "from epicast.cli.main import main; main()"


def output_of(code: str, *arguments: str) -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def content(block: Block) -> str | None:
    """What the block should hold; None where it is enough that it can be read."""
    kind, _, rest = block.what.partition(": ")
    if kind == "output of":
        return output_of(EPICAST, *shlex.split(rest)[1:])
    if kind == "transcript of":
        text: str = getattr(stories, rest)()[0]
        return text
    if kind == "file":
        return (ROOT / rest).read_text(encoding="utf-8")
    if kind == "output of the python above":
        return output_of(python_above(block))
    READERS[kind](block.text)
    return None


def python_above(block: Block) -> str:
    before = [other for other in blocks() if other.document == block.document and other.number < block.number]
    return next(other.text for other in reversed(before) if other.what == "python")


def latencies(text: str) -> None:
    for line in text.splitlines():
        parse_latency(line.partition("#")[0].strip())


READERS: dict[str, Callable[[str], object]] = {
    "python": output_of,
    "scenario": Scenario.from_toml,
    "churn": parse_churn,
    "latency": latencies,
}


def tidy(text: str) -> str:
    """Without blanks at the ends of lines and around the whole, and without the speed of one machine."""
    lines = [SPEED.sub("", line).rstrip() for line in text.splitlines()]
    return "\n".join(lines).strip("\n")


@pytest.mark.parametrize("block", blocks(), ids=str)
def test_a_marked_block_is_true(block: Block) -> None:
    found = content(block)
    if found is None or tidy(found) == tidy(block.text):
        return
    if REWRITE:
        rewrite(block, "\n".join(line.rstrip() for line in found.strip("\n").splitlines()) + "\n")
    else:
        assert tidy(block.text) == tidy(found), f"{block} has changed: see {Path(__file__).name} for how to rewrite it"


@pytest.mark.parametrize("block", [block for block in blocks() if block.what.startswith("output of: ")], ids=str)
def test_the_command_of_an_output_is_shown_to_the_reader(block: Block) -> None:
    shown = commands_in("", block.document.read_text(encoding="utf-8"))
    assert tuple(shlex.split(block.what.removeprefix("output of: "))) in [command.words for command in shown]


def test_marked_blocks_are_found() -> None:
    text = "x\n<!-- checked: python -->\n```python\nprint(1)\n```\n\n```python\nprint(2)\n```\n"
    (block,) = blocks_in(ROOT / "README.md", text)
    assert (block.what, block.text) == ("python", "print(1)\n")
    assert content(block) is None
    assert output_of(block.text) == "1\n"


def test_an_output_belongs_to_the_program_before_it_even_if_another_prints_the_same() -> None:
    document = ROOT / "docs" / "api.md"
    outputs = [block for block in blocks() if block.document == document and block.what == "output of the python above"]
    programs = [block for block in blocks() if block.document == document and block.what == "python"]
    assert len(outputs) > 5
    assert [python_above(block._replace(text="")) for block in outputs] == [block.text for block in programs]


def test_a_wrong_block_is_noticed() -> None:
    wrong = Block(ROOT / "README.md", "output of: epicast --version", "epicast 0.0.0\n")
    found = content(wrong)
    assert found is not None
    assert tidy(found) != tidy(wrong.text)
