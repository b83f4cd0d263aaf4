"""Words that no file of the project holds: they would tie it to one machine or one package registry."""

import re
from pathlib import Path

import pytest

from tests.tidy.source import SRC, project_files, shown

# Put together here, so that this file does not hold the words that it looks for.
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pypi", "python", "org"),
        ("pythonhosted", "org"),
        ("anaconda", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("maven", "org"),
        ("maven", "apache", "org"),
        ("crates", "io"),
        ("docker", "io"),
        ("ghcr", "io"),
        ("quay", "io"),
    )
]
REGISTRY = re.compile(r"(?<![\w-])(?:" + "|".join(map(re.escape, REGISTRIES)) + r")(?!\w)|--(?:extra-)?index-" + "url")
FOLDERS = ("work", "root", "tmp", "home", "Users", "opt", "mnt", "srv", "private", "var")
MACHINE_PATH = re.compile(r"(?<![\w.~$})*>-])/(?:" + "|".join(FOLDERS) + r")/")
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX)\b")


def lines_with(pattern: re.Pattern[str], files: list[Path]) -> list[str]:
    return [
        f"{shown(file)}:{number}: {line.strip()[:120]}"
        for file in files
        for number, line in enumerate(file.read_bytes().decode("utf-8", "replace").splitlines(), 1)
        if pattern.search(line)
    ]


@pytest.fixture(scope="module")
def files() -> list[Path]:
    found = project_files()
    if not found:
        pytest.skip("not a git work tree: cannot tell the project's files from others")
    return found


def test_no_file_names_a_package_registry(files: list[Path]) -> None:
    found = lines_with(REGISTRY, files)
    assert not found, "\n" + "\n".join(found)


def test_no_file_holds_a_path_of_one_machine(files: list[Path]) -> None:
    found = lines_with(MACHINE_PATH, files)
    assert not found, "\n" + "\n".join(found)


def test_the_source_has_no_unfinished_business() -> None:
    found = lines_with(UNFINISHED, sorted([*SRC.rglob("*.py"), *SRC.rglob("*.pyx"), *SRC.rglob("*.toml")]))
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("registry", REGISTRIES)
def test_a_registry_is_recognised(registry: str) -> None:
    assert REGISTRY.search(f"get https://{registry}/simple")
    assert REGISTRY.search(f"get files.{registry}")
    assert not REGISTRY.search(f"my{registry}")


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("before", ["", " ", '"', "'", "=", "(", "file:", "file://", "`"])
def test_a_path_of_one_machine_is_recognised(before: str, folder: str) -> None:
    assert MACHINE_PATH.search(f"{before}/{folder}/x")


@pytest.mark.parametrize(
    "text", ["src{}x", "https://x.y{}x", "~{}x", "$HOME{}x", "${{HOME}}{}x", "..{}x", "$(dirname){}x"]
)
def test_other_paths_are_not_mistaken_for_one(text: str) -> None:
    assert not MACHINE_PATH.search(text.format("/tmp" + "/"))
