# A heap of integers: by key, then by number. Four children to a parent, so that a step down reads neighbours in memory.

from libc.stdint cimport int64_t
from libc.stdlib cimport realloc


cdef struct Entry:
    int64_t key
    int64_t seq
    int64_t place  # where what the entry stands for is kept

cdef struct Heap:
    Entry *entries
    Py_ssize_t count
    Py_ssize_t room


cdef inline void *more(void *memory, Py_ssize_t *room, Py_ssize_t wanted, size_t each) except NULL:
    """At least `wanted` places of `each` bytes."""
    cdef Py_ssize_t larger = max(wanted, 2 * room[0], 16)
    cdef void *got = realloc(memory, larger * each)
    if got == NULL:
        raise MemoryError
    room[0] = larger
    return got


cdef inline bint before(const Entry *a, const Entry *b) noexcept:
    return a.key < b.key or (a.key == b.key and a.seq < b.seq)


cdef inline int heap_push(Heap *heap, int64_t key, int64_t seq, int64_t place) except -1:
    if heap.count == heap.room:
        heap.entries = <Entry *> more(heap.entries, &heap.room, heap.count + 1, sizeof(Entry))
    cdef Entry *entries = heap.entries
    cdef Entry entry
    cdef Py_ssize_t at = heap.count, parent
    entry.key, entry.seq, entry.place = key, seq, place
    heap.count += 1
    while at:
        parent = (at - 1) >> 2
        if not before(&entry, &entries[parent]):
            break
        entries[at] = entries[parent]
        at = parent
    entries[at] = entry
    return 0


cdef inline int64_t heap_pop(Heap *heap) noexcept:
    """The place of the lowest entry."""
    cdef Entry *entries = heap.entries
    cdef int64_t place = entries[0].place
    cdef Py_ssize_t at = 0, child, best, end
    heap.count -= 1
    cdef Py_ssize_t count = heap.count
    cdef Entry moved = entries[count]
    while 4 * at + 1 < count:
        best = 4 * at + 1
        end = min(best + 4, count)
        for child in range(best + 1, end):
            if before(&entries[child], &entries[best]):
                best = child
        if not before(&entries[best], &moved):
            break
        entries[at] = entries[best]
        at = best
    entries[at] = moved
    return place
