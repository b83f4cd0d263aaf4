"""The worked examples of docs/protocols/, played by the real protocols: every message, when it was sent and by whom.

Processes are called A, B, C, ... in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from epicast.core.message import Message
from epicast.dissemination.flood import Flood
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from tests.support.overlays import MS, SECOND, Delays, Edge, Overlay, Sent

LEFT_OUT = ("KeepAlive", "KeepAliveAck", "Shuffle", "ShuffleReply")  # they go on all the time and would drown the rest
SEED = 1


def letter(node: Any) -> str:
    return chr(ord("A") + node)


def letters(nodes: Sequence[Any]) -> str:
    return " ".join(map(letter, nodes)) or "-"


def edges(text: str) -> list[Edge]:
    """`A-B A-C` as numbers."""
    return [(ord(pair[0]) - ord("A"), ord(pair[2]) - ord("A")) for pair in text.split()]


def told(sent: Sequence[Sent], start_us: int) -> list[str]:
    shown = [each for each in sent if type(each.msg).__name__ not in LEFT_OUT]
    return [
        f"{(each.time_us - start_us) / 1000:6.0f} ms  {letter(each.src)} -> {letter(each.dst)}  {words(each.msg)}"
        for each in shown
    ]


def words(msg: Message) -> str:
    name = type(msg).__name__
    detail = DETAILS.get(name)
    return f"{name} {detail(msg)}".rstrip() if detail is not None else name


def _position(position: Any) -> str:
    return f"path {letters(position.path)}" + (", pending" if position.pending else "")


DETAILS: dict[str, Callable[[Any], str]] = {
    "Gossip": lambda m: f"{letter(m.source)}/{m.seq}, hop {m.hops}",
    "Data": lambda m: f"{letter(m.source)}/{m.seq}, path {letters(m.path)}",
    "Deactivate": lambda m: "mutual" if m.mutual else "",
    "Activate": lambda m: f"fresh, taint {letters(m.taint)}" if m.fresh else "",
    "Whereabouts": lambda m: _position(m.position),
    "Recover": lambda m: ", ".join(f"{letter(s)}/{a} to {letter(s)}/{b}" for s, a, b in m.ranges),
    "ForwardJoin": lambda m: f"of {letter(m.joiner)}, ttl {m.ttl}",
    "Neighbour": lambda m: m.priority.name,
    "NeighbourReply": lambda m: (
        ("accepted" if m.accepted else "refused") + (f", knows {letters(m.sample)}" if m.sample else "")
    ),
    "Disconnect": lambda m: "leaving" if m.leaving else "",
    "ForwardedSubscription": lambda m: (
        f"of {letter(m.subject)}" + ("" if m.kind < 0 else f", {('near', 'far')[m.kind]}")
    ),
    "Unsubscription": lambda m: f"take {letter(m.instead[0][0])} instead" if m.instead else "",
    "Msg": lambda m: f"{letter(m.source)}/{m.seq}, rounds {m.local_round} near, {m.remote_round} far",
    "IHave": lambda m: f"{letter(m.source)}/{m.seq}",
    "IWant": lambda m: f"{letter(m.source)}/{m.seq}",
    "Fetching": lambda m: f"{letter(m.source)}/{m.seq}",
}


class Story:
    """Steps with a heading each, and what is sent in each."""

    def __init__(self, sent: list[Sent], now_us: Callable[[], int]) -> None:
        self.lines: list[str] = []
        self._sent, self._now_us = sent, now_us

    def step(self, heading: str, do: Callable[[], None]) -> None:
        self._sent.clear()
        start_us = self._now_us()
        do()
        self.lines += (
            ["", heading, *told(self._sent, start_us)] if self.lines else [heading, *told(self._sent, start_us)]
        )

    def text(self) -> str:
        return "\n".join(self.lines)


def over(overlay: Overlay) -> Story:
    return Story(overlay.sent, lambda: overlay.engine.now)


# Flooding


def flood() -> tuple[str, Overlay]:
    links = edges("A-B A-C B-C C-D")
    delays = Delays(10 * MS, dict(zip(edges("A-C C-D"), (15 * MS, 20 * MS), strict=True)))
    overlay = Overlay(links, Flood, static=True, latency=delays)
    story = over(overlay)
    story.step("A publishes", lambda: _publish(overlay, SECOND))
    return story.text(), overlay


def _publish(overlay: Overlay, us: int) -> None:
    overlay.publish(0)
    overlay.run(us)


# BRISA

BRISA_LINKS = "A-B A-C A-F B-C B-D C-D D-E E-F"


def brisa() -> Overlay:
    slow = {"A-C": 15, "A-F": 15, "C-D": 20, "E-F": 60}
    delays = Delays(10 * MS, {edges(link)[0]: ms * MS for link, ms in slow.items()})
    return Overlay(edges(BRISA_LINKS), latency=delays)


def brisa_emergence() -> tuple[str, Overlay]:
    overlay = brisa()
    story = over(overlay)
    story.step("A publishes its first message", lambda: _publish(overlay, SECOND))
    story.step("A publishes its second message", lambda: _publish(overlay, SECOND))
    return story.text(), overlay


def brisa_soft_repair() -> tuple[str, Overlay]:
    _, overlay = brisa_emergence()
    overlay.run(2 * SECOND)  # keep-alives tell everyone where its neighbours stand
    story = over(overlay)

    def crash() -> None:
        overlay.crash(1)
        overlay.run(500 * MS)
        overlay.publish(0)
        overlay.run(1500 * MS)

    story.step("B crashes; half a second later A publishes its third message", crash)
    return story.text(), overlay


def brisa_hard_repair() -> tuple[str, Overlay]:
    _, overlay = brisa_soft_repair()
    overlay.run(2 * SECOND)
    story = over(overlay)

    def crash() -> None:
        overlay.crash(2)
        overlay.run(1500 * MS)

    story.step("C crashes", crash)
    return story.text(), overlay


# HyParView

SMALL = {"active_size": 2, "join_walk_length": 2, "passive_walk_at": 1, "refresh": 0.0, "shed": 0.0}


def hyparview() -> tuple[str, World]:
    story, world = _in_world({"protocol": "hyparview", **SMALL}, {"protocol": "flood"}, 6, "constant 10ms")

    def join() -> None:
        world.join([0])
        world.run_until(world.now_us + 900 * MS)

    def crash() -> None:
        world.crash(2)
        world.run_until(world.now_us + 3 * SECOND)

    world.join([])
    for joiner in "BCDEF":
        story.step(f"{joiner} joins through A", join)
    story.step("C crashes", crash)
    return story.text(), world


def _in_world(
    membership: dict[str, Any], dissemination: dict[str, Any], nodes: int, latency: str
) -> tuple[Story, World]:
    stack = {"membership": membership, "dissemination": dissemination}
    world = World(Scenario.load({"stack": stack, "nodes": nodes, "latency": latency}), SEED, "pure")
    sent: list[Sent] = []
    transmit = world.engine.transmit

    def spy(src: int, to: Sequence[int], msg: Message) -> None:
        sent.extend(Sent(world.now_us, src, dst, msg) for dst in to)
        transmit(src, to, msg)

    world.engine.transmit = spy  # type: ignore[method-assign]
    return Story(sent, lambda: world.now_us), world


# Scamp and CLON

STILL = {"heartbeat_us": 0, "lease_us": 0}


def _joins(story: Story, world: World, contacts: str) -> None:
    """Each through the one named."""

    def join(contact: str) -> None:
        world.join([ord(contact) - ord("A")])
        world.run_until(world.now_us + SECOND)

    world.join([])
    for number, contact in enumerate(contacts, 1):
        story.step(f"{letter(number)} joins through {contact}", partial(join, contact))


def scamp() -> tuple[str, World]:
    story, world = _in_world({"protocol": "scamp", **STILL}, {"protocol": "flood"}, 5, "constant 10ms")
    _joins(story, world, "AAB")

    def leave() -> None:
        world.leave(1)
        world.run_until(world.now_us + SECOND)

    story.step("B leaves", leave)
    return story.text(), world


def clon() -> tuple[str, World]:
    """A, C and E are in area 0, B, D and F in area 1."""
    settings = {"wanted": [2, 1], "target_degree": 3, "balance_interval_us": 0, **STILL}
    story, world = _in_world({"protocol": "clon", **settings}, {"protocol": "flood"}, 6, "areas 2 1ms 20ms")
    _joins(story, world, "AABAB")
    story.lines = story.lines[story.lines.index("F joins through B") :]
    return story.text(), world


def emergent() -> tuple[str, World]:
    """In the overlay of that story."""
    settings = {"wanted": [2, 1], "target_degree": 3, "balance_interval_us": 0, **STILL}
    dissemination = {"protocol": "emergent", "pull": "none"}
    story, world = _in_world({"protocol": "clon", **settings}, dissemination, 6, "areas 2 1ms 20ms")
    _joins(story, world, "AABAB")
    story.lines.clear()

    def publish() -> None:
        world.publish(0, "t", b"payload")
        world.run_until(world.now_us + 2 * SECOND)

    story.step("A publishes", publish)
    return story.text(), world
