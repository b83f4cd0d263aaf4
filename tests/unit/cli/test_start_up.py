"""The first thing that people type answers at once, and says what there is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import epicast
from epicast.stacks import stack
from tests.unit.cli.shell import Shell, start

# What the program imported, to stderr; a reader that closes early is the test's own.
SPY = """
import sys
from epicast.cli.main import run
code = run(sys.argv[1:])
print(*sorted(name for name in sys.modules if "." not in name), file=sys.stderr)
sys.exit(code)
"""


def test_help_imports_nothing_heavy() -> None:
    with start(SPY, "--help") as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Usage: epicast" in out
    assert not {"numpy", "pyspark", "pyarrow", "rich", "simpy", "msgspec"} & set(err.split())


def test_the_package_is_a_command_too() -> None:
    command = [sys.executable, "-m", "epicast"]
    done = subprocess.run([*command, "stacks", "--json"], capture_output=True, text=True, check=True)
    assert {each["name"] for each in json.loads(done.stdout)["stacks"]} == set(stack.names())
    refused = subprocess.run([*command, "nonesuch"], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(("missing", "words"), [("duckdb", ["check", "."]), ("scipy", ["run", "br-1"])])
def test_a_part_that_is_not_installed_is_named(missing: str, words: list[str], tmp_path: Path) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None\nfrom epicast.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"epicast: error: {missing} is not installed: pip install 'epicast[pipeline]'\n"


def test_without_a_command_it_shows_the_help(shell: Shell) -> None:
    answer = shell()
    assert answer == shell("--help")
    assert answer.code == 0
    for command in ("demo", "sim", "run", "experiments", "check", "compare", "stacks", "bench"):
        assert f"\n  {command} " in answer.out


@pytest.mark.parametrize(
    "words",
    [
        ["sim"],
        ["demo"],
        ["run"],
        ["check"],
        ["experiments"],
        ["compare"],
        ["stacks"],
        ["bench"],
        ["bench", "engine"],
        ["bench", "profile"],
    ],
)
def test_every_command_has_help(shell: Shell, words: list[str]) -> None:
    answer = shell(*words, "--help")
    assert answer.code == 0
    assert f"Usage: epicast {' '.join(words)}" in answer.out
    assert "--help" in answer.out


def test_the_options_of_a_run_stand_under_headings(shell: Shell) -> None:
    lines = shell("sim", "--help").out.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Arguments:", "Scenario:", "Network:", "Any other setting:", "Run:", "Output:", "Options:"]


def test_the_version_is_printed(shell: Shell) -> None:
    assert shell("--version") == (0, f"epicast {epicast.__version__}\n", "")


def test_stacks_are_listed(shell: Shell) -> None:
    found = shell("stacks", "--json").json["stacks"]
    assert {each["name"]: each["summary"] for each in found} == stack.summaries()
    out = shell("stacks").out
    assert all(f"{name} " in out for name in stack.names())


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
@pytest.mark.parametrize("words", [["stacks"], ["stacks", "--json"], ["--help"]])
def test_a_reader_that_goes_away_is_no_reason_to_complain(words: list[str]) -> None:
    closed = "import os; reader, writer = os.pipe(); os.close(reader); os.dup2(writer, 1)\n"
    with start(closed + "from epicast.cli.main import main; main()", *words) as process:
        out, err = process.communicate(timeout=60)
    assert (out, err) == ("", "")
    assert process.returncode != 0
