from typing import Any, ClassVar

import pytest

from epicast.core.message import Message
from epicast.core.roles import handler_name, handlers


class Ping(Message, tag=1_000_020):
    pass


class ForwardJoin(Message, tag=1_000_021):
    pass


class IHave(Message, tag=1_000_022):
    pass


class Player:
    handles: ClassVar = (Ping, ForwardJoin)

    def on_ping(self, sender: int, ping: Ping) -> None: ...

    def on_forward_join(self, sender: int, join: ForwardJoin) -> None: ...


@pytest.mark.parametrize(
    ("message", "name"), [(Ping, "on_ping"), (ForwardJoin, "on_forward_join"), (IHave, "on_i_have")]
)
def test_a_handler_is_named_after_its_message(message: type[Message], name: str) -> None:
    assert handler_name(message) == name


def test_handlers_are_found_by_message_type() -> None:
    assert handlers(Player) == {Ping: Player.on_ping, ForwardJoin: Player.on_forward_join}


def test_a_missing_handler_is_noticed_when_the_table_is_made() -> None:
    class Forgetful:
        handles: ClassVar[Any] = (IHave,)

    with pytest.raises(AttributeError, match="on_i_have"):
        handlers(Forgetful)
