"""Any churn script: it prints as it reads, takes no one it must not, and meets its rates in the long run."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicast.core.errors import ConfigError
from epicast.sim.churn import ChurnScript, parse_churn
from epicast.sim.churn_script import Amount, Change, ConstChurn, Replacement, Session, Trace
from tests.unit.sim.small_world import SECOND, count, population, run_churn

times = st.integers(0, 200_000).map(lambda ms: ms * 1000)
shares = st.integers(0, 100_000_000).map(lambda millionths: Fraction(millionths, 100_000_000))
amounts = st.builds(Amount, st.integers(0, 40).map(Fraction)) | st.builds(Amount, shares, is_share=st.just(True))
windows = st.tuples(times, times).filter(lambda window: window[0] < window[1])
departures = st.sampled_from(["leave", "crash"])
kinds = st.sampled_from(["join", "leave", "crash"])

changes = st.builds(lambda at, kind, amount: Change(at, at, kind, amount), times, kinds, amounts) | st.builds(
    lambda window, kind, amount: Change(window[0], window[1], kind, amount), windows, kinds, amounts
)
const_churns = st.builds(
    lambda window, amount, each, kind: ConstChurn(window[0], window[1], amount, each, kind),
    windows | st.just((None, None)),
    amounts,
    st.integers(5, 90).map(lambda seconds: seconds * SECOND),
    departures,
)
ratios = st.builds(Replacement, times, shares)
shapes = st.integers(1, 100).map(lambda tenths: tenths / 10)
lasting = st.integers(5, 900).map(lambda seconds: seconds * SECOND)
laws = st.sampled_from(["weibull", "lognormal", "pareto"])
sessions = st.builds(Session, laws, lasting, shapes, departures) | st.builds(
    Session, st.just("exponential"), lasting, kind=departures
)
scripts = st.builds(
    lambda several, session: ChurnScript((*several, *session)),
    st.lists(changes | const_churns | ratios, max_size=5),
    st.lists(sessions, max_size=1),
)


@given(scripts, st.sampled_from(["", "trace a/Churn 1.csv"]))
def test_a_script_prints_as_it_reads(script: ChurnScript, trace: str) -> None:
    text = f"{script}\n{trace}".upper() if not trace else f"{script}\n{trace}"
    expected = (*script.statements, *([Trace("a/Churn 1.csv")] if trace else []))
    assert parse_churn(text).statements == expected


@given(st.text(alphabet="atfromjinlevcsh0123456789.%;# \n", max_size=60) | st.text(max_size=30))
def test_any_text_is_a_script_or_one_line_of_complaint(text: str) -> None:
    complaint = ""
    try:
        parse_churn(text)
    except ConfigError as error:
        complaint = str(error)
    assert len(complaint.splitlines()) <= 1


@given(scripts, st.integers(0, 30), st.sets(st.integers(0, 40), max_size=10), st.integers(0, 1 << 32))
def test_any_script_runs_in_order_of_time_and_spares_the_protected(
    script: ChurnScript, nodes: int, protected: set[int], seed: int
) -> None:
    happenings = run_churn(str(script), nodes, seed, protected, start_s=20, end_s=150)  # the small world checks them
    assert happenings == sorted(happenings, key=lambda happening: happening.time_us)
    assert happenings == run_churn(str(script), nodes, seed, protected, start_s=20, end_s=150)


@given(shares, st.integers(1, 60), st.integers(1, 25), st.integers(1, 90), st.integers(0, 1 << 32))
def test_constant_churn_meets_its_rate_exactly(share: Fraction, nodes: int, steps: int, each_s: int, seed: int) -> None:
    script = ConstChurn(0, steps * each_s * SECOND, Amount(share, is_share=True), each_s * SECOND)
    happenings = run_churn(str(script), nodes, seed)
    assert count(happenings, "crash") == count(happenings, "join") == int(share * nodes * steps)
    assert population(happenings, nodes) == nodes


@given(st.integers(0, 100), st.integers(0, 20), st.integers(1, 20), st.integers(0, 1 << 32))
def test_replacement_meets_its_ratio_exactly(percent: int, failures: int, steps: int, seed: int) -> None:
    script = f"at 0s set replacement ratio to {percent}%; from 0s to {steps}s const churn {failures} each 1s"
    happenings = run_churn(script, nodes=failures * steps, seed=seed)
    assert count(happenings, "crash") == failures * steps
    assert count(happenings, "join") == percent * failures * steps // 100


@given(st.integers(0, 300), windows)
def test_spread_joins_stay_in_their_window_and_keep_their_distance(joins: int, window: tuple[int, int]) -> None:
    from_us, to_us = window
    instants = [h.time_us for h in run_churn(str(Change(from_us, to_us, "join", Amount(Fraction(joins)))))]
    assert len(instants) == joins
    assert all(us == pytest.approx(from_us + i * (to_us - from_us) / joins, abs=1) for i, us in enumerate(instants))
