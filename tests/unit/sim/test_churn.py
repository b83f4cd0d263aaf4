"""The churn script language, and what the driver makes of it."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from random import Random
from statistics import fmean, median

import pytest

from epicast.core.errors import ConfigError
from epicast.sim.churn import Action, ChurnDriver, parse_churn
from epicast.sim.churn_script import (
    Amount,
    Change,
    ChurnScript,
    ConstChurn,
    Replacement,
    Session,
    Stop,
    Trace,
    read_trace,
)
from tests.unit.sim.small_world import SECOND, Happening, count, population, run_churn

BRISA = """
from 1s to 512 s join 512
at 1000s set replacement ratio to 100%   # the default
FROM 1000s TO 1600s CONST CHURN 3% EACH 60s
at 1600s stop
"""


def share(percent: int) -> Amount:
    return Amount(Fraction(percent, 100), is_share=True)


def times_s(happenings: list[Happening]) -> list[float]:
    return [happening.time_us / SECOND for happening in happenings]


# The language


def test_the_script_of_the_brisa_evaluation_is_understood() -> None:
    assert parse_churn(BRISA) == ChurnScript(
        (
            Change(SECOND, 512 * SECOND, "join", Amount(Fraction(512))),
            Replacement(1000 * SECOND, Fraction(1)),
            ConstChurn(1000 * SECOND, 1600 * SECOND, share(3), 60 * SECOND),
            Stop(1600 * SECOND),
        )
    )


def test_statements_may_share_a_line() -> None:
    script = parse_churn("at 10s join 5; at 30s leave 3;;at 1.5min crash 10 %  # done")
    assert script.statements == (
        Change(10 * SECOND, 10 * SECOND, "join", Amount(Fraction(5))),
        Change(30 * SECOND, 30 * SECOND, "leave", Amount(Fraction(3))),
        Change(90 * SECOND, 90 * SECOND, "crash", share(10)),
    )


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("const churn 3% each 60s", ConstChurn(None, None, share(3), 60 * SECOND)),
        ("const churn 5 each 60s leave", ConstChurn(None, None, Amount(Fraction(5)), 60 * SECOND, "leave")),
        ("session exponential 300s", Session("exponential", 300 * SECOND)),
        ("session weibull 0.5 300s", Session("weibull", 300 * SECOND, 0.5)),
        ("session lognormal 300s 1.2 leave", Session("lognormal", 300 * SECOND, 1.2, "leave")),
        ("session pareto 1.5 60s", Session("pareto", 60 * SECOND, 1.5)),
        ("trace data/My Churn.csv", Trace("data/My Churn.csv")),
    ],
)
def test_a_statement_reads_and_prints_the_same(text: str, statement: object) -> None:
    assert parse_churn(text).statements == (statement,)
    assert str(parse_churn(text)) == text


def test_a_script_prints_itself() -> None:
    script = parse_churn(BRISA)
    assert parse_churn(str(script)) == script
    assert str(script).splitlines()[2] == "from 1000s to 1600s const churn 3% each 60s"


def test_an_empty_script_does_nothing() -> None:
    assert parse_churn(" \n# nothing\n;") == ChurnScript()
    assert run_churn("", nodes=5) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("at 5s jion 3", "line 1: cannot read 'at 5s jion 3'; write at TIME join|leave|crash AMOUNT | at TIME set"),
        ("# one\n\nat 5 join 3", "line 3: cannot read 'at 5 join 3'"),
        ("at 5s join 3; at 6s stop now", "line 1: cannot read 'at 6s stop now'"),
        ("explode", "cannot read 'explode'; write at TIME join|leave|crash AMOUNT | "),
        ("at 5s join 1.5", "line 1: cannot read"),
        ("at 5s join -3", "line 1: cannot read"),
        ("at 5s crash 101%", "line 1: expected a percentage from 0% to 100%, got 101%"),
        ("at 5s set replacement ratio to 150%", "expected a percentage from 0% to 100%, got 150%"),
        ("at 5s join 99999999", "expected a count of at most 10000000"),
        ("from 5s to 5s join 3", "expected a window that ends after it starts, got 5s to 5s"),
        ("from 9s to 5s const churn 3% each 1s", "expected a window that ends after it starts"),
        ("const churn 3% each 0s", "expected an interval of at least 1ms, got 0s"),
        ("at 99999999h stop", "expected a time of at most 366 days"),
        ("session weibull 0 5s", "expected a time above 0 and a number from 0.1 to 10"),
        ("session exponential 0s", "expected a time above 0"),
        ("session gamma 5s", "write session exponential TIME [leave] | session weibull NUMBER TIME [leave]"),
        ("at 5s stop\nat 5s join 3", "line 2: expected nothing after the stop, got 'at 5s join 3'"),
        ("at 9s crash 1\nat 5s stop", "line 1: expected nothing after the stop"),
        ("from 1s to 6s join 3\nat 5s stop", "line 1: expected nothing after the stop"),
        ("at 7s set replacement ratio to 5%\nat 5s stop", "line 1: expected nothing after the stop"),
        ("from 5s to 9s const churn 1% each 1s\nat 5s stop", "line 1: expected nothing after the stop"),
        ("at 5s stop\nat 6s stop", "line 2: expected one stop, line 1 has it"),
        ("session exponential 1s\nsession exponential 2s", "line 2: expected one session, line 1 has it"),
        ("at 1s join 1;" * 10_001, "churn: expected at most 10000 statements"),
    ],
)
def test_what_cannot_be_read_is_one_line_that_says_where_and_what_is_accepted(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_churn(text)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


# Joins and failures at given times


def test_joins_are_spread_evenly_from_the_start_of_the_window() -> None:
    assert times_s(run_churn("from 10s to 20s join 4")) == [10, 12.5, 15, 17.5]


def test_a_population_grows_by_about_one_a_second() -> None:
    happenings = run_churn("from 1s to 512s join 512")
    gaps = [later - earlier for earlier, later in zip(times_s(happenings), times_s(happenings)[1:], strict=False)]
    assert len(happenings) == 512
    assert all(gap == pytest.approx(511 / 512, abs=2e-6) for gap in gaps)


def test_at_does_all_at_once() -> None:
    happenings = run_churn("at 10s join 5; at 30s leave 3")
    assert Counter((happening.time_us // SECOND, happening.kind) for happening in happenings) == {
        (10, "join"): 5,
        (30, "leave"): 3,
    }


@pytest.mark.parametrize(("nodes", "victims"), [(100, 10), (16, 2), (14, 1), (4, 0), (0, 0)])
def test_a_percentage_counts_the_population_at_that_moment(nodes: int, victims: int) -> None:
    assert count(run_churn("at 30s crash 10%", nodes), "crash") == victims


def test_percentages_at_one_instant_follow_each_other() -> None:
    happenings = run_churn("at 1s join 10; at 1s crash 50%; at 1s join 10%", nodes=10)
    # The newcomers count in the population, and are beyond reach until it is shown again.
    assert [count(happenings, kind) for kind in ("join", "crash")] == [11, 10]


def test_a_spread_percentage_is_fixed_when_its_window_opens() -> None:
    happenings = run_churn("from 10s to 20s crash 50%", nodes=20)
    assert times_s(happenings) == [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]


def test_more_failures_than_processes_take_all_but_the_protected() -> None:
    happenings = run_churn("at 5s crash 1000", nodes=50, protected={3, 4})
    assert sorted(happening.node for happening in happenings) == sorted(set(range(50)) - {3, 4})


def test_victims_are_drawn_uniformly() -> None:
    hits = Counter(
        happening.node
        for seed in range(2000)
        for happening in run_churn("at 1s crash 3", nodes=12, seed=seed, protected={0, 1})
    )
    assert set(hits) == set(range(2, 12))
    assert all(abs(hits[node] - 600) < 5 * math.sqrt(600) for node in hits)


def test_victims_are_drawn_uniformly_when_nearly_all_are_protected() -> None:
    protected = set(range(90))
    hits = Counter(
        run_churn("at 1s crash 1", nodes=100, seed=seed, protected=protected)[0].node for seed in range(2000)
    )
    assert len(hits) == 10
    assert all(abs(hits[node] - 200) < 5 * math.sqrt(200) for node in hits)


# Constant churn


def test_constant_churn_replaces_what_fails() -> None:
    happenings = run_churn(BRISA)
    during = [happening for happening in happenings if happening.time_us >= 1000 * SECOND]
    assert count(during, "crash") == count(during, "join") == 153  # 3% of 512, ten times, is 153.6
    assert population(happenings) == 512
    assert max(times_s(during)) < 1600


def test_fractions_of_a_process_add_up() -> None:
    happenings = run_churn("from 0s to 6000s const churn 3% each 60s", nodes=16)
    assert count(happenings, "crash") == count(happenings, "join") == 48  # 0.48 a step, a hundred steps


def test_failures_and_joins_fall_anywhere_in_the_interval() -> None:
    happenings = run_churn("from 0s to 60s const churn 50% each 60s", nodes=2000)
    for kind in ("crash", "join"):
        instants = [happening.time_us / SECOND for happening in happenings if happening.kind == kind]
        assert len(set(instants)) > 990
        assert fmean(instants) == pytest.approx(30, abs=2)
        assert max(instants) < 60


def test_a_shorter_last_interval_owes_less() -> None:
    assert count(run_churn("from 0s to 90s const churn 10% each 60s", nodes=100), "crash") == 15


def test_churn_without_a_window_lasts_as_long_as_the_workload() -> None:
    happenings = run_churn("const churn 10% each 10s leave", nodes=100, start_s=100, end_s=200)
    assert count(happenings, "leave") == 100
    assert min(times_s(happenings)) >= 100
    assert max(times_s(happenings)) < 200


def test_stop_ends_constant_churn() -> None:
    for script in (
        "const churn 10% each 10s; at 150s stop",
        "from 100s to 900s const churn 10% each 10s; at 150s stop",
    ):
        happenings = run_churn(script, nodes=100, start_s=100, end_s=200)
        assert count(happenings, "crash") == 50
        assert max(times_s(happenings)) < 150


def test_the_replacement_ratio_sets_the_joins_and_carries_its_fractions() -> None:
    script = "at 0s set replacement ratio to 30%; from 0s to 100s const churn 1 each 10s"
    happenings = run_churn(script, nodes=100)
    assert (count(happenings, "crash"), count(happenings, "join")) == (10, 3)


def test_a_ratio_set_at_the_instant_of_a_step_holds_for_it_wherever_its_line_stands() -> None:
    ratios = "at 50s set replacement ratio to 0%; at 100s set replacement ratio to 100%"
    script = f"from 50s to 150s const churn 5 each 50s; {ratios}"
    happenings = run_churn(script, nodes=100)
    assert (count(happenings, "crash"), count(happenings, "join")) == (10, 5)
    assert all(happening.time_us >= 100 * SECOND for happening in happenings if happening.kind == "join")


def test_nothing_joins_for_failures_that_protection_prevents() -> None:
    happenings = run_churn("const churn 100% each 10s", nodes=10, protected=set(range(8)), end_s=10)
    assert (count(happenings, "crash"), count(happenings, "join")) == (2, 2)


# Sessions


@pytest.mark.parametrize(
    ("text", "expected_median_s"),
    [
        ("exponential 300s", 300 * math.log(2)),
        ("weibull 0.5 300s", 300 * math.log(2) ** 2),
        ("lognormal 300s 1.2", 300),
        ("pareto 1.5 60s", 60 * 2 ** (1 / 1.5)),
    ],
)
def test_session_times_follow_their_law(text: str, expected_median_s: float) -> None:
    (session,) = parse_churn(f"session {text}").statements
    assert isinstance(session, Session)
    rng = Random(1)
    draws = [session.draw_us(rng) / SECOND for _ in range(20_000)]
    assert median(draws) == pytest.approx(expected_median_s, rel=0.04)
    assert min(draws) > 0


def test_sessions_keep_the_population_and_replace_at_once() -> None:
    happenings = run_churn("session exponential 100s", nodes=50, end_s=1000)
    assert population(happenings, 50) == 50
    assert count(happenings, "crash") == pytest.approx(500, rel=0.15)
    assert all(gone.time_us == came.time_us for gone, came in zip(happenings[::2], happenings[1::2], strict=True))


def test_sessions_count_from_the_start_of_the_workload_and_end_with_it() -> None:
    happenings = run_churn("session pareto 2 10s leave", nodes=40, start_s=100, end_s=200)
    assert min(times_s(happenings)) >= 110
    assert max(times_s(happenings)) < 200
    assert count(happenings, "crash") == 0


def test_sessions_obey_the_ratio_the_stop_and_the_protection() -> None:
    script = "session exponential 10s; at 0s set replacement ratio to 0%; at 500s stop"
    happenings = run_churn(script, nodes=40, protected={5})
    assert count(happenings, "join") == 0
    assert population(happenings, 40) == 1
    assert max(times_s(happenings)) < 500


def test_a_session_that_a_crash_cut_short_does_not_end_twice() -> None:
    happenings = run_churn("session exponential 50s; at 10s crash 100%; at 0s set replacement ratio to 0%", nodes=30)
    assert len(happenings) == len({happening.node for happening in happenings}) == 30


# Traces


def trace_file(folder: Path, text: str) -> str:
    path = folder / "churn.csv"
    path.write_text(text)
    return str(path)


def test_a_trace_names_its_processes(tmp_path: Path) -> None:
    file = trace_file(tmp_path, "time_s,action,node\n5,join,70\n2.5,Crash,1\n7, leave ,70\n8,join,70\n\n9,crash,70\n")
    assert run_churn(f"trace {file}", nodes=3) == [
        Happening(2_500_000, "crash", 1),  # one that no row has named before: the process of that number
        Happening(5_000_000, "join", 3),
        Happening(7_000_000, "leave", 3),
        Happening(8_000_000, "join", 4),
        Happening(9_000_000, "crash", 4),
    ]


def test_a_trace_may_bring_and_take_a_process_at_one_instant(tmp_path: Path) -> None:
    file = trace_file(tmp_path, "5,join,9\n5,crash,9\n5,join,9\n")
    assert [happening[1:] for happening in run_churn(f"trace {file}")] == [("join", 0), ("crash", 0), ("join", 1)]


def test_rows_about_absent_or_protected_processes_are_skipped(tmp_path: Path) -> None:
    file = trace_file(tmp_path, "1,crash,77\n2,leave,0\n3,crash,1\n4,crash,1\n")
    assert run_churn(f"trace {file}", nodes=2, protected={0}) == [Happening(3 * SECOND, "crash", 1)]


def test_a_trace_ends_at_the_stop(tmp_path: Path) -> None:
    file = trace_file(tmp_path, "1,crash,0\n2,crash,1\n3,crash,2\n")
    assert len(run_churn(f"trace {file}; at 2s stop", nodes=5)) == 1


@pytest.mark.parametrize(
    "row", ["1,explode,3", "x,join,3", "1,join", "1,join,a", "-1,join,3", "nan,join,3", "1,join,-2"]
)
def test_a_bad_row_is_named(tmp_path: Path, row: str) -> None:
    file = trace_file(tmp_path, f"time_s,action,node\n{row}\n")
    with pytest.raises(ConfigError, match=r"churn\.csv, line 2: expected time_s,join\|leave\|crash,node"):
        read_trace(file)


def test_a_trace_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.csv: No such file or directory; expected a CSV file"):
        ChurnDriver(parse_churn(f"trace {tmp_path / 'none.csv'}"), Random(1), 0, 1)


# The driver as the world sees it


def test_the_driver_tells_when_it_is_next_and_what_is_due() -> None:
    driver = ChurnDriver(parse_churn("at 1s join 2; at 2s crash 1"), Random(1), 0, 0, protected={0})
    assert driver.next_us() == SECOND
    assert driver.pop([0, 1]) == [Action("join"), Action("join")]
    assert driver.next_us() == 2 * SECOND
    assert driver.pop([0, 1]) == [Action("crash", 1)]
    assert driver.next_us() is None


def test_equal_seeds_give_equal_churn() -> None:
    script = "from 0s to 50s join 20; const churn 20% each 10s; session weibull 0.7 40s; at 60s crash 30%"
    runs = [run_churn(script, nodes=30, seed=seed, end_s=200) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
