"""Asking for payloads that were advertised: whom, when, and whom next (document 001, sections 2.2.3 and 4.3).

Document 001 leaves the order of requests open (E-CLON-13). There are three:

    naive    ask everyone who advertises before the payload is there. What the published figures come of.
    single   one request at a time for each message; the next advertiser when there is no answer.
    delayed  like single, but whoever hears of a message from far away gives its own area a chance first: it waits for a
             random part of `patience_us`, and then asks a near neighbour before anyone far away. Who does ask far away
             tells its area (`Fetching`), which waits for it, and so does whoever asks somebody that waits.

Whom to ask is a total order (E-CLON-30): the nearest, and of those the one that advertised last, since older
advertisers are likelier to be gone. Who does not have it any more says so (E-CLON-12) and the next is asked at once;
who says nothing is asked again after all others. When nobody is left the message is given up, until somebody else
advertises it.

Anybody can advertise what does not exist. So each message that we want is on the account of one that advertised it, and
where there is no room the one with most on its account loses its oldest, unless another one advertises it too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

import msgspec

from epicast.core.config import PositiveDuration
from epicast.core.env import Env, Timer
from epicast.core.ids import MsgId, NodeId
from epicast.core.message import Count, Message
from epicast.dissemination.recent import RecentConfig

DISTANCE_MAX = 255
Distance = Annotated[int, msgspec.Meta(ge=0, le=DISTANCE_MAX)]
PROMISED_REQUESTS = 2  # a promise lasts until so many requests would have failed
PROMISES_MAX = 3  # that somebody else is fetching it, believed for one message


class LazyMessage(Message):
    layer: ClassVar[str] = "dissemination"
    with_events: ClassVar[bool] = True


class IHave(LazyMessage, tag=43):
    """Advertises a message. `distance` is how far away the receiver is, as its neighbour, the sender, knows."""

    source: NodeId
    seq: Count
    distance: Distance = 0


class IWant(LazyMessage, tag=44):
    """Send it to me. `distance` is the one that the advertisement told."""

    source: NodeId
    seq: Count
    distance: Distance = 0


class DontHave(LazyMessage, tag=45):
    """Ask somebody else for it."""

    source: NodeId
    seq: Count


class Fetching(LazyMessage, tag=61):
    """I have asked somebody far away for it, or wait for one who has: wait for me. Goes around the area, and answers an
    IWant that comes too early."""

    source: NodeId
    seq: Count


class RequestsConfig(RecentConfig):
    scheduler: Literal["naive", "single", "delayed"] = "single"  # document 001 leaves it open
    request_timeout_us: PositiveDuration = 400_000  # our guess: well above a wide-area round trip
    asks_max: Annotated[int, msgspec.Meta(ge=1, le=64)] = 3  # our guess; times that one advertiser is asked
    wanted_max: Annotated[int, msgspec.Meta(ge=1)] = 4_096  # our guess; at the cap the one wanted for longest goes
    advertisers_max: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 16  # our guess; of one message; others are ignored


def _nobody(but: NodeId) -> list[NodeId]:
    return []


class Wanted:
    """A message that we have heard of and do not have."""

    __slots__ = ("asked", "askers", "asks", "on_account_of", "promised_us", "promises", "queue", "timer")

    def __init__(self, on_account_of: NodeId) -> None:
        self.on_account_of = on_account_of
        self.queue: list[tuple[int, NodeId]] = []  # distance and advertiser; whom to ask next comes first
        self.asks: dict[NodeId, int] = {}  # how often each advertiser was asked
        self.asked: tuple[int, NodeId] | None = None  # whose answer we await
        self.timer: Timer | None = None  # of that answer, or until we ask
        self.promised_us = 0  # until when somebody near is trusted to bring it
        self.promises = 0
        self.askers: list[tuple[NodeId, int]] = []  # who asked us meanwhile, with their distance

    def add(self, distance: int, peer: NodeId) -> None:
        """Before those that are as far away."""
        self.asks[peer] = 0
        at = 0
        while at < len(self.queue) and self.queue[at][0] < distance:
            at += 1
        self.queue.insert(at, (distance, peer))

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Requests:
    """`area` gives the near neighbours but for one: who waits for whom when something is fetched from far away."""

    __slots__ = ("_accounts", "_naive", "area", "config", "env", "patience_us", "wanted")

    def __init__(
        self, env: Env, config: RequestsConfig, patience_us: int = 0, area: Callable[[NodeId], list[NodeId]] = _nobody
    ) -> None:
        self.env, self.config, self.area = env, config, area
        self.patience_us = patience_us if config.scheduler == "delayed" else 0
        self.wanted: dict[MsgId, Wanted] = {}
        self._accounts: dict[NodeId, dict[MsgId, None]] = {}
        self._naive = config.scheduler == "naive"

    # What happens

    def advertised(self, key: MsgId, peer: NodeId, distance: int) -> None:
        """The caller has made sure that we lack it."""
        if self._naive:
            self.env.send(peer, IWant(*key, distance))
            return
        wanted = self.wanted.get(key) or self._want(key, peer)
        if peer in wanted.asks or len(wanted.asks) >= self.config.advertisers_max:
            return
        wanted.add(distance, peer)
        if wanted.asked is not None:
            return
        if not (distance and self.patience_us):
            self._ask_next(key, wanted)
        elif wanted.timer is None:
            self._wait(key, wanted)

    def promised(self, key: MsgId, msg: Fetching, sender: NodeId) -> None:
        """Somebody near is fetching what we lack. That is news again only when the time of an earlier promise is over,
        and not for ever: nobody can make us wait without end."""
        if not self.patience_us:
            return
        wanted, now_us = self.wanted.get(key) or self._want(key, sender), self.env.now_us()
        if wanted.promises >= PROMISES_MAX:
            return
        if wanted.asked is not None:
            if wanted.asked[1] == sender:  # whom we asked: it will answer later
                wanted.stop_timer()
                self._promise(wanted, now_us)
                wanted.timer = self.env.after(wanted.promised_us - now_us, self._on_no_answer, key)
            return
        if wanted.promised_us > now_us:
            return
        self._promise(wanted, now_us)
        if wanted.timer is not None:
            wanted.stop_timer()
            self._wait(key, wanted)
        self.env.send_many(self.area(sender), msg)

    def asked_too_early(self, key: MsgId, peer: NodeId, distance: int) -> bool:
        """True if we wait for it with good reason: then whoever asks us will get it."""
        wanted = self.wanted.get(key) if self.patience_us else None
        if wanted is None or len(wanted.askers) >= self.config.advertisers_max:
            return False
        fetching = wanted.asked is not None and wanted.asked[0] > 0
        if not (fetching or wanted.promised_us > self.env.now_us()):
            return False
        wanted.askers.append((peer, distance))
        return True

    def arrived(self, key: MsgId) -> list[tuple[NodeId, int]]:
        """Returns who asked for it meanwhile, with their distance."""
        wanted = self.wanted.get(key)
        if wanted is None:
            return []
        wanted.stop_timer()
        self._forget(key)
        return wanted.askers

    def refused(self, key: MsgId, peer: NodeId) -> None:
        """It does not have it, or is gone."""
        wanted = self.wanted.get(key)
        if wanted is None or peer not in wanted.asks:
            return
        wanted.asks[peer] = self.config.asks_max
        wanted.queue = [entry for entry in wanted.queue if entry[1] != peer]
        if wanted.asked is not None and wanted.asked[1] == peer:
            self._ask_next(key, wanted)

    def gone(self, peer: NodeId) -> None:
        for key in list(self.wanted):
            self.refused(key, peer)

    def stop(self) -> None:
        for wanted in self.wanted.values():
            wanted.stop_timer()
        self.wanted.clear()
        self._accounts.clear()

    # What to do about it

    def _want(self, key: MsgId, peer: NodeId) -> Wanted:
        if len(self.wanted) >= self.config.wanted_max:
            self._make_room()
        wanted = self.wanted[key] = Wanted(peer)
        self._accounts.setdefault(peer, {})[key] = None
        return wanted

    def _make_room(self) -> None:
        """What somebody else advertises too, who has less on its account, moves there instead."""
        while True:
            most = max(self._accounts.values(), key=len)
            key = next(iter(most))
            wanted = self.wanted[key]
            least = min(wanted.asks, key=self._on_account_of, default=wanted.on_account_of)
            if self._on_account_of(least) + 1 >= len(most):
                self.arrived(key)
                return
            self._discharge(key, wanted)
            wanted.on_account_of = least
            self._accounts.setdefault(least, {})[key] = None

    def _on_account_of(self, peer: NodeId) -> int:
        return len(self._accounts.get(peer, ()))

    def _discharge(self, key: MsgId, wanted: Wanted) -> None:
        account = self._accounts[wanted.on_account_of]
        del account[key]
        if not account:
            del self._accounts[wanted.on_account_of]

    def _forget(self, key: MsgId) -> None:
        self._discharge(key, self.wanted.pop(key))

    def _wait(self, key: MsgId, wanted: Wanted) -> None:
        """Everyone for a time of its own, so that few ask before they hear that somebody does."""
        if not wanted.promises and not self.area(self.env.me):
            self._ask_next(key, wanted)  # there is nobody to wait for
            return
        promised_us = max(0, wanted.promised_us - self.env.now_us())
        wait_us = promised_us + int(self.env.rng.random() * self.patience_us)
        wanted.timer = self.env.after(wait_us, self._on_waited, key)

    def _promise(self, wanted: Wanted, now_us: int) -> None:
        wanted.promises += 1
        wanted.promised_us = now_us + PROMISED_REQUESTS * self.config.request_timeout_us

    def _on_waited(self, key: MsgId) -> None:
        wanted, near = self.wanted[key], self.area(self.env.me)
        if near:  # that it did not advertise means little where views are directed
            peer = near[int(self.env.rng.random() * len(near))]
            if peer not in wanted.asks:
                wanted.add(0, peer)
        self._ask_next(key, wanted)

    def _on_no_answer(self, key: MsgId) -> None:
        wanted = self.wanted[key]
        assert wanted.asked is not None
        if wanted.asks[wanted.asked[1]] < self.config.asks_max:
            wanted.queue.append(wanted.asked)
        self._ask_next(key, wanted)

    def _ask_next(self, key: MsgId, wanted: Wanted) -> None:
        wanted.stop_timer()
        if not wanted.queue:
            self._forget(key)
            for asker, _ in wanted.askers:
                self.env.send(asker, DontHave(*key))
            return
        distance, peer = wanted.asked = wanted.queue.pop(0)
        wanted.asks[peer] += 1
        wanted.timer = self.env.after(self.config.request_timeout_us, self._on_no_answer, key)
        self.env.send(peer, IWant(*key, distance))
        now_us = self.env.now_us()
        if distance and self.patience_us and wanted.promised_us <= now_us:
            self._promise(wanted, now_us)
            self.env.send_many(self.area(self.env.me), Fetching(*key))
