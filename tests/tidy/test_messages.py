"""Every message has a number of its own, and every message that a protocol says it handles has a handler."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any, ClassVar

import pytest

import epicast
from epicast.core.message import Message
from epicast.core.roles import handler_name

HOMES = ("core", "membership", "topics", "dissemination", "ordering", "stacks", "wire")


def modules() -> list[Any]:
    names = [
        name
        for home in HOMES
        for found in pkgutil.iter_modules([f"{path}/{home}" for path in epicast.__path__])
        for name in [f"epicast.{home}.{found.name}"]
    ]
    return [import_module(name) for name in names]


def messages() -> list[type[Message]]:
    modules()
    return [kind for kind in descendants(Message) if kind.__module__.startswith("epicast.")]


def descendants(kind: type[Message]) -> Iterator[type[Message]]:
    for child in kind.__subclasses__():
        yield child
        yield from descendants(child)


def protocols() -> list[type]:
    """The classes that say what they handle, each from the module that defines it."""
    return [
        item
        for module in modules()
        for item in vars(module).values()
        if isinstance(item, type)
        and item.__module__ == module.__name__
        and isinstance(vars(item).get("handles"), tuple)
    ]


def clashes(kinds: list[type[Message]]) -> list[str]:
    """Messages without a number, and messages that share one. A class with subclasses is no message itself."""
    owner: dict[object, str] = {}
    wrong = []
    for kind in kinds:
        tag, name = kind.__struct_config__.tag, f"{kind.__module__}.{kind.__qualname__}"
        if kind.__subclasses__() and tag is None:
            continue
        if not isinstance(tag, int):
            wrong.append(f"{name} has no number: give it a tag")
        elif tag in owner:
            wrong.append(f"{name} and {owner[tag]} share tag {tag}")
        owner.setdefault(tag, name)
    return wrong


def unhandled(protocol: Any, known: list[type[Message]]) -> list[str]:
    """Messages without a handler, and handlers of messages that the protocol does not name."""
    name, handles = protocol.__qualname__, protocol.handles
    wrong = [
        f"{name} handles {kind.__name__} but has no {handler_name(kind)}"
        for kind in handles
        if not callable(getattr(protocol, handler_name(kind), None))
    ]
    wrong += [
        f"{name}.{handler_name(kind)} is never called: {kind.__name__} is not among its handles"
        for kind in known
        if kind.__module__ == protocol.__module__ and kind not in handles and hasattr(protocol, handler_name(kind))
    ]
    return wrong


def test_message_tags_are_unique() -> None:
    kinds = messages()
    assert kinds
    assert clashes(kinds) == []


def test_every_message_names_its_layer() -> None:
    assert [kind.__qualname__ for kind in messages() if not kind.layer and not kind.__subclasses__()] == []


def test_every_handled_message_has_a_handler() -> None:
    found = protocols()
    assert found
    assert [wrong for protocol in found for wrong in unhandled(protocol, messages())] == []


class Ping(Message, tag=1_000_001):
    pass


class Pong(Message, tag=1_000_001):
    pass


class Untold(Message):
    pass


def test_a_shared_tag_is_found() -> None:
    (wrong,) = clashes([Ping, Pong])
    assert wrong.endswith(f"Pong and {__name__}.Ping share tag 1000001")


def test_a_missing_tag_is_found() -> None:
    (wrong,) = clashes([Ping, Untold])
    assert wrong.endswith("Untold has no number: give it a tag")


@pytest.mark.parametrize(
    ("handled", "methods", "wrong"),
    [
        ((Ping, Pong), ["on_ping"], ["Player handles Pong but has no on_pong"]),
        ((Ping,), ["on_ping", "on_pong"], ["Player.on_pong is never called: Pong is not among its handles"]),
        ((Ping, Pong), ["on_ping", "on_pong"], []),
    ],
)
def test_handlers_and_messages_are_matched(handled: tuple[Any, ...], methods: list[str], wrong: list[str]) -> None:
    class Player:
        handles: ClassVar = handled

    Player.__qualname__ = "Player"
    for method in methods:
        setattr(Player, method, lambda self, sender, message: None)
    assert unhandled(Player, [Ping, Pong]) == wrong
