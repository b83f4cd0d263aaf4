"""Broker-less publish/subscribe: the code that is simulated is the code that is deployed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epicast.core.errors import ConfigError, EpicastError
    from epicast.live.config import Limits
    from epicast.live.events import Events, NodeEvent
    from epicast.live.messages import Correction, Gap, Message, QueueFull, Receipt, SlowSubscriber, Waiting
    from epicast.live.node import Node
    from epicast.live.subscription import Subscription
    from epicast.live.sync import SyncEvents, SyncNode, SyncSubscription
    from epicast.live.tls import Tls
    from epicast.sim.api import simulate
    from epicast.sim.summary import Summary

__version__ = "0.1.0"
__all__ = [
    "ConfigError",
    "Correction",
    "EpicastError",
    "Events",
    "Gap",
    "Limits",
    "Message",
    "Node",
    "NodeEvent",
    "QueueFull",
    "Receipt",
    "SlowSubscriber",
    "Subscription",
    "Summary",
    "SyncEvents",
    "SyncNode",
    "SyncSubscription",
    "Tls",
    "Waiting",
    "__version__",
    "simulate",
]

_HOMES = {
    **dict.fromkeys(("ConfigError", "EpicastError"), "epicast.core.errors"),
    **dict.fromkeys(
        ("Correction", "Gap", "Message", "QueueFull", "Receipt", "SlowSubscriber", "Waiting"), "epicast.live.messages"
    ),
    "Events": "epicast.live.events",
    "NodeEvent": "epicast.live.events",
    "Limits": "epicast.live.config",
    "Node": "epicast.live.node",
    "Subscription": "epicast.live.subscription",
    "SyncEvents": "epicast.live.sync",
    "SyncNode": "epicast.live.sync",
    "SyncSubscription": "epicast.live.sync",
    "Tls": "epicast.live.tls",
    "Summary": "epicast.sim.summary",
    "simulate": "epicast.sim.api",
}


if not TYPE_CHECKING:  # a type checker would take it for a promise that every name is there

    def __getattr__(name: str) -> Any:
        # Imported when first used: `epicast --version` need not wait for numpy.
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        raise AttributeError(f"module 'epicast' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
