"""What protocols need to be told so that they bear streams as fast as those of live nodes."""

from __future__ import annotations

from epicast.stacks import stack as stacks
from epicast.stacks.stack import Stack

_TUNED = {
    "brisa": {
        "buffer_messages": 65_536,
        "recover_max": 4096,
        "one_flow": True,
        "flows_of_one_max": 64,
    }
}
"""The documents' streams have five messages a second; live ones may have a thousand times as many, and what is to be
recovered after a failure must still be there when the failure is noticed. The cap in bytes stays. A publisher has one
tree for all its topics, as every node takes part in every topic anyway, and needs no more than a few."""


def tuned(stack: Stack) -> Stack:
    """With room for fast streams, unless the user has said otherwise."""
    source = dict(stack.source)
    role = dict(source.get("dissemination", {}))
    source["dissemination"] = {**_TUNED.get(stack.dissemination.protocol, {}), **role}
    return stacks.from_table(source)
