"""Keeps the tests that need Spark in one process, however many processes run the tests: each would start a Java.

Of `--dist loadgroup` only the name is used. Its marks are lost on the way with pytest 9.2, so the files are asked: one
that has a function with an argument `spark` belongs to the group."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest
    from xdist.remote import Producer
    from xdist.scheduler.protocol import Scheduling

GROUP = "spark"
CONF = Path(__file__).with_name("spark_conf")
"""What every Java of Spark that tests start is told: none lives long enough to earn its second compiler's work back."""


def group_of(root: Path, nodeid: str) -> str:
    """Tests of one group run in one process; most are a group of their own."""
    return GROUP if needs_spark(root / nodeid.partition("::")[0]) else nodeid


@cache
def needs_spark(file: Path) -> bool:
    functions = (node for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, ast.FunctionDef))
    return any(argument.arg == "spark" for function in functions for argument in function.args.args)


def make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    from xdist.scheduler import LoadScopeScheduling

    class OneSpark(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(config.rootpath, nodeid)

    return OneSpark(config, log) if config.getvalue("dist") == "loadgroup" else None
