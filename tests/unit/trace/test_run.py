import errno
import json
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import epicast
from epicast.core.errors import EpicastError
from epicast.core.records import Level
from epicast.trace.run import RunFolder
from tests.unit.trace.rows import batch, some_names, some_rows
from tests.unit.trace.runs import ROWS, SCENARIO, TEXT, complete, fill, nodes, snapshot, start


def content(path: Path) -> Any:
    return json.loads((path / "run.json").read_text())


def edit(path: Path, **changes: Any) -> None:
    (path / "run.json").write_text(json.dumps(content(path) | changes))


def files(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


FINISHED = ["events/part-00000.parquet", "nodes.parquet", "run.json", "scenario.toml", "snapshots.parquet"]


def test_a_complete_run_has_its_five_parts(tmp_path: Path) -> None:
    complete(tmp_path / "deep" / "run")
    assert files(tmp_path / "deep" / "run") == FINISHED
    assert (tmp_path / "deep" / "run" / "scenario.toml").read_text() == TEXT


def test_run_json_says_all_that_is_needed_to_run_it_again(tmp_path: Path) -> None:
    complete(tmp_path)
    assert content(tmp_path) == {
        "format": "epicast-run",
        "format_version": 1,
        "status": "complete",
        "reason": "",
        "scenario": SCENARIO,
        "seed": 7,
        "level": "full",
        "engine": "pure",
        "command": ["epicast", "sim", "x.toml"],
        "epicast": epicast.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "rows": ROWS,
        "digest": "d1935",
        "counters": {"sent": 12},
        "promises": [],
    }


def test_run_json_says_what_the_stack_promises(tmp_path: Path) -> None:
    complete(tmp_path, promises=("integrity", "fifo"))
    assert RunFolder.open(tmp_path).info.promises == ["integrity", "fifo"]


def test_a_run_of_a_version_without_promises_is_readable_and_promises_nothing(tmp_path: Path) -> None:
    complete(tmp_path)
    old = content(tmp_path)
    del old["promises"]
    (tmp_path / "run.json").write_text(json.dumps(old))
    assert RunFolder.open(tmp_path).require_complete().info.promises == []


def test_opening_gives_the_same_as_writing(tmp_path: Path) -> None:
    written = complete(tmp_path)
    assert RunFolder.open(tmp_path).require_complete().info == written.info


def test_the_command_is_this_process_s_unless_given(tmp_path: Path) -> None:
    start(tmp_path, command=None).fail("enough")
    assert RunFolder.open(tmp_path).info.command == sys.argv


def test_a_run_in_which_nothing_happened_is_complete_too(tmp_path: Path) -> None:
    start(tmp_path, level=Level.OFF).finish({})
    assert files(tmp_path) == FINISHED
    assert RunFolder.open(tmp_path).require_complete().info.rows == 0


def test_while_it_runs_nothing_looks_like_a_table(tmp_path: Path) -> None:
    run = start(tmp_path)
    fill(run)
    assert content(tmp_path)["status"] == "running"
    assert not list(tmp_path.rglob("*.parquet"))
    with pytest.raises(EpicastError, match=r"is still running: wait for its end$"):
        RunFolder.open(tmp_path).require_complete()
    run.finish({})
    assert len(list(tmp_path.rglob("*.parquet"))) == 3


def test_a_failed_run_keeps_its_rows_and_says_why(tmp_path: Path) -> None:
    run = start(tmp_path)
    fill(run)
    run.fail("out of\nluck")
    assert files(tmp_path) == FINISHED
    opened = RunFolder.open(tmp_path)
    assert (opened.info.status, opened.info.reason, opened.info.rows) == ("incomplete", "out of luck", ROWS)
    with pytest.raises(EpicastError, match=r"is incomplete \(out of luck\): run it again$"):
        opened.require_complete()


def test_a_run_fails_when_its_block_is_left_without_a_result(tmp_path: Path) -> None:
    with start(tmp_path):
        pass
    assert RunFolder.open(tmp_path).info.reason == "it ended without a result"


@pytest.mark.parametrize(("error", "reason"), [(KeyboardInterrupt(), "interrupted"), (KeyError("x"), "KeyError: 'x'")])
def test_an_exception_fails_the_run(tmp_path: Path, error: BaseException, reason: str) -> None:
    def break_off() -> None:
        with start(tmp_path) as run:
            fill(run)
            raise error

    with pytest.raises(type(error)):
        break_off()
    info = RunFolder.open(tmp_path).info
    assert (info.status, info.reason, info.rows) == ("incomplete", reason, ROWS)


def test_a_run_that_is_finished_stays_so(tmp_path: Path) -> None:
    with start(tmp_path) as run:
        run.finish({})
        run.fail("too late")
    RunFolder.open(tmp_path).require_complete()


def test_counters_of_any_kind_become_json(tmp_path: Path) -> None:
    counters = {"n": np.int64(3), "mean": float("nan"), "by_kind": {Level.OFF: np.float32(0.5)}, "list": np.arange(2)}
    start(tmp_path, scenario={"peak": float("inf"), "where": Path("x")}).finish(counters)
    info = RunFolder.open(tmp_path).info
    assert info.counters == {"n": 3, "mean": None, "by_kind": {"0": 0.5}, "list": [0, 1]}
    assert info.scenario == {"peak": None, "where": "x"}


# Where a run may start


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(EpicastError, match=r"is not a run folder: it has no run.json; choose an empty folder$"):
        start(tmp_path, overwrite=True)
    assert files(tmp_path) == ["thesis.tex"]


def test_the_run_json_of_another_program_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"status": "complete"}')
    with pytest.raises(EpicastError, match=r"its run.json is of something else"):
        start(tmp_path, overwrite=True)
    assert content(tmp_path) == {"status": "complete"}


def test_a_complete_run_is_refused(tmp_path: Path) -> None:
    complete(tmp_path)
    with pytest.raises(EpicastError, match=r"holds a complete run: choose another folder, or overwrite it$"):
        start(tmp_path)
    RunFolder.open(tmp_path).require_complete()


def test_a_complete_run_may_be_overwritten_but_not_what_lies_beside_it(tmp_path: Path) -> None:
    complete(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "events" / "part-00007.parquet").write_text("old")
    (tmp_path / "events" / "part-00008.parquet.tmp").write_text("older")
    run = start(tmp_path, overwrite=True, seed=8)
    assert files(tmp_path) == ["notes.txt", "run.json", "scenario.toml"]
    run.finish({})
    assert files(tmp_path) == sorted([*FINISHED, "notes.txt"])
    assert RunFolder.open(tmp_path).require_complete().info.seed == 8


def test_a_run_that_never_came_to_its_end_is_replaced(tmp_path: Path) -> None:
    start(tmp_path).fail("enough")
    complete(tmp_path)
    RunFolder.open(tmp_path).require_complete()


def test_a_folder_abandoned_in_its_first_moment_is_taken(tmp_path: Path) -> None:
    (tmp_path / "run.json.tmp").write_text('{"for')
    complete(tmp_path)


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    first = start(tmp_path)
    with pytest.raises(EpicastError, match=r"is being written by another run: choose another folder$"):
        start(tmp_path, overwrite=True)
    first.finish({})
    start(tmp_path, overwrite=True).finish({})


def test_a_refused_run_lets_go_of_the_folder(tmp_path: Path) -> None:
    complete(tmp_path)
    for _ in range(2):
        with pytest.raises(EpicastError, match="complete run"):
            start(tmp_path)
    start(tmp_path, overwrite=True).finish({})


@pytest.mark.parametrize("below", ["", "run"])
def test_a_place_where_no_folder_can_be_is_one_line(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EpicastError, match=r"^cannot write a run in \S+: (File exists|Not a directory)$"):
        start(tmp_path / "file" / below)


# What a reader trusts


def test_a_folder_without_run_json_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(EpicastError, match=r"is not a run folder: it has no run.json$"):
        RunFolder.open(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', "\udcff"])
def test_a_run_json_that_is_not_one_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(EpicastError, match=r"is damaged|is of something else"):
        RunFolder.open(tmp_path)


@pytest.mark.parametrize(
    "change",
    [{"rows": "3"}, {"scenario": None}, {"status": "fine"}, {"level": "some"}, {"command": "x"}, {"promises": "x"}],
)
def test_a_field_of_the_wrong_type_is_damage(tmp_path: Path, change: dict[str, Any]) -> None:
    complete(tmp_path)
    edit(tmp_path, **change)
    with pytest.raises(EpicastError, match="is damaged"):
        RunFolder.open(tmp_path)


def test_a_field_that_later_versions_add_is_passed_over(tmp_path: Path) -> None:
    complete(tmp_path)
    edit(tmp_path, mood="good")
    RunFolder.open(tmp_path).require_complete()


def test_a_later_format_asks_for_a_later_epicast(tmp_path: Path) -> None:
    complete(tmp_path)
    edit(tmp_path, format_version=2)
    with pytest.raises(EpicastError, match="has format 2, this version reads 1"):
        RunFolder.open(tmp_path)


def test_rows_that_went_missing_are_noticed(tmp_path: Path) -> None:
    complete(tmp_path)
    (tmp_path / "events" / "part-00000.parquet").unlink()
    with pytest.raises(EpicastError, match=f"holds 0 of {ROWS} rows"):
        RunFolder.open(tmp_path).require_complete()


@pytest.mark.parametrize("name", ["events/part-00000.parquet", "snapshots.parquet", "nodes.parquet"])
def test_a_table_cut_short_is_noticed(tmp_path: Path, name: str) -> None:
    complete(tmp_path)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(EpicastError, match="has lost a file or holds a damaged one"):
        RunFolder.open(tmp_path).require_complete()


# A full disk

full_disk = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")


@full_disk
@pytest.mark.parametrize("name", ["events/part-00000.parquet", "snapshots.parquet", "nodes.parquet"])
def test_a_table_that_does_not_fit_leaves_an_incomplete_run(tmp_path: Path, name: str) -> None:
    def run_out_of_space() -> None:
        with start(tmp_path) as run:
            (tmp_path / f"{name}.tmp").symlink_to("/dev/full")
            run.events(some_names()).write(batch(some_rows(ROWS)))
            run.write_snapshot(snapshot(5))
            run.write_nodes(nodes())
            run.finish({})

    with pytest.raises(EpicastError, match=r"No space left on device$"):
        run_out_of_space()
    info = RunFolder.open(tmp_path).info
    assert info.status == "incomplete"
    assert "No space left on device" in info.reason
    assert name not in files(tmp_path)
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_run_that_lost_a_snapshot_cannot_be_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = start(tmp_path)
    run.write_snapshot(snapshot(5))
    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write", full)
        with pytest.raises(EpicastError, match=r"No space left on device$"):
            run.write_snapshot(snapshot(6))
    run.write_nodes(nodes())
    with pytest.raises(EpicastError, match=r"rows of snapshots.parquet were lost$"):
        run.finish({})
    assert RunFolder.open(tmp_path).info.status == "incomplete"
    assert files(tmp_path) == [name for name in FINISHED if name != "snapshots.parquet"]


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "no room")


@full_disk
def test_a_run_that_cannot_even_say_so_is_not_complete(tmp_path: Path) -> None:
    run = start(tmp_path)
    (tmp_path / "run.json.tmp").symlink_to("/dev/full")
    with pytest.raises(EpicastError, match=r"No space left on device$"):
        run.finish({})
    with pytest.raises(EpicastError, match="was killed: run it again"):
        RunFolder.open(tmp_path).require_complete()
