"""Who is up, and who had joined when; and the bits in which the collector keeps pairs."""

from __future__ import annotations

from random import Random

import numpy as np

from epicast.sim.bit_table import BitTable, pack, positions
from epicast.sim.population import Population


def test_a_process_is_up_until_it_leaves_or_crashes() -> None:
    population = Population()
    for node, time_us in enumerate([0, 10, 10, 30]):
        population.joins(node, time_us)
    assert population.leaves(1)
    assert not population.leaves(1)
    population.ends(1, 40, "leave")
    population.ends(2, 50, "crash")
    assert population.up == [0, 3]
    assert population.ended_us == [-1, 40, 50, -1]
    assert population.how == ["", "leave", "crash", ""]
    assert population.up_mask().tolist() == [True, False, False, True]
    assert population.joined_by(np.array([0, 9, 10, 100])).tolist() == [1, 1, 3, 4]


def test_a_bit_table_holds_what_was_set_while_it_grows() -> None:
    rng, table, expected = Random(1), BitTable(), set[tuple[int, int]]()
    for size in (3, 50, 400):
        pairs = [(rng.randrange(size), rng.randrange(size)) for _ in range(100)]
        expected.update(pairs)
        rows, columns = np.array(pairs, np.int64).T
        table.set(rows, columns)
        table.set(rows, columns)
    held = {(row, column) for row in range(400) for column in positions(table.row(row, 50)).tolist()}
    assert held == expected
    assert table.count() == len(expected)


def test_bits_are_numbered_from_the_lowest() -> None:
    mask = np.zeros(11, np.bool_)
    mask[[0, 3, 10]] = True
    assert pack(mask).tolist() == [0b1001, 0b100]
    assert positions(pack(mask)).tolist() == [0, 3, 10]
