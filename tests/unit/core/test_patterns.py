"""Topics and the patterns that choose among them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicast.core.errors import EpicastError
from epicast.core.patterns import compiled, has_wildcard, matches, require_topic

levels = st.text(st.characters(codec="utf-8", exclude_characters="/*+#>"), min_size=1, max_size=4)
topics = st.lists(levels, min_size=1, max_size=4).map("/".join)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("a", ["a"], ["b", "a/b", "aa"]),
        ("prices/*", ["prices/eur"], ["prices", "prices/eur/spot", "price/eur"]),
        ("*/eur", ["prices/eur"], ["eur", "a/b/eur"]),
        ("**", ["a", "a/b", "a/b/c"], []),
        ("a/**", ["a", "a/b", "a/b/c"], ["b", "ab", "ab/c"]),
        ("a/**/z", ["a/z", "a/b/z", "a/b/c/z"], ["a", "a/b", "z", "a/zz"]),
        ("a/*/z", ["a/b/z"], ["a/z", "a/b/c/z"]),
        ("**/z", ["z", "a/z", "a/b/z"], ["zz", "a/zz", "z/a"]),
        ("a.c", ["a.c"], ["abc"]),
    ],
)
def test_patterns(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [topic for topic in (*yes, *no) if matches(pattern, topic)] == yes


@given(topics)
def test_a_topic_matches_itself_and_everything_matches_all(topic: str) -> None:
    require_topic(topic)
    assert matches(topic, topic)
    assert matches("**", topic)
    assert matches("/".join("*" for _ in topic.split("/")), topic)


@pytest.mark.parametrize("topic", ["", "/a", "a/", "a//b", "x" * 256, "a/*", "a/#", "+/b", "a.>", 7])
def test_what_cannot_be_published_on(topic: str) -> None:
    with pytest.raises(EpicastError):
        require_topic(topic)


@pytest.mark.parametrize("pattern", ["", "a/", "a*", "a/b**", "***", "x" * 256])
def test_what_is_no_pattern(pattern: str) -> None:
    with pytest.raises(EpicastError):
        compiled(pattern)


@pytest.mark.parametrize("pattern", ["#", "prices/#", "+/eur", "prices/+/spot", ">", "prices.>", "a/b.#", "a.+.c"])
def test_wildcards_of_other_systems_are_refused_with_ours(pattern: str) -> None:
    with pytest.raises(EpicastError, match=r"write \* for one level .* and \*\* for any number of levels"):
        compiled(pattern)


@pytest.mark.parametrize("topic", ["c++/build", "issue#5", "a>b", "x+y", "1.08"])
def test_other_uses_of_their_characters_are_text(topic: str) -> None:
    require_topic(topic)
    assert matches(topic, topic)


@pytest.mark.parametrize(("pattern", "expected"), [("a/b", False), ("a/*", True), ("**", True), ("**/z", True)])
def test_a_pattern_has_wildcards_or_is_a_topic(pattern: str, expected: bool) -> None:
    assert has_wildcard(pattern) == expected


def test_a_hostile_pattern_takes_no_time() -> None:
    pattern = "/".join(["**"] * 40)
    assert matches(pattern, "/".join("a" * 100))
    assert not matches(pattern + "/z", "/".join("a" * 100))
