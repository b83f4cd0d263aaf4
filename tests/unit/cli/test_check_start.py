"""`epicast check` of a small run starts no Spark, and looks at the folder before anything else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import pytest

from tests.unit.cli.shell import Shell

LIMIT_S = 10.0
"""Of a run with 8,000 deliveries, by the clock of one processor: other work on the machine does not count."""

CHECK = """
import resource, sys
from epicast.cli.main import run
code = run(["check", sys.argv[1], "--json", "-q"])
spent = resource.getrusage(resource.RUSAGE_SELF)
loaded = [name for name in ("pyspark", "py4j") if name in sys.modules]
print(code, spent.ru_utime + spent.ru_stime, loaded, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from epicast.sim.recorded import play_into
    from epicast.sim.scenario import Scenario
    from epicast.sim.world import World

    folder = tmp_path_factory.mktemp("runs") / "first"
    scenario = Scenario.load({"stack": "brisa", "nodes": 160, "workload": {"messages": 50}})
    play_into(folder, World(scenario, 7), ["epicast"])
    return folder


def test_a_small_run_is_judged_within_seconds_and_without_spark(run_folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHECK, str(run_folder)], capture_output=True, text=True, check=True, env=os.environ
    )
    code, spent_s, loaded = done.stderr.split(maxsplit=2)
    assert (int(code), loaded.strip()) == (0, "[]")
    assert float(spent_s) < LIMIT_S
    assert '"engine": "duckdb"' in done.stdout
    assert '"checked": 8000' in done.stdout


@pytest.mark.parametrize("options", [[], ["--engine", "spark"], ["--master", "spark://127.0.0.1:1"]])
def test_a_folder_that_is_missing_is_told_before_anything_starts(
    shell: Shell, tmp_path: Path, options: list[str]
) -> None:
    began = perf_counter()
    assert f"there is no folder {tmp_path / 'nowhere'}" in shell.refusal("check", tmp_path / "nowhere", *options)
    assert perf_counter() - began < LIMIT_S
    (tmp_path / "file").touch()
    assert "is a file" in shell.refusal("check", tmp_path / "file", *options)
    tmp_path.joinpath("empty").mkdir()
    assert "neither a run folder nor a sweep" in shell.refusal("check", tmp_path / "empty", *options)
