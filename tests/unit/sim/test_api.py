"""One call from Python."""

from __future__ import annotations

import subprocess
import sys

import pytest

import epicast
from epicast.core.errors import ConfigError


def test_one_call_runs_a_scenario() -> None:
    summary = epicast.simulate("static-flood", nodes=30, messages=4, rate=100, warmup="1s", latency="constant 5ms")
    assert (summary.stack, summary.seed, summary.messages, summary.delivery_ratio) == ("static-flood", 7, 4, 1.0)
    assert summary.latency_ms["p50"] in (10.0, 15.0)


def test_a_workload_may_say_more() -> None:
    summary = epicast.simulate("static-flood", nodes=30, messages=4, warmup="1s", workload={"sources": 2, "rate": 50})
    assert summary.messages == 4


def test_what_is_wrong_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="nods: unknown key; did you mean nodes"):
        epicast.simulate("static-flood", nods=3)


def test_other_names_are_missing() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulated'"):
        epicast.simulated  # noqa: B018


def test_importing_the_package_does_not_wait_for_numpy() -> None:
    code = "import sys, epicast; sys.exit('numpy' in sys.modules or 'pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
