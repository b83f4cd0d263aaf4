"""One thread that does slow work in order, behind a short queue, while its owner goes on.

The queue is bounded, so an owner that is faster than the thread waits rather than fills the memory. After a failure the
thread only empties the queue: nobody waits for ever, and the owner learns of it on its next call.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Queue
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")

DEPTH = 1


class Background(Generic[T]):
    def __init__(self, work: Callable[[T], None], name: str) -> None:
        self._work = work
        self._queue: Queue[T | None] = Queue(DEPTH)
        self._failure: BaseException | None = None
        self.ending = False  # whatever still waits in the queue is dropped
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, item: T) -> None:
        """Waits while the queue is full. Once the thread has failed, this raises."""
        assert self._thread.is_alive(), "put after close"
        self.check()
        self._queue.put(item)

    def close(self) -> None:
        """Wait until all is done, or raise what went wrong."""
        self._join()
        self.check()

    def abort(self) -> None:
        """Drop what waits and stop after the item in hand."""
        self.ending = True
        self._join()

    def _join(self) -> None:
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    def check(self) -> None:
        """Raise what went wrong in the thread so far."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            if self._failure is not None or self.ending:
                continue
            try:
                self._work(item)
            except BaseException as failure:  # it belongs to the owner
                self._failure = failure
