"""Rules: who may talk to whom, and which rule decides."""

from __future__ import annotations

from epicast.sim.faults import DROP, PASS, Clog, CutLinks, Isolate, Partition, Rules, Spare


def test_a_partition_drops_what_crosses_it_in_either_direction() -> None:
    partition = Partition({1, 2})
    assert partition.verdict(1, 3) == DROP
    assert partition.verdict(3, 1) == DROP
    assert partition.verdict(1, 2) is None
    assert partition.verdict(3, 4) is None


def test_a_one_way_partition_drops_only_what_leaves_the_side() -> None:
    partition = Partition({1, 2}, one_way=True)
    assert partition.verdict(1, 3) == DROP
    assert partition.verdict(3, 1) is None
    assert partition.verdict(1, 2) is None


def test_an_isolated_process_talks_to_nobody_not_even_to_another_isolated_one() -> None:
    isolate = Isolate({1, 2})
    assert isolate.verdict(1, 3) == DROP
    assert isolate.verdict(3, 1) == DROP
    assert isolate.verdict(1, 2) == DROP
    assert isolate.verdict(3, 4) is None


def test_a_clog_delays_both_directions() -> None:
    clog = Clog({1}, delay_us=500)
    assert clog.verdict(1, 2) == 500
    assert clog.verdict(2, 1) == 500
    assert clog.verdict(2, 3) is None


def test_a_cut_has_a_direction() -> None:
    cut = CutLinks([(1, 2)])
    assert cut.verdict(1, 2) == DROP
    assert cut.verdict(2, 1) is None


def test_without_rules_everything_passes() -> None:
    rules = Rules()
    assert not rules
    assert rules.verdict(1, 2) == (PASS, "")


def test_the_first_verdict_wins() -> None:
    rules = Rules()
    rules.add(Clog({1}, delay_us=500))
    rules.add(Partition({1}))
    assert rules.verdict(1, 2) == (500, "clog")


def test_a_rule_without_an_opinion_leaves_the_verdict_to_the_next() -> None:
    rules = Rules()
    rules.add(Clog({7}, delay_us=500))
    rules.add(Partition({1}))
    assert rules.verdict(1, 2) == (DROP, "partition")


def test_a_spare_put_first_protects_from_all_later_rules() -> None:
    rules = Rules()
    rules.add(Spare({1, 2}))
    rules.add(Partition({1}))
    assert rules.verdict(1, 2) == (PASS, "spare")
    assert rules.verdict(1, 3) == (DROP, "partition")


def test_a_removed_rule_decides_nothing_and_removing_twice_is_harmless() -> None:
    rules, partition = Rules(), Partition({1})
    rules.add(partition)
    rules.remove(partition)
    rules.remove(partition)
    assert rules.verdict(1, 2) == (PASS, "")
