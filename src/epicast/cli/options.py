"""How commands with many options write one: under a heading of the help page."""

from __future__ import annotations

from typing import Any

import typer


def option(heading: str, metavar: str | None, text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=heading, **more)
