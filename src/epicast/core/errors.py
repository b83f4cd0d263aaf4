"""The errors that a caller can act on. Each message is one line that says what to do."""

from __future__ import annotations


class EpicastError(Exception):
    """Anything a user did that cannot work. The command line prints it as one line and exits with 2."""


class ConfigError(EpicastError):
    """A setting that is unknown, of the wrong type or out of range."""


class WireError(EpicastError):
    """Bytes that are not a message of ours. The only error that decoding raises."""
