"""Broker-less publish/subscribe: the code that is simulated is the code that is deployed."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epicast.sim.api import simulate

__version__ = "0.1.0"
__all__ = ["__version__", "simulate"]


def __getattr__(name: str) -> Any:
    # Imported when first used: whoever only asks for the version need not wait for numpy.
    if name == "simulate":
        from epicast.sim.api import simulate

        return simulate
    raise AttributeError(f"module 'epicast' has no attribute {name!r}")
