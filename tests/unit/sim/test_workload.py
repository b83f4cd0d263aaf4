"""When and what is published."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from statistics import fmean, stdev
from typing import Any

import pytest

from epicast.core.errors import ConfigError
from epicast.sim.workload import Publication, WorkloadConfig, publications

SECOND = 1_000_000


def stream(seed: int = 1, **settings: Any) -> list[Publication]:
    return list(publications(WorkloadConfig(**settings), Random(seed)))


def test_the_default_is_one_source_with_five_messages_a_second() -> None:
    messages = stream()
    assert len(messages) == 50
    assert messages[:2] == [Publication(0, 0, "stream", 1000), Publication(200_000, 0, "stream", 1000)]


def test_an_even_rate_does_not_drift() -> None:
    messages = stream(messages=3001, rate=3, start_us=7)
    assert messages[3000].time_us == 7 + 1000 * SECOND
    assert {later.time_us - earlier.time_us for earlier, later in pairwise(messages)} == {333_333, 333_334}


def test_bursts_come_at_once_and_the_last_may_be_smaller() -> None:
    messages = stream(messages=5, pattern="burst", burst_size=2, burst_interval_us=100, start_us=50)
    assert [message.time_us for message in messages] == [50, 50, 150, 150, 250]


def test_poisson_gaps_are_exponential() -> None:
    times = [message.time_us for message in stream(messages=20_000, pattern="poisson", rate=50)]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert fmean(gaps) == pytest.approx(20_000, rel=0.03)
    assert stdev(gaps) == pytest.approx(20_000, rel=0.03)
    assert times == sorted(times)


def test_sizes_are_constant_uniform_or_listed() -> None:
    assert {message.payload_bytes for message in stream(payload_bytes=10)} == {10}
    assert {message.payload_bytes for message in stream(payload_bytes=3, payload_bytes_max=5)} == {3, 4, 5}
    assert [m.payload_bytes for m in stream(messages=5, payload_sizes=(1, 0, 9))] == [1, 0, 9, 1, 0]


def test_sources_take_turns_or_are_drawn() -> None:
    assert [message.source_index for message in stream(messages=5, sources=2)] == [0, 1, 0, 1, 0]
    drawn = [message.source_index for message in stream(messages=3000, sources=3, source_order="random")]
    assert all(drawn.count(source) == pytest.approx(1000, rel=0.1) for source in range(3))


def test_given_ids_are_the_sources() -> None:
    config = WorkloadConfig(source_ids=(7, 3), messages=3)
    assert config.source_count == 2
    assert [message.source_index for message in publications(config, Random(1))] == [0, 1, 0]


@pytest.mark.parametrize(
    ("settings", "end_us"),
    [
        ({"messages": 500, "rate": 5.0, "start_us": 10}, 10 + 100 * SECOND),
        ({"messages": 500, "rate": 5.0, "pattern": "poisson"}, 100 * SECOND),
        ({"messages": 5, "pattern": "burst", "burst_size": 2, "burst_interval_us": 100}, 300),
        ({"messages": 0}, 0),
    ],
)
def test_the_end_of_a_stream_is_known_beforehand(settings: dict[str, Any], end_us: int) -> None:
    assert WorkloadConfig(**settings).end_us == end_us


def test_equal_seeds_publish_alike() -> None:
    settings: dict[str, Any] = {
        "pattern": "poisson",
        "sources": 4,
        "source_order": "random",
        "payload_bytes_max": 9000,
        "messages": 50,
    }
    assert stream(1, **settings) == stream(1, **settings) != stream(2, **settings)


def test_a_toml_table_is_a_workload() -> None:
    table = {"pattern": "burst", "burst_interval_us": "2s", "payload_sizes": [10, 20], "topic": "prices/eur"}
    config = WorkloadConfig.load(table, "workload")
    assert (config.burst_interval_us, config.payload_sizes, config.topic) == (2 * SECOND, (10, 20), "prices/eur")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"pattern": "steady"}, "workload.pattern: expected one of rate, burst, poisson"),
        ({"rate": 0}, "workload.rate: expected a number from 0.0001"),
        ({"rate": float("nan")}, "workload.rate: expected a number"),
        ({"messages": -1}, "workload.messages: expected an integer from 0"),
        ({"burst_size": 0}, "workload.burst_size: expected an integer from 1"),
        ({"burst_interval_us": "0s"}, "workload.burst_interval_us: expected a duration"),
        ({"payload_bytes": 1 << 30}, "workload.payload_bytes: expected an integer from 0 to 16777216"),
        ({"payload_bytes_max": 5}, "workload: payload_bytes_max: expected at least payload_bytes = 1000"),
        ({"payload_sizes": [3, -1]}, r"workload.payload_sizes\[1\]"),
        ({"payload_sizes": [3], "payload_bytes_max": 2000}, "workload: payload_sizes: expected either"),
        ({"sources": 0}, "workload.sources: expected an integer from 1"),
        ({"sources": 3, "source_ids": [1, 2]}, "workload: sources: expected 2, the number of source_ids"),
        ({"source_ids": [1, 1]}, "workload: source_ids: expected each process once"),
        ({"topic": ""}, "workload.topic: expected a text"),
        ({"sorces": 3}, "workload.sorces: unknown key; did you mean sources?"),
    ],
)
def test_a_workload_that_cannot_be_says_why(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint.replace("?", r"\?")):
        WorkloadConfig.load(settings, "workload")
