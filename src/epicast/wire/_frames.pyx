# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""`frames.py` compiled: the same frames from the same bytes.

What differs is where bytes are kept. A connection reads into a block of its reader's; events that fill a good part of it
stay where they are, and are handed on, kept for recovery and taken apart from there. Nothing of them is copied but the
payloads that somebody asks for. Smaller runs are copied, so that a few events do not hold on to a whole block.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc  # as tracemalloc sees them
from libc.stdint cimport UINT64_MAX, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from collections.abc import Sequence

from epicast.core.errors import WireError

BUILT = 2  # as `readers.py` has it: what was built from another source is not used

cdef enum:
    BLOCK = 1 << 18
    KEPT = BLOCK // 4  # runs of so many bytes stay in their block
    SPARE_MAX = 64
    HEADER_BYTES = 4
    EVENT = 0xC1
    EVENT_HEAD_BYTES = 21
    EVENT_BODY_MIN = EVENT_HEAD_BYTES - HEADER_BYTES
    OPEN = 0
    GREETING = 1
    GREETED = 2

# Blocks that were let go, for the next readers: memory fresh from the system costs more than what is read into it.
cdef char *spare[SPARE_MAX]
cdef int spares = 0

# The same goes for smaller pieces, and the C library hands back what is free at once. From the size of what it has seen
# come and go it concludes how much to keep: twice the largest piece, and of pieces above 32 MiB it takes no notice.
PyMem_RawFree(PyMem_RawMalloc((32 << 20) - BLOCK))


@cython.final
@cython.no_gc
cdef class Block:
    """Memory to read into; whoever looks at it once it is done may not change it."""

    def __cinit__(self, Py_ssize_t size):
        global spares
        if size == BLOCK and spares:
            spares -= 1
            self.at = spare[spares]
        else:
            self.at = <char *> PyMem_RawMalloc(size)
        if self.at is NULL:
            raise MemoryError
        self.size = size

    def __dealloc__(self):
        global spares
        if self.size == BLOCK and spares < SPARE_MAX and self.at is not NULL:
            spare[spares] = self.at
            spares += 1
        else:
            PyMem_RawFree(self.at)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.at, self.size, self.done, flags)


@cython.final
@cython.no_gc
cdef class Run:
    """Events of one stream with consecutive numbers that came together."""

    def __dealloc__(self):
        PyMem_RawFree(self.starts)

    cdef Py_ssize_t size_of(self, Py_ssize_t at) noexcept:
        cdef Py_ssize_t end = self.end if at == self.count - 1 else self.starts[at + 1] - EVENT_HEAD_BYTES
        return end - self.starts[at]

    def __len__(self):
        return self.count

    def __getitem__(self, at):
        if isinstance(at, slice):
            return self.payloads()[at]
        cdef Py_ssize_t number = at
        if number < 0:
            number += self.count
        if not 0 <= number < self.count:
            raise IndexError("no such event")
        return PyBytes_FromStringAndSize(self.block.at + self.starts[number], self.size_of(number))

    def __iter__(self):
        return iter(self.payloads())

    def payloads(self):
        cdef Py_ssize_t at
        return [PyBytes_FromStringAndSize(self.block.at + self.starts[at], self.size_of(at)) for at in range(self.count)]

    @property
    def raw(self):
        return memoryview(self.block)[self.begin : self.end]

    def __repr__(self):
        return f"Run(stream={self.stream}, seq={self.seq}, {self.count} events)"


Sequence.register(Run)


cdef inline uint32_t read_u32(const uint8_t *at) noexcept nogil:
    return (<uint32_t> at[0] << 24) | (<uint32_t> at[1] << 16) | (<uint32_t> at[2] << 8) | at[3]


cdef inline uint64_t read_u64(const uint8_t *at) noexcept nogil:
    return (<uint64_t> read_u32(at) << 32) | read_u32(at + 4)


@cython.final
cdef class FrameReader:
    """Takes bytes as they come, gives whole frames: bodies of messages, and runs of events."""

    cdef public Py_ssize_t limit
    cdef Block block  # being read into
    cdef Py_ssize_t have  # bytes in it
    cdef bytes carry  # of a frame that is not whole yet, while there is no block
    cdef Py_ssize_t wanted  # how long that frame is, as far as is known
    cdef int stage

    def __init__(self, Py_ssize_t limit, *, bint greeting=False):
        self.limit = limit
        self.stage = GREETING if greeting else OPEN
        self.carry = b""
        self.wanted = 0

    @property
    def waiting(self):
        """Bytes of a frame that is not whole yet."""
        return self.have if self.block is not None else PyBytes_GET_SIZE(self.carry)

    def room(self):
        """Where to put what comes next."""
        if self.block is None:
            self._open()
        return memoryview(self.block)[self.have :] if self.have else memoryview(self.block)

    cdef int _open(self) except -1:
        cdef Py_ssize_t size = PyBytes_GET_SIZE(self.carry)
        # Before the greeting nobody gets a whole block.
        self.block = Block(BLOCK if self.limit > KEPT else self.limit + HEADER_BYTES)
        memcpy(self.block.at, PyBytes_AS_STRING(self.carry), size)
        self.have = size
        self.carry = b""
        return 0

    def filled(self, Py_ssize_t count):
        """So many bytes were put there."""
        cdef Block block = self.block
        cdef Py_ssize_t end = self.have + count
        cdef list frames = []
        if block is None or not 0 <= count <= block.size - self.have:
            raise ValueError("more than there was room for")
        if self.stage == GREETED:
            return frames
        self.block = None
        self.have = 0
        self._leave(block, self._take_all(block, end, frames), end)
        return frames

    def go_on(self, Py_ssize_t limit):
        """The frames that came with the first one, under the limit that holds from now on."""
        cdef bytes rest = self.carry
        if self.block is not None:
            rest = PyBytes_FromStringAndSize(self.block.at, self.have)
        self.block, self.have, self.carry = None, 0, b""
        self.stage, self.limit = OPEN, limit
        return self.feed(rest)

    def feed(self, const uint8_t[::1] data):
        cdef list frames = []
        cdef Py_ssize_t at = 0, part
        while at < data.shape[0]:
            if self.block is None:
                self._open()
            part = min(data.shape[0] - at, self.block.size - self.have)
            memcpy(self.block.at + self.have, &data[at], part)
            frames += self.filled(part)
            at += part
        return frames

    cdef int _leave(self, Block block, Py_ssize_t at, Py_ssize_t end) except -1:
        """Keep what is not whole yet. The start of a long frame stays where it is; a short one must not hold a block."""
        cdef Block longer
        cdef Py_ssize_t left = end - at
        if at == 0 and (left >= KEPT or left == block.size):
            if left == block.size:
                longer = Block(min(self.wanted, 2 * block.size))
                memcpy(longer.at, block.at, left)
                block = longer
            self.block = block
            self.have = left
        elif left:
            self.carry = PyBytes_FromStringAndSize(block.at + at, left)
        return 0

    cdef Py_ssize_t _take_all(self, Block block, Py_ssize_t end, list frames) except -1:
        """All that is whole; returns where the rest begins."""
        cdef const uint8_t *data = <const uint8_t *> block.at
        cdef Py_ssize_t at = 0, following
        while end - at >= HEADER_BYTES:
            following = at + HEADER_BYTES + self._length(data + at)
            if following > end:
                self.wanted = following - at
                break
            if data[at + HEADER_BYTES] == EVENT and self.stage == OPEN:
                at = self._take_run(block, at, end, frames)
                continue
            frames.append(PyBytes_FromStringAndSize(block.at + at + HEADER_BYTES, following - at - HEADER_BYTES))
            at = following
            if self.stage == GREETING:
                self.stage = GREETED
                break
        return at

    cdef Py_ssize_t _length(self, const uint8_t *data) except -1:
        cdef Py_ssize_t length = read_u32(data)
        if length > self.limit or length == 0:
            raise WireError(f"frame of {length} bytes; expected 1 to {self.limit}")
        return length

    cdef Py_ssize_t _take_run(self, Block block, Py_ssize_t at, Py_ssize_t end, list frames) except -1:
        """All events of the same stream that follow each other; returns where they end."""
        cdef const uint8_t *data = <const uint8_t *> block.at
        cdef Run run = Run.__new__(Run)
        cdef uint64_t expected
        cdef Py_ssize_t length, following, room = 0
        if self._length(data + at) < EVENT_BODY_MIN:
            raise WireError("an event without stream and number")
        run.stream = read_u64(data + at + HEADER_BYTES + 1)
        run.seq = expected = read_u64(data + at + HEADER_BYTES + 9)
        run.begin = at
        while at <= end - EVENT_HEAD_BYTES:
            length = read_u32(data + at)
            following = at + HEADER_BYTES + length
            if (
                read_u64(data + at + HEADER_BYTES + 9) != expected
                or following > end
                or read_u64(data + at + HEADER_BYTES + 1) != run.stream
                or data[at + HEADER_BYTES] != EVENT
            ):
                break
            if length > self.limit or length < EVENT_BODY_MIN:
                raise WireError(f"frame of {length} bytes; expected {EVENT_BODY_MIN} to {self.limit}")
            if run.count == room:
                room = _more_room(run, room)
            run.starts[run.count] = at + EVENT_HEAD_BYTES
            run.count += 1
            run.payload_bytes += length - EVENT_BODY_MIN
            at = following
            if expected == UINT64_MAX:
                break
            expected += 1
        run.end = at
        _settle(run, block)
        frames.append(run)
        return at


cdef Py_ssize_t _more_room(Run run, Py_ssize_t room) except -1:
    room = 2 * room or 4
    cdef uint32_t *starts = <uint32_t *> PyMem_RawRealloc(run.starts, room * sizeof(uint32_t))
    if starts is NULL:
        raise MemoryError
    run.starts = starts
    return room


cdef int _settle(Run run, Block block) except -1:
    """A small run is better off on its own."""
    cdef Py_ssize_t size = run.end - run.begin, number
    cdef Block own = block
    if size < KEPT:
        own = Block(size)
        memcpy(own.at, block.at + run.begin, size)
        for number in range(run.count):
            run.starts[number] -= <uint32_t> run.begin
        run.begin = 0
        run.end = size
    own.done = True
    run.block = own
    return 0
