"""The kernel of single tasks."""

from pathlib import Path

from epicast.pipeline.duck import DuckKernel
from tests.pipeline.histories import History

ROWS = 3_000_000


def test_what_does_not_fit_into_memory_is_put_aside_where_no_folder_was_before(tmp_path: Path) -> None:
    aside = tmp_path / "scratch" / "run"
    with DuckKernel(History(2).save(tmp_path / "run"), memory_mb=40, spill=aside) as kernel:
        kernel.define("many", f"SELECT i, hash(i) AS h FROM range({ROWS}) AS numbers(i)")
        assert list(aside.iterdir()), "it all fitted: nothing is tested"
        (row,) = kernel.query("SELECT count(*) AS rows, count(DISTINCT i) AS different FROM many").to_pylist()
    assert row == {"rows": ROWS, "different": ROWS}
