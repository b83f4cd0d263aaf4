import numpy as np
import pytest

from epicast.trace.batch import DTYPES, Batch, Names
from tests.unit.trace.rows import batch, some_rows


def test_a_text_keeps_its_code() -> None:
    names = Names()
    assert [names.code(text) for text in ("", "b", "a", "b", "")] == [0, 1, 2, 1, 0]
    assert [names[code] for code in range(len(names))] == ["", "b", "a"]


def test_columns_come_in_the_order_of_their_types() -> None:
    assert [name for name, _ in batch(some_rows(3)).columns()] == list(DTYPES)


def test_a_batch_without_rows_is_one() -> None:
    assert batch([]).rows == 0


@pytest.mark.parametrize("name", DTYPES)
def test_a_column_of_another_type_is_refused(name: str) -> None:
    columns = dict(batch(some_rows(3)).columns())
    with pytest.raises(AssertionError, match=name):
        Batch(**columns | {name: columns[name].astype(np.float64)})


def test_columns_of_different_lengths_are_refused() -> None:
    columns = dict(batch(some_rows(3)).columns())
    with pytest.raises(AssertionError, match="seq"):
        Batch(**columns | {"seq": columns["seq"][:2]})
