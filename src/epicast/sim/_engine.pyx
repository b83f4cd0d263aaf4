# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""`engine.py` compiled: the same classes, the same run byte for byte, protocols still in plain Python.

What differs is only where things are kept.

- Messages in flight: C structs in *chunks*, a list of chunks per tick of arrival, the ticks near the present in a ring.
  What lies beyond the ring waits in a heap, and moves in before anything can be posted behind it.
- Timers: a heap of (due, number, place), the objects themselves in a Python list so that the collector sees them.
- The last arrival on each link: an open-addressed table.
- The trace: C rows and descriptions, turned into the columns of a batch in one pass.

Counted references held by C memory: the messages in flight, released when they are delivered or with the engine.
Borrowed ones: in `TypeRow`, kept alive by `_table` and `_known`.
"""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memmove

import numpy as np

from epicast.core.ids import NOBODY as NOBODY_ID
from epicast.core.records import FIRST_KEPT, KIND_CODES, Kind, Level
from epicast.sim.capture import Describer
from epicast.trace.batch import Batch
from epicast.wire.codec import HEADER_BYTES, encode


cdef extern from *:
    """
    #define EPICAST_TYPE(value) ((PyObject *) Py_TYPE(value))
    #if defined(__GNUC__) || defined(__clang__)
    #define EPICAST_PREFETCH(address) __builtin_prefetch(address)
    #define EPICAST_LOWEST_BIT(word) __builtin_ctzll(word)
    #else
    #define EPICAST_PREFETCH(address) ((void) (address))
    static int EPICAST_LOWEST_BIT(unsigned long long word) {
        int bit = 0;
        while (!(word >> bit & 1)) bit++;
        return bit;
    }
    #endif
    """
    void prefetch "EPICAST_PREFETCH" (const void *address) noexcept nogil
    PyObject *type_of "EPICAST_TYPE" (PyObject *value) noexcept
    int lowest_bit "EPICAST_LOWEST_BIT" (uint64_t word) noexcept nogil


cdef extern from "Python.h":
    const size_t PY_VECTORCALL_ARGUMENTS_OFFSET
    PyObject *Py_True
    PyObject *Py_False
    PyObject *Py_None
    PyObject *PyObject_Vectorcall(PyObject *fn, PyObject **args, size_t count, PyObject *names) except NULL
    object PyObject_CallNoArgs(object fn)
    object PyObject_CallObject(object fn, object args)
    int PyObject_IsTrue(PyObject *value) except -1


cdef enum:
    _DOWN = 0
    _UP = 1
    _PAUSED = 2
    NOBODY = -1
    CHUNK = 32  # messages; a power of two
    RING = 1 << 13  # ticks: 0.8 s of 100 us; a power of two
    TYPES = 1 << 6  # places for message types to begin with; a power of two
    LINKS = 1 << 8  # places for links to begin with; a power of two
    KINDS = 32  # as in core.records
    FLUSH = 1 << 16  # rows

DOWN, UP, PAUSED = _DOWN, _UP, _PAUSED
NEVER_US = 1 << 62
FLUSH_ROWS = FLUSH
DRAWS = 1024

cdef int64_t NEVER = NEVER_US
cdef int _SEND = Kind.SEND, _RECEIVE = Kind.RECEIVE, _DUPLICATE = Kind.DUPLICATE, _DROP = Kind.DROP, _COPY = Kind.COPY
assert KINDS == KIND_CODES and NOBODY == NOBODY_ID

cdef object _encode_into = encode.__self__.encode_into  # the codec's own encoder, into a buffer that is kept
cdef int64_t _header_bytes = HEADER_BYTES


# What is kept in C

cdef struct Flight:  # a message on its way
    int32_t dst
    int32_t src
    PyObject *msg
    int64_t info

cdef struct Chunk:
    Chunk *next
    Flight flights[CHUNK]

cdef struct Bucket:  # what arrives at one tick, in the order of sending
    Chunk *first
    Chunk *last
    int64_t count

cdef struct Entry:  # of a heap
    int64_t key
    int64_t seq
    int64_t place

cdef struct Heap:
    Entry *entries
    Py_ssize_t count
    Py_ssize_t room

cdef struct LinkRow:
    uint64_t ends  # from << 32 | to
    int64_t tick  # of the last arrival; NO_LINK: the place is free

cdef enum:
    NO_LINK = -1

cdef struct TypeRow:  # of messages
    PyObject *type
    PyObject *nodes  # the parts that handle it, by node; NULL if nothing does
    PyObject *handle
    int64_t messages
    int64_t bytes
    bint sent
    bint described
    bint carries_event
    bint has_flags
    int32_t layer
    int32_t name

cdef struct Row:
    int64_t time
    int64_t peer
    int64_t info
    int32_t node
    int32_t kind

cdef struct Info:  # a description, see capture.py
    int64_t source
    int64_t seq
    int32_t hops
    int32_t bytes
    int32_t layer
    int32_t detail
    int32_t topic
    int32_t flags


cdef void *more(void *memory, Py_ssize_t *room, Py_ssize_t wanted, size_t each) except NULL:
    """At least `wanted` places of `each` bytes."""
    cdef Py_ssize_t larger = max(wanted, 2 * room[0], 16)
    cdef void *got = realloc(memory, larger * each)
    if got == NULL:
        raise MemoryError()
    room[0] = larger
    return got


cdef inline bint before(Entry *a, Entry *b) noexcept:
    return a.key < b.key or (a.key == b.key and a.seq < b.seq)


cdef int heap_push(Heap *heap, int64_t key, int64_t seq, int64_t place) except -1:
    if heap.count == heap.room:
        heap.entries = <Entry *> more(heap.entries, &heap.room, heap.count + 1, sizeof(Entry))
    cdef Entry entry = Entry(key, seq, place)
    cdef Entry *entries = heap.entries
    cdef Py_ssize_t at = heap.count, parent
    heap.count += 1
    while at:
        parent = (at - 1) >> 2
        if not before(&entry, &entries[parent]):
            break
        entries[at] = entries[parent]
        at = parent
    entries[at] = entry
    return 0


cdef Entry heap_pop(Heap *heap) noexcept:
    cdef Entry *entries = heap.entries
    cdef Entry lowest = entries[0]
    heap.count -= 1
    cdef Entry moved = entries[heap.count]
    cdef Py_ssize_t count = heap.count, at = 0, child, best, end
    while True:
        child = 4 * at + 1
        if child >= count:
            break
        best = child
        end = min(child + 4, count)
        child += 1
        while child < end:
            if before(&entries[child], &entries[best]):
                best = child
            child += 1
        if not before(&entries[best], &moved):
            break
        entries[at] = entries[best]
        at = best
    entries[at] = moved
    return lowest


cdef inline uint64_t ends_of(int src, int dst) noexcept:
    return <uint64_t> <uint32_t> src << 32 | <uint32_t> dst


cdef inline uint64_t home_of(uint64_t ends) noexcept:
    return ends * <uint64_t> 0x9E3779B97F4A7C15 >> 32


cdef inline LinkRow *find_link(LinkRow *links, uint64_t mask, uint64_t ends) noexcept:
    """The row of the link, or the free one where it would be."""
    cdef uint64_t at = home_of(ends) & mask
    while links[at].tick != NO_LINK and links[at].ends != ends:
        at = (at + 1) & mask
    return &links[at]


cdef LinkRow *new_links(uint64_t count) except NULL:
    cdef LinkRow *links = <LinkRow *> malloc(count * sizeof(LinkRow))
    cdef uint64_t at
    if links == NULL:
        raise MemoryError()
    for at in range(count):
        links[at].tick = NO_LINK
    return links


cdef TypeRow *free_type(TypeRow *types, Py_ssize_t room, PyObject *kind) noexcept:
    cdef Py_ssize_t at = (<uintptr_t> kind >> 4) & (room - 1)
    while types[at].type != NULL:
        at = (at + 1) & (room - 1)
    return &types[at]


cdef void *data(array) except NULL:
    """Where the elements of a numpy array are."""
    cdef uintptr_t address = array.__array_interface__["data"][0]
    return <void *> address


@cython.final
@cython.freelist(1024)
cdef class Timer:
    cdef readonly int node
    cdef public object fn
    cdef public object args

    def __init__(self, int node, fn, tuple args):
        self.node, self.fn, self.args = node, fn, args

    def cancel(self):
        # The entry stays in its list until it is due: cancelling is one assignment.
        self.fn = None


@cython.final
cdef class Engine:
    """Time, both queues, and the table of who handles what."""

    compiled = True

    cdef readonly int64_t tick_us
    cdef readonly object rng
    cdef public int64_t now
    cdef public int64_t events
    cdef readonly list parts
    cdef readonly bytearray state
    cdef dict _table
    cdef dict _sent
    cdef int64_t _counts[KINDS]
    cdef list _ids  # the one int object of each node
    cdef list _known  # types of messages
    cdef TypeRow *_types
    cdef Py_ssize_t _types_room
    # The network, as the fast path sees it
    cdef public bint plain
    cdef public bint over_links
    cdef public object route
    cdef public object undeliverable
    cdef public object on_link
    cdef public object on_unlink
    cdef public object overslept
    cdef object _chunk
    cdef int64_t *_draws
    cdef Py_ssize_t _draws_room, _draws_count, _drawn
    # The queues
    cdef Bucket *_ring
    cdef uint64_t *_busy  # a bit per tick of the ring that has messages
    cdef int64_t _base  # the ring holds the ticks from here on
    cdef int64_t _next  # the first tick with messages in the ring
    cdef int64_t _in_ring
    cdef Chunk *_spare
    cdef Heap _far
    cdef Flight *_far_flights  # by place; free places are chained through `info`
    cdef Py_ssize_t _far_room, _far_used
    cdef int64_t _far_free
    cdef Heap _timers
    cdef list _armed  # the Timer of each place
    cdef list _places  # the free ones
    cdef int64_t _seq
    cdef LinkRow *_links
    cdef uint64_t _links_mask
    cdef uint64_t _links_count
    # The trace
    cdef public object level
    cdef public bint full
    cdef public int first_kept
    cdef object _describer
    cdef dict _codes
    cdef public object sink
    cdef Row *_rows
    cdef Py_ssize_t _rows_room, _rows_count
    cdef Info *_infos
    cdef Py_ssize_t _infos_room, _infos_count
    cdef int64_t _info_base
    cdef bytearray _buffer

    def __cinit__(self):
        self._ring = <Bucket *> calloc(RING, sizeof(Bucket))
        self._busy = <uint64_t *> calloc(RING // 64, sizeof(uint64_t))
        self._types = <TypeRow *> calloc(TYPES, sizeof(TypeRow))
        self._types_room = TYPES
        self._links = new_links(LINKS)
        self._links_mask = LINKS - 1
        self._next, self._far_free = NEVER, -1
        if self._ring == NULL or self._busy == NULL or self._types == NULL:
            raise MemoryError()

    def __init__(self, int64_t tick_us, rng, level=Level.OFF):
        self.tick_us = tick_us
        self.rng = rng
        self.parts = []
        self.state = bytearray()
        self._table = {}
        self._sent = {}
        self._ids = []
        self._known = []
        self._armed = []
        self._places = []
        self._buffer = bytearray(256)
        self.plain = self.over_links = True
        self.route = self.undeliverable = _no_route
        self.on_link = self.on_unlink = _no_link
        self.overslept = _no_timer
        self._chunk = _no_delays
        self.level = level
        self.full = level == Level.FULL
        self.first_kept = FIRST_KEPT[level]
        self.describer = Describer()
        self.sink = _no_sink

    def __dealloc__(self):
        cdef Py_ssize_t at
        cdef Chunk *chunk
        if self._ring != NULL:
            for at in range(RING):
                self._discard(&self._ring[at], 0)
        for at in range(self._far.count):
            Py_DECREF(<object> self._far_flights[self._far.entries[at].place].msg)
        while self._spare != NULL:
            chunk = self._spare
            self._spare = chunk.next
            free(chunk)
        free(self._ring)
        free(self._busy)
        free(self._types)
        free(self._links)
        free(self._draws)
        free(self._far.entries)
        free(self._far_flights)
        free(self._timers.entries)
        free(self._rows)
        free(self._infos)

    # Set-up

    def use_handlers(self, dict table):
        """Which slot of a node's parts handles a message, and with which function."""
        slots = 1 + max(slot for slot, _ in table.values())
        self.parts = [[None] * len(self.state) for _ in range(slots)]
        self._table = {message: (self.parts[slot], handle) for message, (slot, handle) in table.items()}
        cdef TypeRow *row
        for message in self._known:
            row = self._type_row(<PyObject *> message)
            row.nodes = row.handle = NULL
        for message, (nodes, handle) in self._table.items():
            row = self._type_row(<PyObject *> message)
            row.nodes, row.handle = <PyObject *> nodes, <PyObject *> handle

    def add_node(self):
        for slot in self.parts:
            (<list> slot).append(None)
        self.state.append(_DOWN)
        self._ids.append(len(self._ids))
        return len(self._ids) - 1

    def env(self, int me):
        return SimEnv(self, me)

    def use_delays(self, chunk):
        """Delays in ticks come in chunks, so that both engines draw the same ones in the same order."""
        self._chunk = chunk
        self._draws_count = self._drawn = 0

    def draw(self):
        return self._draw()

    def set_state(self, int node, int state, parts=()):
        """Up, with its parts; or paused or down, when nothing may reach them."""
        self.state[node] = state
        for at, slot in enumerate(self.parts):
            (<list> slot)[node] = parts[at] if state == _UP else None

    @property
    def counts(self):
        return [self._counts[kind] for kind in range(KINDS)]

    @property
    def sent(self):
        cdef TypeRow *row
        for message, tally in self._sent.items():
            row = self._type_row(<PyObject *> message)
            tally[0], tally[1] = row.messages, row.bytes
        return self._sent

    # Links, as the fast path sees them

    def link_ready(self, int src, int dst, int64_t tick):
        """Messages between the two arrive no earlier than this tick and in order."""
        cdef uint64_t ends = ends_of(src, dst)
        if 3 * self._links_count > 2 * self._links_mask:
            self._more_links()
        cdef LinkRow *row = self._find_link(src, dst)
        if row.tick == NO_LINK:
            self._links_count += 1
        row.ends, row.tick = ends, tick

    def link_gone(self, int src, int dst):
        cdef LinkRow *links = self._links
        cdef uint64_t mask = self._links_mask
        cdef LinkRow *row = self._find_link(src, dst)
        if row.tick == NO_LINK:
            return
        self._links_count -= 1
        # Rows behind the gap move up if they are not at home there, so that no search stops too early.
        cdef uint64_t gap = row - links, at = gap
        while True:
            at = (at + 1) & mask
            if links[at].tick == NO_LINK:
                break
            if ((at - home_of(links[at].ends)) & mask) >= ((at - gap) & mask):
                links[gap] = links[at]
                gap = at
        links[gap].tick = NO_LINK

    def link_tick(self, int src, int dst):
        """The tick of the last arrival over the link, or -1 if there is no usable link."""
        return self._find_link(src, dst).tick

    cdef inline LinkRow *_find_link(self, int src, int dst) noexcept:
        return find_link(self._links, self._links_mask, ends_of(src, dst))

    cdef int _more_links(self) except -1:
        cdef uint64_t mask = 2 * self._links_mask + 1, at
        cdef LinkRow *larger = new_links(mask + 1)
        for at in range(self._links_mask + 1):
            if self._links[at].tick != NO_LINK:
                find_link(larger, mask, self._links[at].ends)[0] = self._links[at]
        free(self._links)
        self._links, self._links_mask = larger, mask
        return 0

    # Sending

    def transmit(self, int src, to, msg):
        self._transmit(src, to, msg)

    cdef int _transmit(self, int src, to, msg) except -1:
        cdef Py_ssize_t at = 0, count = len(to)
        cdef int64_t bytes_each = 0, first = self._first()
        cdef int64_t info = self._prepare(msg, count, &bytes_each)
        cdef bint plain = self.plain
        if type(to) is not list and type(to) is not tuple:
            to = tuple(to)
        if self.full:
            for dst in to:
                self._write(_SEND, src, dst, info)
        if type(to) is tuple:
            for at in range(PyTuple_GET_SIZE(to)):
                self._launch(src, <object> PyTuple_GET_ITEM(to, at), msg, bytes_each, info, first, plain)
            return 0
        while at < PyList_GET_SIZE(to):  # may change under us, as under a loop in Python
            self._launch(src, <object> PyList_GET_ITEM(to, at), msg, bytes_each, info, first, plain)
            at += 1
        return 0

    cdef int _transmit_one(self, int src, to, msg) except -1:
        cdef int64_t bytes_each = 0
        cdef int64_t info = self._prepare(msg, 1, &bytes_each)
        if self.full:
            self._write(_SEND, src, to, info)
        self._launch(src, to, msg, bytes_each, info, self._first(), self.plain)
        return 0

    cdef inline int64_t _first(self) noexcept:
        """The tick that delays count from."""
        return (self.now + self.tick_us - 1) // self.tick_us

    cdef int64_t _prepare(self, msg, Py_ssize_t count, int64_t *bytes_each) except -1:
        """Tallies a message and returns its description."""
        cdef int64_t size = self._size(msg)
        cdef TypeRow *row = self._type_row(type_of(<PyObject *> msg))
        if not row.sent:
            row.sent = True
            self._sent[type(msg)] = [0, 0]
        row.messages += count
        row.bytes += count * size
        bytes_each[0] = size
        return self._describe(row, msg, size) if self.full else 0

    cdef inline int64_t _size(self, msg) except -1:
        _encode_into(msg, self._buffer)
        return _header_bytes + PyByteArray_GET_SIZE(self._buffer)

    cdef inline int _launch(
        self, int src, to, msg, int64_t bytes_each, int64_t info, int64_t first, bint plain
    ) except -1:
        cdef int dst = to
        cdef int64_t tick
        cdef LinkRow *link
        if not plain:
            self.route(src, to, msg, bytes_each, info)
            return 0
        if not self.over_links:
            tick = first + self._draw()
        elif self._find_link(src, dst).tick == NO_LINK:
            self.route(src, to, msg, bytes_each, info)
            return 0
        else:
            tick = first + self._draw()
            link = self._find_link(src, dst)
            tick = max(tick, link.tick)
            link.tick = tick
        return self._post(src, dst, <PyObject *> msg, info, tick)

    cdef inline int64_t _draw(self) except? -1:
        if self._drawn == self._draws_count:
            self._more_draws()
        self._drawn += 1
        return self._draws[self._drawn - 1]

    cdef int _more_draws(self) except -1:
        cdef list draws = list(self._chunk(DRAWS))
        cdef Py_ssize_t at, count = len(draws)
        if count == 0:
            self._chunk = _no_more
            raise StopIteration
        if count > self._draws_room:
            self._draws = <int64_t *> more(self._draws, &self._draws_room, count, sizeof(int64_t))
        for at in range(count):
            self._draws[at] = draws[at]
        self._draws_count, self._drawn = count, 0
        return 0

    # What is in flight

    def post(self, int src, int dst, msg, int64_t info, int64_t tick):
        """A message that the network has already routed arrives at this tick."""
        self._post(src, dst, <PyObject *> msg, info, tick)

    def unpost(self, wanted):
        """Take back what is in flight between certain processes: (src, dst, message, info)."""
        cdef list taken = []
        flights = iter(self._empty())
        try:
            for tick, src, dst, msg, info in flights:
                if wanted(src, dst):
                    taken.append((src, dst, msg, info))
                else:
                    self.post(src, dst, msg, info, tick)
        finally:
            for tick, src, dst, msg, info in flights:  # `wanted` raised
                self.post(src, dst, msg, info, tick)
        return taken

    def in_flight(self):
        return self._in_ring + self._far.count

    cdef inline int _post(self, int src, int dst, PyObject *msg, int64_t info, int64_t tick) except -1:
        cdef int64_t place = tick & (RING - 1)
        cdef Bucket *bucket
        cdef Flight *flight
        if <uint64_t> (tick - self._base) >= RING and not self._reach(tick):
            self._post_far(src, dst, msg, info, tick)
            return 0
        bucket = &self._ring[place]
        if bucket.count & (CHUNK - 1) == 0:
            self._add_chunk(bucket)
            if bucket.count == 0:
                self._busy[place >> 6] |= <uint64_t> 1 << (place & 63)
                self._next = min(self._next, tick)
        flight = &bucket.last.flights[bucket.count & (CHUNK - 1)]
        flight.dst, flight.src, flight.msg, flight.info = dst, src, msg, info
        Py_INCREF(<object> msg)
        bucket.count += 1
        self._in_ring += 1
        return 0

    cdef int _add_chunk(self, Bucket *bucket) except -1:
        cdef Chunk *chunk = self._spare
        if chunk != NULL:
            self._spare = chunk.next
        else:
            chunk = <Chunk *> malloc(sizeof(Chunk))
            if chunk == NULL:
                raise MemoryError()
        chunk.next = NULL
        if bucket.count:
            bucket.last.next = chunk
        else:
            bucket.first = chunk
        bucket.last = chunk
        return 0

    cdef int _post_far(self, int src, int dst, PyObject *msg, int64_t info, int64_t tick) except -1:
        if tick < self._base:
            raise AssertionError("a message cannot arrive in the past")
        cdef int64_t place = self._far_free
        if place >= 0:
            self._far_free = self._far_flights[place].info
        else:
            if self._far_used == self._far_room:
                self._far_flights = <Flight *> more(
                    self._far_flights, &self._far_room, self._far_used + 1, sizeof(Flight)
                )
            place = self._far_used
            self._far_used += 1
        self._far_flights[place] = Flight(dst, src, msg, info)
        heap_push(&self._far, tick, self._seq, place)
        self._seq += 1
        Py_INCREF(<object> msg)
        return 0

    cdef bint _reach(self, int64_t tick) except -1:
        """Turn the ring to the present, or to the next arrival if that is due. True if the tick now lies in it."""
        cdef int64_t base = min(self.now // self.tick_us, self._next)
        if self._far.count:
            base = min(base, self._far.entries[0].key)
        if base > self._base:
            self._turn(base)
        return <uint64_t> (tick - self._base) < RING

    cdef int _turn(self, int64_t base) except -1:
        """The ring begins at this tick. Nothing that it held may lie before."""
        cdef int64_t tick, place
        cdef Flight flight
        self._base = base
        while self._far.count and self._far.entries[0].key - base < RING:
            tick = self._far.entries[0].key
            place = heap_pop(&self._far).place
            flight = self._far_flights[place]
            self._far_flights[place].info = self._far_free
            self._far_free = place
            self._post(flight.src, flight.dst, flight.msg, flight.info, tick)
            Py_DECREF(<object> flight.msg)
        return 0

    cdef inline int64_t _next_tick(self) noexcept:
        """Of an arrival; NEVER if there is none."""
        if self._in_ring:
            return self._next
        return self._far.entries[0].key if self._far.count else NEVER

    cdef int _take(self, int64_t tick, Bucket *bucket) except -1:
        """All that arrives at the next tick."""
        self._turn(tick)
        cdef int64_t place = tick & (RING - 1), word = place >> 6
        bucket[0] = self._ring[place]
        self._ring[place].count = 0
        self._in_ring -= bucket.count
        self._busy[word] &= ~(<uint64_t> 1 << (place & 63))
        self._next = NEVER
        if not self._in_ring:
            return 0
        # The bits of this word below our place, if any, belong to the end of the ring: they are looked at last.
        cdef uint64_t bits = self._busy[word] >> (place & 63) << (place & 63)
        while not bits:
            word = (word + 1) & (RING // 64 - 1)
            bits = self._busy[word]
        place = word * 64 + lowest_bit(bits)
        self._next = tick + ((place - tick) & (RING - 1))
        return 0

    cdef list _empty(self):
        """Takes everything out: (tick, src, dst, message, info), in the order of arrival."""
        cdef list flights = []
        cdef Bucket bucket
        cdef Flight *flight
        cdef int64_t tick, at, base = self._base
        while self._next_tick() != NEVER:
            tick = self._next_tick()
            self._take(tick, &bucket)
            for at in range(bucket.count):
                flight = &bucket.first.flights[at & (CHUNK - 1)]
                flights.append((tick, flight.src, flight.dst, <object> flight.msg, flight.info))
                Py_DECREF(<object> flight.msg)
                if at & (CHUNK - 1) == CHUNK - 1 or at == bucket.count - 1:
                    self._spare_first(&bucket)
        self._base = base
        return flights

    cdef inline void _spare_first(self, Bucket *bucket) noexcept:
        """The first chunk of a bucket is used up."""
        cdef Chunk *chunk = bucket.first
        bucket.first = chunk.next
        chunk.next = self._spare
        self._spare = chunk

    cdef void _discard(self, Bucket *bucket, int64_t at) noexcept:
        """Forget what a bucket holds from its message `at` on."""
        while at < bucket.count:
            Py_DECREF(<object> bucket.first.flights[at & (CHUNK - 1)].msg)
            at += 1
            if at & (CHUNK - 1) == 0 or at == bucket.count:
                self._spare_first(bucket)

    # Timers

    def after(self, int node, int64_t delay_us, fn, tuple args):
        return self._after(node, delay_us, fn, args)

    cdef inline Timer _after(self, int node, int64_t delay_us, fn, tuple args):
        cdef Timer timer = Timer.__new__(Timer)
        timer.node, timer.fn, timer.args = node, fn, args
        self._arm(timer, delay_us)
        return timer

    def arm(self, Timer timer, int64_t delay_us):
        self._arm(timer, delay_us)

    cdef int _arm(self, Timer timer, int64_t delay_us) except -1:
        cdef Py_ssize_t place
        if self._places:
            place = self._places.pop()
            self._armed[place] = timer
        else:
            place = PyList_GET_SIZE(self._armed)
            self._armed.append(timer)
        heap_push(&self._timers, self.now + max(delay_us, 0), self._seq, place)
        self._seq += 1
        return 0

    def call_at(self, int64_t at_us, fn, *args):
        """For the world itself: fires whatever the state of any node."""
        return self._after(NOBODY, at_us - self.now, fn, args)

    # Running

    def run(self, int64_t until_us, budget=NEVER_US):
        """Everything due up to `until_us`, or about `budget` events. True when the time was reached."""
        cdef int64_t enough = self.events + <int64_t> min(budget, NEVER_US)
        cdef int64_t due, tick, arrival
        until_us = min(until_us, NEVER - 1)
        while self.events < enough:
            due = self._timers.entries[0].key if self._timers.count else NEVER
            tick = self._next_tick()
            arrival = tick * self.tick_us if tick != NEVER else NEVER
            if min(due, arrival) > until_us:
                self.now = max(self.now, until_us)
                return True
            if due <= arrival:
                self.now = due
                self._fire(due)
            else:
                self.now = arrival
                self._deliver(tick)
            if self._rows_count >= FLUSH:
                self.flush()
        return False

    cdef int _fire(self, int64_t due) except -1:
        """The timers due now, but not those that they set."""
        cdef int64_t newest = self._seq
        cdef Timer timer
        cdef int state
        try:
            while self._is_due(due, newest):
                timer = self._next_timer()
                if timer.fn is None:
                    continue
                state = _UP if timer.node == NOBODY else self._state_of(timer.node)
                if state == _UP:
                    self.events += 1
                    fn = timer.fn
                    if PyTuple_GET_SIZE(timer.args):
                        PyObject_CallObject(fn, timer.args)
                    else:
                        PyObject_CallNoArgs(fn)
                elif state == _PAUSED:
                    self.overslept(timer)
        finally:
            while self._is_due(due, newest):  # one of them raised
                self._next_timer()
        return 0

    cdef inline bint _is_due(self, int64_t due, int64_t newest) noexcept:
        cdef Entry *entries = self._timers.entries
        return self._timers.count and entries[0].key == due and entries[0].seq < newest

    cdef inline Timer _next_timer(self):
        cdef Py_ssize_t place = heap_pop(&self._timers).place
        timer = <Timer> PyList_GET_ITEM(self._armed, place)
        self._armed[place] = None
        self._places.append(place)
        return timer

    cdef inline int _state_of(self, int node) except -1:
        if node < 0 or node >= PyByteArray_GET_SIZE(self.state):
            raise IndexError("no such node")
        return <unsigned char> PyByteArray_AS_STRING(self.state)[node]

    cdef int _deliver(self, int64_t tick) except -1:
        cdef Bucket bucket
        cdef Flight *flight
        cdef PyObject *kind = NULL
        cdef PyObject *nodes = NULL
        cdef PyObject *handle = NULL
        cdef int64_t at = 0, duplicates = 0, info
        cdef int src, dst
        cdef bint full = self.full
        self._take(tick, &bucket)
        self.events += bucket.count
        try:
            while at < bucket.count:
                flight = &bucket.first.flights[at & (CHUNK - 1)]
                src, dst, info = flight.src, flight.dst, flight.info
                msg = <object> flight.msg
                Py_DECREF(msg)  # from here on it is held by `msg` alone
                at += 1
                if at & (CHUNK - 1) == 0 or at == bucket.count:
                    self._spare_first(&bucket)
                if type_of(<PyObject *> msg) != kind:
                    kind = type_of(<PyObject *> msg)
                    self._handler(kind, &nodes, &handle)
                part = self._part(nodes, dst)
                if part is None:
                    self.undeliverable(src, dst, msg, 0, info)
                elif full:
                    self._receive(part, handle, src, dst, msg, info)
                else:
                    duplicates += self._call(part, handle, src, msg)
        finally:
            self._discard(&bucket, at)  # nothing, unless a handler raised
        self._counts[_DUPLICATE] += duplicates
        return 0

    cdef int _receive(self, part, PyObject *handle, int src, int dst, msg, int64_t info) except -1:
        cdef Py_ssize_t receipt = self._rows_count
        self._write(_RECEIVE, dst, src, info)
        if self._call(part, handle, src, msg):
            self._counts[_DUPLICATE] += 1
            if receipt < self._rows_count:
                self._rows[receipt].kind = _DUPLICATE
        return 0

    cdef inline int _call(self, part, PyObject *handle, int src, msg) except -1:
        """True if the handler says that it had this already."""
        cdef PyObject *args[4]
        cdef PyObject *result
        cdef int duplicate
        sender = <object> PyList_GET_ITEM(self._ids, src) if 0 <= src < PyList_GET_SIZE(self._ids) else src
        args[1], args[2], args[3] = <PyObject *> part, <PyObject *> sender, <PyObject *> msg
        result = PyObject_Vectorcall(handle, &args[1], 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL)
        if result == Py_None or result == Py_False:
            duplicate = False
        else:
            duplicate = result == Py_True or PyObject_IsTrue(result)
        Py_DECREF(<object> result)
        return duplicate

    cdef inline object _part(self, PyObject *nodes, int dst):
        if dst < 0 or dst >= PyList_GET_SIZE(<list> nodes):
            raise IndexError("no such node")
        return <object> PyList_GET_ITEM(<list> nodes, dst)

    cdef int _handler(self, PyObject *kind, PyObject **nodes, PyObject **handle) except -1:
        cdef TypeRow *row = self._type_row(kind)
        if row.handle == NULL:
            raise KeyError(<object> kind)
        nodes[0], handle[0] = row.nodes, row.handle
        return 0

    def hand_over(self, int src, int dst, msg):
        """A reception outside the queue: a process that slept takes what waited for it."""
        cdef PyObject *nodes
        cdef PyObject *handle
        self._handler(type_of(<PyObject *> msg), &nodes, &handle)
        self.events += 1
        if self.full:
            self._receive(self._part(nodes, dst), handle, src, dst, msg, self.describe(msg, self._size(msg)))
        else:
            self._counts[_DUPLICATE] += self._call(self._part(nodes, dst), handle, src, msg)

    cdef TypeRow *_type_row(self, PyObject *kind) except NULL:
        cdef Py_ssize_t mask = self._types_room - 1
        cdef Py_ssize_t at = (<uintptr_t> kind >> 4) & mask
        while self._types[at].type != kind:
            if self._types[at].type == NULL:
                return self._new_type(kind)
            at = (at + 1) & mask
        return &self._types[at]

    cdef TypeRow *_new_type(self, PyObject *kind) except NULL:
        cdef Py_ssize_t at
        cdef Py_ssize_t old_room = self._types_room
        cdef TypeRow *old = self._types
        self._known.append(<object> kind)
        if 2 * PyList_GET_SIZE(self._known) > old_room:
            self._types = <TypeRow *> calloc(2 * old_room, sizeof(TypeRow))
            if self._types == NULL:
                self._types = old
                raise MemoryError()
            self._types_room = 2 * old_room
            for at in range(old_room):
                if old[at].type != NULL:
                    free_type(self._types, self._types_room, old[at].type)[0] = old[at]
            free(old)
        cdef TypeRow *row = free_type(self._types, self._types_room, kind)
        row.type = kind
        return row

    # The trace

    @property
    def describer(self):
        return self._describer

    @describer.setter
    def describer(self, describer):
        self._describer = describer
        self._codes = {}
        for kind in self._known:
            self._type_row(<PyObject *> kind).described = False

    def describe(self, msg, int64_t bytes_each):
        return self._describe(self._type_row(type_of(<PyObject *> msg)), msg, bytes_each)

    def drop(self, int src, int dst, msg, int64_t info, reason):
        cdef Info lost
        self._counts[_DROP] += 1
        drops = self._describer.drops
        drops[reason] = drops.get(reason, 0) + 1
        if self.full:
            if not self._info_base <= info < self._info_base + self._infos_count:
                raise IndexError("no such description")
            lost = self._infos[info - self._info_base]
            lost.detail = self._code(reason)
            self._write(_DROP, src, dst, self._add_info(lost))

    def copied(self, int src, int dst, int64_t info):
        """The network duplicates a datagram."""
        self._counts[_COPY] += 1
        if self.full:
            self._write(_COPY, src, dst, info)

    def record(self, int node, int kind, peer, source, seq, hops, topic, detail):
        self._record(node, kind, peer, source, seq, hops, topic, detail)

    cdef int _record(self, int node, int kind, peer, source, seq, hops, topic, detail) except -1:
        cdef Info info
        if not 0 <= kind < KINDS:
            raise IndexError("no such kind")
        self._counts[kind] += 1
        if kind < self.first_kept:
            return 0
        info.source, info.seq, info.hops = source, seq, hops
        info.bytes = info.layer = info.flags = 0
        info.detail = self._code(detail)
        info.topic = self._code(topic)
        return self._write(kind, node, peer, self._add_info(info))

    def flush(self):
        """Hand the rows so far to the sink."""
        if self._rows_count:
            self.sink(self._batch())
            self._rows_count = 0
        self._forget_infos()

    cdef int64_t _describe(self, TypeRow *row, msg, int64_t bytes_each) except -1:
        cdef Info info
        if not row.described:
            self._learn(row, msg, bytes_each)
        info.bytes = <int32_t> bytes_each
        info.layer, info.detail = row.layer, row.name
        info.flags = msg.flags if row.has_flags else 0
        if row.carries_event:
            info.source, info.seq, info.hops = msg.source, msg.seq, msg.hops
            info.topic = self._code(msg.topic)
        else:
            info.source, info.seq, info.hops, info.topic = NOBODY, -1, 0, 0
        return self._add_info(info)

    cdef int _learn(self, TypeRow *row, msg, int64_t bytes_each) except -1:
        """The codes of a message type, given out in the same order as by the describer alone."""
        described = self._describer.message(msg, bytes_each)
        row.layer, row.name = described[4], described[5]
        fields = set(type(msg).__struct_fields__)
        row.carries_event = fields >= {"source", "seq", "hops", "topic"}
        row.has_flags = "flags" in fields
        row.described = True
        return 0

    cdef inline int32_t _code(self, text) except -1:
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = self._describer.names.code(text)
        return code

    cdef inline int64_t _add_info(self, Info info) except -1:
        if self._infos_count == self._infos_room:
            self._infos = <Info *> more(self._infos, &self._infos_room, self._infos_count + 1, sizeof(Info))
        self._infos[self._infos_count] = info
        self._infos_count += 1
        return self._info_base + self._infos_count - 1

    cdef inline int _write(self, int kind, int node, int64_t peer, int64_t info) except -1:
        if self._rows_count == self._rows_room:
            self._rows = <Row *> more(self._rows, &self._rows_room, self._rows_count + 1, sizeof(Row))
        self._rows[self._rows_count] = Row(self.now, peer, info, node, kind)
        self._rows_count += 1
        return 0

    cdef object _batch(self):
        """The same batch as `capture.batch_from_rows`, column by column."""
        cdef Py_ssize_t at, count = self._rows_count
        cdef Row *row
        cdef Info *info
        longs = {name: np.empty(count, np.int64) for name in ("time_us", "node", "peer", "source", "seq")}
        ints = {name: np.empty(count, np.int32) for name in ("hops", "bytes", "layer", "detail", "topic", "flags")}
        kinds = np.empty(count, np.uint8)
        cdef int64_t *time_us = <int64_t *> data(longs["time_us"])
        cdef int64_t *node = <int64_t *> data(longs["node"])
        cdef int64_t *peer = <int64_t *> data(longs["peer"])
        cdef int64_t *source = <int64_t *> data(longs["source"])
        cdef int64_t *seq = <int64_t *> data(longs["seq"])
        cdef int32_t *hops = <int32_t *> data(ints["hops"])
        cdef int32_t *size = <int32_t *> data(ints["bytes"])
        cdef int32_t *layer = <int32_t *> data(ints["layer"])
        cdef int32_t *detail = <int32_t *> data(ints["detail"])
        cdef int32_t *topic = <int32_t *> data(ints["topic"])
        cdef int32_t *flags = <int32_t *> data(ints["flags"])
        cdef uint8_t *kind = <uint8_t *> data(kinds)
        for at in range(count):
            row = &self._rows[at]
            info = &self._infos[row.info - self._info_base]
            time_us[at], node[at], peer[at], kind[at] = row.time, row.node, row.peer, <uint8_t> row.kind
            source[at], seq[at], hops[at], size[at] = info.source, info.seq, info.hops, info.bytes
            layer[at], detail[at], topic[at], flags[at] = info.layer, info.detail, info.topic, info.flags
        return Batch(kind=kinds, **longs, **ints)

    cdef int _forget_infos(self) except -1:
        """Keep only descriptions that something in flight may still refer to. They are numbered in the order of
        sending, so the first entry of each bucket has the lowest number in it."""
        cdef int64_t oldest = self._info_base + self._infos_count
        cdef Py_ssize_t at
        if self.full:
            for at in range(RING):
                if self._ring[at].count:
                    oldest = min(oldest, self._ring[at].first.flights[0].info)
            for at in range(self._far.count):
                oldest = min(oldest, self._far_flights[self._far.entries[at].place].info)
        cdef int64_t forgotten = max(oldest - self._info_base, 0)
        self._infos_count -= forgotten
        if forgotten:
            memmove(self._infos, self._infos + forgotten, self._infos_count * sizeof(Info))
        self._info_base += forgotten
        return 0


@cython.final
cdef class SimEnv:
    """A simulated node's Env."""

    cdef readonly Engine engine
    cdef readonly object me
    cdef public object rng
    cdef int _node

    def __init__(self, Engine engine, int me):
        self.engine, self.rng, self._node = engine, engine.rng, me
        self.me = engine._ids[me] if 0 <= me < len(engine._ids) else me

    def now_us(self):
        return self.engine.now

    def send(self, to, msg):
        self.engine._transmit_one(self._node, to, msg)

    def send_many(self, to, msg):
        self.engine._transmit(self._node, to, msg)

    def after(self, int64_t delay_us, fn, *args):
        return self.engine._after(self._node, delay_us, fn, args)

    def open(self, peer):
        self.engine.on_link(self.me, peer)

    def close(self, peer):
        self.engine.on_unlink(self.me, peer)

    def record(self, int kind, peer=NOBODY_ID, source=NOBODY_ID, seq=-1, hops=0, topic="", detail=""):
        self.engine._record(self._node, kind, peer, source, seq, hops, topic, detail)


def _no_route(src, dst, msg, bytes_each, info):
    raise AssertionError("the engine has no network")


def _no_link(me, peer):
    raise AssertionError("the engine has no links")


def _no_timer(timer):
    raise AssertionError("the engine cannot pause")


def _no_delays(count):
    raise AssertionError("the engine has no latency model")


def _no_more(count):
    return []


def _no_sink(batch):
    """Rows that nobody wants."""
