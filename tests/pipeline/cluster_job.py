"""A driver in a process of its own, as a process holds one Spark at a time: two tasks that are under way at once.

    python cluster_job.py MASTER FOLDER

Each task says in the folder that it has started, waits for a file called `go`, and tells where it ran.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from epicast.pipeline.session import session

FOLDER = Path(sys.argv[2])
SCHEMA = "part long, attempt long, place string, package string, stacks string"
WAIT_S = 180


def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import os
    import time

    from pyspark import TaskContext

    import epicast
    from epicast.stacks.stack import names

    context = TaskContext.get()
    assert context is not None
    part, attempt = context.partitionId(), context.attemptNumber()
    (FOLDER / f"started-{part}-{attempt}").touch()
    deadline = time.monotonic() + WAIT_S
    while not (FOLDER / "go").exists():
        assert time.monotonic() < deadline, "nobody said go"
        time.sleep(0.05)
    for _ in batches:
        row = {"part": part, "attempt": attempt, "place": os.getcwd(), "package": epicast.__file__}
        yield pa.RecordBatch.from_pylist([{**row, "stacks": " ".join(names())}])


if __name__ == "__main__":
    with session(sys.argv[1]) as spark:
        rows = spark.range(0, 2, 1, 2).mapInArrow(work, SCHEMA).collect()
        zone = spark.conf.get("spark.sql.session.timeZone")
    print(json.dumps({"rows": [row.asDict() for row in rows], "zone": zone}))
