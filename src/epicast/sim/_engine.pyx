# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""`engine.py` compiled: the same classes, the same run byte for byte, protocols still in plain Python.

What differs is only where things are kept.

- Messages in flight are C structs, see `_flights.pxd`; the last arrival on each link is in `_link_table.pxd`.
- Timers: a heap of their due times, with the objects in a Python list so that the collector sees them.
- Handlers are found by the address of the message's type and called without building a tuple.
- The trace is an array of rows and one of descriptions, turned into the columns of a batch in one pass.

Most of the time of a large run goes into waiting for memory: the nodes do not fit in the caches. So before the messages of
a chunk are delivered, what their handlers are about to touch is asked for (`_look_ahead`). That changes no result.
"""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memmove

from epicast.sim._flights cimport (
    CHUNK,
    Bucket,
    Chunk,
    Flight,
    Flights,
    close_flights,
    discard,
    empty,
    next_tick,
    oldest_info,
    open_flights,
    post,
    spare_first,
    take,
)
from epicast.sim._heap cimport Entry, Heap, heap_pop, heap_push, more
from epicast.sim._link_table cimport LINKS, NO_LINK, Link, LinkTable, find_link, open_links, put_link, remove_link

from types import MemberDescriptorType

import numpy as np

from epicast.core.ids import NOBODY as NOBODY_ID
from epicast.core.records import FIRST_KEPT, KIND_CODES, Kind, Level
from epicast.sim.capture import Describer
from epicast.trace.batch import Batch
from epicast.wire.codec import HEADER_BYTES, encode


cdef extern from *:
    """
    #include "structmember.h"
    #if defined(__GNUC__) || defined(__clang__)
    #define epicast_prefetch(address) __builtin_prefetch(address)
    #else
    #define epicast_prefetch(address) ((void) (address))
    #endif
    #define epicast_type(value) ((PyObject *) Py_TYPE(value))
    #define epicast_table(dict) ((char *) ((PyDictObject *) (dict))->ma_keys)
    """
    void prefetch "epicast_prefetch" (const void *address) noexcept
    PyObject *type_of "epicast_type" (PyObject *value) noexcept
    char *table_of "epicast_table" (PyObject *dictionary) noexcept
    const int T_OBJECT_EX
    ctypedef struct PyMemberDef:
        int type
        Py_ssize_t offset
    ctypedef struct PyMemberDescrObject:
        PyMemberDef *d_member


cdef extern from "Python.h":
    const size_t PY_VECTORCALL_ARGUMENTS_OFFSET
    PyObject *Py_True
    PyObject *Py_False
    PyObject *Py_None
    PyObject *PyObject_Vectorcall(PyObject *fn, PyObject **args, size_t count, PyObject *names) except NULL
    object PyObject_CallNoArgs(object fn)
    object PyObject_CallObject(object fn, object args)
    int PyObject_IsTrue(PyObject *value) except -1
    bint PyDict_CheckExact(PyObject *value)


cdef enum:
    _DOWN = 0
    _UP = 1
    _PAUSED = 2
    NOBODY = -1
    KINDS = 32  # as in core.records
    TYPES = 1 << 6  # places for message types to begin with; a power of two
    SLOTS = 16  # of an object, as far as we look ahead
    INNER = 8  # classes of what nodes used last
    FLUSH = 1 << 14

DOWN, UP, PAUSED = _DOWN, _UP, _PAUSED
NEVER_US = 1 << 62
FLUSH_ROWS = FLUSH
DRAWS = 1024

cdef int64_t NEVER = NEVER_US
cdef int _SEND = Kind.SEND, _RECEIVE = Kind.RECEIVE, _DUPLICATE = Kind.DUPLICATE, _DROP = Kind.DROP, _COPY = Kind.COPY
cdef int _PUBLISH = Kind.PUBLISH, _DELIVER = Kind.DELIVER, _CORRECTION = Kind.CORRECTION
assert KINDS == KIND_CODES and NOBODY == NOBODY_ID

cdef object _encode_into = encode.__self__.encode_into  # the codec's own encoder, into a buffer that is kept
cdef int64_t _header_bytes = HEADER_BYTES


cdef struct Layout:  # where the objects of one class keep their attributes
    PyObject *type
    int count
    Py_ssize_t recent  # where `_recent` is; -1: it has none
    Py_ssize_t offsets[SLOTS]

cdef struct TypeRow:  # of messages
    PyObject *type
    PyObject *nodes  # the parts that handle it, by node; NULL if nothing does
    PyObject *handle
    int slot
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


@cython.final
@cython.freelist(1024)
cdef class Timer:
    cdef readonly int node
    cdef public object fn
    cdef readonly tuple args

    def __init__(self, int node, fn, tuple args):
        self.node, self.fn, self.args = node, fn, args

    def cancel(self):
        # The entry stays in its heap until it is due: cancelling is one assignment.
        self.fn = None


@cython.final
cdef class Engine:
    """Time, both queues, and the table of who handles what."""

    compiled = True

    cdef public int64_t tick_us
    cdef public object rng  # shared by all protocols: the order of events is fixed, so their draws are too
    cdef public int64_t now
    cdef public int64_t events
    cdef readonly list parts  # by slot, then by node id; None: cannot receive
    cdef readonly bytearray state
    cdef list _ids  # the one int object of each node
    cdef dict _sent
    cdef int64_t _counts[KINDS]
    # What is known of message types; `_keep` holds what the rows borrow
    cdef TypeRow *_types
    cdef Py_ssize_t _types_room, _types_count
    cdef Layout *_layouts  # by slot
    cdef Layout _inner[INNER]  # of what nodes used last
    cdef int _inner_count
    cdef dict _keep
    # The network, as the fast path sees it
    cdef public bint plain  # False: every message goes through `route`
    cdef public bint over_links  # False: datagrams, each on its own
    cdef public object route
    cdef public object undeliverable
    cdef public object on_link
    cdef public object place_of
    cdef public dict skews_us
    cdef public object in_earshot  # who is on a process's local network
    cdef public object on_unlink
    cdef public object overslept
    cdef object _chunk
    cdef int64_t *_draws
    cdef Py_ssize_t _draws_room, _draws_count, _drawn
    # The queues
    cdef Flights _flights
    cdef LinkTable _links
    cdef Heap _timers
    cdef int64_t _timers_set
    cdef list _armed  # the Timer of each place in the heap
    cdef list _free_places
    # The trace
    cdef public object level
    cdef public bint full
    cdef public int first_kept
    cdef object _describer
    cdef dict _codes  # of the describer's names
    cdef public object sink
    cdef Row *_rows
    cdef Py_ssize_t _rows_room, _rows_count
    cdef Info *_infos
    cdef Py_ssize_t _infos_room, _infos_count
    cdef int64_t _info_base
    cdef bytearray _buffer

    def __cinit__(self):
        open_flights(&self._flights)
        open_links(&self._links, LINKS)
        self._types = <TypeRow *> calloc(TYPES, sizeof(TypeRow))
        if self._types == NULL:
            raise MemoryError
        self._types_room = TYPES

    def __init__(self, int64_t tick_us, rng, level=Level.OFF):
        self.tick_us = tick_us
        self.rng = rng
        self.parts, self.state, self._ids = [], bytearray(), []
        self._sent, self._keep = {}, {}
        self.plain = self.over_links = True
        self.route = self.undeliverable = _no_route
        self.on_link = self.on_unlink = _no_link
        self.place_of, self.in_earshot = _nowhere, _nobody_near
        self.skews_us = {}
        self.overslept = _no_timer
        self._chunk = _no_delays
        self._armed, self._free_places = [], []
        self.level = level
        self.full = level == Level.FULL
        self.first_kept = FIRST_KEPT[level]
        self.describer = Describer()
        self.sink = _no_sink
        self._buffer = bytearray(256)

    def __dealloc__(self):
        close_flights(&self._flights)
        free(self._links.links)
        free(self._timers.entries)
        free(self._types)
        free(self._layouts)
        free(self._draws)
        free(self._rows)
        free(self._infos)

    # Set-up

    def use_handlers(self, dict table):
        """Which slot of a node's parts handles a message, and with which function."""
        cdef TypeRow *row
        cdef Py_ssize_t at
        slots = 1 + max(slot for slot, _ in table.values())
        free(self._layouts)
        self._layouts = <Layout *> calloc(slots, sizeof(Layout))
        if self._layouts == NULL:
            raise MemoryError
        self._keep[id(table)] = table, self.parts
        self.parts = [[None] * len(self.state) for _ in range(slots)]
        for at in range(self._types_room):
            self._types[at].nodes = self._types[at].handle = NULL
        for message, (slot, handle) in table.items():
            row = self._type_row(<PyObject *> message)
            nodes = self.parts[slot]
            row.nodes, row.handle, row.slot = <PyObject *> nodes, <PyObject *> handle, slot

    def add_node(self):
        for slot in self.parts:
            (<list> slot).append(None)
        self.state.append(_DOWN)
        self._ids.append(len(self._ids))
        return len(self._ids) - 1

    def env(self, int me):
        return SimEnv(self, me)

    def use_delays(self, chunk):
        """Delays in us come in chunks, so that both engines draw the same ones in the same order. Rounded to ticks."""
        self._chunk = chunk
        self._draws_count = self._drawn = 0

    def set_state(self, int node, int state, parts=()):
        """Up, with its parts; or paused or down, when nothing may reach them."""
        cdef Py_ssize_t at
        self._state_of(node)
        self.state[node] = state
        for at in range(len(self.parts)):
            part = parts[at] if state == _UP else None
            (<list> self.parts[at])[node] = part
            if part is not None and type_of(<PyObject *> part) != self._layouts[at].type:
                self._lay_out(&self._layouts[at], type(part))

    @property
    def counts(self):
        return [self._counts[kind] for kind in range(KINDS)]

    @property
    def sent(self):
        """Messages and bytes, by type."""
        cdef TypeRow *row
        for message, tally in self._sent.items():
            row = self._type_row(<PyObject *> message)
            tally[0], tally[1] = row.messages, row.bytes
        return self._sent

    cdef int _lay_out(self, Layout *layout, kind) except -1:
        """The attributes in `__slots__`, as far as there is room for them."""
        cdef PyMemberDef *member
        layout.type, layout.count, layout.recent = <PyObject *> kind, 0, -1
        self._keep[kind] = None
        for base in reversed(kind.__mro__):  # what a base class has comes first in memory, and is used most
            for name, value in vars(base).items():
                if type(value) is MemberDescriptorType:
                    member = (<PyMemberDescrObject *> value).d_member
                    if member.type == T_OBJECT_EX and layout.count < SLOTS:
                        layout.offsets[layout.count] = member.offset
                        layout.count += 1
                    if member.type == T_OBJECT_EX and name == "_recent":
                        layout.recent = member.offset
        return 0

    cdef TypeRow *_type_row(self, PyObject *kind) except NULL:
        cdef Py_ssize_t at = (<uintptr_t> kind >> 4) & (self._types_room - 1)
        while self._types[at].type != kind:
            if self._types[at].type == NULL:
                return self._add_type(kind)
            at = (at + 1) & (self._types_room - 1)
        return &self._types[at]

    cdef TypeRow *_add_type(self, PyObject *kind) except NULL:
        cdef TypeRow *row
        if 2 * self._types_count >= self._types_room:
            self._more_types()
        row = free_row(self._types, self._types_room, kind)
        row.type = kind
        self._types_count += 1
        self._keep[<object> kind] = None
        return row

    cdef int _more_types(self) except -1:
        cdef Py_ssize_t at, room = 2 * self._types_room
        cdef TypeRow *larger = <TypeRow *> calloc(room, sizeof(TypeRow))
        if larger == NULL:
            raise MemoryError
        for at in range(self._types_room):
            if self._types[at].type != NULL:
                free_row(larger, room, self._types[at].type)[0] = self._types[at]
        free(self._types)
        self._types, self._types_room = larger, room
        return 0

    # Links, as the fast path sees them

    def link_ready(self, int src, int dst, int64_t tick):
        """Messages between the two arrive no earlier than this tick and in order."""
        put_link(&self._links, src, dst, tick)

    def link_gone(self, int src, int dst):
        remove_link(&self._links, src, dst)

    def link_tick(self, int src, int dst):
        """The tick of the last arrival over the link, or -1 if there is no usable link."""
        return find_link(&self._links, src, dst).tick

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
        return self._launch(src, to, msg, bytes_each, info, self._first(), self.plain)

    cdef inline int64_t _first(self) noexcept:
        """The first tick that is not over: delays count from it."""
        return (self.now + self.tick_us - 1) // self.tick_us

    cdef int64_t _prepare(self, msg, Py_ssize_t count, int64_t *bytes_each) except -1:
        """Tallies a message, and describes it for a full trace."""
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
        cdef int dst
        cdef int64_t tick
        cdef Link *link
        if not plain:
            self.route(src, to, msg, bytes_each, info)
            return 0
        dst = to
        if not self.over_links:
            tick = first + self._draw()
        elif find_link(&self._links, src, dst).tick == NO_LINK:
            self.route(src, to, msg, bytes_each, info)
            return 0
        else:
            tick = first + self._draw()
            link = find_link(&self._links, src, dst)
            tick = max(tick, link.tick)
            link.tick = tick
        return post(&self._flights, first, tick, src, dst, <PyObject *> msg, info)

    def draw(self):
        return self._draw()

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
            self._draws[at] = max(1, (<int64_t> draws[at] + self.tick_us // 2) // self.tick_us)
        self._draws_count, self._drawn = count, 0
        return 0

    def post(self, int src, int dst, msg, int64_t info, int64_t tick):
        """A message that the network has already routed arrives at this tick."""
        if tick * self.tick_us < self.now:
            raise AssertionError("a message cannot arrive in the past")
        post(&self._flights, self._first(), tick, src, dst, <PyObject *> msg, info)

    def unpost(self, wanted):
        """Take back what is in flight between certain processes: (src, dst, message, info)."""
        taken = []
        flights = iter(empty(&self._flights))
        try:
            for tick, src, dst, msg, info in flights:
                if wanted(src, dst):
                    taken.append((src, dst, msg, info))
                else:
                    self.post(src, dst, msg, info, tick)
        finally:
            for tick, src, dst, msg, info in flights:  # if `wanted` raised
                self.post(src, dst, msg, info, tick)
        return taken

    def in_flight(self):
        return self._flights.in_ring + self._flights.beyond.count

    # Timers

    def after(self, int node, int64_t delay_us, fn, tuple args):
        return self._after(node, delay_us, fn, args)

    cdef inline Timer _after(self, int node, int64_t delay_us, fn, tuple args):
        cdef Timer timer = Timer.__new__(Timer)
        timer.node, timer.fn, timer.args = node, fn, args
        self._arm(timer, delay_us)
        return timer

    def arm(self, Timer timer not None, int64_t delay_us):
        self._arm(timer, delay_us)

    cdef int _arm(self, Timer timer, int64_t delay_us) except -1:
        cdef Py_ssize_t place
        if PyList_GET_SIZE(self._free_places):
            place = self._free_places.pop()
            self._armed[place] = timer
        else:
            place = PyList_GET_SIZE(self._armed)
            self._armed.append(timer)
        heap_push(&self._timers, self.now + max(delay_us, 0), self._timers_set, place)
        self._timers_set += 1
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
            tick = next_tick(&self._flights)
            arrival = tick * self.tick_us if tick >= 0 else NEVER
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
        cdef int64_t newest = self._timers_set
        cdef Timer timer
        cdef int state
        try:
            while self._is_due(due, newest):
                timer = self._next_timer()
                fn = timer.fn
                if fn is None:
                    continue
                state = _UP if timer.node == NOBODY else self._state_of(timer.node)
                if state == _UP:
                    self.events += 1
                    if timer.args:
                        PyObject_CallObject(fn, timer.args)
                    else:
                        PyObject_CallNoArgs(fn)
                elif state == _PAUSED:
                    self.overslept(timer)
        finally:
            while self._is_due(due, newest):  # if one raised, the others are lost
                self._next_timer()
        return 0

    cdef inline bint _is_due(self, int64_t due, int64_t newest) noexcept:
        cdef Entry *first = self._timers.entries
        return self._timers.count and first.key == due and first.seq < newest

    cdef inline Timer _next_timer(self):
        cdef Py_ssize_t place = heap_pop(&self._timers)
        timer = <Timer> PyList_GET_ITEM(self._armed, place)
        self._armed[place] = None
        self._free_places.append(place)
        return timer

    cdef inline int _state_of(self, int node) except -1:
        if node < 0 or node >= PyByteArray_GET_SIZE(self.state):
            raise IndexError("no such node")
        return <unsigned char> PyByteArray_AS_STRING(self.state)[node]

    cdef int _deliver(self, int64_t tick) except -1:
        cdef Bucket bucket
        cdef Flight *flight
        cdef TypeRow *row = NULL
        cdef PyObject *kind = NULL
        cdef PyObject *nodes = NULL
        cdef PyObject *handle = NULL
        cdef int64_t at = 0, duplicates = 0, info
        cdef int src, dst
        cdef bint full = self.full
        take(&self._flights, tick, &bucket)
        self.events += bucket.count
        try:
            while at < bucket.count:
                if at & (CHUNK - 1) == 0:
                    self._look_ahead(bucket.first, min(bucket.count - at, CHUNK))
                flight = &bucket.first.flights[at & (CHUNK - 1)]
                src, dst, info = flight.src, flight.dst, flight.info
                msg = <object> flight.msg
                Py_DECREF(msg)  # now held by the variable alone
                at += 1
                if at & (CHUNK - 1) == 0 or at == bucket.count:
                    spare_first(&self._flights, &bucket)
                if type_of(<PyObject *> msg) != kind:
                    row = self._handler(msg)
                    kind, nodes, handle = row.type, row.nodes, row.handle
                part = self._part(nodes, dst)
                if part is None:
                    self.undeliverable(src, dst, msg, 0, info)
                elif full:
                    self._receive(part, handle, src, dst, msg, info)
                else:
                    duplicates += self._call(part, handle, src, msg)
        finally:
            discard(&self._flights, &bucket, at)  # if a handler raised
        self._counts[_DUPLICATE] += duplicates
        return 0

    cdef int _look_ahead(self, Chunk *chunk, int64_t count) except -1:
        """Ask for the memory that the handlers of these messages will need: first the nodes and the messages, then
        what the nodes' attributes refer to, then the tables of the dictionaries among that. What a node used last (its
        attribute `_recent`) is looked through in the same way: it will most likely be used next."""
        cdef TypeRow *row
        cdef PyObject *parts[CHUNK]
        cdef PyObject *recent[CHUNK]
        cdef Layout *layouts[CHUNK]
        cdef Layout *inner
        cdef int at
        if count == 1:
            return 0
        for at in range(count):
            row = self._type_row(type_of(chunk.flights[at].msg))
            prefetch(chunk.flights[at].msg)
            parts[at] = recent[at] = NULL
            if row.handle != NULL:
                parts[at], layouts[at] = item(row.nodes, chunk.flights[at].dst), &self._layouts[row.slot]
                prefetch(parts[at])
                prefetch(<char *> parts[at] + 64)
                prefetch(<char *> parts[at] + 128)
            prefetch(item(<PyObject *> self._ids, chunk.flights[at].src))
        for at in range(count):
            if parts[at] != NULL and type_of(parts[at]) == layouts[at].type:
                ask_for_attributes(parts[at], layouts[at])
                if layouts[at].recent >= 0:
                    recent[at] = attribute(parts[at], layouts[at].recent)
            else:
                parts[at] = NULL
        for at in range(count):
            if parts[at] != NULL:
                ask_for_tables(parts[at], layouts[at])
            if recent[at] != NULL and recent[at] != Py_None:
                inner = self._layout_of(type_of(recent[at]))
                ask_for_attributes(recent[at], inner)
        for at in range(count):
            if recent[at] != NULL and recent[at] != Py_None:
                ask_for_tables(recent[at], self._layout_of(type_of(recent[at])))
        return 0

    cdef Layout *_layout_of(self, PyObject *kind) except NULL:
        """Of what nodes used last: one class for each kind of node, so a short list."""
        cdef int at
        for at in range(self._inner_count):
            if self._inner[at].type == kind:
                return &self._inner[at]
        at = self._inner_count if self._inner_count < INNER - 1 else INNER - 1
        self._inner_count = at + 1
        self._lay_out(&self._inner[at], <object> kind)
        return &self._inner[at]

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
        if dst < 0 or dst >= PyList_GET_SIZE(<object> nodes):
            raise IndexError("no such node")
        return <object> PyList_GET_ITEM(<object> nodes, dst)

    cdef TypeRow *_handler(self, msg) except NULL:
        cdef TypeRow *row = self._type_row(type_of(<PyObject *> msg))
        if row.handle == NULL:
            raise KeyError(type(msg))
        return row

    def hand_over(self, int src, int dst, msg):
        """A reception outside the queue: a process that slept takes what waited for it."""
        cdef PyObject *handle = self._handler(msg).handle
        part = self._part(self._handler(msg).nodes, dst)
        self.events += 1
        if self.full:
            self._receive(part, handle, src, dst, msg, self.describe(msg, self._size(msg)))
        else:
            self._counts[_DUPLICATE] += self._call(part, handle, src, msg)

    # The trace

    @property
    def describer(self):
        return self._describer

    @describer.setter
    def describer(self, describer):
        cdef Py_ssize_t at
        self._describer, self._codes = describer, describer.names.codes
        for at in range(self._types_room):
            self._types[at].described = False

    def describe(self, msg, int64_t bytes_each):
        return self._describe(self._type_row(type_of(<PyObject *> msg)), msg, bytes_each)

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
        return self._add_info(&info)

    cdef int _learn(self, TypeRow *row, msg, int64_t bytes_each) except -1:
        """What does not change from one message of a type to the next. The describer gives out the codes."""
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
            code = self._describer.names.code(text)
        return code

    def drop(self, int src, int dst, msg, int64_t info, reason):
        cdef Info lost
        self._counts[_DROP] += 1
        drops = self._describer.drops
        drops[reason] = drops.get(reason, 0) + 1
        if self.full:
            lost = self._info(info)[0]
            lost.detail = self._code(reason)
            self._write(_DROP, src, dst, self._add_info(&lost))

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
        return self._write(kind, node, peer, self._add_info(&info))

    cdef inline int _write(self, int kind, int node, int64_t peer, int64_t info) except -1:
        cdef Row *row
        if self._rows_count == self._rows_room:
            self._rows = <Row *> more(self._rows, &self._rows_room, self._rows_count + 1, sizeof(Row))
        row = &self._rows[self._rows_count]
        row.time, row.kind, row.node, row.peer, row.info = self.now, kind, node, peer, info
        self._rows_count += 1
        return 0

    cdef inline int64_t _add_info(self, Info *info) except -1:
        if self._infos_count == self._infos_room:
            self._infos = <Info *> more(self._infos, &self._infos_room, self._infos_count + 1, sizeof(Info))
        self._infos[self._infos_count] = info[0]
        self._infos_count += 1
        return self._info_base + self._infos_count - 1

    cdef inline Info *_info(self, int64_t number) except NULL:
        if not self._info_base <= number < self._info_base + self._infos_count:
            raise IndexError("no such description")
        return &self._infos[number - self._info_base]

    def flush(self):
        """Hand the rows so far to the sink."""
        if self._rows_count:
            self.sink(self._batch())
            self._rows_count = 0
        self._forget_infos()

    cdef object _batch(self):
        """As `capture.batch_from_rows` makes it."""
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
            info = self._info(row.info)
            time_us[at], kind[at], node[at], peer[at] = row.time, <uint8_t> row.kind, row.node, row.peer
            source[at], seq[at], hops[at], size[at] = info.source, info.seq, info.hops, info.bytes
            layer[at], detail[at], topic[at], flags[at] = info.layer, info.detail, info.topic, info.flags
        return Batch(kind=kinds, **longs, **ints)

    cdef int _forget_infos(self) except -1:
        """Keep only descriptions that something in flight may still refer to."""
        cdef int64_t newest = self._info_base + self._infos_count
        cdef int64_t forgotten = newest - self._info_base
        if self.full:
            forgotten = max(oldest_info(&self._flights, newest) - self._info_base, 0)
        if forgotten:
            self._infos_count -= forgotten
            self._info_base += forgotten
            memmove(self._infos, self._infos + forgotten, self._infos_count * sizeof(Info))
        return 0


@cython.final
cdef class SimEnv:
    """A simulated node's Env."""

    cdef readonly Engine engine
    cdef readonly object me
    cdef public object rng
    cdef readonly str place
    cdef int _node

    def __init__(self, Engine engine not None, int me):
        self.place = engine.place_of(me)
        self.engine, self.rng, self._node = engine, engine.rng, me
        self.me = engine._ids[me] if 0 <= me < len(engine._ids) else me

    def now_us(self):
        return self.engine.now

    def calendar_us(self):
        return max(0, self.engine.now + self.engine.skews_us.get(self.me, 0))

    def send(self, to, msg):
        self.engine._transmit_one(self._node, to, msg)

    def send_many(self, to, msg):
        self.engine._transmit(self._node, to, msg)

    def shout(self, msg):
        self.engine._transmit(self._node, self.engine.in_earshot(self._node), msg)

    def after(self, int64_t delay_us, fn, *args):
        return self.engine._after(self._node, delay_us, fn, args)

    def open(self, peer):
        self.engine.on_link(self.me, peer)

    def close(self, peer):
        self.engine.on_unlink(self.me, peer)

    def deliver(self, event, int sender):
        cdef Engine engine = self.engine
        if engine.first_kept > _DELIVER:
            engine._counts[_DELIVER] += 1
            engine._counts[_PUBLISH] += sender == self._node
            return
        if sender == self._node:
            engine._record(self._node, _PUBLISH, sender, event.source, event.seq, 0, event.topic, "")
        engine._record(self._node, _DELIVER, sender, event.source, event.seq, event.hops, event.topic, "")

    def correct(self, event):
        self.engine._record(self._node, _CORRECTION, NOBODY_ID, event.source, event.seq, event.hops, event.topic, "")

    def record(self, int kind, peer=NOBODY_ID, source=NOBODY_ID, seq=-1, hops=0, topic="", detail=""):
        self.engine._record(self._node, kind, peer, source, seq, hops, topic, detail)


cdef inline PyObject *item(PyObject *values, int at) noexcept:
    """Of a list; NULL beyond its ends."""
    return PyList_GET_ITEM(<object> values, at) if 0 <= at < PyList_GET_SIZE(<object> values) else NULL


cdef inline PyObject *attribute(PyObject *value, Py_ssize_t offset) noexcept:
    return (<PyObject **> (<char *> value + offset))[0]


cdef inline void ask_for_attributes(PyObject *value, Layout *layout) noexcept:
    cdef int slot
    for slot in range(layout.count):
        prefetch(attribute(value, layout.offsets[slot]))


cdef inline void ask_for_tables(PyObject *value, Layout *layout) noexcept:
    """Of the dictionaries among its attributes."""
    cdef PyObject *held
    cdef int slot
    for slot in range(layout.count):
        held = attribute(value, layout.offsets[slot])
        if held != NULL and PyDict_CheckExact(held):
            prefetch(table_of(held))
            prefetch(table_of(held) + 64)


cdef TypeRow *free_row(TypeRow *types, Py_ssize_t room, PyObject *kind) noexcept:
    cdef Py_ssize_t at = (<uintptr_t> kind >> 4) & (room - 1)
    while types[at].type != NULL:
        at = (at + 1) & (room - 1)
    return &types[at]


cdef void *data(array) except NULL:
    """Where the elements of a numpy array are."""
    cdef uintptr_t address = array.__array_interface__["data"][0]
    return <void *> address


def _no_route(src, dst, msg, bytes_each, info):
    raise AssertionError("the engine has no network")


def _nowhere(me):
    return ""


def _nobody_near(me):
    return ()


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
