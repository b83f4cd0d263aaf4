"""Broker-less publish/subscribe: the code that is simulated is the code that is deployed."""

__version__ = "0.1.0"
