"""Imports go one way, and the checker that says so is shown to reject what breaks the rules."""

import subprocess
import sys

import pytest

from tests.tidy.import_rules import check
from tests.tidy.source import SRC


def test_every_import_of_the_package_keeps_the_rules() -> None:
    files = sorted([*SRC.rglob("*.py"), *SRC.rglob("*.pyx")])
    assert len(files) > 20, "the checker found hardly any source: is it looking in the right place?"
    breaches = [
        f"src/epicast/{breach}"
        for file in files
        for breach in check(file.relative_to(SRC).as_posix(), file.read_text(encoding="utf-8"))
    ]
    assert not breaches, "\n" + "\n".join(breaches)


@pytest.mark.parametrize("heavy", ["numpy", "pyarrow", "pyspark", "asyncio", "typer"])
def test_importing_the_package_does_not_import(heavy: str) -> None:
    code = f"import sys, epicast; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


REJECTED = [
    # the way of the layers
    ("core/ids.py", "from epicast.wire import codec", "core may import no other layer; not wire"),
    ("core/ids.py", "import epicast.sim.engine", "not sim"),
    ("membership/cyclon.py", "from epicast.dissemination.flood import Flood", "membership may import core; not diss"),
    ("topics/stan.py", "from epicast.membership.cyclon import Cyclon", "not membership"),
    ("ordering/fifo.py", "from epicast.membership import cyclon", "not membership"),
    ("dissemination/flood.py", "from epicast.stacks.node import Node", "not stacks"),
    ("stacks/node.py", "from epicast.sim.engine import Engine", "not sim"),
    ("wire/codec.py", "from epicast.trace import batch", "not trace"),
    ("trace/batch.py", "from epicast.wire import codec", "not wire"),
    ("sim/world.py", "from epicast.live.node import Node", "not live"),
    ("live/node.py", "from epicast.sim.engine import Engine", "not sim"),
    ("sim/world.py", "from epicast.membership.cyclon import Cyclon", "not membership"),
    ("sim/bulk/flood.py", "from epicast.live import node", "not live"),
    ("sim/world.py", "from epicast.cli import main", "not cli"),
    ("pipeline/tables.py", "from epicast.sim.engine import Engine", "pipeline may import core, trace; not sim"),
    ("pipeline/tables.py", "from epicast.pipeline.sweep import run", "not pipeline/sweep"),
    ("pipeline/sweep/run.py", "from epicast.live.node import Node", "not live"),
    ("sim/world.py", "from epicast import live", "not live"),
    ("novelty/new.py", "import json", "layer novelty has no row"),
    # however it is written
    ("sim/world.py", "from ..live import node", "not live"),
    ("sim/world.py", "from .. import trace, live", "not live"),
    ("sim/bulk/flood.py", "from ...live import node", "not live"),
    ("sim/world.py", "def f():\n    from epicast.live import node", "not live"),
    ("sim/world.py", "if TYPE_CHECKING:\n    from epicast.live import node", "not live"),
    ("sim/world.py", "import_module('epicast.live.node')", "not live"),
    ("sim/world.py", "importlib.import_module('epicast.live.node')", "not live"),
    ("core/ids.py", "__import__('numpy')", "not numpy"),
    ("sim/_engine.pyx", "from epicast.live.node cimport Node", "not live"),
    ("sim/_engine.pyx", "    import time", "time may be imported under cli and live only"),
    ("sim/_engine.pyx", "from random import choice", "seeded Random"),
    # other people's code
    ("core/ids.py", "import numpy", "core may import the standard library and msgspec only, not numpy"),
    ("membership/cyclon.py", "import numpy as np", "not numpy"),
    ("stacks/node.py", "import typer", "not typer"),
    ("trace/batch.py", "import pandas", "not pandas"),
    # reserved modules
    ("sim/world.py", "import pyspark.sql", "pyspark may be imported under pipeline only"),
    ("cli/run.py", "from pyspark.sql import functions", "pyspark may"),
    ("sim/world.py", "import asyncio", "asyncio may be imported under cli/benchmarks and dashboard and live only"),
    ("sim/world.py", "import time", "time may be imported under cli and live only"),
    ("trace/batch.py", "from time import monotonic", "time may"),
    ("core/env.py", "from datetime import datetime", "datetime may"),
    ("core/env.py", "import os.path", "core may not import os"),
    ("membership/cyclon.py", "import socket", "membership may not import socket"),
    ("dissemination/flood.py", "from os import urandom", "dissemination may not import os"),
    ("ordering/total.py", "import threading", "ordering may not import threading"),
    # chance
    ("sim/world.py", "import random", "seeded Random"),
    ("cli/run.py", "from random import shuffle", "seeded Random"),
    ("sim/world.py", "from random import Random, choice", "seeded Random"),
    ("sim/world.py", "from random import SystemRandom", "seeded Random"),
    ("sim/world.py", "np.random.shuffle(order)", "global generator"),
    ("sim/world.py", "from numpy.random import rand", "global generator"),
]

ACCEPTED = [
    ("core/window.py", "import msgspec\nfrom random import Random\nfrom epicast.core.ids import NodeId"),
    ("membership/cyclon.py", "from epicast.core import ids, env\nfrom epicast.membership.shuffle import Shuffle"),
    ("stacks/node.py", "import epicast.membership.cyclon, epicast.core.ids\nfrom epicast.dissemination import flood"),
    ("sim/world.py", "import os\nimport numpy as np\nfrom epicast.stacks import node\nrng = np.random.default_rng(7)"),
    ("sim/bulk/flood.py", "from epicast.sim.latency import build\nfrom ..latency import build\nimport numba"),
    ("sim/_engine.pyx", "cimport cython\nfrom libc.stdint cimport int64_t\nfrom epicast.core.ids import NodeId"),
    ("trace/run.py", "from epicast import __version__\nimport epicast"),
    ("trace/batch.py", "import numpy, pyarrow.parquet\nfrom epicast.core.records import Kind"),
    ("live/node.py", "import asyncio, time, socket\nfrom epicast.wire import codec"),
    ("pipeline/tables.py", "from pyspark.sql import DataFrame\nfrom epicast.trace import schema"),
    ("pipeline/sweep/run.py", "from epicast.sim.world import run\nfrom epicast.pipeline import tables"),
    ("cli/run.py", "import time\nfrom epicast.sim import world\nfrom epicast.live import node\nimport epicast"),
    ("__init__.py", "def f():\n    from epicast.live.node import Node"),
]


@pytest.mark.parametrize(("file", "code", "rule"), REJECTED)
def test_the_checker_rejects(file: str, code: str, rule: str) -> None:
    breaches = check(file, code)
    assert len(breaches) == 1, breaches
    assert rule in breaches[0].rule
    assert str(breaches[0]).startswith(f"{file}:{breaches[0].line}: ")


@pytest.mark.parametrize(("file", "code"), ACCEPTED)
def test_the_checker_accepts(file: str, code: str) -> None:
    assert check(file, code) == []


def test_a_breach_names_the_line_that_breaks_the_rule() -> None:
    text = '"""A protocol."""\n\nfrom random import Random\n\n\ndef now():\n    import time\n'
    (breach,) = check("core/clock.py", text)
    assert str(breach) == "core/clock.py:7: time may be imported under cli and live only"
