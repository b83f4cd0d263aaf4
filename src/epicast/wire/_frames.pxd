from libc.stdint cimport uint32_t, uint64_t

cdef class Block:
    cdef char *at
    cdef Py_ssize_t size
    cdef bint done  # nothing more is written to it

cdef class Run:
    cdef Block block
    cdef uint32_t *starts  # of the payloads, in the block
    cdef Py_ssize_t count
    cdef Py_ssize_t begin
    cdef Py_ssize_t end
    cdef readonly uint64_t stream
    cdef readonly uint64_t seq
    cdef readonly Py_ssize_t payload_bytes

    cdef Py_ssize_t size_of(self, Py_ssize_t at) noexcept
