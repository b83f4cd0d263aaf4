"""What to measure of live messaging, and what came of it: plain data that can cross to another process and back."""

from __future__ import annotations

import msgspec

TOPIC = "bench"
PROCESSES = 4  # that share the subscribers
RATE_MAX = 500  # messages a second, where latency is measured
DELIVERIES_PER_SECOND = 16_000  # at most, then: below what the slowest system can carry
SIGNED = "epicast-signed"
SIGNED_PER_SECOND = 4_000  # a core checks some five thousand signatures a second
WINDOW_BYTES, WINDOW_MIN, WINDOW_MAX = 8_000_000, 64, 16_384
BATCH_BYTES, BATCH_MAX = 256_000, 128


class Job(msgspec.Struct, frozen=True):
    """One publisher, so many subscribers of one topic: latency at a fixed rate, then as fast as it goes."""

    system: str
    subscribers: int
    payload_bytes: int
    probes: int = 200  # messages to begin with, at least
    warm_seconds: float = 3.0  # as fast as it goes, until memory and socket buffers are as large as they get
    rate_seconds: float = 7.0
    flood_seconds: float = 2.0
    python: str = ""  # the interpreter whose epicast is measured, by this driver; nothing: this one

    @property
    def name(self) -> str:
        return f"{self.system}, {self.cell}"

    @property
    def cell(self) -> str:
        from epicast.cli import formats as f  # here, and not where another version is measured

        return f"{self.subscribers} subscribers, {f.size(self.payload_bytes)}"

    @property
    def rate(self) -> int:
        """Messages a second, where latency is measured."""
        deliveries = SIGNED_PER_SECOND if self.system == SIGNED else DELIVERIES_PER_SECOND
        return min(RATE_MAX, deliveries // self.subscribers)

    @property
    def batch(self) -> int:
        """Messages that are handed over at once, where a system can take more than one."""
        return max(1, min(BATCH_MAX, BATCH_BYTES // self.payload_bytes))

    @property
    def window(self) -> int:
        """Messages on their way in a system that has no flow control from end to end."""
        return max(WINDOW_MIN, min(WINDOW_MAX, WINDOW_BYTES // self.payload_bytes))

    @property
    def shares(self) -> list[int]:
        """The subscribers of each process."""
        each, more = divmod(self.subscribers, PROCESSES)
        return [share for number in range(PROCESSES) if (share := each + (number < more))]


class Task(msgspec.Struct, frozen=True):
    """What a worker process is to do."""

    job: Job
    folder: str  # for certificates and the like, the same for all
    address: str = ""  # of the server, or of the publisher; empty for a publisher without a server
    subscribers: int = 0


class Result(msgspec.Struct, frozen=True):
    """Of one job, or the medians of several."""

    messages: int = 0
    deliveries: int = 0
    seconds: float = 0.0  # from the first publication to the last delivery
    p50_us: float | None = None
    p99_us: float | None = None
    p99_of_second_us: float | None = None  # the median of those of each second
    cpu_ms_per_1000: float | None = None  # deliveries, of all processes, at full speed; where the system tells
    cpu_at_rate_ms_per_1000: float | None = None  # the same while latencies were measured
    stolen: float = 0.0  # part of the processor time that the host took away while latencies were measured
    left_out: int = 0  # slices in which it took too much
    lost: int = 0
    duplicates: int = 0
    error: str = ""  # why there is nothing

    @property
    def valid(self) -> bool:
        return not (self.error or self.lost or self.duplicates)

    @property
    def per_second(self) -> float | None:
        return self.deliveries / self.seconds if self.seconds else None

    @property
    def outcome(self) -> str:
        """In a few words."""
        from epicast.cli import formats as f

        if self.error:
            return self.error
        faults = ", ".join(f"{n:,} {what}" for n, what in ((self.lost, "lost"), (self.duplicates, "twice")) if n)
        p99_ms = None if self.p99_us is None else self.p99_us / 1000
        return faults or f"{f.rate(self.per_second)}, p99 {f.ms(p99_ms)}"
