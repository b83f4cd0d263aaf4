"""Where commands print: tables for people, one JSON object for programs. Everything else goes to stderr."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

WIDTH = 100  # where there is no terminal to ask


def console(*, stderr: bool = False) -> Console:
    """Colours on a terminal, plain text elsewhere."""
    from rich.console import Console

    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(stderr=stderr, highlight=False, width=None if terminal else WIDTH)


def show(what: RenderableType) -> None:
    """A line made by `unbroken` is longer than the terminal rather than cut."""
    console().print(what, crop=False)


def unbroken(text: str, style: str = "") -> Text:
    """What people copy, such as paths and commands."""
    from rich.text import Text

    return Text(text, style=style, no_wrap=True, overflow="ignore")


def print_json(value: dict[str, Any]) -> None:
    """On one line, unless a person reads it on a terminal."""
    print(json.dumps(value, indent=2 if sys.stdout.isatty() else None, allow_nan=False))


def note(text: str) -> None:
    """One line for whoever watches."""
    print(f"epicast: {text}", file=sys.stderr, flush=True)
