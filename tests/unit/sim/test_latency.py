"""Each delay model against its own definition, with fixed seeds."""

from __future__ import annotations

import gzip
import math
import tomllib
from pathlib import Path
from random import Random
from statistics import fmean, median, quantiles, stdev

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epicast.core.config import Config
from epicast.core.errors import ConfigError
from epicast.sim.latency import (
    PRESETS,
    AreaLatency,
    ConstantLatency,
    HostMatrix,
    LatencyConfig,
    LognormalLatency,
    MatrixLatency,
    NormalLatency,
    QuantileLatency,
    UniformLatency,
    parse_latency,
    read_rtt_ms,
)

MS = 1000
COUNT = 40_000
PLANETLAB = Path(__file__).parents[4] / "shared" / "data" / "planetlab_rtt_ms.csv.gz"

INDEPENDENT = [
    ConstantLatency(50 * MS),
    UniformLatency(10 * MS, 100 * MS),
    NormalLatency(50 * MS, 10 * MS),
    LognormalLatency(40 * MS, 0.5),
    QuantileLatency(PRESETS["planetlab-epto"]),
]


def draws(config: LatencyConfig, count: int = COUNT, seed: int = 1) -> list[int]:
    return config.build(Random(seed)).chunk(Random(seed), count)


def percentile(delays: list[int], percent: int) -> float:
    return quantiles(delays, n=100, method="inclusive")[percent - 1]


def matrix_file(folder: Path, text: str, name: str = "rtt.csv") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def build_matrix(config: MatrixLatency, seed: int = 1) -> HostMatrix:
    model = config.build(Random(seed))
    assert isinstance(model, HostMatrix)
    return model


# Independent delays


@pytest.mark.parametrize("config", INDEPENDENT, ids=lambda config: config.to_text())
def test_delays_are_whole_microseconds_and_repeat_with_the_seed(config: LatencyConfig) -> None:
    delays = draws(config, 500)
    assert delays == draws(config, 500)
    assert all(type(us) is int and us >= 0 for us in delays)
    assert config.build(Random()).pairwise is False


@pytest.mark.parametrize("config", INDEPENDENT, ids=lambda config: config.to_text())
def test_one_delay_follows_the_same_law_as_a_chunk(config: LatencyConfig) -> None:
    rng, model = Random(2), config.build(Random(0))
    single = [model.delay_us(3, 4, rng) for _ in range(COUNT // 4)]
    assert median(single) == pytest.approx(median(draws(config)), rel=0.03)


def test_constant_is_always_the_same() -> None:
    assert draws(ConstantLatency(50 * MS), 3) == [50_000] * 3


def test_uniform_covers_its_range_evenly() -> None:
    delays = draws(UniformLatency(10 * MS, 100 * MS))
    assert min(delays) >= 10_000
    assert max(delays) <= 100_000
    assert fmean(delays) == pytest.approx(55_000, rel=0.01)
    assert stdev(delays) == pytest.approx(90_000 / math.sqrt(12), rel=0.01)


def test_uniform_draws_both_ends() -> None:
    assert set(draws(UniformLatency(3, 5), 200)) == {3, 4, 5}


def test_normal_has_its_mean_and_deviation() -> None:
    delays = draws(NormalLatency(50 * MS, 10 * MS))
    assert fmean(delays) == pytest.approx(50_000, rel=0.01)
    assert stdev(delays) == pytest.approx(10_000, rel=0.02)


def test_normal_is_clipped_not_redrawn() -> None:
    delays = draws(NormalLatency(10 * MS, 10 * MS, min_us=MS))
    below = 0.5 * (1 + math.erf((1 - 10) / 10 / math.sqrt(2)))
    assert min(delays) == 1000
    assert delays.count(1000) / COUNT == pytest.approx(below, rel=0.05)


def test_lognormal_has_its_median_and_its_mean() -> None:
    delays = draws(LognormalLatency(40 * MS, 0.5))
    assert median(delays) == pytest.approx(40_000, rel=0.02)
    assert fmean(delays) == pytest.approx(40_000 * math.exp(0.5**2 / 2), rel=0.02)
    assert stdev([math.log(us) for us in delays]) == pytest.approx(0.5, rel=0.02)


def test_quantiles_are_met_where_given_and_in_between() -> None:
    delays = draws(QuantileLatency(((0.0, 0), (0.5, 100 * MS), (1.0, 900 * MS))))
    assert max(delays) <= 900_000
    for percent, expected in ((25, 50_000), (50, 100_000), (75, 500_000), (90, 740_000)):
        assert percentile(delays, percent) == pytest.approx(expected, rel=0.04)


def test_the_planetlab_preset_has_the_moments_of_the_published_delays() -> None:
    delays = draws(QuantileLatency(PRESETS["planetlab-epto"]), 4 * COUNT)
    assert fmean(delays) == pytest.approx(157_600, rel=0.01)
    assert stdev(delays) == pytest.approx(121_300, rel=0.01)
    for percent, expected in ((5, 15_000), (50, 125_000), (95, 366_000)):
        assert percentile(delays, percent) == pytest.approx(expected, rel=0.03)


def test_nearly_equal_quantiles_stay_within_their_delays() -> None:
    delays = draws(QuantileLatency(((0.0, 0), (0.5, 10), (0.5 + 1e-12, 10**10), (1.0, 10**10))), 2000)
    assert all(0 <= us <= 10**10 for us in delays)


# Matrices


def test_matrix_gives_half_of_the_round_trip_in_each_direction(tmp_path: Path) -> None:
    model = build_matrix(MatrixLatency(matrix_file(tmp_path, "0,10,20\n12,0,30\n20,30,0\n")))
    rng = Random(1)
    assert [model.delay_us(0, 1, rng), model.delay_us(1, 0, rng), model.delay_us(2, 1, rng)] == [5000, 6000, 15_000]
    assert (model.pairwise, model.filled) == (True, 0)


def test_nodes_beyond_the_matrix_share_its_hosts(tmp_path: Path) -> None:
    file = matrix_file(tmp_path, "0,10\n10,0\n")
    model = build_matrix(MatrixLatency(file, local_us=70))
    assert model.delay_us(4, 7, Random(1)) == 5000  # hosts 0 and 1
    assert model.delay_us(0, 2, Random(1)) == 70  # one host


def test_unusable_round_trips_are_counted_and_get_the_median(tmp_path: Path) -> None:
    model = build_matrix(MatrixLatency(matrix_file(tmp_path, "0,,20\n0,0,40\n-1,nan,0\n\n")))
    rng = Random(1)
    assert model.filled == 4
    assert {model.delay_us(a, b, rng) for a, b in ((0, 1), (1, 0), (2, 0), (2, 1))} == {15_000}


def test_the_diagonal_of_a_matrix_counts_for_nothing(tmp_path: Path) -> None:
    model = build_matrix(MatrixLatency(matrix_file(tmp_path, "500,,20\n20,500,40\n40,20,500\n"), local_us=7))
    assert (model.filled, model.delay_us(0, 1, Random(1)), model.delay_us(2, 2, Random(1))) == (1, 10_000, 7)


def test_a_shuffled_assignment_depends_on_the_seed_alone(tmp_path: Path) -> None:
    size = 20
    text = "\n".join(",".join(str(abs(a - b)) for b in range(size)) for a in range(size))
    config = MatrixLatency(matrix_file(tmp_path, text), assignment="shuffled")
    hosts = build_matrix(config, seed=1).hosts
    assert hosts == build_matrix(config, seed=1).hosts
    assert hosts != build_matrix(config, seed=2).hosts
    assert sorted(hosts) == list(range(size))


def test_jitter_is_relative_and_centred(tmp_path: Path) -> None:
    model = build_matrix(MatrixLatency(matrix_file(tmp_path, "0,10\n10,0\n"), jitter=0.2))
    rng = Random(1)
    delays = [model.delay_us(0, 1, rng) for _ in range(5000)]
    assert min(delays) >= 4000
    assert max(delays) <= 6000
    assert fmean(delays) == pytest.approx(5000, rel=0.01)


def test_gzip_and_parquet_hold_the_same_matrix_as_csv(tmp_path: Path) -> None:
    text = "0,10.5,\n10,0,31\n21,30,0\n"
    with gzip.open(tmp_path / "rtt.csv.gz", "wt") as out:
        out.write(text)
    columns = {"a": [0.0, 10.0, 21.0], "b": [10.5, 0.0, 30.0], "c": [None, 31.0, 0.0]}
    pq.write_table(pa.table(columns), tmp_path / "rtt.parquet")
    plain = read_rtt_ms(matrix_file(tmp_path, text))
    for name in ("rtt.csv.gz", "rtt.parquet"):
        np.testing.assert_array_equal(read_rtt_ms(str(tmp_path / name)), plain)


def test_pairwise_models_refuse_to_draw_in_chunks(tmp_path: Path) -> None:
    model = build_matrix(MatrixLatency(matrix_file(tmp_path, "0,10\n10,0\n")))
    with pytest.raises(TypeError, match="use delay_us"):
        model.chunk(Random(1), 3)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("0,1\n1\n", "line 2: expected 2 rows of 2 values, got 1 values"),
        ("0,1\n1,0\n1,1\n", "line 3: expected 2 rows of 2 values"),
        ("0,1\n", "got 1 x 2"),
        ("0\n", "from 2 to 4096 hosts; got 1 x 1"),
        ("a,b\n0,1\n", "line 1: could not convert string to float: 'a'; expected numbers"),
        ("", "got 0"),
        ("0,0\n0,0\n", "at least one positive round trip"),
        ("5,0\n0,5\n", "at least one positive round trip"),
    ],
)
def test_a_file_that_is_no_matrix_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        MatrixLatency(matrix_file(tmp_path, text)).build(Random(1))
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["none.csv", "none.csv.gz", "none.parquet", "fake.csv.gz", "fake.parquet", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "fake.csv.gz").write_text("0,1")
    (tmp_path / "fake.parquet").write_text("0,1")
    with pytest.raises(ConfigError, match=r"expected CSV, CSV\.gz or Parquet") as error:
        read_rtt_ms(str(tmp_path / name))
    assert name in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.skipif(not PLANETLAB.exists(), reason="needs the PlanetLab round trips in ../shared/data")
def test_measured_planetlab_round_trips_become_one_way_delays() -> None:
    model = build_matrix(MatrixLatency(str(PLANETLAB)))
    rtt_ms = read_rtt_ms(str(PLANETLAB))
    rng, size = Random(5), len(rtt_ms)
    pairs = [(rng.randrange(size), rng.randrange(size)) for _ in range(4000)]
    delays = [model.delay_us(a, b, rng) for a, b in pairs if a != b]
    apart = rtt_ms[~np.eye(size, dtype=bool)]
    assert len(model.hosts) == 490
    assert median(delays) == pytest.approx(np.median(apart[apart > 0]) * 500, rel=0.05)
    assert model.filled == int((~(apart > 0)).sum())
    assert all(
        abs(model.delay_us(a, b, rng) - rtt_ms[a, b] * 500) <= 1 for a, b in pairs if a != b and rtt_ms[a, b] > 0
    )


# Areas


def test_areas_are_dealt_in_turn_or_in_blocks() -> None:
    turns = AreaLatency(3, ConstantLatency(1), ConstantLatency(9))
    blocks = AreaLatency(3, ConstantLatency(1), ConstantLatency(9), block=2)
    assert [turns.area_of(node) for node in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    assert [blocks.area_of(node) for node in range(7)] == [0, 0, 1, 1, 2, 2, 0]


def test_areas_are_near_inside_and_far_between() -> None:
    model = AreaLatency(2, ConstantLatency(MS), UniformLatency(40 * MS, 60 * MS)).build(Random(1))
    rng = Random(1)
    assert model.pairwise is True
    assert model.delay_us(0, 2, rng) == 1000
    assert fmean(model.delay_us(0, 1, rng) for _ in range(4000)) == pytest.approx(50_000, rel=0.02)


# Writing a model down


class NetworkLike(Config, frozen=True):
    latency: LatencyConfig = ConstantLatency(1)


TEXTS = {
    "constant 50ms": ConstantLatency(50 * MS),
    "uniform 10ms 100ms": UniformLatency(10 * MS, 100 * MS),
    "normal 50ms 10ms": NormalLatency(50 * MS, 10 * MS),
    "normal 50ms 10ms min_us=1500us": NormalLatency(50 * MS, 10 * MS, 1500),
    "lognormal 40ms 0.5": LognormalLatency(40 * MS, 0.5),
    "quantiles planetlab-epto": QuantileLatency(PRESETS["planetlab-epto"]),
    "quantiles 0.0:1ms 0.5:20ms 1.0:3s": QuantileLatency(((0.0, MS), (0.5, 20 * MS), (1.0, 3000 * MS))),
    "matrix data/rtt.csv": MatrixLatency("data/rtt.csv"),
    "matrix 'my rtt.csv' assignment=shuffled jitter=0.1": MatrixLatency("my rtt.csv", "shuffled", 0.1),
    "areas 4 1ms 50ms": AreaLatency(4, ConstantLatency(MS), ConstantLatency(50 * MS)),
    "areas 2 'uniform 1ms 2ms' 50ms block=10": AreaLatency(2, UniformLatency(MS, 2 * MS), ConstantLatency(50 * MS), 10),
}


@pytest.mark.parametrize(("text", "config"), TEXTS.items(), ids=TEXTS.keys())
def test_a_text_and_its_model_turn_into_each_other(text: str, config: LatencyConfig) -> None:
    assert parse_latency(text) == config
    assert config.to_text() == text


@pytest.mark.parametrize("config", TEXTS.values(), ids=TEXTS.keys())
def test_a_model_survives_being_saved_as_plain_data(config: LatencyConfig) -> None:
    assert LatencyConfig.load(msgspec.to_builtins(config)) == config


def test_a_toml_table_names_its_model_and_may_leave_out_the_unit_in_keys() -> None:
    table = tomllib.loads('[latency]\nmodel = "uniform"\nlow = "10ms"\nhigh_us = 100_000')
    assert NetworkLike.load(table, "network") == NetworkLike(latency=UniformLatency(10 * MS, 100 * MS))


def test_a_toml_table_may_nest_models() -> None:
    text = (
        'model = "areas"\nareas = 4\nlocal = "1ms"\nremote = { model = "quantiles", table = [[0, "1ms"], [1, 9000]] }'
    )
    remote = QuantileLatency(((0.0, MS), (1.0, 9 * MS)))
    assert LatencyConfig.load(tomllib.loads(text)) == AreaLatency(4, ConstantLatency(MS), remote)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "latency: expected a model, got ''; write one of: constant 50ms"),
        ("gamma 3ms", "latency: expected a model, got 'gamma 3ms'"),
        ("uniform 10ms", "latency.high_us is missing: give a duration"),
        ("uniform 10 100", "latency.low_us: expected a duration"),
        ("uniform 100ms 10ms", "latency: high_us: expected at least low_us = 100000, got 10000"),
        ("uniform 1ms 2ms 3ms", "latency: '3ms' is one value too many"),
        ("uniform 1ms 2ms high=3ms", "latency.high_us: given twice"),
        ("matrix a file=b", "latency: 'file=b' is one value too many"),
        ("lognormal 40ms 9", "latency.sigma: expected a number from 0.0 to 4.0, got '9'"),
        ("normal 50ms 10ms low=3ms", "latency: 'low=3ms' is one value too many"),
        ("quantiles somewhere", "latency.table: expected pairs, or one of planetlab-epto; got 'somewhere'"),
        ("quantiles 0:1ms 0.5:x 1:3ms", "latency.table[1]: expected a quantile and a delay like"),
        ("quantiles 0:1ms 1.5:2ms", "latency.table[1][0]: expected"),
        ("quantiles 0.1:1ms 1:2ms", "table: expected quantiles from 0 to 1"),
        ("quantiles 0:1ms nan:2ms 1:2ms", "latency.table"),
        ("quantiles 0:2ms 0.5:1ms 1:3ms", "table: expected growing pairs, got 0.5:1000 after 0.0:2000"),
        ("quantiles 0:2ms", "table: expected from 2 to 10000 pairs"),
        ("matrix f jitter=2", "latency.jitter: expected a number from 0.0 to 1.0"),
        ("matrix f assignment=odd", "latency.assignment: expected one of modulo, shuffled"),
        ("areas 0 1ms 2ms", "latency.areas: expected an integer from 1 to 1000000, got '0'"),
        ("areas 2 1ms gamma", "latency.remote: expected a model, got 'gamma'"),
        ("matrix 'open", "latency: No closing quotation"),
    ],
)
def test_a_text_that_cannot_be_read_says_what_is_accepted(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_latency(text)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({}, "network.latency.model: expected one of constant, uniform, normal"),
        ({"model": "gamma"}, "network.latency.model: expected one of constant, .*, got 'gamma'"),
        ({"model": ["uniform"]}, "network.latency.model: expected one of"),
        ({"model": "uniform", "low": "10ms", "hihg": "1s"}, "network.latency.hihg: unknown key"),
        ({"model": "constant", "delay": "-3ms"}, "network.latency.delay_us: expected a duration"),
        (
            {"model": "areas", "areas": 2, "local": 5, "remote": "1ms"},
            "network.latency.local: expected a latency model",
        ),
        ({"model": "areas", "areas": 2, "local": {"model": "x"}, "remote": "1ms"}, "latency.local.model: expected one"),
        ({"model": "quantiles", "table": 3}, "network.latency.table: expected pairs"),
    ],
)
def test_a_table_that_cannot_be_read_names_the_key(table: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        NetworkLike.load({"latency": table}, "network")


def test_a_model_class_refuses_the_table_of_another() -> None:
    with pytest.raises(ConfigError, match="model: expected one of"):
        UniformLatency.load({"model": "constant", "delay": "1ms"})
    assert UniformLatency.load({"low": "1ms", "high": "2ms"}) == UniformLatency(MS, 2 * MS)


def test_the_parts_of_an_area_model_must_be_models() -> None:
    with pytest.raises(ConfigError, match="local: expected"):
        AreaLatency(2, NetworkLike(), ConstantLatency(1))  # type: ignore[arg-type]
