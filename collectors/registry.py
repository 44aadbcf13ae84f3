"""Finds every collector by walking this package: one provider, one file, one class."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

import collectors
from catalog.errors import UnknownName
from collectors.contract import Collector


@cache
def collectors_by_provider() -> Mapping[str, Collector]:
    """Provider slug to its collector, in alphabetical order."""
    found: dict[str, Collector] = {}
    for info in sorted(pkgutil.iter_modules(collectors.__path__), key=lambda m: m.name):
        module = importlib.import_module(f"collectors.{info.name}")
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, Collector)
                and value.__module__ == module.__name__
                and getattr(value, "provider", None) == info.name
            ):
                found[info.name] = value()
    return found


def collector(provider: str) -> Collector:
    """The collector of a provider.

    Raises:
        UnknownName: no such provider; the message holds the nearest guess.
    """
    known = collectors_by_provider()
    if provider not in known:
        raise UnknownName("provider", provider, known)
    return known[provider]
