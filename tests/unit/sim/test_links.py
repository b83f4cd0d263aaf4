"""Links: what opening, closing, losing and breaking a connection looks like from both ends."""

from __future__ import annotations

from epicast.core.records import Kind
from epicast.sim.faults import Partition
from tests.unit.sim.rig import Rig

MS = 1_000
SECOND = 1_000_000


def test_a_handshake_takes_a_round_trip_and_its_set_up_cost() -> None:
    rig = Rig(connect_us=700)
    rig.links.open(0, 1)
    rig.run()
    assert rig.notices == [(700 + 20 * MS, 0, 1, True)]


def test_both_holders_hear_that_the_link_is_up() -> None:
    rig = Rig()
    rig.links.open(0, 1)
    rig.links.open(1, 0)
    rig.run()
    assert rig.notices == [(20 * MS, 0, 1, True), (20 * MS, 1, 0, True)]


def test_holding_an_open_link_that_the_peer_made_is_heard_at_once() -> None:
    rig = Rig()
    rig.links.open(0, 1)
    rig.run(SECOND)
    rig.links.open(1, 0)
    rig.links.open(1, 0)
    rig.run(SECOND)
    assert rig.notices[1:] == [(SECOND, 1, 0, True)]


def test_what_is_sent_before_the_handshake_ends_waits_for_it() -> None:
    rig = Rig()
    rig.links.open(0, 1)
    rig.send(0, 1, 1)
    rig.run()
    assert rig.times() == [30 * MS]


def test_a_link_is_first_in_first_out_however_delays_vary() -> None:
    rig = Rig(latency="uniform 1ms 100ms").linked()
    for number in range(200):
        rig.engine.call_at(rig.engine.now + number * MS, rig.send, 0, 1, number)
    rig.run()
    assert rig.numbers() == list(range(200))
    assert len(set(rig.times())) > 1


def test_a_link_stays_first_in_first_out_when_rules_come_and_go() -> None:
    rig = Rig(latency="uniform 1ms 100ms").linked()
    start, elsewhere = rig.engine.now, Partition({77})
    for number in range(100):
        rig.engine.call_at(start + number * MS, rig.send, 0, 1, number)
    rig.engine.call_at(start + 30 * MS, rig.network.add_rule, elsewhere)
    rig.engine.call_at(start + 60 * MS, rig.network.remove_rule, elsewhere)
    rig.run()
    assert rig.numbers() == list(range(100))


def test_each_direction_has_an_order_of_its_own() -> None:
    rig = Rig(latency="uniform 1ms 100ms").linked()
    for number in range(50):
        rig.send(0, 1, number)
        rig.send(1, 0, 1_000 + number)
    rig.run()
    assert [number for _, node, _, number in rig.log if node == 1] == list(range(50))
    assert [number for _, node, _, number in rig.log if node == 0] == list(range(1_000, 1_050))


def test_nobody_there_refuses_after_a_round_trip() -> None:
    rig = Rig()
    rig.crash(1)
    rig.links.open(0, 1)
    rig.send(0, 1, 1)
    rig.run()
    assert rig.notices == [(20 * MS, 0, 1, False)]
    assert rig.engine.describer.drops == {"down": 1}
    assert rig.links.get(0, 1) is None


def test_a_paused_process_accepts_connections_and_hears_of_them_when_it_resumes() -> None:
    rig = Rig()
    rig.pause(1)
    rig.links.open(0, 1)
    rig.links.open(1, 0)
    rig.engine.call_at(SECOND, rig.resume, 1)
    rig.run()
    assert rig.notices == [(20 * MS, 0, 1, True), (SECOND, 1, 0, True)]


def test_a_crash_is_noticed_after_the_detection_delay() -> None:
    rig = Rig(detection_us=300 * MS).linked()
    start = rig.engine.now
    rig.crash(1)
    rig.send(0, 1, 1)
    rig.run()
    assert rig.notices == [(start + 300 * MS, 0, 1, False)]
    assert rig.engine.describer.drops == {"down": 1}


def test_opening_again_before_a_crash_is_noticed_does_nothing() -> None:
    rig = Rig(detection_us=300 * MS).linked()
    rig.crash(1)
    rig.links.open(0, 1)
    rig.run()
    assert [up for *_, up in rig.notices] == [False]


def test_what_a_process_sent_before_its_crash_arrives() -> None:
    rig = Rig().linked()
    rig.send(1, 0, 1)
    rig.crash(1)
    rig.run()
    assert rig.numbers() == [1]


def test_a_crash_in_the_middle_of_a_handshake_is_noticed() -> None:
    rig = Rig(detection_us=300 * MS)
    rig.links.open(0, 1)
    rig.engine.call_at(5 * MS, rig.crash, 1)
    rig.run()
    assert rig.notices == [(305 * MS, 0, 1, False)]


def test_closing_tells_the_other_side_after_the_data() -> None:
    rig = Rig(latency="uniform 1ms 100ms").linked()
    for number in range(20):
        rig.send(0, 1, number)
    rig.links.close(0, 1)
    rig.network.link_notice = lambda me, peer, up: rig.notices.append((len(rig.log), me, peer, up))
    rig.run()
    assert rig.notices == [(20, 1, 0, False)]


def test_the_close_comes_after_the_data_even_with_constant_delays() -> None:
    rig = Rig().linked()
    rig.send(0, 1, 1)
    rig.links.close(0, 1)
    rig.network.link_notice = lambda me, peer, up: rig.notices.append((len(rig.log), me, peer, up))
    rig.run()
    assert rig.notices == [(1, 1, 0, False)]


def test_when_both_sides_close_nobody_is_told() -> None:
    rig = Rig().linked()
    rig.links.close(0, 1)
    rig.links.close(1, 0)
    rig.run()
    assert rig.notices == []


def test_a_link_reopened_before_the_close_was_heard_replaces_the_old_one() -> None:
    rig = Rig().linked()
    start = rig.engine.now
    rig.links.close(0, 1)
    rig.links.open(1, 0)
    rig.run()
    assert rig.notices == [(start + 20 * MS, 1, 0, True)]


def test_an_exit_closes_what_was_left_open() -> None:
    rig = Rig(nodes=3, detection_us=SECOND).linked(0, 1).linked(0, 2)
    start = rig.engine.now
    rig.links.exit(0)
    rig.run()
    assert rig.notices == [(start + 10 * MS, 1, 0, False), (start + 10 * MS, 2, 0, False)]


def test_a_reset_loses_what_is_in_flight_and_both_sides_see_it_at_once() -> None:
    rig = Rig(nodes=3).linked(1, 2).linked(0, 1)
    start = rig.engine.now
    rig.send(0, 1, 1)
    rig.send(1, 0, 2)
    rig.send(1, 2, 3)
    rig.links.reset(0, 1)
    rig.run()
    assert rig.numbers() == [3]
    assert rig.engine.describer.drops == {"reset": 2}
    assert rig.notices == [(start, 0, 1, False), (start, 1, 0, False)]
    rig.check_accounts()


def test_half_open_the_believer_finds_out_only_by_sending() -> None:
    rig = Rig(detection_us=SECOND).linked()
    start = rig.engine.now
    rig.links.half_open(0, 1)
    rig.run(start + 5 * SECOND)
    assert rig.notices == [(start, 1, 0, False)]
    rig.send(0, 1, 1)
    rig.run(start + 10 * SECOND)
    assert rig.log == []
    assert rig.engine.describer.drops == {"half_open": 1}
    assert rig.notices[1:] == [(start + 6 * SECOND, 0, 1, False)]


def test_the_side_that_forgot_a_half_open_link_may_open_it_again() -> None:
    rig = Rig(detection_us=SECOND).linked()
    rig.links.half_open(0, 1)
    rig.run(rig.engine.now + SECOND)
    rig.notices.clear()
    start = rig.engine.now
    rig.links.open(1, 0)
    rig.run(start + SECOND)
    rig.send(0, 1, 1)
    rig.run()
    assert rig.notices == [(start + 20 * MS, 1, 0, True), (start + 20 * MS, 0, 1, True)]
    assert rig.numbers() == [1]


def test_a_partition_breaks_a_link_when_something_is_sent_and_both_sides_notice() -> None:
    rig = Rig(detection_us=SECOND).linked()
    start = rig.engine.now
    rig.network.add_rule(Partition({0}))
    rig.send(0, 1, 1)
    rig.run()
    assert rig.engine.describer.drops == {"partition": 1}
    assert rig.notices == [(start + SECOND, 0, 1, False), (start + SECOND, 1, 0, False)]


def test_opening_across_a_partition_fails_after_the_detection_delay() -> None:
    rig = Rig(detection_us=SECOND)
    rig.network.add_rule(Partition({0}, one_way=True))
    rig.links.open(1, 0)
    rig.run()
    assert rig.notices == [(SECOND, 1, 0, False)]


def test_a_link_that_was_let_go_tells_its_holder_nothing() -> None:
    rig = Rig()
    rig.links.open(0, 1)
    rig.links.close(0, 1)
    rig.run()
    assert rig.notices == []
    assert rig.links.held_by(0) == []


def test_notices_are_rows_of_the_full_trace() -> None:
    rig = Rig(detection_us=SECOND)
    rig.links.open(0, 1)
    rig.run(SECOND)
    rig.crash(1)
    rig.run()
    rows = rig.rows()
    assert (rows[Kind.LINK_UP], rows[Kind.LINK_DOWN]) == (1, 1)
