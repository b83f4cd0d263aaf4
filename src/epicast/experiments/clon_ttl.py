"""Pushing payloads over long links for the first rounds: what it costs and what it saves (CLON, figure 5.12)."""

from __future__ import annotations

from itertools import pairwise

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, judged, quotient, stat
from epicast.experiments.clon_words import scale_of, scaled, traffic_columns
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.confidence import Stat
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

TTLS = tuple(range(10))
FLOODING = "flooding"
LEVEL_STEPS = 0.05  # what seeds and ties in time may add up to
SHALLOW = (
    "Every join adds eight links to the newcomer here, so there is nobody whom hardly anyone knows, and who is last. "
    "With Scamp's own rule, a copy for each link of the contact, some have one link to them: in a run of ours it then "
    "takes 11.9 steps without pushing, and 5.9 with flooding."
)
STEP = "A step is one link; a payload that is asked for takes three."


def evaluate(material: Material) -> Evaluation:
    results = material.results
    notes = (
        "A round is counted for each long link that a message has crossed; payloads are pushed over further ones while "
        "fewer than TTL were crossed. As printed, a TTL of 1 would do nothing (the round is counted too early); the "
        "published curve needs it counted as here.",
        "Numbers of payloads are of one process and a thousand messages, as in the document.",
    )
    return Evaluation(checks=judged(CLAIMS, results), figures=_figures(results), tables=(_table(results),), notes=notes)


def payloads(results: Results, ttl: object) -> Stat:
    return scaled(results, "far_copies_mean", ttl=ttl)


def steps(results: Results, ttl: object) -> Stat:
    return stat(results, "last_receiver_ms_mean", ttl=ttl)


def _judge_more(results: Results) -> Finding:
    found = [payloads(results, ttl) for ttl in TTLS]
    rises = all(b.mean >= 0.995 * a.mean for a, b in pairwise(found))
    text = ", ".join(wording.amount(each.mean) for each in found)
    return Finding(text, rises, "A loss of half a percent is let pass. A prototype had 563 to 1,995.")


def _judge_faster(results: Results) -> Finding:
    found = [steps(results, ttl) for ttl in TTLS]
    falls = all(b.mean <= a.mean + LEVEL_STEPS for a, b in pairwise(found))
    text = ", ".join(f"{each.mean:.2f}" for each in found)
    return Finding(text, falls, f"{LEVEL_STEPS} steps are let pass. {STEP}")


def _judge_lazy(results: Results) -> Finding:
    lazy, eager = steps(results, 0), steps(results, 9)
    ratio = quotient(lazy.mean, eager.mean)
    text = f"{wording.mean(lazy)} steps, {ratio:.2f} times those of TTL 9"
    reason = f"Taken as met from 9 to 13 steps, and 1.5 times or more. A prototype had 10.4. {STEP}"
    return Finding(text, 9 <= lazy.mean <= 13 and ratio >= 1.5, reason, SHALLOW)


def _judge_first(results: Results) -> Finding:
    found = payloads(results, 0)
    reason = "Taken as met from 450 to 750, as in figure 5.11. A prototype had 563."
    return Finding(wording.mean(found), 450 <= found.mean <= 750, reason)


def _judge_minimum(results: Results) -> Finding:
    flooding = steps(results, FLOODING)
    apart = {ttl: steps(results, ttl).mean - flooding.mean for ttl in TTLS}
    within = [ttl for ttl in TTLS if apart[ttl] <= 0.3]
    text = f"{wording.mean(flooding)} steps with flooding; {apart[4]:+.2f} with TTL 4, {apart[5]:+.2f} with TTL 5"
    reason = "Taken as met if every TTL from 5 on is within 0.3 steps of flooding."
    return Finding(text, set(range(5, 10)) <= set(within), reason)


def _judge_level(results: Results) -> Finding:
    flooding = payloads(results, FLOODING)
    shares = {ttl: quotient(payloads(results, ttl).mean, flooding.mean) for ttl in (7, 8, 9)}
    texts = {f"TTL {ttl}": f"{share:.3f} times" for ttl, share in shares.items()}
    text = f"{wording.mean(flooding)} with flooding; {wording.each(texts)}"
    return Finding(text, all(abs(share - 1) <= 0.01 for share in shares.values()), "Within 1 %.")


def _judge_asked(results: Results) -> Finding:
    """What comes from afar that is neither a payload nor an advertisement is a request."""
    signals, advertised = (stat(results, f"far_{name}", ttl=0).mean for name in ("signals", "advertisements"))
    asked = signals - advertised
    came = stat(results, "far_copies_per_message", ttl=0).mean * stat(results, "messages", ttl=0).mean
    text = f"{came:,.0f} payloads and {asked:,.0f} requests between areas in a run"
    answered = 0.999 <= quotient(came, asked) <= 1 + 1e-9  # means of seeds are known up to roundings
    return Finding(text, answered, "Every request is answered, but for the last ones.")


CLAIMS = (
    Claim("clon-ttl.more", "Each round of pushing costs more payloads.", "rising with the TTL", _judge_more),
    Claim("clon-ttl.faster", "Each round of pushing makes it no slower.", "falling with the TTL", _judge_faster),
    Claim("clon-ttl.lazy-cost", "Without pushing, a process gets 600 payloads.", "slightly over 600", _judge_first),
    Claim(
        "clon-ttl.lazy-steps",
        "Without pushing, the last process has a message after 11 steps, much later than with.",
        "11 hops",
        _judge_lazy,
    ),
    Claim(
        "clon-ttl.minimum",
        "After four or five rounds it is as fast as flooding: more only cost more.",
        "minimum after 4 rounds",
        _judge_minimum,
    ),
    Claim(
        "clon-ttl.level",
        "From seven rounds on, as many payloads cross long links as with flooding.",
        "levels off near round 7",
        _judge_level,
    ),
    Claim(
        "clon-ttl.asked",
        "Without pushing, payloads cross long links only where they were asked for.",
        "completely lazy",
        _judge_asked,
    ),
)


def _figures(results: Results) -> tuple[FigureBlock, ...]:
    ways: dict[str, dict[float, pictures.Labels]] = {
        "pushed for TTL rounds": {ttl: {"ttl": ttl} for ttl in TTLS},
        FLOODING: {ttl: {"ttl": FLOODING} for ttl in TTLS},
    }
    curves = {
        metric: {name: {ttl: (metric, labels) for ttl, labels in points.items()} for name, points in ways.items()}
        for metric in ("far_copies_mean", "last_receiver_ms_mean")
    }
    return (
        pictures.block(
            "payloads",
            "Payloads from other areas",
            "Figure 5.12, left axis: received by a process, for a thousand messages. Published in numbers: slightly "
            "over 600 for TTL 0. Means and 95 % intervals over seeds.",
            pictures.against(
                results,
                curves["far_copies_mean"],
                "TTL",
                "payloads of a process",
                scale=scale_of(results),
                published={"pushed for TTL rounds": [(0, 600)]},
            ),
        ),
        pictures.block(
            "steps",
            "Steps until everybody has a message",
            "Figure 5.12, right axis: means over messages, with 95 % intervals over seeds. Published in numbers: 11 "
            "for TTL 0.",
            pictures.against(
                results,
                curves["last_receiver_ms_mean"],
                "TTL",
                "steps to the last delivery",
                published={"pushed for TTL rounds": [(0, 11)]},
            ),
        ),
    )


def _table(results: Results) -> TableBlock:
    columns = {
        **traffic_columns(results),
        "steps to the last delivery": ("last_receiver_ms_mean", 1.0),
        "steps, mean": ("latency_ms_mean", 1.0),
        "delivered (%)": ("delivery_ratio", 100.0),
    }
    rows = [
        (
            str(ttl),
            *(wording.mean_or_nothing(results.stat(metric, ttl=ttl), factor) for metric, factor in columns.values()),
        )
        for ttl in (*TTLS, FLOODING)
    ]
    caption = (
        "Payloads and advertisements are of one process and a thousand messages. Means over seeds with 95 % intervals."
    )
    return TableBlock("ttl", "By rounds of pushing", caption, ("TTL", *columns), tuple(rows))
