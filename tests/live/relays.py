"""Members with keys of a cluster that signs: what they publish, they sign; what they pass on, they may change."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from epicast.dissemination.brisa_messages import Data
from epicast.live.node import Node
from epicast.live.tls import Tls
from epicast.wire.frames import event_frame
from tests.live.attacker import head, stream_of
from tests.live.neighbour import neighbour_of
from tests.live.siege import LIMITS, Siege, besieged, quick

CLUSTER = "prices"


def secured(folder: Path, **settings: Any) -> Any:
    given = {"cluster": CLUSTER, "tls": Tls.from_folder(folder, "n1"), "friend_tls": Tls.from_folder(folder, "n2")}
    return besieged(**given | settings)


def credulous(tls: Tls | None) -> ssl.SSLContext:
    """Believes everyone, and shows what it has."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if tls is not None:
        context.load_cert_chain(tls.certificate, tls.key)
    return context


def member_of(siege: Siege, folder: Path) -> Any:
    """A true member, that would like to be more."""
    return neighbour_of(siege, credulous(Tls.from_folder(folder, "evil")), cluster=CLUSTER)


def as_event(message: Data) -> bytes:
    return head(message) + event_frame(stream_of(message), message.seq, message.payload)


@asynccontextmanager
async def signer(folder: Path, count: int = 1) -> AsyncIterator[tuple[Node, list[Data]]]:
    """A publisher that the others do not know yet, and what it has signed so far."""
    async with Node(
        stack=quick(), limits=LIMITS, tls=Tls.from_folder(folder, "n2"), cluster=CLUSTER, sign=True
    ) as node:
        for number in range(count):
            await node.publish("new", b"signed %d" % number)
        yield node, [entry[1] for entry in node._stack_node.dissemination.flows[(node.id, 0)].buffer]
