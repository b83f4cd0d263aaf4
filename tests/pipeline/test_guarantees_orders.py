"""The checkers of order against an oracle that looks at every pair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from epicast.pipeline import tables
from epicast.pipeline.duck import DuckKernel
from epicast.pipeline.guarantees.causal import causal
from epicast.pipeline.guarantees.fifo import fifo
from epicast.pipeline.guarantees.ground import lay
from epicast.pipeline.guarantees.total import total
from epicast.pipeline.guarantees.verdict import Outcome
from epicast.pipeline.kernel import RunFacts
from tests.pipeline.histories import History, Post

Action = tuple[int, int]  # who, and which message it delivers; below 0: it publishes one more on a topic
Pair = tuple[Post, Post]
PROCESSES, MESSAGES, TOPICS = 4, 7, 2
HOLES = 5  # that agreement is said to have found

publishing, delivering = st.integers(-TOPICS, -1), st.integers(0, MESSAGES - 1)
acts = st.one_of(publishing, delivering, delivering)
actions = st.lists(st.tuples(st.integers(0, PROCESSES - 1), acts), min_size=8, max_size=45)


class Story:
    """What the actions come to: nobody delivers what is not there yet, nor anything twice."""

    def __init__(self, doings: Iterable[Action]) -> None:
        self.history = History(PROCESSES)
        self.posts: list[Post] = []
        self.delivered: list[list[Post]] = [[] for _ in range(PROCESSES)]
        self.past: dict[Post, set[Post]] = {}  # what a message follows
        self._known: list[set[Post]] = [set() for _ in range(PROCESSES)]
        for node, what in doings:
            if what < 0 and len(self.posts) < MESSAGES:
                self._publish(node, f"topic {what}")
            elif 0 <= what < len(self.posts) and self.posts[what] not in self.delivered[node]:
                self._deliver(node, self.posts[what])

    def _publish(self, node: int, topic: str) -> None:
        post = self.history.publish(node, topic, own=False)
        known = self._known[node]
        self.past[post] = known | {older for newer in known for older in self.past[newer]}
        known.add(post)
        self.posts.append(post)

    def _deliver(self, node: int, post: Post) -> None:
        self.history.deliver(node, post)
        self.delivered[node].append(post)
        self._known[node].add(post)

    def orders(self) -> Iterator[tuple[int, Post, Post]]:
        """Every pair that a process delivered, in its order."""
        for node, posts in enumerate(self.delivered):
            yield from ((node, one, two) for one, two in combinations(posts, 2))

    def late_by_fifo(self) -> set[tuple[int, Post]]:
        return {
            (node, two)
            for node, one, two in self.orders()
            if one[0] == two[0] and one.topic == two.topic and one.seq > two.seq
        }

    def wrong_by_cause(self) -> set[tuple[int, Post, Post]]:
        return {(node, one, two) for node, one, two in self.orders() if two in self.past[one]}

    def followed(self) -> set[Pair]:
        """Somebody delivered the first before the second, both of one topic."""
        return {(one, two) for _, one, two in self.orders() if one.topic == two.topic}

    def inverted(self) -> set[frozenset[Post]]:
        """Somebody else the other way round."""
        follows = self.followed()
        return {frozenset(pair) for pair in follows if pair[::-1] in follows}

    def without_a_place(self) -> set[Post]:
        """On a cycle of the relation "somebody delivered this before that"."""
        follows = self.followed()
        for middle, one, two in product(self.posts, repeat=3):
            if (one, middle) in follows and (middle, two) in follows:
                follows.add((one, two))
        return {one for one, two in follows if (two, one) in follows}


def judged(story: Story) -> dict[str, Outcome]:
    with TemporaryDirectory() as folder:
        run = story.history.save(Path(folder))
        facts = RunFacts.of(run.info)
        with DuckKernel(run) as kernel:
            tables.define(kernel, facts)
            ground = lay(kernel, facts)
            return {"fifo": fifo(ground), "causal": causal(ground), "total": total(ground, holes=HOLES)}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(actions)
@example([(0, -1), (1, 0), (1, -1), (2, 1), (2, -1), (3, 2), (3, 0)])
@example([(0, -1), (1, -1), (2, -1), (0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 0)])
@example([(0, -1), (1, -2), (2, 0), (2, 1), (3, 1), (3, 0)])
@example([(0, -1), (1, -1), (0, -2), (2, 0), (2, 2), (2, 1), (3, 1), (3, 2), (3, 0)])
def test_orders_are_judged_as_by_looking_at_every_pair(doings: list[Action]) -> None:
    story = Story(doings)
    found = judged(story)
    assert found["fifo"].violations == len(story.late_by_fifo())
    assert found["total"].violations == len(story.without_a_place())
    numbers = found["total"].numbers
    assert (numbers["inversions"], numbers["holes"]) == (len(story.inverted()), HOLES)
    assert (numbers["knots"] > 0) == bool(story.without_a_place())
    wrong = story.wrong_by_cause()
    assert (found["causal"].violations > 0) == bool(wrong)
    assert found["causal"].violations <= len({(node, early) for node, early, _ in wrong})
    _findings_are_true(story, found, wrong)


def test_in_a_long_knot_pairs_that_are_far_apart_are_left_out_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("epicast.pipeline.guarantees.inversions.BLOCK", 3)
    messages = range(MESSAGES)
    story = Story(
        [*((0, -1) for _ in messages), *((1, each) for each in messages), *((2, 6 - each) for each in messages)]
    )
    found = judged(story)["total"]
    assert len(story.inverted()) == 21
    assert found.numbers["inversions"] == 3 + 3  # of two blocks of three; the seventh message is alone
    assert found.violations == MESSAGES
    assert found.reason == "at least 6 inversions and 5 holes; 7 messages in 1 knot"


def _findings_are_true(story: Story, found: dict[str, Outcome], wrong: set[tuple[int, Post, Post]]) -> None:
    """Each shows a pair that is in the wrong order; for total order a chain of pairs that closes."""
    rows = story.history.rows
    of = {(post.source, post.seq): post for post in story.posts}

    def deliveries(numbers: tuple[int, ...]) -> list[tuple[int, Post]]:
        picked = (rows[number] for number in numbers if rows[number]["kind"] == 17)
        return [(row["node"], of[row["source"], row["seq"]]) for row in picked]

    for finding in found["causal"].findings:
        shown = deliveries(finding.rows)
        assert any((node, one, two) in wrong for (node, one), (other, two) in combinations(shown, 2) if node == other)
    tangled = story.without_a_place()
    for finding in found["total"].findings:
        assert {post for _, post in deliveries(finding.rows)} <= tangled
    late = story.late_by_fifo()
    for finding in found["fifo"].findings:
        assert deliveries(finding.rows)[-1] in late
