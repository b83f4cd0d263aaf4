"""A fixed overlay: the neighbours that the scenario gave, for measurements that need a known graph.

Nothing is sent and nothing is repaired. A neighbour whose link goes down stays a neighbour.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from epicast.core.config import Config
from epicast.core.env import Env
from epicast.core.ids import NodeId
from epicast.core.message import Message
from epicast.core.roles import Neighbours


class StaticConfig(Config):
    """No settings: the contacts are the neighbours."""


class Static:
    __slots__ = ("_peers", "env", "listener")

    handles: ClassVar[tuple[type[Message], ...]] = ()
    holds_links: ClassVar[bool] = True
    listener: Neighbours

    def __init__(self, env: Env, config: StaticConfig) -> None:
        self.env = env
        self._peers: Sequence[NodeId] = ()

    @property
    def news_us(self) -> int:
        return 0

    def start(self, contacts: Sequence[NodeId]) -> None:
        self._peers = contacts
        for peer in contacts:
            self.listener.neighbour_up(peer)

    def meet(self, contact: NodeId) -> None:
        """The overlay is fixed."""

    def leave(self) -> None:
        """Nobody to tell: neighbours are fixed."""

    def peers(self) -> Sequence[NodeId]:
        return self._peers

    def sample(self, count: int) -> list[NodeId]:
        return self.env.rng.sample(self._peers, min(count, len(self._peers)))

    def acquaintances(self, count: int) -> list[NodeId]:
        return self.sample(count)

    def rtt_us(self, peer: NodeId) -> int | None:
        return None

    def distance(self, peer: NodeId) -> int:
        return 0

    def widen(self) -> None:
        """There is nobody else."""

    def sign_of_life(self, peer: NodeId) -> None: ...

    def on_link_up(self, peer: NodeId) -> None: ...

    def on_link_down(self, peer: NodeId) -> None: ...
