"""What a process of a BRISA tree receives and sends, by size of the payload and of the views (BR-6 and BR-7)."""

from __future__ import annotations

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, judged, labels_of, of_dags, stat
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

ONE = 0.005  # copies are printed as 1.00
LITTLE = 0.1  # what "much less" means here
ALIKE = 0.05
CORRELATED = 0.95


def evaluate(material: Material) -> Evaluation:
    results = material.results
    notes = (
        "A kilobyte is 1,000 bytes. Lines have no limit here, so a payload of 100 KB travels as fast as one of 1 "
        "KB: what is compared is how much crosses the lines, not how long that takes.",
    )
    return Evaluation(checks=judged(CLAIMS, results), figures=_figures(results), tables=(_table(results),), notes=notes)


def _judge_copies(results: Results) -> Finding:
    found = {
        f"view {view}": [
            stat(results, "copies_after_first", view=view, payload=payload) for payload in labels_of(results, "payload")
        ]
        for view in labels_of(results, "view")
    }
    texts = {label: f"{max(each.mean for each in row):.4f} at most" for label, row in found.items()}
    reason = (
        "The first message builds the tree by a flood, and is left out. Views keep refreshing their links, as epicast's"
        " do by default; a new link carries no payload unless one end asks for it."
    )
    return Finding(wording.each(texts), all(abs(each.mean - 1) < ONE for row in found.values() for each in row), reason)


def _control(results: Results, view: str, payload: str) -> float:
    """Bytes of each process in a second, besides messages with a payload."""
    every, carried = (
        stat(results, f"download_{what}_per_second", view=view, payload=payload).mean
        for what in ("bytes", "payload_bytes")
    )
    return every - carried


def _judge_independent(results: Results) -> Finding:
    narrow, *_, wide = labels_of(results, "view")
    extra = {
        payload: _control(results, wide, payload) - _control(results, narrow, payload)
        for payload in labels_of(results, "payload")
    }
    low, high = min(extra.values()), max(extra.values())
    reason = (
        f"Taken as independent if the difference varies by less than {100 * ALIKE:.0f} %. It is keep-alives and "
        "shuffles; the flood of the first message, which copies its payload over every link, is left out."
    )
    texts = {payload: f"{wording.amount(value)} B/s" for payload, value in extra.items()}
    return Finding(wording.each(texts), high - low <= ALIKE * abs(high), reason)


def _judge_little(results: Results) -> Finding:
    narrow, *_, wide = labels_of(results, "view")
    shares = {}
    for payload in labels_of(results, "payload"):
        totals = [
            stat(results, "download_bytes_per_second", view=view, payload=payload).mean for view in (narrow, wide)
        ]
        carried = stat(results, "download_payload_bytes_per_second", view=narrow, payload=payload).mean
        shares[payload] = (totals[1] - totals[0]) / carried
    large = [share for payload, share in shares.items() if payload != "1 KB"]
    reason = (
        "Much less is taken as less than a tenth. Here everything counts, the flood of the first message too: with "
        f"{wide} links instead of {narrow} it makes {int(wide) - int(narrow)} copies more, of one message."
    )
    texts = {payload: f"{wording.percent(share)} of the payload" for payload, share in shares.items()}
    return Finding(wording.each(texts), max(large) < LITTLE, reason)


def _judge_correlation(results: Results) -> Finding:
    found = [
        stat(results, "upload_children_correlation", view=view, payload=payload)
        for view in labels_of(results, "view")
        for payload in labels_of(results, "payload")
    ]
    lowest = min(each.min for each in found)
    mean = sum(each.mean for each in found) / len(found)
    reason = "The rest is the flood of the first message, which all processes pass on."
    return Finding(f"correlation {mean:.4f}, lowest of all runs {lowest:.4f}", lowest > CORRELATED, reason)


def _judge_totals(results: Results) -> Finding:
    found = [
        stat(results, "arrived_bytes_share", view=view, payload=payload)
        for view in labels_of(results, "view")
        for payload in labels_of(results, "payload")
    ]
    low, high = min(each.min for each in found), max(each.max for each in found)
    reason = "What is missing was under way when the run ended; the guarantee of accounting checks that to the message."
    return Finding(f"{low:.6f} to {high:.6f} of what was sent was received", 0.999 <= low <= high <= 1, reason)


CLAIMS = (
    Claim("br-6.one-copy", "In a tree each process receives each message once.", "1.00 copies", _judge_copies),
    Claim(
        "br-6.views-alike",
        "Larger views cost more bytes for the overlay, whatever the size of the payload.",
        "a difference due to the overlay",
        _judge_independent,
    ),
    Claim(
        "br-6.views-little",
        "From 10 KB on, the difference between the views is much less than the payload.",
        "negligible",
        _judge_little,
    ),
    Claim(
        "br-7.upload-children",
        "What a process sends is proportional to the number of its children.",
        "spread follows the out-degree",
        _judge_correlation,
    ),
    Claim("br-7.totals", "All uploads together are all downloads together.", "equal", _judge_totals),
    of_dags("br-6.dag-copies", "In a DAG with two parents, a process receives up to two copies.", "1 to 2 copies"),
    of_dags("br-7.dag-upload", "A DAG sends more than a tree.", "more"),
)


def _figures(results: Results) -> tuple[FigureBlock, ...]:
    groups = {
        f"view {view}": {payload: {"view": view, "payload": payload} for payload in labels_of(results, "payload")}
        for view in labels_of(results, "view")
    }
    down = pictures.loads(results, "download_bytes", groups, "received by a process (KB/s)", x_label="payload")
    up = pictures.loads(results, "upload_bytes", groups, "sent by a process (KB/s)", x_label="payload")
    return (
        pictures.block(
            "download",
            "Download of a process",
            "Figure 4.11, without its DAGs: percentiles over the processes, everything included. One copy each, so all "
            "processes receive nearly the same.",
            down,
        ),
        pictures.block(
            "upload",
            "Upload of a process",
            "Figure 4.12, without its DAGs: percentiles over the processes. Leaves send no payload at all, inner "
            "processes one copy for each child.",
            up,
        ),
    )


def _table(results: Results) -> TableBlock:
    columns = {
        "download (KB/s)": ("download_bytes_per_second", 1e-3),
        "of it payload (KB/s)": ("download_payload_bytes_per_second", 1e-3),
        "upload (KB/s)": ("upload_bytes_per_second", 1e-3),
        "copies after the first message": ("copies_after_first", 1.0),
        "correlation with children": ("upload_children_correlation", 1.0),
    }
    rows = [
        (
            payload,
            view,
            *(
                wording.mean_or_nothing(results.stat(metric, view=view, payload=payload), scale)
                for metric, scale in columns.values()
            ),
        )
        for payload in labels_of(results, "payload")
        for view in labels_of(results, "view")
    ]
    caption = "Means over processes and seeds, with 95 % intervals over seeds."
    return TableBlock("loads", "Loads by payload and view", caption, ("payload", "view", *columns), tuple(rows))
