"""What the documentation tells a reader to type exists: make targets, commands and their options."""

import os
import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest
import typer

from tests.tidy.commands import Command, commands_in, documents, make_targets
from tests.tidy.source import ROOT, shown

EPICAST = [sys.executable, "-c", "from epicast.cli.main import main; main()"]


@pytest.fixture(scope="module")
def documented() -> list[Command]:
    if not (ROOT / "README.md").is_file():
        pytest.skip("there is no README.md yet")
    return [
        command for path in documents(ROOT) for command in commands_in(shown(path), path.read_text(encoding="utf-8"))
    ]


@cache
def help_of(words: tuple[str, ...]) -> str | None:
    """The help of a command, or None if there is no such command."""
    env = os.environ | {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run([*EPICAST, *words, "--help"], env=env, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def wrong_with(words: tuple[str, ...]) -> str | None:
    """Why the command line would refuse `epicast words...`: judged by the help of the command, which is not run."""
    path: tuple[str, ...] = ()
    for word in words:
        commands = commands_listed(help_of(path) or "")
        if word.startswith("-") or not commands:
            break
        if word not in commands:
            return f"no such command: {word}"
        path = (*path, word)
    known = options(help_of(path) or "")
    unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
    return f"no such option: {unknown[0]}" if unknown else None


def commands_listed(help_text: str) -> list[str]:
    """The commands that a help offers, none for a command that has no further ones."""
    listed = re.split(r"^\W*Commands\b.*$", help_text, maxsplit=1, flags=re.MULTILINE)
    return re.findall(r"^[│|]? {1,2}([a-z][a-z-]*)\b", listed[1], re.MULTILINE) if len(listed) == 2 else []


def options(help_text: str) -> set[str]:
    return set(re.findall(r"--[a-z][a-z-]*", help_text)) | {"--help"}


def test_documented_make_targets_exist(documented: list[Command]) -> None:
    targets = make_targets((ROOT / "Makefile").read_text(encoding="utf-8"))
    asked = [(command, word) for command in documented if command.words[0] == "make" for word in command.words[1:]]
    missing = [
        str(command) for command, word in asked if "=" not in word and not word.startswith("-") and word not in targets
    ]
    assert not missing, "\n" + "\n".join(missing)


def test_documented_epicast_commands_exist(documented: list[Command]) -> None:
    if find_spec("epicast.cli.main") is None:
        pytest.skip("there is no command line yet")
    asked = [command for command in documented if command.words[0] in ("epicast", ".venv/bin/epicast")]
    refused = [f"{command}: {wrong}" for command in asked if (wrong := wrong_with(command.words[1:]))]
    assert not refused, "\n" + "\n".join(refused)


def all_commands() -> list[str]:
    """As they are typed, after `epicast`."""
    from epicast.cli.main import app

    found: list[str] = []

    def walk(group: Any, path: str) -> None:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                walk(command, f"{path}{name} ")
            else:
                found.append(f"{path}{name}")

    walk(typer.main.get_command(app), "")
    return found


def test_every_command_is_in_the_change_log() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    named = {words.removeprefix("epicast ") for words in re.findall(r"`([a-z ]+)`", " ".join(text.split()))}
    assert set(all_commands()) <= named


def test_every_command_is_shown_to_the_reader() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in documents(ROOT))
    assert [command for command in all_commands() if not re.search(rf"\bepicast {command}\b", text)] == []


def test_an_unknown_command_or_option_is_refused() -> None:
    if find_spec("epicast.cli.main") is None:
        pytest.skip("there is no command line yet")
    assert wrong_with(("--help",)) is None
    assert wrong_with(("no-such-command",)) == "no such command: no-such-command"
    assert wrong_with(("--no-such-option",)) == "no such option: --no-such-option"


def test_the_makefile_has_the_targets_that_everyone_expects() -> None:
    targets = make_targets((ROOT / "Makefile").read_text(encoding="utf-8"))
    assert targets >= {"demo", "test", "check", "bench", "clean", "lock", "help"}
    assert "nonesuch" not in targets


def test_commands_are_read_from_shell_blocks_alone() -> None:
    text = """
Type `make nothing`.
```sh
make demo   # a comment
$ EPICAST_PURE=1 make test PYTHON=python3.12
epicast sim --stack brisa \\
    --nodes 100 | head -3 > out.txt && make bench

```
```python
make = 1
```
"""
    assert commands_in("README.md", text) == [
        Command("README.md:4", ("make", "demo")),
        Command("README.md:5", ("make", "test", "PYTHON=python3.12")),
        Command("README.md:6", ("epicast", "sim", "--stack", "brisa", "--nodes", "100")),
        Command("README.md:6", ("head", "-3")),
        Command("README.md:6", ("make", "bench")),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Usage: epicast\n\nOptions:\n  --seed N\n\nCommands:\n  sim    Run one\n         or two.\n  bench  Measure.\n",
        "╭─ Options ─╮\n│ --seed    │\n╰───────────╯\n╭─ Commands ─────╮\n│ sim    Run one.│\n│ bench  Measure.│\n",
    ],
    ids=["plain", "boxed"],
)
def test_help_text_is_understood(text: str) -> None:
    assert commands_listed(text) == ["sim", "bench"]
    assert options(text) == {"--seed", "--help"}
    assert commands_listed("Usage: epicast sim\n\nOptions:\n  --seed INTEGER  Commands are repeated.\n") == []
