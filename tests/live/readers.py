"""The pure reader of frames and the compiled one, where it was built, fed alike: they must agree on everything."""

from __future__ import annotations

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
    def __init__(self, limit: int) -> None:
        self.pure = frames.FrameReader(limit)
        self.compiled: frames.FrameReader | None = None
        if COMPILED:
            from epicast.wire._frames import FrameReader

            self.compiled = FrameReader(limit)

    @property
    def waiting(self) -> int:
        return self.pure.waiting

    def feed(self, data: bytes) -> list[bytes | Run]:
        """What the pure one makes of it."""
        found, error = _fed(self.pure, data)
        if self.compiled is not None:
            also, its_error = _fed(self.compiled, data)
            assert str(its_error) == str(error)
            assert taken_apart(also) == taken_apart(found)
            assert error or self.compiled.waiting == self.pure.waiting
        if error is not None:
            raise error
        return found


def _fed(reader: frames.FrameReader, data: bytes) -> tuple[list[bytes | Run], WireError | None]:
    try:
        return reader.feed(data), None
    except WireError as error:
        return [], error
