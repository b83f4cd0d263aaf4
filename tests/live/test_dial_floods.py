"""Members that name addresses of their choice: each dial is charged to them, and nobody else pays."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from epicast.live.told import DIALS_MAX
from epicast.membership.hyparview_messages import ForwardJoin, NeighbourReply, Shuffle, ShuffleReply
from tests.live.neighbour import neighbour_of
from tests.live.siege import LIMITS, besieged, run, until
from tests.live.test_hostile_members import is_heard, newcomer

ROOMY = msgspec.structs.replace(LIMITS, connections=1024)
NAMES = 600


class Victims:
    """Whole networks of addresses at which the system takes connections, and nobody answers."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener, self.port = listener, listener.getsockname()[1]
        self._taken: list[socket.socket] = []

    def named(self, number: int) -> str:
        return f"127.77.{number // 250}.{number % 250 + 1}:{self.port}/x{number}"

    def dialled(self) -> int:
        """How often, so far."""
        try:
            while True:
                self._taken.append(self._listener.accept()[0])
        except BlockingIOError:
            return len(self._taken)

    def close(self) -> None:
        for each in self._taken:
            each.close()


@contextmanager
def victims() -> Iterator[Victims]:
    with socket.create_server(("0.0.0.0", 0), backlog=2048) as listener:
        listener.setblocking(False)
        found = Victims(listener)
        try:
            yield found
        finally:
            found.close()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")
@pytest.mark.parametrize("how", ["shuffles", "walks", "samples"])
def test_a_member_cannot_make_its_neighbours_dial_whatever_it_names(how: str) -> None:
    async def attack() -> None:
        with victims() as there:
            async with besieged(limits=ROOMY) as siege, neighbour_of(siege) as attacker:
                before, hub = open_files(), siege.node._hub
                for number in range(NAMES):
                    name = there.named(number)
                    said = {
                        "shuffles": Shuffle(name, 0, (name,)),
                        "walks": ForwardJoin(name, 0),
                        "samples": NeighbourReply(False, tuple(there.named(number + more) for more in range(20))),
                    }[how]
                    attacker.send(said, ShuffleReply((name,)))
                    if number % 20 == 0:
                        await asyncio.sleep(0.01)
                await siege.goes_on()
                async with newcomer(siege) as third:
                    await is_heard(siege, third, 3)
                assert there.dialled() <= DIALS_MAX + 10, "the friend was told some of it by the node"
                if how == "shuffles":  # each of which wants an answer
                    assert there.dialled() >= DIALS_MAX // 2
                    assert hub.counters["dials refused"] > 0
                there.close()
                await until(lambda: len(hub.links) <= 4, "links are left")
                await until(lambda: open_files() <= before + 4, "files are left open")
                await siege.stands()

    run(attack())
