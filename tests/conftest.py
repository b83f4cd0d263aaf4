"""Hypothesis draws the same examples on every run: a test that passes once passes everywhere. One process has Spark."""

import os
import signal
from typing import Any

import pytest
from hypothesis import settings

from tests.support.one_spark import CONF, make_scheduler

settings.register_profile("default", derandomize=True, deadline=None)
settings.load_profile("default")

os.environ["SPARK_CONF_DIR"] = str(CONF)

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in the background of a shell; some tests interrupt
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return make_scheduler(config, log)
