"""Newcomers that ask their local network for contacts (table 5.1 of document 001)."""

from __future__ import annotations

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Claim, Finding, judged, labels_of, stat
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.report.data import FigureBlock, TableBlock
from epicast.pipeline.results import Results

AREA = 200  # processes that hear a call
OURS = "asked (ours)"
PUBLISHED = {  # contacts, taken, near, far
    "always": (200, 20, 12, 8),
    "5 %": (10, 5, 3, 2),
    "size": (86, 13, 8, 5),
    "size and areas": (38, 9, 6, 3),
}


def taken_of(contacts: int) -> float:
    """Of so many contacts, one after the other, each with probability 1 / (view + 1): how many are in the view then."""
    chances = [1.0]  # of every size of the view
    for _ in range(contacts):
        following = [0.0] * (len(chances) + 1)
        for size, chance in enumerate(chances):
            following[size + 1] += chance / (size + 1)
            following[size] += chance * size / (size + 1)
        chances = following
    return sum(size * chance for size, chance in enumerate(chances))


def evaluate(material: Material) -> Evaluation:
    results = material.results
    notes = (
        "Every run builds an overlay of 1,000 processes in 5 areas, joins one by one, and then lets 50 newcomers in "
        "that know nobody. They follow each other, so the later ones meet a slightly denser overlay; in the document "
        "each join had an overlay of its own.",
        "The document's number of messages is 200, one for each process that hears the call, and one a contact.",
    )
    return Evaluation(
        checks=judged(_claims(), results), figures=(_figure(results),), tables=(_table(results),), notes=notes
    )


def _claims() -> list[Claim]:
    return [
        Claim("clon-bootstrap.always", "If all answer, a newcomer hears of all of its area.", "200", _judge_always),
        Claim("clon-bootstrap.share", "If 5 % answer, it hears of 10.", "10", _judge_share),
        *(_taken(oracle) for oracle in PUBLISHED),
        Claim(
            "clon-bootstrap.order",
            "Estimates of the size bring more answers than 5 %, and fewer if the number of areas is known.",
            "86 > 38 > 10",
            _judge_order,
        ),
        Claim("clon-bootstrap.near", "About six of ten contacts taken are near.", "0.60 to 0.67", _judge_near),
        Claim(
            "clon-bootstrap.asked",
            "Asking for answers brings enough of them, and never a flood, without any estimate.",
            "not in the document",
            _judge_asked,
        ),
    ]


def _judge_always(results: Results) -> Finding:
    heard = stat(results, "contacts_heard", oracle="always")
    reason = f"An area has {AREA} processes, and the newcomers before; those that know nobody do not answer."
    return Finding(wording.mean(heard), 0.99 * AREA <= heard.mean <= 1.05 * AREA, reason)


def _judge_share(results: Results) -> Finding:
    heard = stat(results, "contacts_heard", oracle="5 %")
    return Finding(wording.mean(heard), abs(heard.mean - 10) <= 0.5)


def _taken(oracle: str) -> Claim:
    return Claim(
        f"clon-bootstrap.taken-{oracle.replace(' ', '-').replace('%', 'percent')}",
        f"With the oracle '{oracle}' a newcomer takes as many of its contacts as chance 1/(view + 1) gives.",
        f"{PUBLISHED[oracle][1]} of {PUBLISHED[oracle][0]}",
        lambda results: _judge_taken(results, oracle),
    )


def _judge_taken(results: Results, oracle: str) -> Finding:
    heard, taken = (stat(results, name, oracle=oracle) for name in ("contacts_heard", "contacts_taken"))
    expected = taken_of(round(heard.mean))
    reason = (
        f"Of {heard.mean:.1f} contacts the exact expectation is {expected:.1f}. The published numbers are about "
        "the square root of twice the contacts, which is a little more."
    )
    text = f"{wording.mean(taken)} of {wording.mean(heard)}"
    why_not = (
        "Newcomers hear of very different numbers of contacts, and the mean of roots is below the root of the mean."
    )
    return Finding(text, abs(taken.mean - expected) <= 0.05 * expected, reason, why_not)


def _judge_order(results: Results) -> Finding:
    heard = {oracle: stat(results, "contacts_heard", oracle=oracle) for oracle in ("size", "size and areas", "5 %")}
    means = [each.mean for each in heard.values()]
    reason = (
        "How many answer depends on how many processes have a view of seven or eight, for whom the estimate is small "
        "(E-CLON-22): the absolute numbers are those of this overlay's degrees."
    )
    return Finding(
        wording.each({name: wording.mean(each) for name, each in heard.items()}), means[0] > means[1] > means[2], reason
    )


def _judge_near(results: Results) -> Finding:
    shares = {oracle: stat(results, "contacts_near_share", oracle=oracle) for oracle in PUBLISHED}
    reason = (
        "Half of the answers name somebody far, but contacts far away are named more than once and taken only once."
    )
    good = all((share.high or share.mean) >= 0.5 and share.mean <= 0.67 for share in shares.values())
    return Finding(wording.each({name: wording.mean(each) for name, each in shares.items()}), good, reason)


def _judge_asked(results: Results) -> Finding:
    heard, taken = (stat(results, name, oracle=OURS) for name in ("contacts_heard", "contacts_taken"))
    text = f"{wording.mean(heard)} contacts, {wording.mean(taken)} taken"
    return Finding(text, 1 <= heard.mean <= 20 and taken.mean >= 1)


def _figure(results: Results) -> FigureBlock:
    group = "contacts taken"
    figure = pictures.means(
        results,
        "contacts_taken",
        {group: {oracle: {"oracle": oracle} for oracle in labels_of(results, "oracle")}},
        "contacts taken",
        x_label="who answers",
        published={group: {oracle: float(taken) for oracle, (_, taken, _, _) in PUBLISHED.items()}},
    )
    caption = "Table 5.1: contacts that a newcomer takes, by who answers its call. Means with 95 % intervals."
    return pictures.block("contacts-taken", "Contacts that a newcomer takes", caption, figure)


def _table(results: Results) -> TableBlock:
    metrics = ("contacts_heard", "contacts_taken", "contacts_taken_near", "contacts_taken_far")
    rows = []
    for oracle in labels_of(results, "oracle"):
        published = PUBLISHED.get(oracle)
        cells = []
        for at, metric in enumerate(metrics):
            cells.append(str(published[at]) if published else wording.UNKNOWN)
            cells.append(wording.mean_or_nothing(results.stat(metric, oracle=oracle)))
        rows.append((oracle, *cells))
    names = ("contacts", "taken", "near", "far")
    columns = ("who answers", *(f"{name}, {which}" for name in names for which in ("published", "measured")))
    caption = "Per newcomer; means over runs of 50 newcomers each, with 95 % intervals."
    return TableBlock("contacts", "Contacts of a newcomer", caption, columns, tuple(rows))
