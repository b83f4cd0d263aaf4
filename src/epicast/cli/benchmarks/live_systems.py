"""The systems that are compared, whether they are here, and how to get those that are not."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from epicast.cli.benchmarks.live_job import SIGNED, Task

SERVER_FOLDERS = ("/usr/sbin", "/usr/local/sbin")  # not on everyone's PATH, but servers are there


class Publisher(Protocol):
    @property
    def address(self) -> str:
        """Whom subscribers are to ask: of the publisher or of the server."""

    async def publish(self, payloads: Sequence[bytes]) -> None:
        """Hands them over as the system likes it best, waiting as it asks for."""


Take = Callable[[bytes | bytearray | memoryview], None]


class Adapter(Protocol):
    """The module of a system."""

    PACED: bool  # has no flow control from end to end: the benchmark bounds what is on its way

    def publisher(self, task: Task) -> AbstractAsyncContextManager[Publisher]: ...

    def subscriber(self, task: Task, take: Take) -> AbstractAsyncContextManager[None]:
        """Calls `take` with each payload, until it is left."""

    def server_arguments(self, folder: Path, port: int) -> list[str]:
        """Of its program; the module of a system without one has no such function."""


class System(NamedTuple):
    name: str
    module: str  # of this package: its adapter
    packages: dict[str, str] = {}  # that have to be installed, and what is imported from each
    server: str | None = None  # a program
    extra: str = "bench"  # of epicast, that brings the packages

    def adapter(self) -> Adapter:
        return cast(Adapter, import_module(f"epicast.cli.benchmarks.{self.module}"))

    @property
    def program(self) -> str | None:
        path = os.pathsep.join((os.environ.get("PATH", os.defpath), *SERVER_FOLDERS))
        return None if self.server is None else shutil.which(self.server, path=path)

    def missing(self) -> str | None:
        """Why it cannot be measured, and what to do about it."""
        wanted = []
        if self.server is not None and self.program is None:
            wanted.append(f"the program {self.server} was not found: apt-get install {self.server}")
        if absent := [package for package, module in self.packages.items() if not _importable(module)]:
            wanted.append(f'{" and ".join(absent)} not installed: pip install "epicast[{self.extra}]"')
        return "; ".join(wanted) or None

    def versions(self) -> dict[str, str]:
        found = {} if self.server is None or self.program is None else {self.server: _version_of(self.program)}
        return found | versions_of(*self.packages)


OURS = "epicast"
BY_TCP = "epicast-tcp"
BY_TLS = "epicast-tls"

SYSTEMS = {
    system.name: system
    for system in (
        System(OURS, "live_epicast"),
        System(BY_TCP, "live_epicast"),
        System(BY_TLS, "live_epicast", {"cryptography": "cryptography"}, extra="live"),
        System(SIGNED, "live_epicast", {"cryptography": "cryptography"}, extra="live"),
        System("nats", "live_nats", {"nats-py": "nats"}, "nats-server"),
        System("redis", "live_redis", {"redis": "redis", "hiredis": "hiredis"}, "redis-server"),
        System("mosquitto", "live_mosquitto", {"paho-mqtt": "paho.mqtt.client"}, "mosquitto"),
        System("zenoh", "live_zenoh", {"eclipse-zenoh": "zenoh"}),
    )
}
WITH_KEYS = (BY_TLS, SIGNED)
VARIANTS = (BY_TCP, *WITH_KEYS)  # measured beside the plain one, for what they cost
OTHERS = ("nats", "redis", "mosquitto", "zenoh")


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a parent is not there
        return False


def versions_of(*packages: str) -> dict[str, str]:
    """Of those that are installed."""
    found = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def _version_of(program: str) -> str:
    """The first thing that looks like one in what the program says about itself."""
    for option in ("--version", "-h"):
        said = subprocess.run([program, option], capture_output=True, text=True, timeout=10, check=False).stdout
        for word in said.split():
            number = word.removeprefix("v=").removeprefix("v")
            if number[:1].isdigit() and "." in number:
                return number
    return "unknown"
