"""How many payloads cross long links, by overlay and by how messages spread (CLON, figures 5.10 and 5.11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, judged, quotient, stat
from epicast.experiments.clon_words import OVERLAYS, scale_of, scaled, traffic_columns
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.confidence import Stat
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

SPREADS = {
    "flood": "flooding",
    "naive": "naive",
    "single": "single",
    "delayed": "delayed",
}  # all but the first Emergent
X = "flooding, or Emergent with a scheduler"
EMERGENT = ("naive", "single", "delayed")
FAR_PUBLISHED = {"flood": {"scamp": 7000.0, "clon": 1900.0}, "naive": {"scamp": 2000.0, "clon": 600.0}}
NAIVE = {"scamp": (1800, 2600), "clon": (450, 750)}
NEAR_THERE = 0.01
BACK = (
    "A message does not go back over the link that it came by, so a few copies less than links; such links are rarer "
    "than one in a hundred."
)


def evaluate(material: Material) -> Evaluation:
    results = material.results
    notes = (
        "Numbers are of one process and a thousand messages, as in the document, where every process publishes one.",
        "Every link takes one step, near or far, as in the document. Emergent pushes payloads within an area and "
        "advertises messages to other areas. Naive: everyone who advertises is asked, until the payload is there; the "
        "document does not say how it asks, and only this gives its numbers. Single: one is asked at a time. Delayed: "
        "the own area gets a chance first, which is epicast's default.",
    )
    return Evaluation(checks=judged(CLAIMS, results), figures=_figures(results), tables=(_table(results),), notes=notes)


def far(results: Results, overlay: str, spread: str) -> Stat:
    return scaled(results, "far_copies_mean", overlay=overlay, spread=spread)


def _told(found: Mapping[str, Stat]) -> str:
    return wording.each({OVERLAYS[overlay]: wording.mean(each) for overlay, each in found.items()})


# Figure 5.10


def _judge_total(results: Results) -> Finding:
    texts, equal = {}, True
    for overlay, name in OVERLAYS.items():
        labels = {"overlay": overlay, "spread": "flood"}
        total = sum(scaled(results, f"{where}_copies_mean", **labels).mean for where in ("near", "far"))
        expected = 1000 * stat(results, "overlay_degree_mean", **labels).mean
        equal = equal and abs(quotient(total, expected) - 1) <= NEAR_THERE
        texts[name] = f"{total:,.0f} against {expected:,.0f}"
    return Finding(wording.each(texts), equal, f"Taken as equal within 1 %. {BACK}")


def _judge_equal(
    results: Results, metric: str, degree: str, spreads: Iterable[str], tolerance: float, reason: str
) -> Finding:
    """A thousand times the links."""
    texts, equal = {}, True
    for spread in spreads:
        for overlay, name in OVERLAYS.items():
            found = scaled(results, metric, overlay=overlay, spread=spread)
            expected = 1000 * stat(results, degree, overlay=overlay, spread=spread).mean
            equal = equal and abs(quotient(found.mean, expected) - 1) <= tolerance
            texts[f"{name}{'' if spread == 'flood' else f', {spread}'}"] = f"{found.mean:,.0f} against {expected:,.0f}"
    return Finding(wording.each(texts), equal, f"Taken as equal within {100 * tolerance:.0f} %. {reason}")


def _judge_threefold(results: Results) -> Finding:
    found = {overlay: far(results, overlay, "flood") for overlay in ("scamp", "clon")}
    ratio = quotient(found["scamp"].mean, found["clon"].mean)
    reason = (
        "The document's CLON has 1.9 far neighbours of 9, and here are a few more than the 2 wanted: a newcomer's "
        "own link goes to its contact, which is drawn among all and is far in four of five cases."
    )
    return Finding(f"{_told(found)}; {ratio:.2f} times", ratio >= 3, reason)


def _judge_balanced(results: Results) -> Finding:
    texts, alike = {}, True
    for spread, name in (("flood", "flooding"), ("naive", "naive")):
        found = {overlay: far(results, overlay, spread) for overlay in ("clon", "balanced")}
        change = quotient(found["balanced"].mean, found["clon"].mean) - 1
        alike = alike and abs(change) <= 0.1
        texts[name] = f"{_told(found)}: {100 * change:+.1f} %"
    return Finding(wording.each(texts), alike, "Almost none is taken as less than 10 %.")


def _judge_complete(results: Results) -> Finding:
    missing = {
        (overlay, spread): stat(results, "missing", overlay=overlay, spread=spread)
        for overlay in OVERLAYS
        for spread in SPREADS
    }
    owed = sum(
        stat(results, "owed", overlay=overlay, spread=spread).mean * found.n
        for (overlay, spread), found in missing.items()
    )
    lost = sum(round(found.mean * found.n) for found in missing.values())
    reason = "Directed links may leave somebody whom no way leads to; then it gets nothing, whatever is pushed."
    return Finding(f"{lost:,} of {owed:,.0f} deliveries missing in all runs", lost == 0, reason)


# Figure 5.11


def _naive(overlay: str) -> Claim:
    low, high = NAIVE[overlay]
    published = f"{'slightly above 2,000' if overlay == 'scamp' else 'about 600'} (5.11)"

    def judge(results: Results) -> Finding:
        found = far(results, overlay, "naive")
        return Finding(wording.mean(found), low <= found.mean <= high, f"Taken as met from {low:,} to {high:,}.")

    return Claim(
        f"clon-traffic.naive-{overlay}",
        f"With Emergent over {OVERLAYS[overlay]}, a process gets {'2,000' if overlay == 'scamp' else '600'} payloads "
        "from other areas.",
        published,
        judge,
    )


def _judge_fewer(results: Results) -> Finding:
    texts, fewer = {}, True
    for overlay, name in OVERLAYS.items():
        found = [far(results, overlay, spread) for spread in EMERGENT]
        fewer = fewer and found[0].mean > found[1].mean > found[2].mean
        texts[name] = ", ".join(wording.mean(each) for each in found)
    reason = (
        "The document does not say how payloads are asked for. A prototype of one request at a time had 807 over Scamp "
        "and 363 over CLON."
    )
    return Finding(f"naive, single and delayed: {wording.each(texts)}", fewer, reason)


def _judge_near(results: Results) -> Finding:
    found = {
        overlay: scaled(results, "near_copies_mean", overlay=overlay, spread="naive") for overlay in ("scamp", "clon")
    }
    return Finding(_told(found), found["clon"].mean >= 3 * found["scamp"].mean, "Much is taken as three times.")


def _judge_advertised(results: Results) -> Finding:
    found = {
        overlay: scaled(results, "far_advertisements_mean", overlay=overlay, spread="naive")
        for overlay in ("scamp", "clon")
    }
    return Finding(_told(found), found["scamp"].mean >= 3 * found["clon"].mean, "Far more is taken as three times.")


def _judge_magnitude(results: Results) -> Finding:
    most, least = far(results, "scamp", "flood"), far(results, "clon", "naive")
    ratio = quotient(most.mean, least.mean)
    best = quotient(most.mean, far(results, "clon", "delayed").mean)
    text = f"{wording.mean(most)} and {wording.mean(least)}: {ratio:.1f} times; {best:.1f} times if delayed"
    return Finding(text, ratio >= 8, "Taken as met from eight times on, as 7,000 over 600 is twelve.")


CLAIMS = (
    Claim(
        "clon-traffic.total",
        "Flooding brings a process as many payloads as there are messages times its links.",
        "about 9,000 (5.10)",
        _judge_total,
    ),
    Claim(
        "clon-traffic.far",
        "From other areas come as many as there are far links.",
        "nearly 7,000 with Scamp, slightly below 2,000 with CLON (5.10)",
        lambda results: _judge_equal(results, "far_copies_mean", "far_degree_mean", ("flood",), NEAR_THERE, BACK),
    ),
    Claim(
        "clon-traffic.threefold",
        "CLON brings less than a third of Scamp's payloads over long links.",
        "better than three times (5.10)",
        _judge_threefold,
    ),
    _naive("scamp"),
    _naive("clon"),
    Claim(
        "clon-traffic.scheduler",
        "Asking one at a time, and later the own area first, crosses long links less often.",
        "not said how payloads are asked for",
        _judge_fewer,
    ),
    Claim(
        "clon-traffic.advertisements",
        "Every far link carries one advertisement of each message.",
        "advertisements are all remote (5.11)",
        lambda results: _judge_equal(
            results, "far_advertisements_mean", "far_degree_mean", ("naive", "single"), 0.02, BACK
        ),
    ),
    Claim(
        "clon-traffic.near",
        "Every near link carries the payload of each message.",
        "local payloads are pushed (5.11)",
        lambda results: _judge_equal(results, "near_copies_mean", "near_degree_mean", ("naive", "single"), 0.02, BACK),
    ),
    Claim(
        "clon-traffic.near-more",
        "Payloads from the own area are many more with CLON.",
        "much higher in CLON (5.11)",
        _judge_near,
    ),
    Claim(
        "clon-traffic.advertised",
        "Scamp needs far more advertisements.",
        "far more in Scamp (5.11)",
        _judge_advertised,
    ),
    Claim(
        "clon-traffic.magnitude",
        "From flooding over Scamp to Emergent over CLON, payloads on long links become fewer by an order of magnitude.",
        "7,000 to 600 (5.11)",
        _judge_magnitude,
    ),
    Claim(
        "clon-traffic.balanced",
        "Balancing hardly changes what crosses long links.",
        "minimally lower, almost no change (5.10, 5.11)",
        _judge_balanced,
    ),
    Claim("clon-traffic.complete", "Everybody gets everything.", "no failures, all delivered", _judge_complete),
)


def _groups() -> dict[str, dict[str, dict[str, str]]]:
    return {
        name: {spread: {"overlay": overlay, "spread": key} for key, spread in SPREADS.items()}
        for overlay, name in OVERLAYS.items()
    }


def _figures(results: Results) -> tuple[FigureBlock, ...]:
    scale = scale_of(results)
    published = {
        name: {SPREADS[spread]: values[overlay] for spread, values in FAR_PUBLISHED.items() if overlay in values}
        for overlay, name in OVERLAYS.items()
        if overlay != "balanced"
    }
    shown = {
        "far": ("far_copies", "Payloads from other areas", "Figures 5.10 and 5.11.", published),
        "near": ("near_copies", "Payloads from the own area", "Figures 5.10 and 5.11.", None),
        "advertised": (
            "far_advertisements",
            "Advertisements from other areas",
            "Figure 5.11: there are none within an area.",
            None,
        ),
    }
    received = tuple(
        pictures.block(
            key,
            title,
            f"{which} Percentiles over the processes, for a thousand messages; means over seeds.",
            pictures.percentiles(
                results, name, _groups(), "received by a process", x_label=X, scale=scale, published=values
            ),
        )
        for key, (name, title, which, values) in shown.items()
    )
    steps = pictures.block(
        "latency",
        "Steps until everybody has a message",
        "Means over messages and seeds with 95 % intervals. What is advertised takes three steps instead of one.",
        pictures.means(results, "last_receiver_ms_mean", _groups(), "steps to the last delivery", x_label=X),
    )
    return (*received, steps)


def _table(results: Results) -> TableBlock:
    columns = {
        **traffic_columns(results),
        "far links": ("far_degree_mean", 1.0),
        "payload bytes that crossed areas (%)": ("far_payload_bytes_share", 100.0),
        "steps to the last delivery": ("last_receiver_ms_mean", 1.0),
        "delivered (%)": ("delivery_ratio", 100.0),
    }
    rows = []
    for spread, name in SPREADS.items():
        for overlay, called in OVERLAYS.items():
            told = FAR_PUBLISHED.get(spread, {}).get(overlay)
            found = (
                (results.stat(metric, overlay=overlay, spread=spread), factor) for metric, factor in columns.values()
            )
            cells = [wording.mean_or_nothing(each, factor) for each, factor in found]
            rows.append((name, called, wording.UNKNOWN if told is None else f"{told:,.0f}", *cells))
    header = ("spread by", "overlay", "published", *columns)
    caption = (
        "Of one process and a thousand messages; published are payloads from other areas. Means over seeds with 95 % "
        "intervals."
    )
    return TableBlock("traffic", "What a process receives", caption, header, tuple(rows))
