"""Seeds are looked up anew each time: names may move, and files may change."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

from epicast.live.ids import Address
from epicast.live.seeds import Seeds


class Resolver:
    """Of a loop: knows what names stand for just now."""

    def __init__(self, **known: list[str]) -> None:
        self.known = known

    async def getaddrinfo(self, host: str, port: int, **_: Any) -> list[Any]:
        if host not in self.known:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in self.known[host]]


def addresses(seeds: Seeds, **known: list[str]) -> list[Address]:
    resolver: Any = Resolver(**known)
    return [each for lookup in asyncio.run(seeds.lookups(resolver)) for each in lookup.found]


def test_a_name_is_looked_up_again_each_time() -> None:
    seeds = Seeds(["nodes:7000"])
    assert addresses(seeds, nodes=["10.0.0.1"]) == [Address("10.0.0.1", 7000)]
    assert addresses(seeds, nodes=["10.0.0.2", "10.0.0.3"]) == [Address("10.0.0.2", 7000), Address("10.0.0.3", 7000)]


def test_a_name_that_is_unknown_now_may_be_known_later() -> None:
    seeds = Seeds(["nodes", "others"])
    assert addresses(seeds, others=["10.0.0.9"]) == [Address("10.0.0.9", 7946)]
    assert addresses(seeds, nodes=["10.0.0.1"]) == [Address("10.0.0.1", 7946)]


def test_a_file_is_read_again_and_what_is_no_address_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "seeds"
    seeds = Seeds([f"@{file}"])
    assert addresses(seeds) == []
    file.write_text("# ours\none:1\n:::\n")
    assert addresses(seeds, one=["10.0.0.1"]) == [Address("10.0.0.1", 1)]
    file.write_text("two:2\n")
    assert addresses(seeds, two=["10.0.0.2"]) == [Address("10.0.0.2", 2)]
