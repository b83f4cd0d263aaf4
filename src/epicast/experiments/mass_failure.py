"""Most processes die at the same instant (HyParView's evaluation)."""

from __future__ import annotations

from epicast.experiments import pictures, wording
from epicast.experiments.claims import UNEXPECTED, Claim, Finding, judged, labels_of, stat
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

CEILING = {"80 %": 1.000, "90 %": 0.999, "95 %": 0.955}
NEAR = 0.01
WHY = (
    "The published number is the share of survivors in the largest part that still hangs together by what processes "
    "know of each other, neighbours or not: nobody else can be reached."
)


def evaluate(material: Material) -> Evaluation:
    results = material.results
    notes = (
        "Views of 5 as in HyParView's evaluation, and 30 more processes that each knows of. The source survives.",
        "Survivors that know nobody alive can do nothing, so the stacks of this experiment do not promise that "
        "every survivor delivers every message.",
    )
    return Evaluation(
        checks=judged(_claims(), results), figures=_figures(results), tables=(_table(results),), notes=notes
    )


def _claims() -> list[Claim]:
    found = [_delivered(stack, killed) for stack in ("flood", "brisa") for killed in CEILING]
    return [_connected(), *found, _caught_up()]


def _connected() -> Claim:
    return Claim(
        "mass-failure.connected",
        "The overlay stays in one piece when up to 80 % of the processes fail.",
        "1.000 of the survivors",
        _judge_connected,
    )


def _judge_connected(results: Results) -> Finding:
    texts, whole = {}, True
    for stack in labels_of(results, "stack"):
        for killed in ("50 %", "80 %"):
            share = stat(results, "overlay_largest_weak_share", stack=stack, killed=killed)
            whole = whole and round(share.mean, 3) == 1
            texts[f"{stack}, {killed}"] = f"{share.mean:.4f} (lowest {share.min:.4f})"
    reason = "Compared to three places, as published."
    return Finding(f"largest part at the end: {wording.each(texts)}", whole, reason)


def _delivered(stack: str, killed: str) -> Claim:
    return Claim(
        f"mass-failure.{stack}-{killed.rstrip(' %')}",
        f"After the failure of {killed}, {stack} reaches nearly all survivors that can be reached.",
        f"at most {CEILING[killed]:.3f}",
        lambda results: _judge_delivered(results, stack, killed),
    )


def _judge_delivered(results: Results, stack: str, killed: str) -> Finding:
    found = stat(results, "delivery_ratio_second_half", stack=stack, killed=killed)
    survivors = stat(results, "processes_staying", stack=stack, killed=killed)
    reason = f"{found.n} runs with {survivors.mean:,.0f} survivors each; nearly is within {NEAR} of the ceiling. {WHY}"
    why_not = UNEXPECTED
    if found.high is not None and found.high >= CEILING[killed] - NEAR:
        why_not = "The interval over the seeds reaches it: these are few survivors to tell by."
    text = f"{found.mean:.4f}" + ("" if found.low is None else f" ({found.low:.4f} to {found.high:.4f})")
    return Finding(text, found.mean >= CEILING[killed] - NEAR, reason, why_not)


def _caught_up() -> Claim:
    return Claim(
        "mass-failure.caught-up",
        "With BRISA, survivors that are reached again get what was published while they were cut off.",
        "none lost, with recovery",
        _judge_caught_up,
    )


def _judge_caught_up(results: Results) -> Finding:
    """Whoever gets the later messages has the earlier ones too: the share of all messages is no smaller."""
    texts, caught_up = {}, True
    for killed in labels_of(results, "killed"):
        every, later = (
            stat(results, name, stack="brisa", killed=killed)
            for name in ("delivery_ratio", "delivery_ratio_second_half")
        )
        caught_up = caught_up and every.mean >= later.mean - 0.001
        texts[killed] = f"{every.mean:.4f} of all, {later.mean:.4f} of the later half"
    reason = "What is missing is missing at survivors that never found the others again; they do have what came before."
    return Finding(wording.each(texts), caught_up, reason)


def _figures(results: Results) -> tuple[FigureBlock, ...]:
    stacks, killed = labels_of(results, "stack"), labels_of(results, "killed")
    groups = {stack: {share: {"stack": stack, "killed": share} for share in killed} for stack in stacks}
    delivered = pictures.means(
        results,
        "delivery_ratio_second_half",
        groups,
        "share of the survivors",
        x_label="killed",
        published=dict.fromkeys(stacks, CEILING),
    )
    caption = "Messages of the later half of the stream, 25 s or more after the failure; published is the ceiling."
    return (
        pictures.block("delivered", "Survivors that get messages again", caption, delivered),
        *(_back(results, stack, points) for stack, points in groups.items()),
        pictures.block(
            "way",
            "Links that messages cross in BRISA's trees",
            "Means over seeds, by the time of publication; the failure is at 10 s. Repairs do not look for the best "
            "place, and nothing makes a tree shallower again.",
            pictures.over_time(
                results,
                "hops_mean",
                {f"{share} killed": labels for share, labels in groups.get("brisa", {}).items()},
                "links crossed, mean",
            ),
        ),
    )


def _back(results: Results, stack: str, points: dict[str, dict[str, str]]) -> FigureBlock:
    shown = pictures.cdfs(
        results,
        "cut_off_ms",
        {f"{share} killed": labels for share, labels in points.items()},
        "time to the first message (ms)",
        y_label="share of those that come back",
        log_x=True,
        quantiles=(0.5, 0.99),
    )
    caption = (
        "From the failure to the first message that a survivor delivers of those published afterwards, two a second. "
        "All seeds together."
    )
    return pictures.block(f"back-{stack}", f"How soon survivors are back: {stack}", caption, shown)


def _table(results: Results) -> TableBlock:
    columns = {
        "survivors": ("processes_staying", 1.0),
        "delivered, later half": ("delivery_ratio_second_half", 1.0),
        "delivered, all messages": ("delivery_ratio", 1.0),
        "largest part of the overlay": ("overlay_largest_weak_share", 1.0),
        "half are back after (s)": ("cut_off_ms_p50", 1e-3),
        "99 % are back after (s)": ("cut_off_ms_p99", 1e-3),
        "depth of the tree, mean": ("tree_depth_mean", 1.0),
        "latency, median (ms)": ("latency_ms_p50", 1.0),
    }
    rows = []
    for stack in labels_of(results, "stack"):
        for killed in labels_of(results, "killed"):
            published = f"{CEILING[killed]:.3f}" if killed in CEILING else wording.UNKNOWN
            found = ((results.stat(metric, stack=stack, killed=killed), scale) for metric, scale in columns.values())
            rows.append((stack, killed, published, *(wording.mean_or_nothing(each, scale) for each, scale in found)))
    caption = "Means over seeds with 95 % intervals. Back: the first message after the failure was delivered."
    return TableBlock(
        "survivors", "Survivors", caption, ("stack", "killed", "published ceiling", *columns), tuple(rows)
    )
