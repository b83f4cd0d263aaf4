"""Hypothesis draws the same examples on every run: a test that passes once passes everywhere. One process has Spark."""

from typing import Any

import pytest
from hypothesis import settings

from tests.support.one_spark import make_scheduler

settings.register_profile("default", derandomize=True, deadline=None)
settings.load_profile("default")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return make_scheduler(config, log)
