"""How long to leave an address alone after it could not be reached: twice as long each time, with jitter."""

from __future__ import annotations

from random import Random

from epicast.live.ids import Address

ADDRESSES_MAX = 4096


class Backoff:
    def __init__(self, first_us: int, most_us: int, rng: Random) -> None:
        self._first_us, self._most_us, self._rng = first_us, most_us, rng
        self._state: dict[Address, tuple[int, int]] = {}  # failures in a row, and not before when

    def wait_us(self, address: Address, now_us: int) -> int:
        """How long it is still to be left alone."""
        return max(0, self._state.get(address, (0, 0))[1] - now_us)

    def failed(self, address: Address, now_us: int) -> None:
        failures = self._state.pop(address, (0, 0))[0] + 1
        while len(self._state) >= ADDRESSES_MAX:
            del self._state[next(iter(self._state))]
        most = min(self._most_us, self._first_us << min(failures - 1, 20))
        self._state[address] = (failures, now_us + int(most * (0.5 + self._rng.random() / 2)))

    def reached(self, address: Address) -> None:
        self._state.pop(address, None)
