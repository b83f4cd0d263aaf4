"""The examples of the documents satisfy mypy --strict, as programs of a user who has installed the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.source import ROOT, SRC
from tests.unit.docs.marked import Block, blocks

DOCUMENTS = ("README.md", "api.md", "live.md", "orders.md")
CACHE = ROOT / ".mypy_cache" / "examples"


def examples() -> list[Block]:
    return [block for block in blocks() if block.what == "python" and block.document.name in DOCUMENTS]


def complaints(folder: Path, programs: dict[str, str]) -> str:
    """Of mypy, which knows nothing of this repository but what is installed."""
    for name, text in programs.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    words = ["--strict", "--config-file=", "--cache-dir", str(CACHE), "--no-error-summary", "."]
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout


WRONG = {
    "no_such_name": "import epicast\n\nepicast.Nod()\n",
    "a_setting_of_a_node": 'import epicast\n\nepicast.SyncNode(listen=5, seed=["a:1"])\n',
    "a_setting_of_a_simulation": 'import epicast\n\nepicast.simulate("brisa", drain=1.5, wormup="5s")\n',
    "a_gap_has_no_payload": (
        "import epicast\n\nwith epicast.SyncNode() as node, node.subscribe() as messages:\n"
        "    print(messages.get().payload)\n"
    ),
}


def test_examples_are_typed_and_mistakes_are_noticed(tmp_path: Path) -> None:
    """In one call of mypy, which takes its time."""
    found = {f"example_{number}": block for number, block in enumerate(examples())}
    assert {block.document.name for block in found.values()} == set(DOCUMENTS)
    said = complaints(tmp_path, {name: block.text for name, block in found.items()} | WRONG)
    wrong = [line for line in said.splitlines() if line.startswith(tuple(WRONG))]
    others = [line for line in said.splitlines() if line not in wrong]
    assert not others, "\n".join(f"{found[line.split('.py')[0]]}: {line}" for line in others)
    for name, words in {
        "no_such_name": 'Module has no attribute "Nod"',
        "a_setting_of_a_node": 'Unexpected keyword argument "seed" for "SyncNode"',
        "a_setting_of_a_simulation": 'Unexpected keyword argument "wormup" for "simulate"',
        "a_gap_has_no_payload": 'has no attribute "payload"',
    }.items():
        assert any(line.startswith(name) and words in line for line in wrong), said


def test_types_are_part_of_the_package() -> None:
    assert (SRC / "py.typed").exists()
    pytest.importorskip("mypy")
