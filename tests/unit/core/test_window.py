from epicast.core.window import SeqWindow


def test_numbers_in_order_move_the_mark_and_keep_nothing() -> None:
    window = SeqWindow()
    assert [window.add(seq) for seq in (0, 1, 2)] == [True, True, True]
    assert window.next == 3
    assert window.ahead == {}
    assert window.last == 2


def test_an_empty_window_has_nothing_received() -> None:
    window = SeqWindow(first=5)
    assert window.last == 4
    assert 5 not in window


def test_numbers_below_the_first_count_as_received() -> None:
    window = SeqWindow(first=5)
    assert 4 in window
    assert window.add(4) is False


def test_a_number_is_new_once() -> None:
    window = SeqWindow()
    assert [window.add(seq) for seq in (0, 0, 2, 2)] == [True, False, True, False]


def test_a_number_above_a_hole_waits_until_the_hole_is_filled() -> None:
    window = SeqWindow()
    for seq in (0, 2, 3):
        window.add(seq)
    assert (window.next, list(window.ahead), window.last) == (1, [2, 3], 3)
    assert 1 not in window
    window.add(1)
    assert (window.next, window.ahead, window.last) == (4, {}, 3)


def test_missing_numbers_are_given_as_ranges() -> None:
    window = SeqWindow()
    for seq in (0, 3, 4, 7):
        window.add(seq)
    assert window.missing(last=9, limit=10) == [(1, 2), (5, 6), (8, 9)]


def test_missing_numbers_end_at_the_last_one_asked_for() -> None:
    window = SeqWindow()
    for seq in (0, 3, 7):
        window.add(seq)
    assert window.missing(last=5, limit=10) == [(1, 2), (4, 5)]
    assert window.missing(last=2, limit=10) == [(1, 2)]
    assert window.missing(last=3, limit=10) == [(1, 2)]
    assert window.missing(last=0, limit=10) == []


def test_no_more_ranges_are_given_than_asked_for() -> None:
    window = SeqWindow()
    for seq in (1, 3, 5):
        window.add(seq)
    assert window.missing(last=9, limit=2) == [(0, 0), (2, 2)]
    assert window.missing(last=9, limit=3) == [(0, 0), (2, 2), (4, 4)]
    assert window.missing(last=9, limit=0) == []
    assert SeqWindow().missing(last=9, limit=0) == []


def test_at_the_cap_the_oldest_hole_is_given_up_for_good() -> None:
    window = SeqWindow(cap=2)
    for seq in (3, 4, 6):
        assert window.add(seq) is True
    assert (window.next, list(window.ahead), window.lost) == (5, [6], 3)
    assert window.add(1) is False


def test_skipping_a_hole_tells_how_many_numbers_it_loses() -> None:
    window = SeqWindow()
    window.add(2)
    window.add(5)
    assert window.skip_hole() == 2
    assert window.skip_hole() == 2
    assert window.skip_hole() == 0
    assert (window.next, window.lost) == (6, 4)


def test_skipping_in_an_unbroken_stream_loses_nothing() -> None:
    window = SeqWindow(first=3)
    assert window.skip_hole() == 0
    assert window.next == 3


def test_a_provisional_window_takes_numbers_from_before_its_first() -> None:
    window = SeqWindow(first=8, provisional=True)
    assert window.add(8) is True
    assert 5 not in window
    assert [window.add(5), window.add(5)] == [True, False]
    assert 5 in window
    assert 6 not in window
    assert (window.next, window.last) == (9, 8)


def test_a_settled_window_takes_no_numbers_from_before_its_first() -> None:
    window = SeqWindow(first=8)
    assert window.provisional is False
    assert 5 in window
    assert window.add(5) is False


def test_a_provisional_window_begins_where_it_is_told() -> None:
    window = SeqWindow(first=8, provisional=True)
    for seq in (8, 9, 6, 11):
        window.add(seq)
    window.settle(5)
    assert (window.first, window.next, window.provisional, window.lost) == (5, 5, False, 0)
    assert window.missing(last=11, limit=9) == [(5, 5), (7, 7), (10, 10)]
    assert [window.add(seq) for seq in (4, 6, 8, 5)] == [False, False, False, True]
    assert window.next == 7


def test_a_provisional_window_begins_at_the_lowest_number_it_saw() -> None:
    window = SeqWindow(first=8, provisional=True)
    window.add(8)
    window.add(6)
    window.settle(20)
    assert (window.first, window.next) == (6, 7)
    assert window.missing(last=8, limit=9) == [(7, 7)]


def test_a_provisional_window_that_is_told_nothing_lower_stays_where_it_is() -> None:
    window = SeqWindow(first=8, provisional=True)
    window.add(8)
    window.settle(20)
    assert (window.first, window.next, window.provisional) == (8, 9, False)
    assert window.add(7) is False


def test_a_window_settles_once() -> None:
    window = SeqWindow(first=8, provisional=True)
    window.settle(7)
    window.settle(3)
    assert window.next == 7


def test_numbers_from_before_are_kept_up_to_the_cap_and_can_be_asked_for_again() -> None:
    window = SeqWindow(first=8, cap=4, provisional=True)
    assert [window.add(seq) for seq in (7, 6, 5, 3, 4)] == [True, True, True, True, False]
    assert 4 not in window
    window.settle(4)
    assert window.missing(last=7, limit=9) == [(4, 4)]


def test_settling_reaches_no_farther_back_than_the_cap() -> None:
    window = SeqWindow(first=100, cap=4, provisional=True)
    for seq in (100, 97, 90):
        window.add(seq)
    window.settle(0)
    assert (window.first, window.next) == (97, 98)
    assert window.missing(last=100, limit=9) == [(98, 99)]


def test_settling_a_stream_that_ran_on_past_the_cap_changes_nothing() -> None:
    window = SeqWindow(first=100, cap=4, provisional=True)
    for seq in range(100, 110):
        window.add(seq)
    window.settle(0)
    assert (window.next, window.ahead) == (110, {})
    assert 100 in window


def test_settling_keeps_to_the_cap() -> None:
    window = SeqWindow(first=10, cap=3, provisional=True)
    for seq in (12, 14, 16, 8):
        window.add(seq)
    window.settle(7)
    assert (window.next, list(window.ahead), window.lost) == (9, [12, 14, 16], 1)
