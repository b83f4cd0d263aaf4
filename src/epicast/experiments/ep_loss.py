"""EpTO over a network that loses balls: the holes that are left, against those that balls and bins predict."""

from __future__ import annotations

from itertools import pairwise, product

from epicast.core.balls_and_bins import unreached
from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, judged, quotient, stat
from epicast.experiments.epto_words import (
    ALWAYS,
    CLOCKS,
    DELAYS,
    HOLES,
    cells,
    hole_free,
    in_order,
    label_of,
    numbers,
    percents,
    total,
)
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

PROCESSES = 100
BALLS = {"default": (17, 7), "longer": (17, 10), "weak": (4, 5)}
"""K and TTL."""
NAMES = {balls: f"K {k}, TTL {ttl}" for balls, (k, ttl) in BALLS.items()}
NOBODY_SAYS = "nobody ran it"


def evaluate(material: Material) -> Evaluation:
    results = material.results
    notes = (
        "The prediction is of balls and bins in step: the part of the other processes that no ball reaches in TTL "
        "rounds, if as many are hit in each round as is to be expected. It leaves out two things more. Rounds are not "
        "in step, and the oldest copy counts: an event uses up its rounds faster than it is thrown. And what is "
        "reached too late is dropped.",
        ALWAYS,
    )
    return Evaluation(checks=judged(CLAIMS, results), figures=_figures(results), tables=(_table(results),), notes=notes)


def losses(results: Results, high: float = 1.0) -> list[str]:
    return [label_of(results, "loss", loss) for loss in numbers(results, "loss") if loss <= high]


def predicted(balls: str, loss: str) -> float:
    k, ttl = BALLS[balls]
    return unreached(PROCESSES, k, ttl, float(loss))[-1]


def unreached_share(results: Results, clock: str, balls: str, loss: str) -> float:
    """Of the deliveries by others: those of which no copy ever came, as far as somebody else has the event."""
    labels = {"clock": clock, "balls": balls, "loss": loss}
    missing, late, owed, own = (stat(results, name, **labels).mean for name in ("missing", "late", "owed", "messages"))
    return quotient(max(0.0, missing - late), owed - own)


def _judge_order(results: Results) -> Finding:
    everywhere = [
        {"clock": clock, "balls": balls, "loss": loss} for clock, balls, loss in product(CLOCKS, BALLS, losses(results))
    ]
    ordered = in_order(results, everywhere)
    holes, owed = (total(results, metric, everywhere) for metric in ("holes", "owed"))
    text = f"{'all' if ordered else 'not all'} in one order, with {holes:,} holes among {owed:,} deliveries"
    return Finding(text, ordered)


def _free(results: Results, clock: str, balls: str, high: float) -> Finding:
    found = {f"loss {loss}": hole_free(results, clock=clock, balls=balls, loss=loss) for loss in losses(results, high)}
    return Finding(percents(found), all(each.mean == 1 for each in found.values()))


def _judge_default(results: Results) -> Finding:
    found = _free(results, "global", "default", 0.4)
    reason = (
        "Processes without a hole. A prototype had no holes up to 40 % loss, in one run. Balls and bins predict none "
        "at all here: whoever has a hole got a copy, but so late that the event's turn was over."
    )
    return Finding(
        found.measured, found.holds, reason, "The wait of TTL rounds leaves nothing to spare: see the longer one."
    )


def _judge_longer(results: Results) -> Finding:
    found = _free(results, "global", "longer", 0.4)
    return Finding(found.measured, found.holds, "Processes without a hole, with c = 1.43 instead of 1.")


def _judge_logical(results: Results) -> Finding:
    found = _free(results, "logical", "default", 0.6)
    first_balls = 0.6 ** BALLS["default"][0]
    return Finding(
        found.measured,
        found.holds,
        "Processes without a hole: logical clocks wait for twice as many rounds.",
        "In its first round only the publisher throws an event: where all of these balls get lost, nobody else has it. "
        f"At 60 % loss that happens to one event in {1 / first_balls:,.0f}.",
    )


def _judge_more(results: Results) -> Finding:
    texts, rises = {}, True
    for clock, balls in product(CLOCKS, BALLS):
        found = [
            1 - stat(results, "delivery_ratio", clock=clock, balls=balls, loss=loss).mean for loss in losses(results)
        ]
        rises = rises and all(b >= a - 1e-4 for a, b in pairwise(found)) and (balls != "weak" or found[-1] > found[0])
        texts[f"{NAMES[balls]}, {clock}"] = ", ".join(wording.percent(each) for each in found)
    return Finding(wording.each(texts), rises, f"Missing deliveries at a loss of {', '.join(losses(results))}.")


def _judge_predicted(results: Results) -> Finding:
    texts, close = {}, True
    for loss in losses(results):
        measured = [unreached_share(results, clock, "weak", loss) for clock in CLOCKS]
        expected = predicted("weak", loss)
        close = close and all(each >= 0.9 * expected for each in measured)
        shown = " and ".join(wording.percent(each) for each in measured)
        texts[f"loss {loss}"] = f"{shown} where {wording.percent(expected)} are predicted"
    reason = (
        "Global and logical clock, weak balls. Asked is that the prediction is a lower bound, within a tenth of "
        "itself: rounds that are not in step reach fewer."
    )
    return Finding(wording.each(texts), close, reason)


CLAIMS = (
    Claim("ep-loss.order", "However much is lost, there is one order.", "never an inversion", _judge_order),
    Claim(
        "ep-loss.default",
        "With the document's K and TTL and a global clock, two balls in five may get lost.",
        NOBODY_SAYS,
        _judge_default,
    ),
    Claim("ep-loss.longer", "With three rounds more, nobody misses anything then.", NOBODY_SAYS, _judge_longer),
    Claim("ep-loss.logical", "With logical clocks, three in five may get lost.", NOBODY_SAYS, _judge_logical),
    Claim("ep-loss.more", "The more is lost, the more is missing.", NOBODY_SAYS, _judge_more),
    Claim(
        "ep-loss.predicted",
        "Of weak balls, what no ball reaches is at least what balls and bins predict.",
        "the bound of section 5.2.3",
        _judge_predicted,
    ),
)


def _figures(results: Results) -> tuple[FigureBlock, ...]:
    curves: dict[str, dict[float, tuple[str, pictures.Labels]]] = {
        f"{NAMES[balls]}, {clock}": {
            100 * float(loss): ("hole_free_share", {"clock": clock, "balls": balls, "loss": loss})
            for loss in losses(results)
        }
        for balls in BALLS
        for clock in CLOCKS
    }
    delivered: dict[str, dict[float, tuple[str, pictures.Labels]]] = {
        name: {x: ("delivery_ratio", labels) for x, (_, labels) in places.items()} for name, places in curves.items()
    }
    bound = {
        f"{NAMES['weak']}, {clock}": [
            (100 * float(loss), 100 * (1 - predicted("weak", loss))) for loss in losses(results)
        ]
        for clock in CLOCKS[:1]
    }
    return (
        pictures.block(
            "delivered",
            "Deliveries",
            "Share of what was owed. The marks are what balls and bins predict for weak balls. 95 % intervals over "
            "seeds.",
            pictures.against(results, delivered, "messages lost (%)", "delivered (%)", scale=100.0, published=bound),
        ),
        pictures.block(
            "free",
            "Processes without a hole",
            "Means with 95 % intervals over seeds.",
            pictures.against(results, curves, "messages lost (%)", "processes without a hole (%)", scale=100.0),
        ),
    )


def _table(results: Results) -> TableBlock:
    columns = {**HOLES, "delivered (%)": ("delivery_ratio", 100.0), **DELAYS}
    rows = [
        (
            NAMES[balls],
            clock,
            loss,
            f"{predicted(balls, loss):.1e}",
            *cells(results, columns, clock=clock, balls=balls, loss=loss),
        )
        for balls, clock, loss in product(BALLS, CLOCKS, losses(results))
    ]
    header = ("balls", "clock", "loss", "predicted unreached", *columns)
    return TableBlock("loss", "By loss", "Means over seeds with 95 % intervals.", header, tuple(rows))
