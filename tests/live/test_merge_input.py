"""Journals that are cut, damaged, missing or of different runs: a run that says what it lacks, or one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epicast.cli.main import run as epicast
from epicast.core.errors import EpicastError
from epicast.trace.journal_format import NAMES_FILE, ROWS_FILE, SLOT_BYTES, WHO_FILE
from epicast.trace.merge import merge
from epicast.trace.run import RunFolder
from tests.live.journals import A, B, Cluster, S, merged, start

# What is missing


def two(tmp_path: Path) -> Path:
    cluster = Cluster(tmp_path, A, B)
    cluster.publish(A, 1 * S)
    cluster.deliver(B, 2 * S, A)
    return cluster.end(3 * S, 3 * S).folder


def test_rows_for_which_there_was_no_room_make_the_run_incomplete(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, A, B, rows_max=2)
    cluster.publish(A, 1 * S)
    run = merged(cluster.end(3 * S, 3 * S).folder)
    assert (run.info.status, run.info.reason) == ("incomplete", f"{A}: there was no room for 1 rows")
    assert RunFolder.open(run.path).info.rows == 3


def cut(file: str, keep: Callable[[int], int]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / A.replace("/", "_") / file
        path.write_bytes(path.read_bytes()[: keep(path.stat().st_size)])

    return damage


def test_a_journal_that_was_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    folder = two(tmp_path)
    cut(ROWS_FILE, lambda size: size - SLOT_BYTES // 2)(folder)
    run = merged(folder)
    assert (run.info.status, run.info.reason) == ("incomplete", f"{A}: 2 of 3 rows are left")


def test_the_journal_of_a_killed_process_that_was_cut_short_is_noticed(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, A)
    shutil.copytree(tmp_path, tmp_path.parent / "copy")  # as a process that is killed now would leave it
    cut(ROWS_FILE, lambda size: size // 3)(tmp_path.parent / "copy")
    assert merged(tmp_path.parent / "copy").info.reason == f"{A}: its file was cut after 1 rows"
    cluster.end(S)


def test_a_process_whose_messages_arrived_but_whose_journal_is_missing_is_named(tmp_path: Path) -> None:
    folder = two(tmp_path)
    shutil.rmtree(folder / A.replace("/", "_"))
    run = merged(folder)
    assert (run.info.status, run.info.reason) == ("incomplete", f"the journal of {A} is missing")


# Bad input, and the command line


def scribble(file: str, at: int, what: bytes) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / A.replace("/", "_") / file
        content = bytearray(path.read_bytes())
        content[at : at + len(what)] = what
        path.write_bytes(content)

    return damage


def rewrite(key: str, value: Any) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / A.replace("/", "_") / WHO_FILE
        path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))

    return damage


def twin(folder: Path) -> None:
    shutil.copytree(folder / A.replace("/", "_"), folder / "z")


BAD: dict[str, tuple[Callable[[Path], None], str]] = {
    "another cluster": (rewrite("cluster", "other"), "are of different runs: cluster 'other' and 'epicast'"),
    "another stack": (rewrite("stack", "flood"), "are of different runs: stack 'flood' and 'brisa'"),
    "other promises": (rewrite("promises", []), "are of different runs: promises none and agreement, integrity"),
    "the same process twice": (twin, f"are both of {A}: leave one of them out"),
    "a later format": (rewrite("format_version", 2), "has journal format 2, this version reads 1"),
    "a later format of rows": (scribble(ROWS_FILE, 8, b"\x07"), "has journal format 7, this version reads 1"),
    "something else": (rewrite("format", "x"), f"its {WHO_FILE} is of something else"),
    "another number": (rewrite("number", 5), "is damaged: number 5"),
    "a wrong type": (rewrite("promises", 5), "is damaged: Expected `array`"),
    "no JSON": (cut(WHO_FILE, lambda size: size // 2), "is damaged: leave this journal out"),
    "no head": (cut(ROWS_FILE, lambda _: 10), f"is damaged: {ROWS_FILE} has no head"),
    "a head of nonsense": (scribble(ROWS_FILE, 12, b"\x05"), "makes no sense"),
    "a kind that does not exist": (scribble(ROWS_FILE, 2 * SLOT_BYTES - 1, b"\xfe"), "is damaged at row 0"),
    "time that goes back": (scribble(ROWS_FILE, 3 * SLOT_BYTES, b"\x00" * 8), "is damaged at row 2"),
    "texts that are lost": (cut(NAMES_FILE, lambda _: 3), "is damaged at row 1"),
    "files that are lost": (lambda folder: (folder / A.replace("/", "_") / NAMES_FILE).unlink(), "has lost a file"),
}


@pytest.mark.parametrize("case", BAD)
def test_journals_that_make_no_run_are_one_line_and_exit_code_2(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, said = BAD[case]
    folder = two(tmp_path)
    damage(folder)
    assert epicast(["check", str(folder), "-q"]) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""


def test_an_incomplete_run_is_one_line_and_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = Cluster(tmp_path, A, rows_max=1)
    cluster.publish(A, S)
    cluster.end(2 * S)
    assert epicast(["check", str(tmp_path), "-q"]) == 2
    assert f"merged is incomplete ({A}: there was no room for 2 rows)" in capsys.readouterr().err


def test_a_node_that_is_still_running_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = Cluster(tmp_path, A)
    assert epicast(["check", str(tmp_path), "-q"]) == 2
    assert f"is still being written by {A}: stop the node first" in capsys.readouterr().err
    cluster.end(S)


def test_without_journals_there_is_nothing_to_merge(tmp_path: Path) -> None:
    with pytest.raises(EpicastError, match="there are no journals to merge"):
        merge([], tmp_path / "out", command=[])
    with pytest.raises(EpicastError, match=r"is not a journal: it has no journal\.json$"):
        merge([tmp_path], tmp_path / "out", command=[])
    start(tmp_path / "a", started_us=None).close()
    with pytest.raises(EpicastError, match="is empty: there is nothing to merge"):
        merged(tmp_path)


def test_checking_a_folder_of_journals_merges_them_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = two(tmp_path)
    for _ in range(2):  # a second time it is merged anew
        assert epicast(["check", str(folder), "--json"]) == 0
        told = capsys.readouterr()
        assert told.err == f"epicast: 2 journals merged into {folder / 'merged'}; 2 processes stayed to the end\n"
        assert json.loads(told.out)["runs"] == 1
    assert RunFolder.open(folder / "merged").require_complete().info.rows > 0
