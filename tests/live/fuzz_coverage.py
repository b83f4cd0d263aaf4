"""A small fuzzer: keeps what reaches a line that nothing has reached before, and changes it a little each time.

Messages are changed as the values that they are, and as bytes. It draws from a seed, so a finding can be had again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

import msgspec

import epicast
from tests.live.fuzz_target import ENEMY, FRIEND, ME, as_input, bodies_in

SOURCE = str(Path(epicast.__file__).parent)
INTS = [0, 1, -1, 127, 128, 255, 4096, 32_767, 32_768, 1 << 31, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, -(1 << 63)]
TEXTS = ["", ME, FRIEND, ENEMY, "x", "127.0.0.1:9/other", "a..b:1/x", "t", "t" * 255]
BYTES = [0, 1, 0x7F, 0x80, 0x90, 0xC0, 0xC1, 0xC4, 0xDD, 0xFF]

Line = tuple[CodeType, int]


class Coverage:
    """Of the lines of all files below a folder."""

    def __init__(self, folder: str = SOURCE) -> None:
        self.seen: set[Line] = set()
        self._folder = folder
        self._new = False

    def adds(self, work: Callable[[bytes], None], content: bytes) -> bool:
        """Does this get to a line where nothing has been?"""
        self._new = False
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            work(content)
        finally:
            sys.settrace(before)
        return self._new

    def _call(self, frame: FrameType, event: str, _: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(self._folder) else None

    def _line(self, frame: FrameType, event: str, _: Any) -> Any:
        line = (frame.f_code, frame.f_lineno)
        if line not in self.seen:
            self.seen.add(line)
            self._new = True
        return self._line


class Fuzzer:
    def __init__(
        self, target: Callable[[bytes], None], corpus: Sequence[bytes], seed: int = 1, folder: str = SOURCE
    ) -> None:
        self.target, self.corpus, self.rng = target, list(corpus), Random(seed)
        self.coverage = Coverage(folder)
        self.runs = 0
        for content in corpus:
            self._try(content)

    def run(self, times: int) -> None:
        for _ in range(times):
            self._try(self._changed())

    def _try(self, content: bytes) -> None:
        self.runs += 1
        try:
            new = self.coverage.adds(self.target, content)
        except Exception as error:
            error.add_note(f"one_input(bytes.fromhex({content.hex()!r}))")
            raise
        if new:
            self.corpus.append(content)

    def _changed(self) -> bytes:
        rng = self.rng
        bodies = list(bodies_in(rng.choice(self.corpus))) or [b""]
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = rng.randrange(len(bodies))
            match rng.randrange(8):
                case 0:
                    bodies[at:at] = bodies_in(rng.choice(self.corpus))
                case 1:
                    bodies.insert(at, rng.choice(bodies))
                case 2:
                    bodies[at] = self._bytes_changed(bodies[at])
                case 3 if len(bodies) > 1:
                    del bodies[at]
                case _:
                    bodies[at] = self._value_changed(bodies[at])
        return as_input(bodies[:64])

    def _bytes_changed(self, body: bytes) -> bytes:
        rng, changed = self.rng, bytearray(body or b"\x90")
        at = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                changed[at] ^= 1 << rng.randrange(8)
            case 1:
                changed[at] = rng.choice(BYTES)
            case 2:
                del changed[at : at + rng.randrange(1, 5)]
            case _:
                changed[at:at] = rng.randbytes(rng.randrange(1, 5))
        return bytes(changed)

    def _value_changed(self, body: bytes) -> bytes:
        try:
            value = msgspec.msgpack.decode(body)
            return msgspec.msgpack.encode(self._other(value))
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
            return self._bytes_changed(body)

    def _other(self, value: Any) -> Any:
        """One place in it is another; lists may get longer."""
        rng = self.rng
        if isinstance(value, list) and value:
            at = rng.randrange(len(value))
            match rng.randrange(8):
                case 0:
                    return value * rng.choice((2, 16))
                case 1:
                    return value[:at] + value[at + 1 :]
                case _:
                    return [*value[:at], self._other(value[at]), *value[at + 1 :]]
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return rng.choice([*INTS, value + 1, value - 1])
        if isinstance(value, str):
            return rng.choice(TEXTS)
        return rng.choice([value, 0, "", [], None, True, b"", rng.choice(INTS), rng.choice(TEXTS)])
