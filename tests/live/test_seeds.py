"""Seeds are looked up anew each time: names may move, and files may change."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from epicast.live.ids import Address
from epicast.live.seeds import Lookup, Seeds


class Resolver:
    """Of a loop: knows what names stand for just now."""

    def __init__(self, **known: list[str]) -> None:
        self.known = known

    def create_task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return asyncio.create_task(work)

    async def getaddrinfo(self, host: str, port: int, **_: Any) -> list[Any]:
        if host not in self.known:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in self.known[host]]


def lookups(seeds: Seeds, resolver: Any) -> list[Lookup]:
    return asyncio.run(seeds.lookups(resolver))


def addresses(seeds: Seeds, **known: list[str]) -> list[Address]:
    return [each for lookup in lookups(seeds, Resolver(**known)) for each in lookup.found]


def test_a_name_is_looked_up_again_each_time() -> None:
    seeds = Seeds(["nodes:7000"])
    assert addresses(seeds, nodes=["10.0.0.1"]) == [Address("10.0.0.1", 7000)]
    assert addresses(seeds, nodes=["10.0.0.2", "10.0.0.3"]) == [Address("10.0.0.2", 7000), Address("10.0.0.3", 7000)]


def test_a_name_that_takes_long_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epicast.live.seeds.LOOKUP_S", 0.05)

    async def work() -> None:
        answered = asyncio.Event()
        asked: list[str] = []

        class Slow(Resolver):
            async def getaddrinfo(self, host: str, port: int, **_: Any) -> list[Any]:
                asked.append(host)
                if host == "slow":
                    await answered.wait()
                return await super().getaddrinfo(host, port)

        resolver: Any = Slow(quick=["10.0.0.1"], slow=["10.0.0.2"])
        seeds = Seeds(["slow:1", "quick:1", "slow:1"])
        for _ in range(3):
            slow, quick, again = await seeds.lookups(resolver)
            assert (slow.found, slow.why, slow.temporary) == ((), "it is still being looked up", True)
            assert quick.found == (Address("10.0.0.1", 1),)
            assert again == slow
        assert asked.count("slow") == 1, "one question at a time"
        answered.set()
        assert (await seeds.lookups(resolver))[0].found == (Address("10.0.0.2", 1),)

    asyncio.run(work())


def test_what_gives_no_address_says_why(tmp_path: Path) -> None:
    file = tmp_path / "seeds"

    def why(**known: list[str]) -> list[tuple[str, str, bool]]:
        seeds, resolver = Seeds([f"@{file}", "one:1"]), Resolver(**known)
        return [(each.entry, each.why, each.temporary) for each in lookups(seeds, resolver)]

    unknown = ("one:1", "no such name", False)
    assert why() == [(f"@{file}", "No such file or directory", False), unknown]
    file.write_text("# nothing\n")
    assert why(one=["10.0.0.1"]) == [(f"@{file}", "it holds no address", False), ("one:1", "", False)]
    file.write_bytes(b"\xff\xfe")
    assert why()[0][1] == "it is not a text in UTF-8"


def test_a_name_server_that_cannot_say_is_told_from_a_name_that_is_unknown() -> None:
    class Failing(Resolver):
        async def getaddrinfo(self, host: str, port: int, **_: Any) -> list[Any]:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    (found,) = lookups(Seeds(["one:1"]), Failing())
    assert (found.why, found.temporary) == ("Temporary failure in name resolution", True)


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
