"""Broker-less publish/subscribe: the code that is simulated is the code that is deployed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epicast.live.config import Limits
    from epicast.live.messages import Gap, Message, QueueFull, Receipt, SlowSubscriber
    from epicast.live.node import Node
    from epicast.live.subscription import Subscription
    from epicast.live.sync import SyncNode
    from epicast.live.tls import Tls
    from epicast.sim.api import simulate

__version__ = "0.1.0"
__all__ = [
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
    "__version__",
    "simulate",
]

_HOMES = {
    **dict.fromkeys(("Gap", "Message", "QueueFull", "Receipt", "SlowSubscriber"), "epicast.live.messages"),
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
