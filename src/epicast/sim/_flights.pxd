# Messages in flight, by tick of arrival.
#
# Those of one tick form a bucket: a list of chunks, in the order of sending. The buckets of the next ticks stand in a
# ring that begins at `base`. What arrives beyond the ring waits in a heap, and moves into the ring as soon as that has
# turned far enough: before anything could be posted behind it. So the ring holds `base` to `base + RING - 1`, and the
# heap only later ticks.
#
# A flight owns one reference to its message.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_DECREF
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from epicast.sim._heap cimport Heap, heap_pop, heap_push, more


cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define epicast_lowest_bit(word) __builtin_ctzll(word)
    #else
    static int epicast_lowest_bit(unsigned long long word) {
        int bit = 0;
        while (!(word >> bit & 1)) bit++;
        return bit;
    }
    #endif
    """
    int lowest_bit "epicast_lowest_bit" (uint64_t word) noexcept

cdef enum:
    CHUNK = 32  # messages; a power of two
    RING = 1 << 13  # ticks, 0.8 s of 100 us each; a power of two, at least 64

cdef struct Flight:
    int32_t dst
    int32_t src
    PyObject *msg
    int64_t info

cdef struct Chunk:
    Chunk *next
    Flight flights[CHUNK]

cdef struct Bucket:
    Chunk *first
    Chunk *last
    int64_t count

cdef struct Flights:
    Bucket *ring
    uint64_t *busy  # a bit for each bucket that is not empty
    int64_t base
    int64_t next  # the first tick in the ring that has messages, if there is one
    int64_t in_ring
    Chunk *spare
    Heap beyond
    Flight *waiting  # by place in the heap; free places are chained through `info`
    Py_ssize_t waiting_count
    Py_ssize_t waiting_room
    int64_t free_place
    int64_t seq


cdef inline int open_flights(Flights *flights) except -1:
    flights.ring = <Bucket *> calloc(RING, sizeof(Bucket))
    flights.busy = <uint64_t *> calloc(RING // 64, sizeof(uint64_t))
    flights.free_place = -1
    if flights.ring == NULL or flights.busy == NULL:
        raise MemoryError
    return 0


cdef inline void close_flights(Flights *flights) noexcept:
    cdef Py_ssize_t at
    cdef Chunk *chunk
    if flights.ring != NULL:
        for at in range(RING):
            discard(flights, &flights.ring[at], 0)
    for at in range(flights.beyond.count):
        Py_DECREF(<object> flights.waiting[flights.beyond.entries[at].place].msg)
    while flights.spare != NULL:
        chunk = flights.spare
        flights.spare = chunk.next
        free(chunk)
    free(flights.ring)
    free(flights.busy)
    free(flights.beyond.entries)
    free(flights.waiting)


cdef inline int post(
    Flights *flights, int64_t present, int64_t tick, int src, int dst, PyObject *msg, int64_t info
) except -1:
    """`present` is the first tick that is not over."""
    cdef int64_t place = tick & (RING - 1)
    cdef Bucket *bucket = &flights.ring[place]
    cdef Flight *flight
    if <uint64_t> (tick - flights.base) >= RING and not reach(flights, present, tick):
        flight = wait_beyond(flights, tick)
    else:
        if bucket.count & (CHUNK - 1) == 0:
            add_chunk(flights, bucket)
            if bucket.count == 0:
                flights.busy[place >> 6] |= <uint64_t> 1 << (place & 63)
                if flights.in_ring == 0 or tick < flights.next:
                    flights.next = tick
        flight = &bucket.last.flights[bucket.count & (CHUNK - 1)]
        bucket.count += 1
        flights.in_ring += 1
    flight.dst, flight.src, flight.msg, flight.info = dst, src, msg, info
    Py_INCREF(<object> msg)
    return 0


cdef inline int add_chunk(Flights *flights, Bucket *bucket) except -1:
    cdef Chunk *chunk = flights.spare
    if chunk != NULL:
        flights.spare = chunk.next
    else:
        chunk = <Chunk *> malloc(sizeof(Chunk))
        if chunk == NULL:
            raise MemoryError
    chunk.next = NULL
    if bucket.count:
        bucket.last.next = chunk
    else:
        bucket.first = chunk
    bucket.last = chunk
    return 0


cdef inline Flight *wait_beyond(Flights *flights, int64_t tick) except NULL:
    cdef int64_t place = flights.free_place
    if tick < flights.base:
        raise AssertionError("a message cannot arrive in the past")
    if place < 0 and flights.waiting_count == flights.waiting_room:
        flights.waiting = <Flight *> more(
            flights.waiting, &flights.waiting_room, flights.waiting_count + 1, sizeof(Flight)
        )
    if place < 0:
        place = flights.waiting_count
        flights.waiting_count += 1
    else:
        flights.free_place = flights.waiting[place].info
    heap_push(&flights.beyond, tick, flights.seq, place)
    flights.seq += 1
    return &flights.waiting[place]


cdef inline int64_t next_tick(Flights *flights) noexcept:
    """Of an arrival; -1 if there is none."""
    if flights.in_ring:
        return flights.next
    return flights.beyond.entries[0].key if flights.beyond.count else -1


cdef inline bint reach(Flights *flights, int64_t present, int64_t tick) except -1:
    """Turn the ring to the present, or to the next arrival if that is earlier. True if it now holds the tick."""
    cdef int64_t arrival = next_tick(flights)
    cdef int64_t base = present if arrival < 0 else min(present, arrival)
    if base > flights.base:
        turn(flights, base)
    return <uint64_t> (tick - flights.base) < RING


cdef inline int turn(Flights *flights, int64_t base) except -1:
    """The ring begins at this tick, which no arrival precedes."""
    cdef int64_t tick, place
    cdef Flight flight
    flights.base = base
    while flights.beyond.count and flights.beyond.entries[0].key < base + RING:
        tick = flights.beyond.entries[0].key
        place = heap_pop(&flights.beyond)
        flight = flights.waiting[place]
        flights.waiting[place].info = flights.free_place
        flights.free_place = place
        post(flights, base, tick, flight.src, flight.dst, flight.msg, flight.info)
        Py_DECREF(<object> flight.msg)
    return 0


cdef inline int take(Flights *flights, int64_t tick, Bucket *bucket) except -1:
    """All that arrives at the next tick."""
    turn(flights, tick)
    cdef int64_t place = tick & (RING - 1), word = place >> 6
    bucket[0] = flights.ring[place]
    flights.ring[place].count = 0
    flights.in_ring -= bucket.count
    flights.busy[word] &= ~(<uint64_t> 1 << (place & 63))
    if not flights.in_ring:
        return 0
    # Bits of this word below our place belong to the end of the ring: they are seen when the search comes round.
    cdef uint64_t bits = flights.busy[word] >> (place & 63) << (place & 63)
    while not bits:
        word = (word + 1) & (RING // 64 - 1)
        bits = flights.busy[word]
    place = 64 * word + lowest_bit(bits)
    flights.next = tick + ((place - tick) & (RING - 1))
    return 0


cdef inline void spare_first(Flights *flights, Bucket *bucket) noexcept:
    """The first chunk of a bucket that was taken is used up."""
    cdef Chunk *chunk = bucket.first
    bucket.first = chunk.next
    chunk.next = flights.spare
    flights.spare = chunk


cdef inline void discard(Flights *flights, Bucket *bucket, int64_t at) noexcept:
    """Forget a bucket from its message `at` on."""
    while at < bucket.count:
        Py_DECREF(<object> bucket.first.flights[at & (CHUNK - 1)].msg)
        at += 1
        if at & (CHUNK - 1) == 0 or at == bucket.count:
            spare_first(flights, bucket)


cdef inline list empty(Flights *flights):
    """Takes everything out: (tick, src, dst, message, info) in the order of arrival."""
    cdef list out = []
    cdef Bucket bucket
    cdef Flight *flight
    cdef int64_t tick = next_tick(flights), at, base = flights.base
    while tick >= 0:
        take(flights, tick, &bucket)
        for at in range(bucket.count):
            flight = &bucket.first.flights[at & (CHUNK - 1)]
            out.append((tick, flight.src, flight.dst, <object> flight.msg, flight.info))
            Py_DECREF(<object> flight.msg)
            if (at + 1) & (CHUNK - 1) == 0 or at + 1 == bucket.count:
                spare_first(flights, &bucket)
        tick = next_tick(flights)
    flights.base = base
    return out


cdef inline int64_t oldest_info(Flights *flights, int64_t newest) noexcept:
    """The lowest description in flight. They are numbered in the order of sending: a bucket's first is its lowest."""
    cdef Py_ssize_t at
    for at in range(RING):
        if flights.ring[at].count:
            newest = min(newest, flights.ring[at].first.flights[0].info)
    for at in range(flights.beyond.count):
        newest = min(newest, flights.waiting[flights.beyond.entries[at].place].info)
    return newest
