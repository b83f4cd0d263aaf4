"""TCP-like links: what `Env.open` and `Env.close` mean in the simulator.

A link joins two processes and is *held* by each side that opened it; holders hear when it comes up and when it goes.

    CONNECTING --handshake--> OPEN --close, reset, crash--> gone
         \\------refused------> gone          \\--a segment cannot get through--> BROKEN --noticed--> gone

BROKEN is the half-open state: the side that sends still believes in the link, nothing arrives any more (TCP never
delivers what comes after a lost segment), and `detection_us` later the holders are told.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from epicast.core.ids import NOBODY
from epicast.core.records import Kind
from epicast.sim.engine import UP

if TYPE_CHECKING:
    from epicast.sim.network import Network


class LinkState(Enum):
    CONNECTING = "connecting"
    OPEN = "open"
    BROKEN = "broken"
    GONE = "gone"


class Link:
    __slots__ = ("ends", "held", "noticed", "state")

    def __init__(self, opener: int, peer: int) -> None:
        self.ends = (opener, peer)
        self.held = [True, False]
        self.state = LinkState.CONNECTING
        self.noticed = False  # a notice of the break is on its way

    def side(self, node: int) -> int:
        return 0 if self.ends[0] == node else 1


class Links:
    """All links of a world. One object per pair of processes, found from either end."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.engine = network.engine
        self._of: dict[int, dict[int, Link]] = {}
        self._ended: dict[tuple[int, int], Link] = {}  # by (holder, peer): gone, and the holder does not know it yet

    def get(self, a: int, b: int) -> Link | None:
        mine = self._of.get(a)
        return mine.get(b) if mine else None

    def held_by(self, node: int) -> list[int]:
        return [peer for peer, link in self._of.get(node, {}).items() if link.held[link.side(node)]]

    def open(self, me: int, peer: int) -> None:
        link = self.get(me, peer)
        if link is None:
            self._connect(me, peer)
            return
        side = link.side(me)
        if link.held[side]:
            return
        if link.state is LinkState.BROKEN:  # at most the other side still believes in it
            self._remove(link)
            newer = self._connect(me, peer)
            newer.held[newer.side(peer)] = link.held[link.side(peer)]
            return
        link.held[side] = True
        if link.state is LinkState.OPEN:
            self._notify_later(0, me, peer, link, up=True)

    def close(self, me: int, peer: int) -> None:
        link = self.get(me, peer)
        if link is None:
            ended = self._ended.get((me, peer))
            if ended is not None:
                ended.held[ended.side(me)] = False
            return
        link.held[link.side(me)] = False
        # The end of the stream arrives after everything that was sent on it.
        last = self.engine.link_tick(me, peer) * self.engine.tick_us
        delay = self.network.delay_us(me, peer)
        reachable = link.state is LinkState.OPEN and self.network.passes(me, peer)
        if not reachable:
            delay = self.network.config.detection_us
        self._remove(link)
        if link.held[link.side(peer)]:
            self._notify_later(max(delay, last + 1 - self.engine.now), peer, me, link, up=False)

    def crash(self, node: int) -> None:
        """The process died: nobody says goodbye, its peers notice after the detection delay. Without connections there
        is nothing to notice: protocols must find out themselves."""
        for peer, link in list(self._of.get(node, {}).items()):
            link.held[link.side(node)] = False
            if link.held[link.side(peer)] and self.network.tcp:
                self.broke(link)
            else:
                self._remove(link)

    def exit(self, node: int) -> None:
        """The process ended in good order: whatever connection it left open is closed for it."""
        for peer in list(self._of.get(node, {})):
            self.close(node, peer)

    def reset(self, a: int, b: int) -> None:
        """Both ends see the connection reset at once; what was in flight is lost."""
        link = self.get(a, b)
        if link is None:
            return
        self._remove(link)
        for src, dst, msg, info in self.engine.unpost(lambda src, dst: {src, dst} == {a, b}):
            self.engine.drop(src, dst, msg, info, "reset")
        for me, peer in ((a, b), (b, a)):
            if link.held[link.side(me)]:
                self._notify_later(0, me, peer, link, up=False)

    def half_open(self, node: int, peer: int) -> None:
        """`peer` forgets the connection without a word: `node` goes on believing in it."""
        link = self.get(node, peer)
        if link is not None and link.state is not LinkState.GONE:
            self._stop_traffic(link)
            link.state = LinkState.BROKEN
            if link.held[link.side(peer)]:
                self._notify_later(0, peer, node, link, up=False)

    def broke(self, link: Link) -> None:
        """A segment could not get through. The holders find out after the detection delay."""
        if link.noticed or link.state is LinkState.GONE:
            return
        link.noticed = True
        self._stop_traffic(link)
        link.state = LinkState.BROKEN
        self.engine.call_at(self.engine.now + self.network.config.detection_us, self._on_break_noticed, link)

    # Steps

    def _connect(self, me: int, peer: int) -> Link:
        link = Link(me, peer)
        self._of.setdefault(me, {})[peer] = link
        self._of.setdefault(peer, {})[me] = link
        there, back = self.network.delay_us(me, peer), self.network.delay_us(peer, me)
        ready_us = self.engine.now + self.network.config.connect_us + there + back
        # What is sent before the handshake ends waits for it, and is then one way from the peer.
        tick_us = self.engine.tick_us
        self.engine.link_ready(me, peer, -(-(ready_us + there) // tick_us))
        self.engine.link_ready(peer, me, -(-ready_us // tick_us))
        if self.network.passes(me, peer) and self.network.passes(peer, me):
            self.engine.call_at(ready_us, self._on_handshake, link)
        else:
            self.broke(link)
        return link

    def _on_handshake(self, link: Link) -> None:
        if link.state is not LinkState.CONNECTING:
            return
        opener, peer = link.ends
        if not self.network.exists(peer) or not self.network.exists(opener):
            self._refuse(link)
            return
        link.state = LinkState.OPEN
        for me, other in ((opener, peer), (peer, opener)):
            if link.held[link.side(me)]:
                self._notify(me, other, link, up=True)

    def _refuse(self, link: Link) -> None:
        """Nobody listens there: the opener gets a reset at once."""
        self._remove(link)
        opener, peer = link.ends
        self._notify(opener, peer, link, up=False)

    def _on_break_noticed(self, link: Link) -> None:
        if link.state is LinkState.GONE:
            return
        self._remove(link)
        a, b = link.ends
        for me, peer in ((a, b), (b, a)):
            if link.held[link.side(me)]:
                self._notify(me, peer, link, up=False)

    def _stop_traffic(self, link: Link) -> None:
        a, b = link.ends
        self.engine.link_gone(a, b)
        self.engine.link_gone(b, a)

    def _remove(self, link: Link) -> None:
        link.state = LinkState.GONE
        self._stop_traffic(link)
        a, b = link.ends
        for me, peer in ((a, b), (b, a)):
            mine = self._of.get(me)
            if mine is not None and mine.get(peer) is link:
                del mine[peer]
                if not mine:
                    del self._of[me]

    def _notify_later(self, delay_us: int, me: int, peer: int, link: Link, *, up: bool) -> None:
        if not up:
            self._ended[me, peer] = link
        self.engine.call_at(self.engine.now + delay_us, self._notify, me, peer, link, up)

    def _notify(self, me: int, peer: int, link: Link, up: bool) -> None:
        if self._ended.get((me, peer)) is link:
            del self._ended[me, peer]
        if not link.held[link.side(me)] or (up and link.state is not LinkState.OPEN):
            return  # let go of, or gone, in the meantime
        if not up:
            link.held[link.side(me)] = False
            newer = self.get(me, peer)
            if newer is not None and newer is not link:  # has taken its place
                newer.held[newer.side(me)] = True
                return
        if self.engine.state[me] != UP:
            self.network.when_awake(me, self._notify_now, me, peer, up)
        else:
            self._notify_now(me, peer, up)

    def _notify_now(self, me: int, peer: int, up: bool) -> None:
        self.engine.record(me, Kind.LINK_UP if up else Kind.LINK_DOWN, peer, NOBODY, -1, 0, "", "")
        self.network.link_notice(me, peer, up)
