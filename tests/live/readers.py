"""The pure reader of frames and the compiled one, where it was built, fed alike: they must agree on everything."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from epicast.core.errors import WireError
from epicast.wire import frames
from epicast.wire.frames import Run, event_frame

COMPILED = find_spec("epicast.wire._frames") is not None


def taken_apart(found: list[bytes | Run]) -> list[Any]:
    """Runs as their events, since where a run ends depends on how the bytes came."""
    parts: list[Any] = []
    for each in found:
        if isinstance(each, bytes):
            parts.append(each)
            continue
        events = [(each.stream, seq, payload) for seq, payload in enumerate(each, each.seq)]
        assert bytes(each.raw) == b"".join(event_frame(*event) for event in events), "a run is handed on as it came"
        assert each.payload_bytes == sum(len(payload) for _, _, payload in events)
        assert [each[at] for at in range(len(each))] == list(each) == each[:]
        parts += events
    return parts


class Readers:
    def __init__(self, limit: int, *, greeting: bool = False) -> None:
        self.pure = frames.FrameReader(limit, greeting=greeting)
        self.compiled: frames.FrameReader | None = None
        if COMPILED:
            from epicast.wire._frames import FrameReader

            self.compiled = FrameReader(limit, greeting=greeting)

    @property
    def waiting(self) -> int:
        return self.pure.waiting

    @property
    def room(self) -> int:
        """How many bytes both can take at once."""
        return min(len(each.room()) for each in (self.pure, self.compiled) if each is not None)

    def feed(self, data: bytes) -> list[bytes | Run]:
        """What the pure one makes of it."""
        return self._both(lambda reader: reader.feed(data))

    def go_on(self, limit: int) -> list[bytes | Run]:
        return self._both(lambda reader: reader.go_on(limit))

    def _both(self, call: Callable[[frames.FrameReader], list[bytes | Run]]) -> list[bytes | Run]:
        found, error = _tried(call, self.pure)
        if self.compiled is not None:
            also, its_error = _tried(call, self.compiled)
            assert str(its_error) == str(error)
            assert taken_apart(also) == taken_apart(found)
            assert error or self.compiled.waiting == self.pure.waiting
        if error is not None:
            raise error
        return found


def _tried(
    call: Callable[[frames.FrameReader], list[bytes | Run]], reader: frames.FrameReader
) -> tuple[list[bytes | Run], WireError | None]:
    try:
        return call(reader), None
    except WireError as error:
        return [], error
