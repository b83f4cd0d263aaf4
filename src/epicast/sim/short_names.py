"""Settings whose durations may go without the ending of their unit in a file: `at = "20s"` is short for `at_us`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from epicast.core.config import Config
from epicast.core.errors import ConfigError

S = TypeVar("S", bound="ShortNames")


class ShortNames(Config, frozen=True):
    @classmethod
    def load(cls: type[S], settings: Mapping[str, Any], where: str = "") -> S:
        return super().load(full_names(cls, settings, where), where)


def full_names(cls: type[Config], settings: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """The settings as the fields of the class are called."""
    values: dict[str, Any] = {}
    for key, value in settings.items():
        name = f"{key}_us" if f"{key}_us" in cls.__struct_fields__ else key
        if name in values:
            raise ConfigError(f"{where}.{name}: given twice, with and without _us; keep one".lstrip("."))
        values[name] = value
    return values
