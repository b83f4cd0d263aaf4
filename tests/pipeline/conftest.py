"""One Spark for all tests that ask for it, as a session costs seconds and a gigabyte. With several processes they
stay together in one (`tests/support/one_spark.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from epicast.pipeline.session import session

    with session("local[2]") as made:
        yield made
