"""What newcomers ask their neighbours, and the answer; see `beginnings.py` for how they are used."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from epicast.core.ids import MsgId, NodeId
from epicast.core.message import LIST_LENGTH_MAX, Count, Message, Topic

PAGE = 1_024  # streams in one answer
PAGES_MAX = 64

Place = tuple[NodeId, Topic, Count]


class AskStanding(Message, tag=65):
    """How far has each stream come, where you are? `order`: of the orders in `trailer.py`. `ask` is repeated in the
    answer. `age_us`: since when messages may be owed to me; 0: none that came before your answer is."""

    layer: ClassVar[str] = "ordering"
    order: Annotated[int, msgspec.Meta(ge=1, le=3)]
    ask: Count
    page: Annotated[int, msgspec.Meta(ge=0, lt=PAGES_MAX)] = 0
    age_us: Count = 0


class Standing(Message, tag=66):
    """Answers AskStanding: the number of the next message of each stream, those with news first. `knows`: I am no
    newcomer. `more`: there is another page. `recent`: the last message of each source that came within `age_us`."""

    layer: ClassVar[str] = "ordering"
    order: Annotated[int, msgspec.Meta(ge=1, le=3)]
    ask: Count
    page: Annotated[int, msgspec.Meta(ge=0, lt=PAGES_MAX)]
    knows: bool
    more: bool
    streams: Annotated[tuple[Place, ...], msgspec.Meta(max_length=PAGE)]
    recent: Annotated[tuple[MsgId, ...], msgspec.Meta(max_length=LIST_LENGTH_MAX)] = ()
