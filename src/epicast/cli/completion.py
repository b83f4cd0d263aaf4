"""`epicast completion`: what a shell needs to complete our commands, options and names.

The script is printed; where it goes is up to the user, and nothing is written. With it, the shell calls `epicast` with
words in its environment, and `answer` says how they could go on.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from typer.core import TyperGroup

PROGRAM = "epicast"
ASKED = "_EPICAST_COMPLETE"
"""The variable by which a shell asks: its script sets it."""
SHELLS = ("bash", "zsh", "fish")


def completion(
    shell: Annotated[
        str | None, typer.Argument(metavar="SHELL", help="bash, zsh or fish. Default: the one that $SHELL names.")
    ] = None,
) -> None:
    """Print the script that makes a shell complete `epicast ...` with the Tab key. It writes no file.

    For this shell alone: eval "$(epicast completion bash)", or the same with zsh; epicast completion fish | source.
    To keep it, put that line into the start-up file of the shell.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    from epicast.core.errors import EpicastError

    name = shell if shell is not None else PurePath(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        raise EpicastError(f"completion: expected {', '.join(SHELLS)}, got {name!r}")
    print(get_completion_script(prog_name=PROGRAM, complete_var=ASKED, shell=name))


def answer(command: TyperGroup) -> None:
    """Print how the words could go on, and end."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    completion_init()
    command.main([], prog_name=PROGRAM, complete_var=ASKED)


# Names that an argument can have


def stacks(incomplete: str) -> list[str]:
    from epicast.stacks import stack

    return _of(stack.names(), incomplete)


def stormy(incomplete: str) -> list[str]:
    """The stacks that promise what storms judge."""
    from epicast.sim.storm_draw import playable

    return _of(playable(), incomplete)


def experiments(incomplete: str) -> list[str]:
    from epicast.experiments import catalog

    return _of(catalog.names(), incomplete)


def _of(names: list[str] | tuple[str, ...], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
