from collections.abc import Iterable
from threading import Event, Thread

import pytest

from epicast.trace.background import DEPTH, Background


def put_all(background: Background[int], items: Iterable[int]) -> None:
    for item in items:
        background.put(item)


def test_work_is_done_in_order_and_all_of_it_before_close_returns() -> None:
    done: list[int] = []
    background = Background(done.append, "test")
    put_all(background, range(100))
    background.close()
    assert done == list(range(100))


def test_a_fast_owner_waits() -> None:
    may_go_on = Event()
    handed_in: list[int] = []
    background: Background[int] = Background(lambda _: bool(may_go_on.wait()), "test")

    def hand_in() -> None:
        for item in range(100):
            background.put(item)
            handed_in.append(item)

    owner = Thread(target=hand_in)
    owner.start()
    owner.join(0.1)
    assert owner.is_alive()
    assert len(handed_in) <= DEPTH + 1
    may_go_on.set()
    owner.join()
    background.close()
    assert len(handed_in) == 100


def test_a_failure_comes_back_on_the_next_call_and_on_close() -> None:
    def fail(_: int) -> None:
        raise OSError("disk full")

    background = Background(fail, "test")
    with pytest.raises(OSError, match="disk full"):
        put_all(background, range(100))  # none waits for ever
    with pytest.raises(OSError, match="disk full"):
        background.check()
    with pytest.raises(OSError, match="disk full"):
        background.close()


def test_nothing_is_done_after_a_failure() -> None:
    done: list[int] = []

    def fail_at_first(item: int) -> None:
        done.append(item)
        raise ValueError("no")

    background = Background(fail_at_first, "test")
    with pytest.raises(ValueError, match="no"):
        put_all(background, range(10))
    with pytest.raises(ValueError, match="no"):
        background.close()
    assert done == [0]


def test_abort_drops_what_waits() -> None:
    started, may_go_on = Event(), Event()
    done: list[int] = []

    def work(item: int) -> None:
        started.set()
        may_go_on.wait()
        done.append(item)

    background = Background(work, "test")
    background.put(0)
    started.wait()
    background.put(1)
    aborting = Thread(target=background.abort)
    aborting.start()
    while not background.ending:
        pass
    may_go_on.set()
    aborting.join()
    assert done == [0]
