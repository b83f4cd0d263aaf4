"""How long a message is under way: one-way delays of the network, in integer microseconds.

A model is a config, written as a TOML table (`model = "uniform"`, `low = "10ms"`, `high = "100ms"`) or as a short text
(`uniform 10ms 100ms`); `build` makes it ready to draw. Most models draw every delay independently, many at a time. The
*pairwise* ones, a matrix of measured round trips and areas of near nodes, look at who talks to whom.

A model keeps no state between draws: the same `Random` in the same state gives the same delays.
"""

from __future__ import annotations

import gzip
import math
import shlex
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar

import msgspec

from epicast.core.config import DAY_US, Config, Duration, Probability, field_types, parse_duration_us
from epicast.core.errors import ConfigError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

L = TypeVar("L", bound="LatencyConfig")
Draw = Callable[[Random, int], list[int]]

HOSTS_MAX = 4096  # a matrix of this size takes 128 MB
POINTS_MAX = 10_000  # of a quantile table
FORMS = (
    "constant 50ms | uniform 10ms 100ms | normal 50ms 10ms | lognormal 40ms 0.5 | quantiles planetlab-epto | "
    "quantiles 0:1ms 0.5:40ms 1:200ms | matrix FILE | areas 4 1ms 50ms"
)
PRESETS = {
    # One-way delays between PlanetLab hosts: meets the mean, deviation and percentiles that EpTO was evaluated with.
    "planetlab-epto": (
        *((0.0, 1_000), (0.05, 15_000), (0.25, 80_000), (0.5, 125_000), (0.75, 205_000)),
        *((0.9, 305_000), (0.95, 366_000), (0.99, 580_000), (1.0, 800_000)),
    )
}


class Latency(Protocol):
    """A model that is ready to draw."""

    @property
    def pairwise(self) -> bool:
        """Does the delay depend on who talks to whom?"""

    def chunk(self, rng: Random, count: int) -> list[int]:
        """`count` independent delays. Pairwise models have none to give."""

    def delay_us(self, src: int, dst: int, rng: Random) -> int:
        """One delay, whatever the model."""


class Independent:
    pairwise = False

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def chunk(self, rng: Random, count: int) -> list[int]:
        return self._draw(rng, count)

    def delay_us(self, src: int, dst: int, rng: Random) -> int:
        return self._draw(rng, 1)[0]


class Pairwise:
    pairwise = True

    def chunk(self, rng: Random, count: int) -> list[int]:
        raise TypeError("these delays depend on both ends: use delay_us")


class LatencyConfig(Config, frozen=True, tag_field="model"):
    """Any of the models: `load` makes the one that `model` names."""

    def build(self, rng: Random) -> Latency:
        """The model, ready to draw. `rng` settles what stays as it is for the whole run: which node sits where."""
        return Independent(self.draw)

    def place_of(self, node: int) -> str:
        """Where the node is; nowhere in particular in most models."""
        return ""

    def draw(self, rng: Random, count: int) -> list[int]:
        """Independent delays; the models that are pairwise override `build` instead."""
        raise NotImplementedError

    @classmethod
    def load(cls: type[L], settings: Mapping[str, Any], where: str = "") -> L:
        dot = f"{where}." if where else ""
        model = settings.get("model", cls.__struct_config__.tag)
        kind = MODELS.get(model) if isinstance(model, str) else None
        if kind is None or not issubclass(kind, cls):
            raise ConfigError(f"{dot}model: expected one of {', '.join(MODELS)}, got {settings.get('model')!r}")
        values = kind._read({key: settings[key] for key in settings if key != "model"}, dot)
        return super(LatencyConfig, kind).load(values, where)

    @classmethod
    def _read(cls, settings: dict[str, Any], dot: str) -> dict[str, Any]:
        """Settings under their full names: `low` is short for `low_us`."""
        values: dict[str, Any] = {}
        for key, value in settings.items():
            name = f"{key}_us" if f"{key}_us" in cls.__struct_fields__ else key
            if name in values:
                raise ConfigError(f"{dot}{name}: given twice, with and without _us; keep one")
            values[name] = value
        return values

    @classmethod
    def _from_words(cls, words: list[str], where: str) -> dict[str, Any]:
        """Settings of a text: the required values in their order, others as key=value."""
        settings: dict[str, Any] = {}
        required = [field.name for field in msgspec.structs.fields(cls) if field.required]
        for word in words:
            key, equals, value = word.partition("=")
            if not equals or not {key, f"{key}_us"} & set(cls.__struct_fields__):
                key, value = required.pop(0) if required else "", word
            if not key or key in settings:
                raise ConfigError(f"{where}: {word!r} is one value too many; write one of: {FORMS}")
            settings[key] = _value(key, value, field_types(cls))
        return settings

    def to_text(self) -> str:
        """What `parse_latency` reads back as this very config."""
        words = [str(self.__struct_config__.tag)]
        for field in msgspec.structs.fields(self):
            value = getattr(self, field.name)
            if field.required:
                words.append(_word(field.name, value))
            elif value != field.default:
                words.append(f"{field.name}={_word(field.name, value)}")
        return shlex.join(words)


class ConstantLatency(LatencyConfig, frozen=True, tag="constant"):
    delay_us: Duration

    def draw(self, rng: Random, count: int) -> list[int]:
        return [self.delay_us] * count


class UniformLatency(LatencyConfig, frozen=True, tag="uniform"):
    low_us: Duration
    high_us: Duration  # drawn too

    def check(self) -> None:
        if self.high_us < self.low_us:
            raise ConfigError(f"high_us: expected at least low_us = {self.low_us}, got {self.high_us}")

    def draw(self, rng: Random, count: int) -> list[int]:
        import numpy as np

        words = np.frombuffer(rng.getrandbits(32 * count).to_bytes(4 * count, "little"), np.uint32)
        step_us = (self.high_us - self.low_us + 1) / (1 << 32)
        return (self.low_us + (words * step_us).astype(np.int64)).tolist()  # type: ignore[no-any-return]


class NormalLatency(LatencyConfig, frozen=True, tag="normal"):
    """Delays below `min_us` become `min_us`, which lifts the mean where they are many."""

    mean_us: Duration
    sd_us: Duration
    min_us: Duration = 0

    def draw(self, rng: Random, count: int) -> list[int]:
        gauss, mean, sd, least = rng.gauss, self.mean_us, self.sd_us, self.min_us
        return [max(least, round(gauss(mean, sd))) for _ in range(count)]


class LognormalLatency(LatencyConfig, frozen=True, tag="lognormal"):
    median_us: Annotated[int, msgspec.Meta(ge=1, le=DAY_US, extra={"duration": True})]
    sigma: Annotated[float, msgspec.Meta(ge=0.0, le=4.0)]  # of the delay's natural logarithm

    def draw(self, rng: Random, count: int) -> list[int]:
        gauss, exp, mu, sigma = rng.gauss, math.exp, math.log(self.median_us), self.sigma
        return [min(DAY_US, round(exp(gauss(mu, sigma)))) for _ in range(count)]


class QuantileLatency(LatencyConfig, frozen=True, tag="quantiles"):
    """An empirical distribution: the delay at each quantile from 0 to 1, straight lines in between."""

    table: tuple[tuple[Probability, Duration], ...]

    def check(self) -> None:
        if not 2 <= len(self.table) <= POINTS_MAX:
            raise ConfigError(f"table: expected from 2 to {POINTS_MAX} pairs of quantile and delay")
        if self.table[0][0] != 0.0 or self.table[-1][0] != 1.0:
            raise ConfigError("table: expected quantiles from 0 to 1")
        for (q, us), (next_q, next_us) in pairwise(self.table):
            if not (next_q > q and next_us >= us):
                raise ConfigError(f"table: expected growing pairs, got {next_q}:{next_us} after {q}:{us}")

    def build(self, rng: Random) -> Latency:
        starts = [q for q, _ in self.table[:-1]]
        bases = [us + 0.5 for _, us in self.table]  # so that cutting off below is rounding
        slopes = [(next_us - us) / (next_q - q) for (q, us), (next_q, next_us) in pairwise(self.table)]

        def draw(rng: Random, count: int) -> list[int]:
            uniform = [rng.random() for _ in range(count)]
            return [
                int(bases[i] + slopes[i] * (u - starts[i])) for u in uniform for i in (bisect_right(starts, u) - 1,)
            ]

        return Independent(draw)

    @classmethod
    def _read(cls, settings: dict[str, Any], dot: str) -> dict[str, Any]:
        table = settings.get("table", ())
        table = PRESETS.get(table, table) if isinstance(table, str) else table
        if not isinstance(table, (list, tuple)):
            raise ConfigError(f"{dot}table: expected pairs, or one of {', '.join(PRESETS)}; got {table!r}")
        return settings | {"table": tuple(_point(pair, f"{dot}table[{i}]") for i, pair in enumerate(table))}

    @classmethod
    def _from_words(cls, words: list[str], where: str) -> dict[str, Any]:
        if len(words) == 1 and ":" not in words[0]:
            return {"table": words[0]}
        return {"table": [word.split(":") for word in words]}

    def to_text(self) -> str:
        named = next((name for name, table in PRESETS.items() if table == self.table), None)
        return "quantiles " + (named or " ".join(f"{q}:{_duration(us)}" for q, us in self.table))


class MatrixLatency(LatencyConfig, frozen=True, tag="matrix"):
    """Half of the round trips in a file: CSV (also .gz) or Parquet, one row and one column per host, in milliseconds.

    Node i sits on host i modulo the number of hosts, or on the same place of a shuffled list of hosts.
    """

    file: Annotated[str, msgspec.Meta(min_length=1)]
    assignment: Literal["modulo", "shuffled"] = "modulo"
    jitter: Probability = 0.0  # each delay is up to this share shorter or longer, uniformly
    local_us: Duration = 100  # between two nodes on one host; our guess

    def build(self, rng: Random) -> Latency:
        rtt_ms = read_rtt_ms(self.file)
        hosts = list(range(len(rtt_ms)))
        if self.assignment == "shuffled":
            rng.shuffle(hosts)
        return HostMatrix(rtt_ms, hosts, self.jitter, self.local_us)


class AreaLatency(LatencyConfig, frozen=True, tag="areas"):
    """One model within an area, another between areas. Nodes are dealt to the areas in turn, `block` at a time.

    Between areas the delays may follow areas again, larger ones: `areas 8 1ms "areas 2 20ms 100ms"` has two continents
    of four areas each, and its places are like `1/5`.
    """

    areas: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    local: LatencyConfig
    remote: LatencyConfig
    block: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] = 1

    def area_of(self, node: int) -> int:
        return node // self.block % self.areas

    def place_of(self, node: int) -> str:
        region = self.remote.place_of(node)
        return f"{region}/{self.area_of(node)}" if region else str(self.area_of(node))

    def build(self, rng: Random) -> Latency:
        return Areas(self, self.local.build(rng), self.remote.build(rng))

    @classmethod
    def _read(cls, settings: dict[str, Any], dot: str) -> dict[str, Any]:
        return {key: _submodel(key, value, dot) for key, value in settings.items()}


class HostMatrix(Pairwise):
    """Delays between the hosts of a matrix. Its median stands in for the `filled` pairs without a usable round trip."""

    def __init__(self, rtt_ms: NDArray[float64], hosts: list[int], jitter: float, local_us: int) -> None:
        import numpy as np

        self.hosts, self.jitter = hosts, jitter
        usable = (rtt_ms > 0) & (rtt_ms <= DAY_US / 1000)  # false for NaN as well
        np.fill_diagonal(usable, False)
        if not usable.any():
            raise ConfigError("matrix: expected a file with at least one positive round trip between two hosts")
        self.filled = int(usable.size - usable.sum() - len(hosts))
        one_way = np.rint(np.where(usable, rtt_ms, np.median(rtt_ms[usable])) * 500).astype(np.int64)
        np.fill_diagonal(one_way, local_us)
        self.rows = [array("q", row.tobytes()) for row in one_way]  # quicker to index than numpy, and plain ints

    def delay_us(self, src: int, dst: int, rng: Random) -> int:
        hosts = self.hosts
        us: int = self.rows[hosts[src % len(hosts)]][hosts[dst % len(hosts)]]
        return round(us * (1 + self.jitter * (2 * rng.random() - 1))) if self.jitter else us


class Areas(Pairwise):
    def __init__(self, config: AreaLatency, local: Latency, remote: Latency) -> None:
        self.area_of, self.local, self.remote = config.area_of, local, remote

    def delay_us(self, src: int, dst: int, rng: Random) -> int:
        model = self.local if self.area_of(src) == self.area_of(dst) else self.remote
        return model.delay_us(src, dst, rng)


MODELS: dict[str, type[LatencyConfig]] = {
    "constant": ConstantLatency,
    "uniform": UniformLatency,
    "normal": NormalLatency,
    "lognormal": LognormalLatency,
    "quantiles": QuantileLatency,
    "matrix": MatrixLatency,
    "areas": AreaLatency,
}


def parse_latency(text: str, where: str = "latency") -> LatencyConfig:
    """The model of a text like "uniform 10ms 100ms". Optional settings are key=value; quotes keep words together."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"{where}: {error} in {text!r}; write one of: {FORMS}") from None
    kind = MODELS.get(words[0].lower()) if words else None
    if kind is None:
        raise ConfigError(f"{where}: expected a model, got {text!r}; write one of: {FORMS}")
    return kind.load(kind._from_words(words[1:], where), where)


def read_rtt_ms(file: str) -> NDArray[float64]:
    """A square matrix of round trips; NaN where the file has none."""
    import numpy as np

    expected = "expected CSV, CSV.gz or Parquet with one row and one column of round trips in ms per host"
    try:
        if file.endswith(".parquet"):
            import pyarrow.parquet as pq

            rows = np.array([column.to_numpy() for column in pq.read_table(file).columns], dtype=np.float64).T
        else:
            with (gzip.open if file.endswith(".gz") else open)(file, "rt", encoding="utf-8") as lines:
                rows = np.array(_csv_rows(file, lines), dtype=np.float64)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise ConfigError(f"{file}: {reason}; {expected}") from None
    if rows.ndim != 2 or rows.shape[0] != rows.shape[1] or not 2 <= len(rows) <= HOSTS_MAX:
        raise ConfigError(f"{file}: {expected}, from 2 to {HOSTS_MAX} hosts; got {' x '.join(map(str, rows.shape))}")
    return rows


def _csv_rows(file: str, lines: Iterable[str]) -> list[list[float]]:
    rows: list[list[float]] = []
    for number, line in enumerate(lines, 1):
        try:
            row = [float(cell) if cell.strip() else math.nan for cell in line.split(",")]
        except ValueError as error:
            raise ConfigError(f"{file}, line {number}: {error}; expected numbers, nothing or nan") from None
        hosts = len(rows[0]) if rows else min(len(row), HOSTS_MAX)
        if line.strip() and (len(row) != hosts or len(rows) == hosts):
            raise ConfigError(f"{file}, line {number}: expected {hosts} rows of {hosts} values, got {len(row)} values")
        rows += [row] if line.strip() else []
    return rows


def _submodel(key: str, value: Any, dot: str) -> Any:
    """A part of an area model may be a table, a text, or just a duration for a constant delay."""
    if key not in ("local", "remote") or isinstance(value, (Mapping, LatencyConfig)):
        return value
    if not isinstance(value, str):
        raise ConfigError(f'{dot}{key}: expected a latency model or a text like "1ms", got {value!r}')
    us = parse_duration_us(value)
    return parse_latency(value, f"{dot}{key}") if us is None else ConstantLatency(us)


def _point(pair: Any, where: str) -> tuple[float, int]:
    try:
        q, delay = pair
        return float(q), msgspec.convert(parse_duration_us(delay) if isinstance(delay, str) else delay, Duration)
    except (TypeError, ValueError, msgspec.ValidationError):
        raise ConfigError(f'{where}: expected a quantile and a delay like "40ms", got {pair!r}') from None


def _value(key: str, word: str, types: dict[str, Any]) -> Any:
    """A word of a text as its field wants it. Durations stay text, so that they cannot go without a unit."""
    if key in types and not key.endswith("_us"):
        with suppress(msgspec.ValidationError):  # left for `load` to report
            return msgspec.convert(word, types[key], strict=False)
    return word


def _word(name: str, value: Any) -> str:
    if isinstance(value, ConstantLatency):
        return _duration(value.delay_us)
    if isinstance(value, LatencyConfig):
        return value.to_text()
    return _duration(value) if name.endswith("_us") else str(value)


def _duration(us: int) -> str:
    size, unit = next((size, unit) for size, unit in ((1_000_000, "s"), (1000, "ms"), (1, "us")) if us % size == 0)
    return f"{us // size}{unit}"
