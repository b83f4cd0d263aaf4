"""Any delay model: it prints as it reads, survives being saved, and draws whole delays that its definition allows."""

from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from epicast.core.errors import ConfigError
from epicast.sim.latency import (
    AreaLatency,
    ConstantLatency,
    LatencyConfig,
    LognormalLatency,
    MatrixLatency,
    NormalLatency,
    QuantileLatency,
    UniformLatency,
    parse_latency,
)

delays = st.integers(0, 10_000_000)
rising = st.tuples(delays, delays).map(sorted)
tables = st.lists(st.tuples(st.floats(0.001, 0.999), delays), max_size=8).flatmap(
    lambda inner: st.lists(delays, min_size=len(inner) + 2, max_size=len(inner) + 2).map(
        lambda us: tuple(zip([0.0, *sorted({q for q, _ in inner}), 1.0], sorted(us), strict=False))
    )
)
independent = (
    st.builds(ConstantLatency, delays)
    | rising.map(lambda bounds: UniformLatency(*bounds))
    | st.builds(NormalLatency, delays, delays, delays)
    | st.builds(LognormalLatency, st.integers(1, 10_000_000), st.floats(0, 4))
    | st.builds(QuantileLatency, tables)
)
files = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=20)
matrices = st.builds(
    MatrixLatency, files, st.sampled_from(["modulo", "shuffled"]), jitter=st.floats(0, 1), local_us=delays
)
models: st.SearchStrategy[LatencyConfig] = st.recursive(
    independent | matrices,
    lambda inner: st.builds(AreaLatency, st.integers(1, 9), inner, inner, st.integers(1, 99)),
    max_leaves=4,
)


@given(models)
def test_a_model_prints_as_it_reads_and_survives_being_saved(config: LatencyConfig) -> None:
    assert parse_latency(config.to_text()) == config
    assert LatencyConfig.load(msgspec.to_builtins(config)) == config


@given(independent, st.integers(0, 1 << 32), st.integers(0, 50))
def test_delays_are_whole_not_negative_and_repeat(config: LatencyConfig, seed: int, count: int) -> None:
    model = config.build(Random(seed))
    chunk = model.chunk(Random(seed), count)
    assert chunk == model.chunk(Random(seed), count)
    assert len(chunk) == count
    assert all(type(us) is int and us >= 0 for us in chunk)


@given(tables, st.integers(0, 1 << 32))
def test_quantile_delays_stay_between_the_ends_of_their_table(table: tuple[tuple[float, int], ...], seed: int) -> None:
    chunk = QuantileLatency(table).build(Random(0)).chunk(Random(seed), 100)
    assert all(table[0][1] <= us <= table[-1][1] for us in chunk)


@given(st.sampled_from(["", "uniform ", "areas 3 ", "quantiles ", "matrix "]), st.text(max_size=30))
def test_any_text_is_a_model_or_one_line_of_complaint(start: str, rest: str) -> None:
    complaint = ""
    try:
        parse_latency(start + rest)
    except ConfigError as error:
        complaint = str(error)
    assert len(complaint.splitlines()) <= 1
