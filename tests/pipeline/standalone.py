"""A real standalone cluster of Spark on this machine, from the installed package alone: a master and workers of one
core, each a process of its own. Ports are chosen by the system; the master tells which, and who is there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from epicast.pipeline.java import find_java
from tests.support.one_spark import CONF

SPARK_HOME = Path(pyspark.__file__).parent
START_WITHIN_S = 120
_DEPLOY = "org.apache.spark.deploy"
_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"


@dataclass(frozen=True)
class Process:
    """One daemon of Spark and all that it starts: they share a process group, which is ended as a whole."""

    handle: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        try:
            os.killpg(self.handle.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        finally:
            self.handle.wait()

    def tells(self, pattern: str, times: int = 1) -> list[str]:
        """Wait until its log has said this so often, and give what the pattern's group caught."""
        deadline = time.monotonic() + START_WITHIN_S
        while True:
            said = self.log.read_text(errors="replace")
            found = re.findall(pattern, said)
            if len(found) >= times:
                return found
            if self.handle.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"waited for {pattern!r} in vain; {self.log.name} says:\n{said[-3000:]}")
            time.sleep(0.05)


@dataclass(frozen=True)
class Cluster:
    master: str  # its URL
    workers: tuple[Process, ...]


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """Up once every worker has registered."""
    with ExitStack() as stack:
        options = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = _started(stack, folder / "master", "spark-class", [f"{_DEPLOY}.master.Master", *options])
        url = master.tells(r"Starting Spark master at (spark://\S+)")[0]
        resources = ["--cores", "1", "--memory", "1g"]
        command = [f"{_DEPLOY}.worker.Worker", *options, *resources, "--work-dir"]
        places = [folder / f"worker-{number}" for number in range(workers)]
        started = [_started(stack, place, "spark-class", [*command, str(place / "apps"), url]) for place in places]
        master.tells(r"Registering worker (\S+)", workers)
        yield Cluster(url, tuple(started))


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Spark Connect server with two cores of its own; gives its URL."""
    with ExitStack() as stack:
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
        }
        options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        command = ["--class", _CONNECT, "--master", "local[2]", *options]
        server = _started(stack, folder / "connect", "spark-submit", command)
        # The address may come as a path or a name before the number: the last number of the line is the port.
        port = server.tells(r"Spark Connect server started at: \S*?:(\d+)")[0]
        yield f"sc://127.0.0.1:{port}"


def _started(stack: ExitStack, folder: Path, program: str, arguments: list[str]) -> Process:
    folder.mkdir(parents=True)
    log = folder / "log.txt"
    with log.open("wb") as out:
        handle = subprocess.Popen(
            [SPARK_HOME / "bin" / program, *arguments],
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    process = Process(handle, log)
    stack.callback(process.kill)
    return process


def _environment(folder: Path) -> dict[str, str]:
    """Nothing of another Spark on this machine, and nothing left behind outside of the folder."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    return kept | {
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(CONF),
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
    }
