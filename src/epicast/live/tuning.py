"""What protocols need to be told so that they bear streams as fast as those of live nodes."""

from __future__ import annotations

from typing import Any

from epicast.stacks import stack as stacks
from epicast.stacks.node import heads_wanted
from epicast.stacks.stack import Stack

_TUNED: dict[str, dict[str, dict[str, Any]]] = {
    "membership": {"hyparview": {"rtt_every": 5}},
    "dissemination": {
        "brisa": {
            "buffer_messages": 65_536,
            "recover_max": 4096,
            "one_flow": True,
            "flows_of_one_max": 64,
        },
        "emergent": {"pull_interval_us": 1_000_000},
    },
}
"""By role and protocol. The documents' streams have five messages a second; live ones may have a thousand times as
many, and what is to be recovered after a failure must still be there when the failure is noticed. The cap in bytes
stays. A publisher has one tree for all its topics, as every node takes part in every topic anyway, and needs no more
than a few. What else a node has to do delays messages that come at that moment, so round trips are measured less often
than neighbours give signs of life. What is missing is to be pulled several times before it is told as lost."""


def tuned(stack: Stack) -> Stack:
    """With room for fast streams, unless the user has said otherwise. Last messages are missed, too, where the
    dissemination does not see to that."""
    source = {**stack.source, **heads_wanted(stack)}
    for role, protocols in _TUNED.items():
        said = dict(source.get(role, {}))
        source[role] = {**protocols.get(getattr(stack, role).protocol, {}), **said}
    return stacks.from_table(source)
