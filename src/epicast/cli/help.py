"""Help as plain text with the options under headings.

Typer's own help draws boxes, and importing what it takes to draw them costs more than all else that `--help` does.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

PLAIN: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None}
"""How every Typer of ours is made."""

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Command(TyperCommand):
    """Its options stand under the heading that each one names as `rich_help_panel`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
                heading = getattr(parameter, "rich_help_panel", None) or kind
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


class Group(TyperGroup):
    """Commands in the order in which they were added, the likely ones first."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)


def new_app(**settings: Any) -> typer.Typer:
    return typer.Typer(cls=Group, context_settings=SETTINGS, **PLAIN, **settings)
