"""The command line: which commands there are, and what becomes of their errors.

Commands import what they need when they are called, so that `epicast --help` answers at once.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from epicast import __version__
from epicast.cli import bench, keys
from epicast.cli.bulk import bulk
from epicast.cli.check import check
from epicast.cli.cluster import cluster
from epicast.cli.compare import compare
from epicast.cli.completion import ASKED, answer, completion
from epicast.cli.demo import demo
from epicast.cli.experiments import experiments
from epicast.cli.help import Command, new_app
from epicast.cli.members import members
from epicast.cli.node import node
from epicast.cli.pub import pub
from epicast.cli.run import run as run_experiment
from epicast.cli.sim import sim
from epicast.cli.stacks import stacks
from epicast.cli.storm import storm
from epicast.cli.sub import sub
from epicast.cli.top import top
from epicast.core.errors import EpicastError

BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 2, 130, 141

app = new_app()
app.command(cls=Command)(demo)
app.command(cls=Command)(sim)
app.command(cls=Command)(experiments)
app.command("run", cls=Command)(run_experiment)
app.command(cls=Command)(check)
app.command(cls=Command)(compare)
app.command(cls=Command)(stacks)
app.command(cls=Command)(storm)
app.command(cls=Command)(bulk)
app.command(cls=Command)(node)
app.command(cls=Command)(pub)
app.command(cls=Command)(sub)
app.command(cls=Command)(cluster)
app.command(cls=Command)(members)
app.command(cls=Command)(top)
app.command(cls=Command)(completion)
app.add_typer(keys.app, name="keys")
app.add_typer(bench.app, name="bench")


def _print_version(asked: bool) -> None:
    if asked:
        print(f"epicast {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _epicast(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Broker-less publish/subscribe: the code that is simulated is the code that is deployed."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def run(arguments: Sequence[str]) -> int:
    """The exit code. Whatever a user did wrong is one line on stderr."""
    command = typer.main.get_command(app)
    try:
        with command.make_context("epicast", list(arguments)) as context:
            command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as end:
        return _flushed(end.exit_code)
    except EpicastError as error:
        return _refused(str(error), BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        return _refused("interrupted", INTERRUPTED)
    except BrokenPipeError:
        return _deaf()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        extra = _extra_with(package)
        if not extra:
            raise
        return _refused(f"{package} is not installed: pip install 'epicast[{extra}]'", BAD_INPUT)
    except Exception as error:
        tell = getattr(error, "format_message", None)  # a usage error, in any version of typer
        if tell is None:
            raise
        return _refused(f"{tell()}{_advice(error)}", BAD_INPUT)
    return 0


def main() -> None:
    if os.environ.get(ASKED):
        answer(typer.main.get_group(app))
    sys.exit(run(sys.argv[1:]))


def _advice(error: Exception) -> str:
    """Which help to read."""
    context = getattr(error, "ctx", None)
    path = "epicast" if context is None else context.command_path
    return f" (see {path} --help)"


def _extra_with(package: str) -> str:
    """The part of epicast that brings it, or nothing."""
    from importlib.metadata import requires

    for requirement in requires("epicast") or ():
        name, _, condition = requirement.partition(";")
        found = re.search(r"extra == ['\"](\w+)['\"]", condition)
        if found and re.split(r"[^\w-]", name.lower())[0].replace("-", "_") == package.lower():
            return found[1]
    return ""


def _refused(message: str, code: int) -> int:
    word = "" if code == INTERRUPTED else "error: "
    print(f"epicast: {word}{' '.join(message.split())}", file=sys.stderr)
    return code


def _flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _deaf()
    return code


def _deaf() -> int:
    """Whoever read our output has gone: say nothing more, not even when the interpreter closes its files."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE


if __name__ == "__main__":
    main()
