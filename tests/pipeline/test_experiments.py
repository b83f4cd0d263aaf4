"""The experiments that come with epicast: their files make sense, and their claims can fail."""

from __future__ import annotations

import pytest

from epicast.core.records import Level
from epicast.experiments import catalog
from epicast.experiments.evaluation import Evaluation, Material
from epicast.pipeline.metrics import HISTOGRAMS, METRICS, SERIES
from epicast.pipeline.report.data import CheckRow
from epicast.pipeline.results import Results
from tests.pipeline.made_results import MadeResults

NAMES = catalog.names()
TREE = [(1, 0), (2, 0), (3, 1)]  # from child to parent


def evaluated(name: str, results: Results) -> Evaluation:
    return catalog.evaluate_of(name)(Material(results, lambda point: TREE))


def checked(name: str, made: MadeResults) -> dict[str, CheckRow]:
    return {row.id: row for row in evaluated(name, made.results()).checks}


def verdicts(name: str, made: MadeResults) -> dict[str, str]:
    return {check: row.verdict for check, row in checked(name, made).items()}


# The files


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_has_all_that_a_reader_needs(name: str) -> None:
    experiment = catalog.load(name)
    assert experiment.title
    assert experiment.question.endswith("?")
    assert experiment.answers or name == "demo"  # which nobody published
    assert experiment.minutes > 0
    assert experiment.seeds >= 3
    assert experiment.points()


@pytest.mark.parametrize("name", NAMES)
def test_the_quick_variant_is_no_larger_and_has_the_same_axes(name: str) -> None:
    experiment = catalog.load(name)
    quick = experiment.smaller()
    assert quick.minutes <= experiment.minutes
    assert len(quick) <= len(experiment)
    assert {tuple(point.labels) for point in quick.points()} == {tuple(point.labels) for point in experiment.points()}


@pytest.mark.parametrize("name", NAMES)
def test_runs_start_with_seed_one_and_differ(name: str) -> None:
    experiment = catalog.load(name)
    runs = [experiment.run(number) for number in range(len(experiment))]
    assert min(run.seed for run in runs) == 1
    assert len({run.name for run in runs}) == len(runs)


def test_the_churn_of_table_4_1_is_as_published() -> None:
    for point in catalog.load("br-8").points():
        scenario = point.scenario
        assert scenario.nodes * scenario.joins.interval_us + scenario.warmup_us == 1_000_000_000
        assert scenario.workload.end_us == 600_000_000
        assert scenario.churn.count(point.labels["churn"].replace(" ", "")) == 1
        assert scenario.protect_sources


def test_copies_are_counted_where_every_message_is_traced() -> None:
    full = {name for name in NAMES if catalog.load(name).level == Level.FULL}
    assert full == {"br-1", "br-6-7", "demo", "clon-traffic", "clon-ttl", "clon-healing", "epto-bytes"}


# What is asked for exists


class Asked(Results):
    """Knows nothing, but writes down what it is asked for."""

    def __init__(self, points: list[dict[str, str]]) -> None:
        super().__init__(points, {}, {}, {}, [], [])
        self.names: set[tuple[str, str]] = set()

    def stat(self, metric: str, **labels: object) -> None:
        self.names.add(("stat", metric))

    def distribution(self, name: str, **labels: object) -> None:
        self.names.add(("distribution", name))

    def series(self, name: str, **labels: object) -> None:
        self.names.add(("series", name))


@pytest.mark.parametrize("name", [*NAMES, "own.toml"])
def test_experiments_ask_for_metrics_that_exist_and_stand_it_if_nothing_was_measured(name: str) -> None:
    points = [point.labels for point in catalog.load(name).points()] if name in NAMES else [{}]
    asked = Asked(points)
    found = evaluated(name, asked)
    assert {row.verdict for row in found.checks} <= {"not measured"}
    known = {"stat": METRICS, "distribution": HISTOGRAMS, "series": SERIES}
    assert asked.names
    assert [each for each in asked.names if each[1] not in known[each[0]]] == []


@pytest.mark.parametrize("name", NAMES)
def test_ids_of_checks_are_unique_and_named_after_the_experiment(name: str) -> None:
    rows = evaluated(name, Asked([point.labels for point in catalog.load(name).points()])).checks
    assert len({row.id for row in rows}) == len(rows)
    prefixes = {"br-6-7": ("br-6.", "br-7."), "ep-2-3": ("ep-2.", "ep-3.")}.get(name, (f"{name}.",))
    assert all(row.id.startswith(prefixes) for row in rows)


# br-1


def flooded() -> MadeResults:
    made = MadeResults(view=[4, 6, 8, 10])
    made.give("messages", 500, 500).give("processes", 512, 512)
    for view in (4, 6, 8, 10):
        edges = (256 * view, 256 * view + 3)
        sent = [500 * (2 * each - 511) for each in edges]
        links = sum(edges) / 2
        made.over_time("overlay_edges", {0: links - 4, 5: links + 6, 10: links - 2}, view=view)
        made.give("sent_payload_messages", *sent, view=view)
        made.give("duplicates_per_message", *(2 * each - 2 * 511 - 1 for each in edges), view=view)
        made.give("overlay_degree_mean", view, view + 0.01, view=view)
        made.give("duplicates_per_process_mean", view - 2, view - 1.99, view=view)
        made.give("duplicates_per_process_p50", view - 2, view - 1.9, view=view)
        made.spread("duplicates", {view - 3: 1, view - 2: 2, view: 1}, view=view)
    return made


def test_br_1_holds_for_what_theory_says() -> None:
    assert set(verdicts("br-1", flooded()).values()) == {"holds"}


@pytest.mark.parametrize(
    ("check", "metric", "seeds", "view"),
    [
        ("br-1.median-view-4", "duplicates_per_process_p50", (1.0, 0.9), 4),
        ("br-1.median-view-10", "duplicates_per_process_p50", (7.0, 7.0), 10),
        ("br-1.grows", "duplicates_per_process_p50", (6.5, 6.5), 6),
        ("br-1.equation", "sent_payload_messages", (500 * (2 * 1035 - 511), 500 * (2 * 1038 - 511)), 4),
        ("br-1.mean", "duplicates_per_process_mean", (4.2, 4.2), 6),
    ],
)
def test_br_1_notices_what_is_not_as_published(check: str, metric: str, seeds: tuple[float, float], view: int) -> None:
    found = checked("br-1", flooded().give(metric, *seeds, view=view))
    assert found[check].verdict == "differs"
    assert found[check].reason


def test_a_number_that_no_run_gave_is_not_measured() -> None:
    made = flooded()
    del made.lines[2, "overlay_edges"]
    found = checked("br-1", made)
    assert found["br-1.equation"].verdict == "not measured"
    assert "view 8 has a series of overlay_edges" in found["br-1.equation"].reason
    assert found["br-1.grows"].verdict == "holds"


# br-2, br-3, br-4


def trees() -> MadeResults:
    made = MadeResults(view=[4, 6, 8, 10]).give("processes", 512, 512)
    for view, depth in ((4, 10), (6, 9), (8, 8), (10, 7)):
        made.give("tree_depth_max", depth, depth + 0.4, view=view)
        made.give("tree_leaf_share", 0.3 + view / 40, 0.31 + view / 40, view=view)
        made.give("tree_out_degree_max", view, view + 1, view=view).give(
            "overlay_degree_max", 2 * view, view, view=view
        )
        made.spread("out_degree", {0: 50, 2: 45, view + 1: 5}, view=view)
        made.spread("degree", {view: 91, view + 1: 9}, view=view)
    return made


def test_br_2_holds_where_larger_views_make_shallower_trees() -> None:
    found = verdicts("br-2", trees())
    assert found.pop("br-2.dag-deeper") == "not measured"
    assert set(found.values()) == {"holds"}


def test_br_2_notices_chains_and_views_that_do_not_pay_off() -> None:
    found = verdicts("br-2", trees().give("tree_depth_max", 7, 19, view=4).give("tree_depth_max", 9, 9, view=10))
    assert (found["br-2.balanced"], found["br-2.every-step"]) == ("differs", "differs")
    assert found["br-2.view-8-shallower"] == "holds"
    assert verdicts("br-2", trees().give("tree_depth_max", 11, 11, view=8))["br-2.view-8-shallower"] == "differs"


def test_br_3_holds_where_few_have_more_than_their_view() -> None:
    found = verdicts("br-3", trees())
    assert found.pop("br-3.dag-fewer-leaves") == "not measured"
    assert set(found.values()) == {"holds"}


def test_br_3_notices_what_is_too_much() -> None:
    assert verdicts("br-3", trees().give("tree_leaf_share", 0.3, view=8))["br-3.more-leaves"] == "differs"
    assert verdicts("br-3", trees().give("overlay_degree_max", 9, view=4))["br-3.limit"] == "differs"
    crowded = trees().spread("out_degree", {0: 89, 5: 11}, view=4).spread("degree", {6: 8, 7: 2}, view=6)
    found = verdicts("br-3", crowded)
    assert (found["br-3.children-above-view"], found["br-3.links-above-view"]) == ("differs", "differs")


def test_br_4_draws_a_tree_for_each_view_and_counts_children() -> None:
    made = MadeResults(view=[4, 8]).give("tree_depth_max", 9, 8, view=4).give("tree_depth_max", 7, 6, view=8)
    made.give("tree_out_degree_max", 4, 3, view=4).give("tree_out_degree_max", 5, 8, view=8)
    assert set(verdicts("br-4", made).values()) == {"holds"}
    assert evaluated("br-4", made.results()).figures[0].svg.count("view ") >= 2
    assert verdicts("br-4", made.give("tree_out_degree_max", 5, view=4))["br-4.children"] == "differs"
    assert verdicts("br-4", made.give("tree_depth_max", 9, view=8))["br-4.view-8-shallower"] == "differs"


# br-6 and br-7


def loads() -> MadeResults:
    made = MadeResults(payload=["1 KB", "10 KB", "50 KB", "100 KB"], view=[4, 8])
    made.give("copies_after_first", 1.0, 1.001).give("upload_children_correlation", 0.97, 0.99)
    made.give("arrived_bytes_share", 0.9999, 1.0)
    for payload in ("1 KB", "10 KB", "50 KB", "100 KB"):
        carried = 5000.0 * float(payload.removesuffix(" KB"))
        for view in (4, 8):
            flood = carried / 500 * (view - 2)
            made.give("download_payload_bytes_per_second", carried + flood, payload=payload, view=view)
            made.give("download_bytes_per_second", carried + flood + 50 * view, payload=payload, view=view)
    return made


def test_br_6_and_7_hold_for_one_copy_each() -> None:
    found = verdicts("br-6-7", loads())
    assert [found.pop(each) for each in ("br-6.dag-copies", "br-7.dag-upload")] == ["not measured"] * 2
    assert set(found.values()) == {"holds"}


@pytest.mark.parametrize(
    ("check", "metric", "value"),
    [
        ("br-6.one-copy", "copies_after_first", 1.006),
        ("br-6.views-alike", "download_bytes_per_second", 600_000.0),
        ("br-6.views-little", "download_bytes_per_second", 600_000.0),
        ("br-7.upload-children", "upload_children_correlation", 0.9),
        ("br-7.totals", "arrived_bytes_share", 1.01),
    ],
)
def test_br_6_and_7_notice_waste(check: str, metric: str, value: float) -> None:
    assert verdicts("br-6-7", loads().give(metric, value, payload="100 KB", view=8))[check] == "differs"


# br-8


def churned() -> MadeResults:
    made = MadeResults(nodes=[128, 512], churn=["3 %", "5 %"])
    made.give("missing", 0, 0).give("owed", 300_000, 310_000)
    for nodes in (128, 512):
        for churn in (3, 5):
            lost = nodes * churn / 100
            labels = {"nodes": nodes, "churn": f"{churn} %"}
            made.give("parents_lost_per_minute", lost, 1.1 * lost, **labels)
            made.give("orphans_per_minute", lost, 1.1 * lost, **labels)
            made.give("parents_lost", 10 * lost, **labels).give("soft_repairs", 9 * lost, **labels)
            made.give("hard_repairs", lost, **labels).give("soft_repair_share", 0.9, 0.9, **labels)
            made.spread("repair_delay_ms", {100: 9, 2000: 1}, **labels)
            made.over_time("hops_mean", {0: 5.0, 60: 6.0}, **labels)
    return made


def test_br_8_holds_for_one_parent_a_failure() -> None:
    found = verdicts("br-8", churned())
    assert [found.pop(f"br-8.dag-{about}") for about in ("losses", "orphans", "soft")] == ["not measured"] * 3
    assert set(found.values()) == {"holds"}


@pytest.mark.parametrize(
    ("check", "metric", "value"),
    [
        ("br-8.lost-are-orphans", "orphans_per_minute", 25.0),
        ("br-8.rate", "parents_lost_per_minute", 1.6 * 25.6),
        ("br-8.grows", "parents_lost_per_minute", 15.0),
        ("br-8.all-repaired", "hard_repairs", 0.0),
        ("br-8.mostly-soft", "soft_repair_share", 0.7),
        ("br-8.nothing-lost", "missing", 1.0),
    ],
)
def test_br_8_notices_worse_repairs(check: str, metric: str, value: float) -> None:
    assert verdicts("br-8", churned().give(metric, value, nodes=512, churn="5 %"))[check] == "differs"


# mass-failure


def survived() -> MadeResults:
    made = MadeResults(stack=["flood", "brisa"], killed=["50 %", "80 %", "90 %", "95 %"])
    made.give("overlay_largest_weak_share", 1.0, 0.9998).give("processes_staying", 500)
    for killed, share in (("50 %", 1.0), ("80 %", 1.0), ("90 %", 0.995), ("95 %", 0.95)):
        made.give("delivery_ratio_second_half", share, killed=killed).give("delivery_ratio", share, killed=killed)
        made.spread("cut_off_ms", {100: 90, 4000: 10}, killed=killed)
    return made


def test_mass_failure_holds_near_the_ceiling() -> None:
    assert set(verdicts("mass-failure", survived()).values()) == {"holds"}


@pytest.mark.parametrize(
    ("check", "metric", "value", "labels"),
    [
        ("mass-failure.connected", "overlay_largest_weak_share", 0.99, {"stack": "flood", "killed": "80 %"}),
        ("mass-failure.flood-90", "delivery_ratio_second_half", 0.98, {"stack": "flood", "killed": "90 %"}),
        ("mass-failure.brisa-95", "delivery_ratio_second_half", 0.94, {"stack": "brisa", "killed": "95 %"}),
        ("mass-failure.caught-up", "delivery_ratio", 0.97, {"stack": "brisa", "killed": "80 %"}),
    ],
)
def test_mass_failure_notices_those_who_were_left_behind(
    check: str, metric: str, value: float, labels: dict[str, str]
) -> None:
    assert verdicts("mass-failure", survived().give(metric, value, **labels))[check] == "differs"


# demo, and any other experiment


def test_the_demo_compares_two_stacks() -> None:
    made = MadeResults(stack=["flood", "brisa"])
    made.give("duplicates_p50", 2, stack="flood").give("missing", 0, 0).give("owed", 50_000)
    made.give("copies_per_delivery", 3.1, stack="flood").give("copies_per_delivery", 1.04, stack="brisa")
    found = evaluated("demo", made.results())
    assert {row.verdict for row in found.checks} == {"holds"}
    assert len(found.figures) == 6
    assert found.tables[0].header == ("", "flooding", "BRISA tree")
    assert verdicts("demo", made.give("missing", 0, 1))["demo.complete"] == "differs"
    assert verdicts("demo", made.give("copies_per_delivery", 1.2))["demo.tree"] == "differs"


def test_any_experiment_gets_a_table_and_the_figures_that_it_has_data_for() -> None:
    made = MadeResults(view=[4, 8]).give("delivery_ratio", 1.0, 0.5, 0.75).give("made_up", 3)
    found = evaluated("own.toml", made.spread("latency_ms", {10: 1, 20: 3}).results())
    assert found.tables[0].header == ("point", "delivered share")
    assert [row[0] for row in found.tables[0].rows] == ["view 4", "view 8"]
    assert found.tables[0].rows[0][1].startswith("0.75")
    assert [figure.id for figure in found.figures] == ["latency", "tree"]
    assert found.checks == ()


def test_an_experiment_without_axes_has_one_row() -> None:
    found = evaluated("own.toml", MadeResults().give("delivery_ratio", 1.0).results())
    assert found.tables[0].rows == (("all runs", "1"),)


def test_what_there_is_no_room_for_is_said() -> None:
    many = MadeResults(view=range(300)).give("delivery_ratio", 1.0).give("copies_per_delivery", 2.0)
    found = evaluated("own.toml", many.results())
    assert len(found.tables[0].rows) == 200
    assert [note.split(" of ")[0] for note in found.notes] == [
        "Figures show the first 10",
        "The table shows the first 200",
    ]
