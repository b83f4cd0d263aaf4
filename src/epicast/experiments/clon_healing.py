"""Overlays of near and far neighbours while processes come and go and messages get lost. CLON's evaluation has none."""

from __future__ import annotations

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, NotMeasured, judged, quotient, stat
from epicast.experiments.clon_words import OVERLAYS
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.confidence import Stat
from epicast.pipeline.figures.time_series import Interval
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

SPREADS = {"flood": "flooding", "emergent": "Emergent"}
NETWORKS = {"connections": "connections", "datagrams": "datagrams"}
CHURN_S = 180
WANTED = (6, 2, 1)  # of nine links: to the own area, to others of the continent, to the other continent
NOT_PUBLISHED = "not measured: no churn and no loss"
WALKS = (
    "A copy of a subscription goes from process to process until somebody keeps it, over ten links and more. Over "
    "datagrams it is gone with the first message that is lost on its way and with the first dead neighbour that it is "
    "handed to, so renewed links are fewer than those that ran out. In single runs of Scamp, loss alone left 6.7 of "
    "8.8 links after eight minutes, and churn alone 4.2."
)


def evaluate(material: Material) -> Evaluation:
    results = material.results
    notes = (
        "The document has no such run. What is held against the measurements is what its overlays and its "
        "dissemination are for, with bounds of our own.",
        "A tenth of the processes is replaced in every minute, for three minutes; one transmission in a hundred is "
        "lost. Publishers are spared. Links last for two minutes and are renewed before, so in the five minutes before "
        "the first message every link has been made anew at least once.",
    )
    return Evaluation(checks=judged(CLAIMS, results), figures=_figures(results), tables=(_table(results),), notes=notes)


def of(results: Results, metric: str, overlay: str, spread: str, network: str) -> Stat:
    return stat(results, metric, overlay=overlay, spread=spread, network=network)


def _ends(results: Results, name: str, **labels: object) -> tuple[float, float]:
    """Of a series over pictures: at the beginning of the churn and at its end."""
    found = results.series(name, **labels)
    if found is None:
        raise NotMeasured(f"No run has a series of {name}")
    during = [value for time_s, value in zip(*found, strict=True) if 0 <= time_s <= CHURN_S]
    if not during:
        raise NotMeasured(f"There is no picture of {name} during the churn")
    return float(during[0]), float(during[-1])


def _whole(network: str) -> Claim:
    def judge(results: Results) -> Finding:
        found = {
            f"{name}, {called}": of(results, "overlay_largest_weak_share", overlay, spread, network)
            for overlay, name in OVERLAYS.items()
            for spread, called in SPREADS.items()
        }
        texts = {name: f"{each.mean:.4f}" for name, each in found.items()}
        reason = "Whole is taken as 0.99 of the processes that are up, in the last picture of the worst run."
        return Finding(wording.each(texts), all(each.min >= 0.99 for each in found.values()), reason)

    return Claim(
        f"clon-healing.whole-{network}",
        f"Over {NETWORKS[network]}, the overlay hangs together at the end.",
        NOT_PUBLISHED,
        judge,
    )


def _views(network: str) -> Claim:
    def judge(results: Results) -> Finding:
        texts, kept = {}, True
        for overlay, name in OVERLAYS.items():
            before, after = _ends(results, "overlay_degree_mean", overlay=overlay, spread="flood", network=network)
            kept = kept and after >= 0.85 * before
            texts[name] = f"{before:.2f} to {after:.2f}"
        reason = "Links of a process on average, with flooding. Taken as kept if no more than 15 % are lost."
        return Finding(wording.each(texts), kept, reason, WALKS)

    return Claim(
        f"clon-healing.views-{network}",
        f"Over {NETWORKS[network]}, views keep their size in three minutes of churn.",
        NOT_PUBLISHED,
        judge,
    )


def _judge_bias(results: Results) -> Finding:
    texts, kept = {}, True
    for overlay in ("clon", "balanced"):
        labels = {"overlay": overlay, "spread": "flood", "network": "connections"}
        near, far = (_ends(results, f"overlay_{where}_degree_mean", **labels) for where in ("near", "far"))
        before, after = (quotient(far[at], near[at] + far[at]) for at in (0, 1))
        kept = kept and abs(quotient(after, before) - 1) <= 0.15
        texts[OVERLAYS[overlay]] = f"{wording.percent(before)} to {wording.percent(after)}"
    reason = "Links to other areas, of all links. Taken as kept within 15 %."
    return Finding(wording.each(texts), kept, reason)


def _judge_grades(results: Results) -> Finding:
    texts, as_wanted = {}, True
    for overlay, name in OVERLAYS.items():
        found = [
            of(results, f"overlay_degree_mean_at_{distance}", overlay, "flood", "connections").mean
            for distance in range(len(WANTED))
        ]
        shares = [quotient(each, sum(found)) for each in found]
        texts[name] = " : ".join(f"{9 * share:.2f}" for share in shares)
        if overlay != "scamp":
            apart = [abs(9 * share - wanted) / wanted for share, wanted in zip(shares, WANTED, strict=True)]
            as_wanted = as_wanted and max(apart) <= 0.25
    reason = "In the last picture, of nine links. Taken as met within a quarter. Scamp does not know of distances."
    return Finding(wording.each(texts), as_wanted, reason)


def _delivered(spread: str, network: str, least: float) -> Claim:
    def judge(results: Results) -> Finding:
        found = {name: of(results, "delivery_ratio", overlay, spread, network) for overlay, name in OVERLAYS.items()}
        texts = {name: f"{each.mean:.5f} (worst run {each.min:.5f})" for name, each in found.items()}
        reason = (
            "Shares of what is owed to processes that are up from the publication to the end, also to those that "
            "joined a moment before it."
        )
        why_not = "" if network == "connections" else WALKS
        return Finding(wording.each(texts), all(each.mean >= least for each in found.values()), reason, why_not)

    bound = "everything" if least == 1 else f"{100 * least:g} % or more"
    return Claim(
        f"clon-healing.{spread}-{network}",
        f"Over {NETWORKS[network]}, {SPREADS[spread]} brings {bound} to those who stay.",
        NOT_PUBLISHED,
        judge,
    )


def _judge_saving(results: Results) -> Finding:
    texts, saves = {}, True
    for network, called in NETWORKS.items():
        most = of(results, "far_copies_per_message", "scamp", "flood", network)
        least = of(results, "far_copies_per_message", "balanced", "emergent", network)
        ratio = quotient(most.mean, least.mean)
        saves = saves and ratio >= 8
        texts[called] = f"{wording.mean(most)} and {wording.mean(least)}, {ratio:.0f} times"
    reason = (
        "Payloads that cross from area to area for each message: flooding over Scamp, and Emergent over balanced CLON. "
        "Without failures the document has twelve times, and eight are taken as enough."
    )
    return Finding(wording.each(texts), saves, reason)


CLAIMS = (
    *(_whole(network) for network in NETWORKS),
    *(_views(network) for network in NETWORKS),
    Claim(
        "clon-healing.bias",
        "CLON's links to other areas stay as rare as they were.",
        NOT_PUBLISHED,
        _judge_bias,
    ),
    Claim(
        "clon-healing.grades",
        "With three grades of distance, links are split as wanted: 6 : 2 : 1.",
        "two grades only, 7 : 2",
        _judge_grades,
    ),
    _delivered("emergent", "connections", 1.0),
    _delivered("flood", "connections", 0.999),
    _delivered("emergent", "datagrams", 0.99),
    _delivered("flood", "datagrams", 0.99),
    Claim(
        "clon-healing.saving",
        "Also in trouble, CLON with Emergent spares long links an order of magnitude of payloads.",
        "7,000 to 600, without failures",
        _judge_saving,
    ),
)


def _groups(network: str) -> dict[str, dict[str, dict[str, str]]]:
    return {
        called: {name: {"overlay": overlay, "spread": spread, "network": network} for overlay, name in OVERLAYS.items()}
        for spread, called in SPREADS.items()
    }


def _figures(results: Results) -> tuple[FigureBlock, ...]:
    flooded = {
        f"{name}, {called}": {"overlay": overlay, "spread": "flood", "network": network}
        for network, called in NETWORKS.items()
        for overlay, name in OVERLAYS.items()
    }
    churn = (Interval(0, CHURN_S, "churn"),)
    return (
        pictures.block(
            "degrees",
            "Links of a process",
            "Means over processes and seeds, with flooding: links to processes that were up.",
            pictures.over_time(results, "overlay_degree_mean", flooded, "links, mean", shaded=churn),
        ),
        pictures.block(
            "far",
            "Links to other areas",
            "Means over processes and seeds, with flooding.",
            pictures.over_time(results, "overlay_far_degree_mean", flooded, "far links, mean", shaded=churn),
        ),
        pictures.block(
            "strong",
            "Processes that can all reach each other",
            "The largest part that is strongly connected, as a share of the processes that were up. Newcomers are in "
            "it as soon as somebody has them in its view.",
            pictures.over_time(results, "overlay_largest_strong_share", flooded, "share", shaded=churn),
        ),
        *(_crossing(results, network) for network in NETWORKS),
        *(_latency(results, network) for network in NETWORKS),
    )


def _crossing(results: Results, network: str) -> FigureBlock:
    return pictures.block(
        f"crossing-{network}",
        f"Payloads that cross areas, over {NETWORKS[network]}",
        "For each message, all processes together. Means and 95 % intervals over seeds.",
        pictures.means(results, "far_copies_per_message", _groups(network), "payloads for each message"),
    )


def _latency(results: Results, network: str) -> FigureBlock:
    points = {
        f"{name}, {called}": labels for called, group in _groups(network).items() for name, labels in group.items()
    }
    return pictures.block(
        f"latency-{network}",
        f"Latency over {NETWORKS[network]}",
        "From publication to delivery, at processes that were up then; all seeds together. Emergent waits for its own "
        "area before it asks another, and pulls what was lost every five seconds.",
        pictures.cdfs(results, "latency_ms", points, "latency (ms)", log_x=True, quantiles=(0.5, 0.99)),
    )


def _table(results: Results) -> TableBlock:
    columns = {
        "deliveries missing": ("missing", 1.0),
        "largest part (%)": ("overlay_largest_weak_share", 100.0),
        "of it strongly connected (%)": ("overlay_largest_strong_share", 100.0),
        "links": ("overlay_degree_mean", 1.0),
        "to the own area": ("overlay_degree_mean_at_0", 1.0),
        "to the continent": ("overlay_degree_mean_at_1", 1.0),
        "across": ("overlay_degree_mean_at_2", 1.0),
        "dead links (%)": ("overlay_stale_share", 100.0),
        "payloads for each message: within areas": ("near_copies_per_message", 1.0),
        "within continents": ("copies_per_message_at_1", 1.0),
        "across continents": ("copies_per_message_at_2", 1.0),
        "latency, median (ms)": ("latency_ms_p50", 1.0),
        "99th percentile (ms)": ("latency_ms_p99", 1.0),
    }
    rows = [
        (
            called,
            way,
            name,
            *(
                wording.mean_or_nothing(results.stat(metric, overlay=overlay, spread=spread, network=network), factor)
                for metric, factor in columns.values()
            ),
        )
        for network, called in NETWORKS.items()
        for spread, way in SPREADS.items()
        for overlay, name in OVERLAYS.items()
    ]
    caption = "Links and parts are of the last picture. Means over seeds with 95 % intervals."
    return TableBlock("trouble", "In trouble", caption, ("network", "spread by", "overlay", *columns), tuple(rows))
