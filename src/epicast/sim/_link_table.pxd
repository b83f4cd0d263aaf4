# The last arrival on each usable link, by its two ends: an open-addressed table, searched place after place.

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

cdef enum:
    NO_LINK = -1
    LINKS = 1 << 8  # places to begin with; a power of two

cdef struct Link:
    uint64_t ends  # from << 32 | to
    int64_t tick  # NO_LINK: the place is free

cdef struct LinkTable:
    Link *links
    uint64_t mask  # places - 1
    uint64_t count


cdef inline int open_links(LinkTable *table, uint64_t places) except -1:
    cdef uint64_t at
    table.links = <Link *> malloc(places * sizeof(Link))
    if table.links == NULL:
        raise MemoryError
    for at in range(places):
        table.links[at].tick = NO_LINK
    table.mask, table.count = places - 1, 0
    return 0


cdef inline uint64_t home(LinkTable *table, uint64_t ends) noexcept:
    return ends * <uint64_t> 0x9E3779B97F4A7C15 >> 32 & table.mask


cdef inline Link *find(LinkTable *table, uint64_t ends) noexcept:
    """The link, or the free place where it would be."""
    cdef uint64_t at = home(table, ends)
    while table.links[at].tick != NO_LINK and table.links[at].ends != ends:
        at = (at + 1) & table.mask
    return &table.links[at]


cdef inline Link *find_link(LinkTable *table, int src, int dst) noexcept:
    return find(table, <uint64_t> <uint32_t> src << 32 | <uint32_t> dst)


cdef inline int put_link(LinkTable *table, int src, int dst, int64_t tick) except -1:
    if 3 * table.count > 2 * table.mask:
        grow_links(table)
    cdef Link *link = find_link(table, src, dst)
    if link.tick == NO_LINK:
        table.count += 1
        link.ends = <uint64_t> <uint32_t> src << 32 | <uint32_t> dst
    link.tick = tick
    return 0


cdef inline int grow_links(LinkTable *table) except -1:
    cdef LinkTable larger
    cdef uint64_t at
    open_links(&larger, 2 * (table.mask + 1))
    for at in range(table.mask + 1):
        if table.links[at].tick != NO_LINK:
            find(&larger, table.links[at].ends)[0] = table.links[at]
    larger.count = table.count
    free(table.links)
    table[0] = larger
    return 0


cdef inline void remove_link(LinkTable *table, int src, int dst) noexcept:
    cdef Link *links = table.links
    cdef uint64_t gap = find_link(table, src, dst) - links, at = gap
    if links[gap].tick == NO_LINK:
        return
    table.count -= 1
    # Links behind the gap move up where they may, so that no search stops too early.
    while True:
        at = (at + 1) & table.mask
        if links[at].tick == NO_LINK:
            break
        if (at - home(table, links[at].ends)) & table.mask >= (at - gap) & table.mask:
            links[gap] = links[at]
            gap = at
    links[gap].tick = NO_LINK
