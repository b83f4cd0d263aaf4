from epicast.core.ordered import Ordered
from epicast.ordering.ranked import SLACK, Ranked
from epicast.ordering.waiting import Held


def held(number: int) -> Held:
    return Held(Ordered(1, number, "t", 0, b""), 2, number, 0, 0)


def test_the_lowest_comes_first_and_equals_in_the_order_of_their_coming() -> None:
    a, b, c = held(0), held(1), held(2)
    room = dict.fromkeys((a, b, c))
    ranked = Ranked(room)
    ranked.push(5, a)
    ranked.push(3, b)
    ranked.push(3, c)
    found = []
    while (first := ranked.first()) is not None:
        found.append(first)
        ranked.pop()
    assert found == [(3, b), (3, c), (5, a)]


def test_who_has_left_the_room_is_not_found() -> None:
    a, b = held(0), held(1)
    room = dict.fromkeys((a, b))
    ranked = Ranked(room)
    ranked.push(1, a)
    ranked.push(2, b)
    del room[a]
    assert ranked.first() == (2, b)
    del room[b]
    assert ranked.first() is None


def test_those_who_have_left_do_not_pile_up() -> None:
    stays = held(0)
    room: dict[Held, None] = {stays: None}
    ranked = Ranked(room)
    ranked.push(0, stays)
    for number in range(10 * SLACK):
        passer = held(number)
        room[passer] = None
        ranked.push(1 + number, passer)
        del room[passer]
        assert len(ranked._heap) <= 2 * SLACK
    assert ranked.first() == (0, stays)
