"""Broker-less publish/subscribe: the code that is simulated is the code that is deployed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epicast.live.config import Limits
    from epicast.live.messages import Correction, Gap, Message, QueueFull, Receipt, SlowSubscriber, Waiting
    from epicast.live.node import Node
    from epicast.live.subscription import Subscription
    from epicast.live.sync import SyncNode
    from epicast.live.tls import Tls
    from epicast.sim.api import simulate

__version__ = "0.1.0"
__all__ = [
    "Correction",
    "Gap",
    "Limits",
    "Message",
    "Node",
    "QueueFull",
    "Receipt",
    "SlowSubscriber",
    "Subscription",
    "SyncNode",
    "Tls",
    "Waiting",
    "__version__",
    "simulate",
]

_HOMES = {
    **dict.fromkeys(
        ("Correction", "Gap", "Message", "QueueFull", "Receipt", "SlowSubscriber", "Waiting"), "epicast.live.messages"
    ),
    "Limits": "epicast.live.config",
    "Node": "epicast.live.node",
    "Subscription": "epicast.live.subscription",
    "SyncNode": "epicast.live.sync",
    "Tls": "epicast.live.tls",
    "simulate": "epicast.sim.api",
}


def __getattr__(name: str) -> Any:
    # Imported when first used: whoever only asks for the version need not wait for numpy.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'epicast' has no attribute {name!r}")
