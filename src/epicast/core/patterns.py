"""Topics are texts with levels, like `prices/eur`; a pattern may have `*` for one level and `**` for any number.

The wildcards of MQTT (`+`, `#`), NATS (`>`) and AMQP (`#`) are refused where they would be wildcards there, in topics
and in patterns: taken as text, they would match nothing, and nothing would say so.
"""

from __future__ import annotations

from functools import lru_cache

from epicast.core.errors import EpicastError
from epicast.core.message import TOPIC_LENGTH_MAX

ONE, ANY = "*", "**"
FOREIGN = ("+", "#", ">")
HINT = "write * for one level (+ elsewhere) and ** for any number of levels (# or > elsewhere), with / between levels"
FINE_MAX = 4096
_fine: set[str] = set()  # topics that were looked at before


def require_topic(topic: str) -> str:
    """One that can be published on, as a plain `str`: it may come as a member of an enum."""
    if type(topic) is str and topic in _fine:
        return topic
    topic = require_pattern(topic)
    if "*" in topic or _has_foreign_wildcard(topic):
        raise EpicastError(f"topic {topic!r}: wildcards are for subscriptions; publish on one topic")
    if len(_fine) >= FINE_MAX:
        _fine.clear()
    _fine.add(topic)
    return topic


def require_pattern(pattern: str) -> str:
    """A text that topics are made of, as a plain `str`; `compiled` looks at its wildcards."""
    if not isinstance(pattern, str) or not pattern or len(pattern) > TOPIC_LENGTH_MAX:
        raise EpicastError(f"a topic is a text of 1 to {TOPIC_LENGTH_MAX} characters, got {pattern!r}"[:200])
    if any(not level for level in pattern.split("/")):
        raise EpicastError(f"topic {pattern!r} has an empty level: no / at its ends, none twice")
    try:
        pattern.encode()
    except UnicodeEncodeError:
        raise EpicastError(f"topic {pattern!r} cannot be written in UTF-8") from None
    return str.__str__(pattern)


def _has_foreign_wildcard(text: str) -> bool:
    """NATS and AMQP have dots between levels."""
    return any(part in FOREIGN for level in text.split("/") for part in level.split("."))


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> tuple[str, ...]:
    """Its levels; raises if it is none."""
    require_pattern(pattern)
    if _has_foreign_wildcard(pattern):
        raise EpicastError(f"pattern {pattern!r}: {HINT}")
    levels = tuple(pattern.split("/"))
    for level in levels:
        if "*" in level and level not in (ONE, ANY):
            raise EpicastError(f"pattern {pattern!r}: * and ** stand for whole levels, with / between levels")
    return levels


def matches(pattern: str, topic: str) -> bool:
    """Goes back to the last ** only, so it takes no longer than levels times levels, whatever the pattern."""
    wanted, given = compiled(pattern), topic.split("/")
    at = here = 0
    any_at, any_to = -1, 0  # the last **, and where what it stands for ends
    while here < len(given):
        want = wanted[at] if at < len(wanted) else None
        if want == ANY:
            any_at, any_to = at, here
            at += 1
        elif want in (ONE, given[here]):
            at += 1
            here += 1
        elif any_at >= 0:
            any_to += 1
            at, here = any_at + 1, any_to
        else:
            return False
    return all(level == ANY for level in wanted[at:])


def has_wildcard(pattern: str) -> bool:
    return any(level in (ONE, ANY) for level in compiled(pattern))


def covers(wide: str, narrow: str) -> bool:
    """Is every topic that matches the second pattern sure to match the first? May say no where it is so."""
    levels = compiled(narrow)
    if ANY in levels and ANY not in compiled(wide):
        return False  # any number of levels is more than one
    return matches(wide, narrow)


def overlap(one: str, other: str) -> bool:
    """Is there a topic that matches both?"""
    return _overlap(compiled(one), compiled(other))


@lru_cache(maxsize=4096)
def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    if not one or not other:
        return all(level == ANY for level in one or other)
    if one[0] == ANY or other[0] == ANY:
        return _overlap(one[1:], other) or _overlap(one, other[1:])
    return (one[0] == other[0] or ONE in (one[0], other[0])) and _overlap(one[1:], other[1:])
