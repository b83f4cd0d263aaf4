"""How a newcomer finds contacts on its local network (document 001, section 4.2.3).

It calls; some of those who hear it answer with a contact, themselves or somebody from another area whom they know; it
takes contacts into its view with Scamp's probability, subscribes with each, and sends the copies that are still wanted
through them: as many as a join is to add, or c more with Scamp's law.

    calling --nobody--> calling, twice as loud ... --nobody--> seeds
    calling --first contact--> taking contacts --a while--> the copies that are left go out --> done

Who answers: with document 001's estimates by the size of the own view, and everybody's answers to one call differ
wildly with it (E-CLON-22). By default the newcomer asks for few answers and then for more: each call gives the chance
with which to answer. So there are about as many as the view shall have whatever the size of the area, never a flood.

Errata obeyed: the copies' check runs once, after the first contact, not after every later one (E-CLON-19); nobody is
taken in twice, and who knows nobody outside names itself (E-CLON-20); when nobody answers there are seeds (E-CLON-24).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epicast.core.env import Timer
from epicast.core.ids import NodeId
from epicast.core.records import Kind
from epicast.membership.clon_messages import ClonConfig, Contact, ContactWanted
from epicast.membership.scamp_messages import ForwardedSubscription

if TYPE_CHECKING:
    from epicast.membership.clon import Clon

FIRST_RARITY, LOUDER = 10, 2  # one in 1,024 answers the first call, then one in 256, 64, 16, 4, and all


class ContactDiscovery:
    __slots__ = ("_clon", "_config", "_copies_left", "_done", "_heard", "_rarity", "_sent", "_timer")

    def __init__(self, clon: Clon, config: ClonConfig) -> None:
        self._clon, self._config = clon, config
        self._copies_left = 0 if config.target_degree else int(config.copies)
        self._heard = self._sent = 0  # contacts, and copies of our subscription
        self._rarity = FIRST_RARITY if config.reply == "asked" else 0
        self._timer: Timer | None = None
        self._done = config.discovery == "never"

    def stop(self) -> None:
        self._done = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # The newcomer

    def begins(self) -> bool:
        """Is the local network still to be asked? Then it is, and seeds have time."""
        if self._done or (self._config.discovery == "without-seeds" and self._clon.seeds):
            return False
        if self._timer is None:
            self._call()
        return True

    def _call(self) -> None:
        env = self._clon.env
        env.record(Kind.CONTACT, detail="asked")
        env.shout(ContactWanted(self._rarity))
        self._timer = env.after(self._config.discovery_wait_us, self._on_waited)

    def _on_waited(self) -> None:
        clon = self._clon
        if len(clon.view) and (self._heard >= sum(self._config.wanted) or not self._rarity):
            self._check_copies()
        elif self._rarity:
            self._rarity = max(0, self._rarity - LOUDER)
            self._call()
        else:
            self.stop()
            clon.subscribe_through_seeds()

    def on_contact(self, msg: Contact) -> None:
        clon = self._clon
        me, view = clon.env.me, clon.view
        self._heard += 1
        if self._done or msg.peer == me or msg.peer in view or int((len(view) + 1) * clon.env.rng.random()):
            clon.env.record(Kind.CONTACT, msg.peer, detail="left")
            return
        clon._add(msg.peer, msg.place)
        clon.env.record(Kind.CONTACT, msg.peer, detail="far" if clon.distance(msg.peer) else "near")
        if not self._enough():
            self._subscribe_with(msg.peer)
        if self._copies_left:
            self._copies_left -= 1
            self._subscribe_with(msg.peer)

    def _check_copies(self) -> None:
        """Those that found no contact go out through the ones that were found (E-CLON-19)."""
        view, rng = self._clon.view, self._clon.env.rng
        while self._copies_left or (self._config.target_degree and not self._enough()):
            self._copies_left = max(0, self._copies_left - 1)
            self._subscribe_with(view.pick(rng))
        self.stop()

    def _enough(self) -> bool:
        """Do our own links and copies come to what a join is to add? Otherwise views would grow with every join that
        finds many contacts (E-CLON-23)."""
        target = self._config.target_degree
        return 0 < target <= len(self._clon.view) + self._sent

    def _subscribe_with(self, contact: NodeId) -> None:
        env = self._clon.env
        self._sent += 1
        env.send(contact, ForwardedSubscription(env.me, self._config.hops_max, env.place))

    # Those who hear it

    def on_contact_wanted(self, newcomer: NodeId, msg: ContactWanted) -> None:
        clon = self._clon
        if len(clon.view) and clon.env.rng.random() < self.reply_chance(msg.rarity):
            peer, place = self._contact()
            clon.env.send(newcomer, Contact(peer, place))

    def reply_chance(self, rarity: int) -> float:
        size, config = min(300, len(self._clon.view)), self._config
        if config.reply == "asked":
            return 0.5**rarity
        if config.reply == "always":
            return 1.0
        if config.reply == "share":
            return config.reply_share
        areas = config.areas if config.reply == "size-and-areas" else 1
        estimate = 10 ** (size - config.size_offset) / areas
        return size / (estimate if estimate >= 1 else 10**size)

    def _contact(self) -> tuple[NodeId, str]:
        """Ourselves, or somebody from another area, if we know one (E-CLON-20)."""
        clon = self._clon
        if clon.env.rng.random() < self._config.far_contacts:
            far = [peer for peer in clon.view if clon.distance(peer) > 0]
            if far:
                peer = clon._one(far)
                return peer, clon.arcs[peer].place
        return clon.env.me, clon.env.place
