"""Hypothesis draws the same examples on every run: a test that passes once passes everywhere. One process has Spark.

A run of many files ends with the ten that took longest."""

import os
import signal
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import settings

from tests.support.one_spark import CONF, make_scheduler

settings.register_profile("default", derandomize=True, deadline=None)
settings.load_profile("default")

os.environ["SPARK_CONF_DIR"] = str(CONF)

SLOWEST = 10

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in the background of a shell; some tests interrupt
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return make_scheduler(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    spent: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for each in reports:
            if isinstance(each, pytest.TestReport):
                spent[each.nodeid.partition("::")[0]] += each.duration
    if len(spent) > SLOWEST:
        terminalreporter.section("slowest files")
        for file, seconds in sorted(spent.items(), key=lambda item: -item[1])[:SLOWEST]:
            terminalreporter.write_line(f"{seconds:6.1f} s  {file}")
