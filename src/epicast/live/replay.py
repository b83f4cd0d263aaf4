"""Which signed messages were accepted before, so that a recording of them is worth nothing.

For each source a window slides over its sequence numbers: the highest one, and one bit for each of the `width` numbers
up to it. What lies below the window is refused, received or not. Unlike a table of numbers (`core/window.py`), it takes
the same little memory whatever a source sends.

Forgetting a source would reopen all its numbers, so a source that may be alive is never forgotten. At the cap, the one
that has been silent for longest makes room, but only if that is longer than `quiet_us`; else the newcomer is refused.
Who is alive and publishes nothing is kept by `heard`. Each host has a cap of its own, within which the same is done: a
member that invents incarnations shuts out its own host and nobody else.

A process that has just started knows no source: what it has not heard before is new to it.
"""

from __future__ import annotations

from epicast.live.ids import address_of

DAY_US = 86_400_000_000


class ReplayWindow:
    def __init__(
        self, *, sources_max: int = 65_536, per_host_max: int = 16_384, width: int = 65_536, quiet_us: int = DAY_US
    ) -> None:
        self.sources_max, self.per_host_max, self.width, self.quiet_us = sources_max, per_host_max, width, quiet_us
        self.refused = 0  # newcomers for whom there was no room
        self._full = (1 << width) - 1
        # In both, the source heard last is at the end.
        self._sources: dict[str, _Source] = {}
        self._hosts: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._sources)

    def accept(self, source: str, seq: int, now_us: int) -> bool:
        """True once for each number. Call it for messages whose signature is good, and for no others."""
        if seq < 0:
            return False
        known = self._sources.get(source)
        if known is None:
            return self._admit(source, seq, now_us)
        new = known.add(seq, self.width, self._full)
        if new:  # what is refused may be a recording, which is no sign of life
            self.heard(source, now_us)
        return new

    def has_room(self, source: str, now_us: int) -> bool:
        """Would a number of this source be accepted, if it is new?"""
        if source in self._sources:
            return True
        at_host = self._hosts.get(_host_of(source), {})
        return self._may_add(at_host, self.per_host_max, now_us) and self._may_add(
            self._sources, self.sources_max, now_us
        )

    def _may_add(self, among: dict[str, None] | dict[str, _Source], most: int, now_us: int) -> bool:
        return len(among) < most or now_us - self._sources[next(iter(among))].heard_us >= self.quiet_us

    def heard(self, source: str, now_us: int) -> None:
        """A sign of life, as from a source that publishes nothing: a greeting, a link."""
        known = self._sources.pop(source, None)
        if known is None:
            return
        known.heard_us = now_us
        self._sources[source] = known
        at_host = self._hosts[known.host]
        del at_host[source]
        at_host[source] = None

    def _admit(self, source: str, seq: int, now_us: int) -> bool:
        host = _host_of(source)
        at_host = self._hosts.get(host, {})
        room = len(at_host) < self.per_host_max or self._forget_first(at_host, now_us)
        if not room or (len(self._sources) >= self.sources_max and not self._forget_first(self._sources, now_us)):
            self.refused += 1
            return False
        self._sources[source] = _Source(host, seq, now_us)
        self._hosts.setdefault(host, {})[source] = None
        return True

    def _forget_first(self, among: dict[str, None] | dict[str, _Source], now_us: int) -> bool:
        """False if it may be alive."""
        source = next(iter(among))
        known = self._sources[source]
        if now_us - known.heard_us < self.quiet_us:
            return False
        del self._sources[source], self._hosts[known.host][source]
        if not self._hosts[known.host]:
            del self._hosts[known.host]
        return True


class _Source:
    __slots__ = ("heard_us", "highest", "host", "seen")

    def __init__(self, host: str, seq: int, now_us: int) -> None:
        self.host, self.heard_us = host, now_us
        self.highest = seq
        self.seen = 1  # bit i stands for highest - i

    def add(self, seq: int, width: int, full: int) -> bool:
        """True if the number is in the window or above, and new."""
        ahead = seq - self.highest
        if ahead > 0:
            # Never shift by as much as a source claims: the result would have as many bits.
            self.seen = ((self.seen << ahead) | 1) & full if ahead < width else 1
            self.highest = seq
            return True
        if -ahead >= width or self.seen >> -ahead & 1:
            return False
        self.seen |= 1 << -ahead
        return True


def _host_of(source: str) -> str:
    address = address_of(source)
    return source if address is None else address.host
