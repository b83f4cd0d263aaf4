"""What members say of how far a publisher has got makes no message of that publisher vanish."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from epicast.dissemination import gaps
from epicast.dissemination.gaps import Heights
from epicast.live.tls import Tls
from epicast.stacks import stack as stacks
from tests.live.certified import make_cluster
from tests.live.relays import CLUSTER
from tests.live.siege import besieged, quick, run, until
from tests.live.test_changed_fields import member

LIARS = "127.0.0.1:9/badc0de1", "127.0.0.1:9/badc0de2"  # one member with two ids
FAR = 1 << 60
GRACE_S = 0.5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cluster(tmp_path_factory.mktemp("heads") / "keys", "n1", "n2", "evil", cluster=CLUSTER)


@pytest.mark.parametrize("sign", [True, False])
def test_claims_of_several_do_not_silence_a_publisher(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, sign: bool
) -> None:
    monkeypatch.setattr(gaps, "BEGIN_US", 200_000)
    monkeypatch.setattr(gaps, "ALONE_US", 300_000)
    heads = {"protocol": "heads", "grace": f"{int(1000 * GRACE_S)}ms", "heads_interval": "100ms"}
    stack = stacks.from_table({**quick("flood").source, "gaps": heads})

    async def attack() -> None:
        async with AsyncExitStack() as parts:
            given = {"cluster": CLUSTER, "sign": sign, "tls": Tls.from_folder(folder, "n1")}
            given["friend_tls"] = Tls.from_folder(folder, "n2")
            siege = await parts.enter_async_context(besieged(stack=stack, **given))
            part = siege.node._stack_node.gaps
            await until(lambda: part.begun)
            liars = [await parts.enter_async_context(member(siege, stack, folder, me)) for me in LIARS]
            unknown = f"127.0.0.1:9/{'0' * 8}"
            for liar in liars:
                liar.send(Heights(((siege.friend.id, FAR), (unknown, FAR))))
            await until(lambda: part.heads.get(siege.friend.id) == FAR, "two said so")
            await asyncio.sleep(2 * GRACE_S)  # what is believed then is told as lost
            await siege.stands()
            assert part.heads[siege.friend.id] < FAR

    run(attack())
