"""EpTO with payloads in balls, and with keys in balls and payloads down BRISA's trees: bytes for each delivery."""

from __future__ import annotations

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, NotMeasured, judged, labels_of, quotient, rising, stat
from epicast.experiments.epto_words import ALWAYS, DELAYS, all_in_order, cells, holes_among
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

STACKS = {"epto": "payloads in balls", "epto-brisa": "payloads down trees"}
NOBODY_SAYS = "judged least interesting (section 6.1)"


def evaluate(material: Material) -> Evaluation:
    results = material.results
    notes = (
        "Bytes are all that processes sent from the first event to the last delivery, whatever it was for, divided by "
        "the deliveries.",
        ALWAYS,
    )
    return Evaluation(
        checks=judged(CLAIMS, results), figures=(_figure(results),), tables=(_table(results),), notes=notes
    )


def payloads(results: Results) -> list[int]:
    return sorted(int(label) for label in labels_of(results, "payload"))


def bytes_per_delivery(results: Results, stack: str, payload: int) -> float:
    names = ("upload_bytes_per_second", "window_s", "processes_staying", "deliveries")
    rate, window_s, processes, deliveries = (stat(results, name, stack=stack, payload=payload).mean for name in names)
    return quotient(rate * window_s * processes, deliveries)


def copies(results: Results, stack: str) -> float:
    """Bytes sent for each byte of payload that is delivered: from the smallest to the largest payload."""
    low, *_, high = payloads(results)
    return (bytes_per_delivery(results, stack, high) - bytes_per_delivery(results, stack, low)) / (high - low)


def _judge_once(results: Results) -> Finding:
    found = copies(results, "epto-brisa")
    reason = (
        "Slope from the smallest to the largest payload. Asked is at most 1.5: the first event of a source floods the "
        "overlay, from which its tree emerges."
    )
    return Finding(f"{found:.2f} bytes for a byte", found <= 1.5, reason)


def _judge_balls(results: Results) -> Finding:
    found = copies(results, "epto")
    reason = (
        "Slope, as above. K is 16 and TTL 8 for as many processes, so 128 copies at most. There are fewer, since of "
        "all copies of an event the oldest counts: it uses up its rounds faster than one a round. Asked is more than "
        "50."
    )
    return Finding(f"{found:.0f} bytes for a byte", found > 50, reason)


def _judge_worth(results: Results) -> Finding:
    texts, ratios = {}, []
    for payload in payloads(results):
        balls, tree = (bytes_per_delivery(results, stack, payload) for stack in STACKS)
        ratios.append(balls / tree)
        texts[f"{payload:,} bytes"] = f"{balls:,.0f} and {tree:,.0f}: {ratios[-1]:.1f} times"
    reason = "Bytes for a delivery, in balls and down trees. Asked is that trees win by more, the larger the payload."
    grows = rising(ratios) and ratios[-1] > 10
    return Finding(wording.each(texts), grows, reason)


def _judge_complete(results: Results) -> Finding:
    points = [{"stack": stack, "payload": payload} for stack in STACKS for payload in payloads(results)]
    (lack, holes), (order, ordered) = holes_among(results, points), all_in_order(results, points)
    return Finding(f"{lack}, {order}", holes == 0 and ordered)


CLAIMS = (
    Claim("epto-bytes.once", "Down trees, a payload travels about once to each process.", NOBODY_SAYS, _judge_once),
    Claim("epto-bytes.balls", "In balls, it travels up to K TTL times.", "not said", _judge_balls),
    Claim("epto-bytes.worth", "The larger the payload, the more trees save.", NOBODY_SAYS, _judge_worth),
    Claim("epto-bytes.complete", "Both deliver everything in one order.", "not said", _judge_complete),
)


def _figure(results: Results) -> FigureBlock:
    groups = {
        name: {f"{payload:,}": {"stack": stack, "payload": payload} for payload in payloads(results)}
        for stack, name in STACKS.items()
    }
    return pictures.block(
        "upload",
        "Upload of a process",
        "From the first event to the last delivery, everything included. Means with 95 % intervals over seeds.",
        pictures.means(
            results,
            "upload_bytes_per_second",
            groups,
            "sent by a process (KB/s)",
            x_label="payload (bytes)",
            scale=1e-3,
        ),
    )


def _table(results: Results) -> TableBlock:
    columns = {
        "upload of a process (KB/s)": ("upload_bytes_per_second", 1e-3),
        "sent in balls and other control (%)": ("control_bytes_share", 100.0),
        **DELAYS,
        "holes": ("holes", 1.0),
    }
    rows = [
        (
            STACKS[stack],
            f"{payload:,}",
            _bytes_cell(results, stack, payload),
            *cells(results, columns, stack=stack, payload=payload),
        )
        for stack in STACKS
        for payload in payloads(results)
    ]
    header = ("stack", "payload (bytes)", "bytes per delivery", *columns)
    return TableBlock("bytes", "Bytes and delays", "Means over seeds with 95 % intervals.", header, tuple(rows))


def _bytes_cell(results: Results, stack: str, payload: int) -> str:
    try:
        return wording.amount(bytes_per_delivery(results, stack, payload))
    except NotMeasured:
        return "not measured"
