"""The one place that builds a Spark session: embedded in this process, or on a cluster."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from threading import current_thread, main_thread
from zipfile import ZIP_DEFLATED, ZipFile

from epicast.core.errors import EpicastError
from epicast.pipeline import spark_port
from epicast.pipeline.java import find_java

try:
    import pyspark
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
except ImportError:
    raise EpicastError("the pipeline is not installed: pip install 'epicast[pipeline]'") from None

Spark = SparkSession
"""What our jobs are given: they need not know more of Spark than its name."""

ATTEMPTS = 3  # of a task, before its stage fails
MEMORY_MB_MIN, MEMORY_MB_MAX = 1024, 8192
_LOCAL = re.compile(r"local\[(\*|\d+)\]")
_REMOTE = re.compile(r"(spark|sc)://([\w.-]+)(?::(\d+))?(/.*)?")
_PORTS = {"spark": 7077, "sc": 15002}
_QUERIES = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # names of runs may look like numbers
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
"""What our queries count on, wherever they run."""
_SMALL_TASKS = {
    "spark.python.daemon.module": "epicast.pipeline.daemon",
    "spark.python.unix.domain.socket.enabled": "true",  # over TCP, small answers wait for an acknowledgement
}
"""Halve what a small task costs. Only here: elsewhere the daemon starts before epicast has been sent."""
FORMS = "local[N], spark://host:port or sc://host:port"


@contextmanager
def session(master: str | None = None, *, ui: bool = False) -> Iterator[SparkSession]:
    spark = open_session(master, ui=ui)
    try:
        yield spark
    finally:
        spark.stop()


def open_session(master: str | None = None, *, ui: bool = False) -> SparkSession:
    """Ready to run our jobs: on a cluster, the executors have been sent epicast."""
    master = master or "local[*]"
    local, remote = _LOCAL.fullmatch(master), _REMOTE.fullmatch(master)
    if local is None and remote is None:
        raise EpicastError(f"--master: expected {FORMS}, got {master!r}")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # executors run the same Python, with the same packages
    if remote is not None:
        _require_spark(master, remote)
    try:
        if remote is not None and remote[1] == "sc":
            spark = _configured(SparkSession.builder.remote(master), _QUERIES).getOrCreate()
        else:
            spark = _classic(master, local, remote[2] if remote is not None else "", ui=ui)
        if remote is not None:
            ship(spark)
    except (PySparkException, Py4JError, RuntimeError, OSError) as error:
        raise EpicastError(f"cannot start Spark at {master}: {_reason(error)}") from None
    return spark


def _require_spark(master: str, remote: re.Match[str]) -> None:
    """Spark itself would try for minutes, whatever listens there."""
    host, port = remote[2], int(remote[3] or _PORTS[remote[1]])
    if remote[1] == "sc":
        spark_port.require_connect(master, host, port, tls="use_ssl=true" in master)
    else:
        spark_port.require_master(master, host, port)


def _classic(master: str, local: re.Match[str] | None, host: str, *, ui: bool) -> SparkSession:
    os.environ["JAVA_HOME"] = str(find_java().home)
    _forget_other_sparks()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if local is not None and local[1] != "*":
        cores = max(1, int(local[1]))
    settings = {
        "spark.ui.enabled": str(ui).lower(),
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": f"{_memory_mb()}m",
        "spark.sql.shuffle.partitions": str(2 * cores if local is not None else 16),
        **_QUERIES,
        "spark.python.worker.reuse": "true",
        "spark.task.maxFailures": str(ATTEMPTS),
        "spark.log.level": "ERROR",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_quiet_logs()}",
    }
    if local is not None:
        settings |= _SMALL_TASKS
    if local is not None or host in ("127.0.0.1", "localhost"):
        os.environ["SPARK_LOCAL_IP"] = settings["spark.driver.host"] = "127.0.0.1"
    builder = SparkSession.builder.master(f"local[{cores},{ATTEMPTS}]" if local is not None else master)
    with _java_hushed(), _interrupts_kept():
        return _configured(builder, settings).getOrCreate()


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Spark puts a handler of its own on Ctrl-C; whoever waits for a job of ours ends it in good order."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if handler is not None and current_thread() is main_thread():
            signal.signal(signal.SIGINT, handler)


def _configured(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    builder = builder.appName("epicast")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder


def _forget_other_sparks() -> None:
    """A Spark of another version cannot work with this Python package, and a master was asked for by name."""
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_API_MODE"):
        os.environ.pop(name, None)
    ours = Path(pyspark.__file__).parent
    if (ours / "jars").is_dir():
        os.environ["SPARK_HOME"] = str(ours)


@contextmanager
def _java_hushed() -> Iterator[None]:
    """Java and its launcher chat on stderr while they start, whatever their settings say. What they said is told if
    they fail. Java keeps the stderr that it was born with: later failures come as exceptions."""
    sys.stderr.flush()
    ours = os.dup(2)
    with TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        except (PySparkException, RuntimeError) as error:
            said.seek(0)
            lines = [line for line in said.read().decode(errors="replace").splitlines() if line.strip()]
            raise RuntimeError(
                f"{str(error).splitlines()[0]} ({lines[-1].strip() if lines else 'no word from Java'})"
            ) from None
        finally:
            os.dup2(ours, 2)
            os.close(ours)


def _memory_mb() -> int:
    """A quarter of the machine: tasks and the operating system need the rest."""
    machine_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return min(max(machine_mb // 4, MEMORY_MB_MIN), MEMORY_MB_MAX)


def _quiet_logs() -> Path:
    return Path(str(files("epicast.pipeline").joinpath("log4j2.properties")))


def _reason(error: BaseException) -> str:
    """The first line that tells something: what Java says comes after the call that failed."""
    first, *rest = str(error).splitlines() or [type(error).__name__]
    return rest[0].removeprefix(": ") if rest and rest[0].startswith(": ") else first


def ship(spark: SparkSession) -> None:
    """Send epicast to the executors, as they may run elsewhere. They play on the pure engine: same results.

    Executors fetch it when they need it, also those that replace a dead one: it must be there as long as we are."""
    folder = mkdtemp(prefix="epicast-ship-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = Path(folder) / "epicast.zip"
    _pack(archive)
    spark.addArtifacts(str(archive), pyfile=True)


def _pack(archive: Path) -> None:
    package = Path(str(files("epicast")))
    with ZipFile(archive, "w", ZIP_DEFLATED) as pack:
        for file in sorted(package.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and file.suffix not in (".so", ".c", ".pyd"):
                pack.write(file, Path("epicast") / file.relative_to(package))
