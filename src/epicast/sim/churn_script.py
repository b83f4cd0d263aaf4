"""The churn script: a small language for processes that come and go.

    from 1s to 512s join 512                    # one after the other, evenly
    at 1000s set replacement ratio to 100%      # joins for each failure that follows
    from 1000s to 1600s const churn 3% each 60s
    at 1600s stop

Amounts are counts, or percentages of the population at that moment. `session LAW ...` gives each process a time to
stay, `trace FILE` replays what a file recorded. Times count from the zero of whoever runs the script; a window includes
its start and excludes its end. Every statement prints itself in the language again.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Literal, cast

from epicast.core.config import parse_duration_us
from epicast.core.errors import ConfigError

Kind = Literal["join", "leave", "crash"]
TraceRow = tuple[int, Kind, int]  # time_us, action, node
Departure = Literal["leave", "crash"]
Law = Literal["exponential", "weibull", "lognormal", "pareto"]

TIME_MAX_US = 366 * 86_400_000_000
COUNT_MAX = 10_000_000
STATEMENTS_MAX = 10_000
EACH_MIN_US = 1_000
ROWS_MAX = 10_000_000  # of a trace file
TRACE_HEADER = ["time_s", "action", "node"]


@dataclass(frozen=True, slots=True)
class Amount:
    value: Fraction
    is_share: bool = False  # of the current population

    def of(self, size: int) -> Fraction:
        return self.value * size if self.is_share else self.value

    def __str__(self) -> str:
        return _percent(self.value) if self.is_share else str(self.value)


@dataclass(frozen=True, slots=True)
class Change:
    """So many join, leave or crash: at once if the window is a single instant, else evenly spread from its start on."""

    from_us: int
    to_us: int
    kind: Kind
    amount: Amount

    def __str__(self) -> str:
        when = f"at {_time(self.from_us)}" if self.from_us == self.to_us else _window(self.from_us, self.to_us)
        return f"{when} {self.kind} {self.amount}"


@dataclass(frozen=True, slots=True)
class Replacement:
    at_us: int
    ratio: Fraction  # joins per failure of const churn and sessions

    def __str__(self) -> str:
        return f"at {_time(self.at_us)} set replacement ratio to {_percent(self.ratio)}"


@dataclass(frozen=True, slots=True)
class ConstChurn:
    from_us: int | None  # None: from the start of the workload to its end
    to_us: int | None
    amount: Amount
    each_us: int
    kind: Departure = "crash"

    def __str__(self) -> str:
        window = "" if self.from_us is None or self.to_us is None else _window(self.from_us, self.to_us) + " "
        return f"{window}const churn {self.amount} each {_time(self.each_us)}{_unless_crash(self.kind)}"


@dataclass(frozen=True, slots=True)
class Stop:
    at_us: int

    def __str__(self) -> str:
        return f"at {_time(self.at_us)} stop"


@dataclass(frozen=True, slots=True)
class Session:
    """Each process stays for a time of its own, then goes and is replaced."""

    law: Law
    time_us: int  # the exponential law's mean, Weibull's scale, the log-normal law's median, Pareto's minimum
    shape: float = 1.0  # of Weibull and Pareto; sigma of the log-normal law
    kind: Departure = "crash"

    def draw_us(self, rng: Random) -> int:
        match self.law:
            case "exponential":
                stay = rng.expovariate(1.0) * self.time_us
            case "weibull":
                stay = rng.weibullvariate(self.time_us, self.shape)
            case "lognormal":
                stay = rng.lognormvariate(math.log(self.time_us), self.shape)
            case "pareto":
                stay = rng.paretovariate(self.shape) * self.time_us
        return max(1, round(stay))

    def __str__(self) -> str:
        words = [_time(self.time_us)] if self.law == "exponential" else [_decimal(self.shape), _time(self.time_us)]
        if self.law == "lognormal":
            words.reverse()
        return f"session {self.law} {' '.join(words)}{_unless_crash(self.kind)}"


@dataclass(frozen=True, slots=True)
class Trace:
    file: str

    def __str__(self) -> str:
        return f"trace {self.file}"


Statement = Change | Replacement | ConstChurn | Stop | Session | Trace


@dataclass(frozen=True, slots=True)
class ChurnScript:
    statements: tuple[Statement, ...] = ()

    @property
    def stop_us(self) -> int:
        return min((s.at_us for s in self.statements if isinstance(s, Stop)), default=TIME_MAX_US)

    @property
    def end_us(self) -> int:
        """When the last statement that names its time is over; a run should last as long."""
        ends = [s.to_us for s in self.statements if isinstance(s, Change | ConstChurn) and s.to_us is not None]
        return min(max(ends, default=0), self.stop_us)

    def __str__(self) -> str:
        return "\n".join(map(str, self.statements))


# Reading a script


def parse_churn(text: str) -> ChurnScript:
    """Statements one per line or separated by `;`. Upper and lower case are the same, `#` starts a comment."""
    statements = [
        (number, _statement(number, part.strip()))
        for number, line in enumerate(text.splitlines(), 1)
        for part in line.partition("#")[0].split(";")
        if part.strip()
    ]
    script = ChurnScript(tuple(statement for _, statement in statements))
    if len(statements) > STATEMENTS_MAX:
        raise ConfigError(f"churn: expected at most {STATEMENTS_MAX} statements, got {len(statements)}")
    for kind in (Stop, Session):
        numbers = [number for number, statement in statements if isinstance(statement, kind)]
        if len(numbers) > 1:
            raise ConfigError(
                f"churn line {numbers[1]}: expected one {kind.__name__.lower()}, line {numbers[0]} has it"
            )
    for number, statement in statements:
        if not isinstance(statement, Stop) and _goes_beyond(statement, script.stop_us):
            raise ConfigError(f"churn line {number}: expected nothing after the stop, got {str(statement)!r}")
    return script


def _goes_beyond(statement: Statement, stop_us: int) -> bool:
    """Const churn may: the stop is what ends it."""
    starts_us = getattr(statement, "at_us", getattr(statement, "from_us", None))
    ends_us = statement.to_us if isinstance(statement, Change) else 0
    return starts_us is not None and (starts_us >= stop_us or ends_us > stop_us)


def _statement(number: int, text: str) -> Statement:
    for form, make in _FORMS.items():
        match = _PATTERNS[form].fullmatch(text)
        if match:
            try:
                return make(*match.groups())
            except ConfigError as error:
                raise ConfigError(f"churn line {number}: {error} in {text[:60]!r}") from None
    similar = [form for form in _FORMS if form.split()[0] == text.split(maxsplit=1)[0].lower()]
    raise ConfigError(f"churn line {number}: cannot read {text[:60]!r}; write {' | '.join(similar or _FORMS)}")


def _const_churn(start: str | None, end: str | None, amount: str, each: str, kind: str | None) -> ConstChurn:
    from_us, to_us = (None, None) if start is None or end is None else _window_us(start, end)
    each_us = _us(each)
    if each_us < EACH_MIN_US:
        raise ConfigError(f"expected an interval of at least {_time(EACH_MIN_US)}, got {each}")
    return ConstChurn(from_us, to_us, _amount(amount), each_us, _departure(kind))


def _session(law: Law, time: str, shape: str, kind: str | None) -> Session:
    if not (0.1 <= float(shape) <= 10 and _us(time) > 0):
        raise ConfigError("expected a time above 0 and a number from 0.1 to 10")
    return Session(law, _us(time), float(shape), _departure(kind))


def _us(text: str) -> int:
    us = parse_duration_us(text.lower())
    if us is None or us > TIME_MAX_US:
        raise ConfigError(f"expected a time of at most 366 days, got {text}")
    return us


def _window_us(start: str, end: str) -> tuple[int, int]:
    if _us(end) <= _us(start):
        raise ConfigError(f"expected a window that ends after it starts, got {start} to {end}")
    return _us(start), _us(end)


def _amount(text: str) -> Amount:
    if text.endswith("%"):
        return Amount(_share(text), is_share=True)
    if int(text) > COUNT_MAX:
        raise ConfigError(f"expected a count of at most {COUNT_MAX}, got {text}")
    return Amount(Fraction(int(text)))


def _share(percent: str) -> Fraction:
    share = Fraction(percent.rstrip("% ")) / 100
    if share > 1:
        raise ConfigError(f"expected a percentage from 0% to 100%, got {percent}")
    return share


def _departure(kind: str | None) -> Departure:
    return "leave" if (kind or "").lower() == "leave" else "crash"


_FORMS: dict[str, Callable[..., Statement]] = {
    "at TIME join|leave|crash AMOUNT": lambda at, kind, amount: Change(_us(at), _us(at), kind.lower(), _amount(amount)),
    "at TIME set replacement ratio to PERCENT": lambda at, percent: Replacement(_us(at), _share(percent)),
    "at TIME stop": lambda at: Stop(_us(at)),
    "from TIME to TIME join|leave|crash AMOUNT": lambda start, end, kind, amount: Change(
        *_window_us(start, end), kind.lower(), _amount(amount)
    ),
    "from TIME to TIME const churn AMOUNT each TIME [leave]": _const_churn,
    "const churn AMOUNT each TIME [leave]": lambda *rest: _const_churn(None, None, *rest),
    "session exponential TIME [leave]": lambda time, kind: _session("exponential", time, "1", kind),
    "session weibull NUMBER TIME [leave]": lambda shape, time, kind: _session("weibull", time, shape, kind),
    "session lognormal TIME NUMBER [leave]": lambda time, shape, kind: _session("lognormal", time, shape, kind),
    "session pareto NUMBER TIME [leave]": lambda shape, time, kind: _session("pareto", time, shape, kind),
    "trace FILE": Trace,
}
_PIECES = {
    "TIME": r"(\d+(?:\.\d+)?\s*(?:us|ms|s|min|h))",
    "AMOUNT": r"(\d{1,12}(?:\.\d{1,6})?\s*%|\d{1,12})",
    "PERCENT": r"(\d{1,12}(?:\.\d{1,6})?\s*%)",
    "NUMBER": r"(\d{1,12}(?:\.\d{1,6})?)",
    "FILE": r"(\S.*)",
    "join|leave|crash": r"(join|leave|crash)",
}


def _pattern(form: str) -> re.Pattern[str]:
    regex = r"\s+".join(_PIECES.get(word, word) for word in form.split())
    return re.compile(regex.replace(r"\s+[leave]", r"(?:\s+(leave|crash))?"), re.IGNORECASE | re.ASCII)


_PATTERNS = {form: _pattern(form) for form in _FORMS}


def read_trace(file: str) -> list[TraceRow]:
    """Rows (time_us, action, node) of a CSV file in order of time; the header is optional."""
    rows: list[TraceRow] = []
    try:
        with Path(file).open(encoding="utf-8", newline="") as lines:
            for number, cells in enumerate(csv.reader(lines), 1):
                if cells and (number > 1 or cells != TRACE_HEADER):
                    rows.append(_trace_row(f"{file}, line {number}", cells))
                if len(rows) > ROWS_MAX:
                    raise ConfigError(f"{file}, line {number}: expected at most {ROWS_MAX} rows")
    except (OSError, ValueError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{file}: {reason}; expected a CSV file of time_s,action,node") from None
    return sorted(rows, key=lambda row: row[0])


def _trace_row(where: str, cells: list[str]) -> TraceRow:
    try:
        time_s, action, node = (cell.strip().lower() for cell in cells)
        row = round(float(time_s) * 1e6), cast(Kind, action), int(node)
    except (ValueError, OverflowError):
        row = -1, "join", 0
    if row[1] not in ("join", "leave", "crash") or not 0 <= row[0] <= TIME_MAX_US or row[2] < 0:
        raise ConfigError(f"{where}: expected time_s,join|leave|crash,node like 12.5,crash,7; got {','.join(cells)!r}")
    return row


# Printing one


def _decimal(value: Fraction | float) -> str:
    return f"{float(value):.6f}".rstrip("0").rstrip(".")


def _percent(share: Fraction) -> str:
    return _decimal(share * 100) + "%"


def _time(us: int) -> str:
    size, unit = next((size, unit) for size, unit in ((1_000_000, "s"), (1000, "ms"), (1, "us")) if us % size == 0)
    return f"{us // size}{unit}"


def _window(from_us: int, to_us: int) -> str:
    return f"from {_time(from_us)} to {_time(to_us)}"


def _unless_crash(kind: Departure) -> str:
    return "" if kind == "crash" else f" {kind}"
