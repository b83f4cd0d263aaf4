# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""`plain_messages.py` compiled. A message leaves its payload where it came in until somebody asks for it: then it is
taken out, most often to be used at once and forgotten, and the memory for the next one is at hand."""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize

from epicast.wire._frames cimport Block, Run


cdef enum:
    PLAIN_BYTES = 9  # flags (1) | published (8)


@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class Message:
    cdef readonly str topic
    cdef bytes _payload  # once it was asked for
    cdef readonly str source
    cdef readonly long long seq
    cdef readonly long long published_us
    cdef readonly long long received_us
    cdef dict _headers
    cdef readonly str signer
    cdef Block _block
    cdef Py_ssize_t _start
    cdef readonly Py_ssize_t size

    def __init__(self, str topic not None, bytes payload not None, str source not None, long long seq,
                 long long published_us, long long received_us, dict headers=None, str signer=None):
        self.topic, self._payload, self.source, self.seq = topic, payload, source, seq
        self.published_us, self.received_us, self._headers = published_us, received_us, headers
        self.signer = signer
        self.size = len(payload)

    @property
    def payload(self):
        if self._payload is None:
            self._payload = PyBytes_FromStringAndSize(self._block.at + self._start, self.size)
            self._block = None
        return self._payload

    @property
    def headers(self):
        if self._headers is None:
            self._headers = {}
        return self._headers

    @property
    def id(self):
        return self.source, self.seq

    @property
    def latency(self):
        return max(0, self.received_us - self.published_us) / 1e6

    cdef tuple _values(self):
        return self.topic, self.payload, self.source, self.seq, self.published_us, self.received_us, self.headers, self.signer

    def __eq__(self, other):
        return self._values() == (<Message> other)._values() if type(other) is Message else NotImplemented

    def __hash__(self):
        return hash((self.topic, self.payload, self.source, self.seq, self.published_us, self.received_us))

    def __reduce__(self):
        return Message, self._values()

    def __repr__(self):
        names = ("topic", "payload", "source", "seq", "published_us", "received_us", "headers", "signer")
        return f"Message({', '.join([f'{name}={value!r}' for name, value in zip(names, self._values())])})"


def plain_messages(Run run, str topic not None, str source not None, long long received_us):
    """Up to the first that is not plain."""
    cdef list messages = []
    cdef const unsigned char *at
    cdef Py_ssize_t number, size
    cdef long long seq = run.seq
    cdef Message message
    for number in range(run.count):
        size = run.size_of(number)
        at = <const unsigned char *> run.block.at + run.starts[number]
        if size < PLAIN_BYTES or at[0] or at[1] & 0x80:
            break
        message = Message.__new__(Message)
        message.topic, message.source, message.seq, message.received_us = topic, source, seq + number, received_us
        message.published_us = _read(at + 1)
        message._block, message._start = run.block, run.starts[number] + PLAIN_BYTES
        message.size = size - PLAIN_BYTES
        messages.append(message)
    return messages


cdef inline long long _read(const unsigned char *at) noexcept:
    cdef unsigned long long value = 0
    cdef int number
    for number in range(8):
        value = value << 8 | at[number]
    return <long long> value
