"""What the network does to messages: timing, loss, copies, queues, rules, sleeping receivers.

And the accounts: whatever was sent is somewhere."""

from __future__ import annotations

from random import Random

import pytest

from epicast.core.records import Kind
from epicast.sim.faults import Clog, Partition
from epicast.wire.codec import size
from tests.unit.sim.rig import Note, Rig

MS = 1_000
SECOND = 1_000_000


class Ends:
    """A pairwise model: a delay for each receiver."""

    pairwise = True

    def chunk(self, rng: Random, count: int) -> list[int]:
        raise AssertionError("not asked for")

    def delay_us(self, src: int, dst: int, rng: Random) -> int:
        return (1 + dst) * 10 * MS


# Time


def test_a_datagram_takes_one_delay() -> None:
    rig = Rig(transport="datagram")
    rig.send(0, 1, 7)
    rig.run()
    assert rig.log == [(10 * MS, 1, 0, 7)]


def test_delays_are_rounded_to_ticks_and_are_at_least_one() -> None:
    rig = Rig(latency="constant 1.26ms", transport="datagram")
    rig.send(0, 1, 1)
    rig.run()
    instant = Rig(latency="constant 0us", transport="datagram")
    instant.send(0, 1, 1)
    instant.run()
    assert rig.times() == [1_300]
    assert instant.times() == [100]


def test_a_send_between_two_ticks_leaves_at_the_next() -> None:
    rig = Rig(transport="datagram")
    rig.engine.call_at(150, rig.send, 0, 1, 1)
    rig.run()
    assert rig.times() == [10 * MS + 200]


def test_pairwise_delays_depend_on_both_ends() -> None:
    rig = Rig(nodes=3, latency=Ends(), transport="datagram")
    rig.send(0, 1, 1)
    rig.send(0, 2, 2)
    rig.run()
    assert rig.log == [(20 * MS, 1, 0, 1), (30 * MS, 2, 0, 2)]


def test_without_a_link_a_message_pays_for_a_connection_of_its_own() -> None:
    rig = Rig(connect_us=500)
    rig.send(0, 1, 1)
    rig.run()
    assert rig.times() == [500 + 3 * 10 * MS]


def test_datagrams_overtake_each_other_when_delays_vary() -> None:
    rig = Rig(latency="uniform 1ms 50ms", transport="datagram")
    for number in range(50):
        rig.send(0, 1, number)
    rig.run()
    assert sorted(rig.numbers()) == list(range(50))
    assert rig.numbers() != list(range(50))


# The sender's queue


def test_processing_queue_transmission_and_propagation_add_up() -> None:
    filling = bytes(1_000)
    transmission_us = size(Note(1, filling)) * 8_000_000 // 1_000_000
    rig = Rig(transport="datagram", bandwidth_bps=1_000_000, processing_us=300, tick_us=1)
    for number in range(3):
        rig.send(0, 1, number, filling)
    rig.run()
    each = 300 + transmission_us
    assert rig.times() == [n * each + 10 * MS for n in (1, 2, 3)]


def test_the_queue_is_the_senders_own_and_empties_with_time() -> None:
    rig = Rig(nodes=3, transport="datagram", processing_us=5 * MS)
    rig.send(0, 2, 1)
    rig.send(1, 2, 2)
    rig.engine.call_at(50 * MS, rig.send, 0, 2, 3)
    rig.run()
    assert rig.times() == [15 * MS, 15 * MS, 65 * MS]


def test_a_full_queue_drops() -> None:
    rig = Rig(transport="datagram", bandwidth_bps=8_000, queue_bytes_max=1_000)
    for number in range(4):
        rig.send(0, 1, number, bytes(900))
    rig.run()
    assert rig.numbers() == [0, 1]
    assert rig.engine.describer.drops == {"queue_full": 2}
    rig.check_accounts()


# Loss, copies, disorder


def test_a_lost_datagram_is_dropped() -> None:
    rig = Rig(transport="datagram", loss=0.5)
    for number in range(400):
        rig.send(0, 1, number)
    rig.run()
    assert 120 < len(rig.log) < 280
    assert rig.engine.describer.drops == {"loss": 400 - len(rig.log)}
    rig.check_accounts()


def test_a_lost_segment_comes_late_and_holds_up_what_follows() -> None:
    rig = Rig(retransmit_us=200 * MS).linked()
    start = rig.engine.now
    rig.network.set_loss(0.2)
    for number in range(40):
        rig.send(0, 1, number)
    rig.run()
    late = {time - start for time in rig.times()}
    assert rig.numbers() == list(range(40))
    assert late <= {10 * MS, 210 * MS, 610 * MS, 1410 * MS, 3010 * MS, 6210 * MS, 12610 * MS}
    assert len(late) > 1
    assert rig.engine.describer.drops == {}


def test_a_segment_that_never_gets_through_breaks_the_link() -> None:
    rig = Rig(detection_us=SECOND, retransmit_max=2).linked()
    start = rig.engine.now
    rig.network.set_loss(1.0)
    rig.send(0, 1, 1)
    rig.send(0, 1, 2)
    rig.run()
    assert rig.log == []
    assert rig.engine.describer.drops == {"loss": 1, "half_open": 1}
    assert rig.notices == [(start + SECOND, 0, 1, False), (start + SECOND, 1, 0, False)]


def test_a_copied_datagram_arrives_twice_and_the_second_is_a_duplicate() -> None:
    rig = Rig(transport="datagram", duplication=1.0)
    rig.send(0, 1, 7)
    rig.run()
    assert rig.numbers() == [7, 7]
    assert rig.engine.counts[Kind.COPY] == rig.engine.counts[Kind.DUPLICATE] == 1
    rig.check_accounts()


def test_reordering_holds_datagrams_back() -> None:
    rig = Rig(transport="datagram", reordering=0.3, reorder_us=40 * MS)
    for number in range(100):
        rig.send(0, 1, number)
    rig.run()
    assert sorted(rig.numbers()) == list(range(100))
    assert rig.numbers() != list(range(100))
    assert min(rig.times()) == 10 * MS
    assert max(rig.times()) <= 50 * MS


def test_tcp_neither_copies_nor_reorders() -> None:
    rig = Rig(duplication=1.0, reordering=1.0).linked()
    for number in range(20):
        rig.send(0, 1, number)
    rig.run()
    assert rig.numbers() == list(range(20))


# Rules


def test_a_partition_drops_and_its_end_lets_pass_again() -> None:
    rig = Rig(transport="datagram")
    partition = Partition({0})
    rig.network.add_rule(partition)
    rig.send(0, 1, 1)
    rig.network.remove_rule(partition)
    rig.send(0, 1, 2)
    rig.run()
    assert rig.numbers() == [2]
    assert rig.engine.describer.drops == {"partition": 1}


def test_a_clog_delays() -> None:
    rig = Rig(transport="datagram")
    rig.network.add_rule(Clog({1}, delay_us=70 * MS))
    rig.send(0, 1, 1)
    rig.run()
    assert rig.times() == [80 * MS]


def test_healing_removes_rules_and_loss() -> None:
    rig = Rig(transport="datagram", loss=1.0)
    rig.network.add_rule(Partition({0}))
    rig.network.heal()
    rig.send(0, 1, 1)
    rig.run()
    assert rig.numbers() == [1]


def test_the_fast_path_is_taken_only_without_trouble() -> None:
    rig = Rig(transport="datagram")
    assert rig.engine.plain
    partition = Partition({0})
    rig.network.add_rule(partition)
    assert not rig.engine.plain
    rig.network.remove_rule(partition)
    assert rig.engine.plain
    assert not Rig(loss=0.1).engine.plain
    assert not Rig(processing_us=1).engine.plain
    assert not Rig(latency=Ends()).engine.plain


# Processes that cannot receive


def test_a_message_to_a_process_that_is_down_is_dropped() -> None:
    rig = Rig(transport="datagram")
    rig.crash(1)
    rig.send(0, 1, 1)
    rig.run()
    assert rig.engine.describer.drops == {"down": 1}
    rig.check_accounts()


def test_a_paused_process_takes_messages_and_timers_in_order_when_it_resumes() -> None:
    rig = Rig(transport="datagram")
    env = rig.engine.env(1)
    rig.pause(1)
    env.after(5 * MS, rig.log.append, (0, 1, 1, -1))
    rig.engine.call_at(0, rig.send, 0, 1, 1)
    env.after(15 * MS, rig.log.append, (0, 1, 1, -2))
    rig.engine.call_at(10 * MS, rig.send, 0, 1, 2)
    cancelled = env.after(16 * MS, rig.log.append, (0, 1, 1, -3))
    rig.engine.call_at(90 * MS, cancelled.cancel)
    rig.engine.call_at(100 * MS, rig.resume, 1)
    rig.run(99 * MS)
    assert rig.log == []
    assert rig.network.in_flight() == 2
    rig.check_accounts()
    rig.run()
    assert rig.numbers() == [-1, 1, -2, 2]
    assert rig.log[1][0] == 100 * MS


def test_a_process_that_crashes_in_its_sleep_never_takes_what_waited() -> None:
    rig = Rig(transport="datagram")
    rig.pause(1)
    rig.send(0, 1, 1)
    rig.engine.env(1).after(MS, rig.log.append, (0, 1, 1, -1))
    rig.engine.call_at(50 * MS, rig.crash, 1)
    rig.run()
    assert rig.log == []
    assert rig.engine.describer.drops == {"down": 1}
    rig.check_accounts()


def test_a_process_that_pauses_again_while_it_wakes_keeps_the_rest_for_later() -> None:
    rig = Rig(transport="datagram")
    rig.pause(1)
    for number in (1, 2):
        rig.send(0, 1, number)
    first, later = rig.listeners[1].on_note, []

    def nod_off(sender: int, note: Note) -> bool:
        later.append(note.number)
        if note.number == 1:
            rig.pause(1)
        return first(sender, note)

    rig.engine.use_handlers({Note: (0, lambda listener, sender, note: nod_off(sender, note))})
    rig.engine.call_at(50 * MS, rig.resume, 1)
    rig.run(60 * MS)
    assert later == [1]
    assert rig.network.waiting() == 1
    rig.resume(1)
    assert later == [1, 2]


# Accounts


@pytest.mark.parametrize("transport", ["tcp", "datagram"])
@pytest.mark.parametrize("seed", range(4))
def test_every_message_is_accounted_for(transport: str, seed: int) -> None:
    """sent + copies = received + dropped + in flight, at any moment of a run with every kind of trouble."""
    chance = Random(seed)
    trouble = {"loss": 0.2, "duplication": 0.2, "reordering": 0.2, "bandwidth_bps": 400_000, "queue_bytes_max": 2_000}
    rig = Rig(8, "uniform 1ms 90ms", seed=seed, transport=transport, retransmit_max=1, detection_us=100 * MS, **trouble)
    rules = [Partition({0, 1, 2}), Clog({3}, 40 * MS)]
    steps = [
        lambda: rig.links.open(*chance.sample(range(8), 2)),
        lambda: rig.links.close(*chance.sample(range(8), 2)),
        lambda: rig.links.reset(*chance.sample(range(8), 2)),
        lambda: rig.links.half_open(*chance.sample(range(8), 2)),
        lambda: rig.network.add_rule(chance.choice(rules)),
        lambda: rig.network.remove_rule(chance.choice(rules)),
        lambda: rig.pause(6),
        lambda: rig.resume(6),
    ]
    for at in range(400):
        for _ in range(4):
            rig.engine.call_at(at * 5 * MS, rig.send, *chance.sample(range(8), 2), chance.randrange(100), bytes(50))
        rig.engine.call_at(at * 5 * MS, chance.choice(steps))
    rig.engine.call_at(1_900 * MS, rig.crash, 7)
    for until in (100 * MS, 700 * MS, 1_500 * MS, 1_950 * MS):
        rig.run(until)
        rig.check_accounts()
    rig.crash(6)
    rig.run()
    rig.check_accounts()
    assert rig.network.in_flight() == 0
    assert {"loss", "down"} < set(rig.engine.describer.drops)
