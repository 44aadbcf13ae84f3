"""Errors a caller can act on. Each message says what happened, where, and what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class GpuBazaarError(Exception):
    """Root of every error this product raises on purpose.

    Attributes:
        code: stable machine-readable name, used in JSON answers and run records.
    """

    code = "error"


class ConfigurationError(GpuBazaarError):
    """A setting, flag or file given by the user cannot be used."""

    code = "configuration"


class UnknownName(ConfigurationError):
    """A name outside its vocabulary: the message carries the value, the nearest guesses and the allowed names."""

    code = "unknown_name"

    def __init__(self, kind: str, value: object, allowed: Iterable[str]) -> None:
        """Compose the message.

        Args:
            kind: what the value was meant to name, such as "GPU" or "filter".
            value: what was given.
            allowed: every name that would have been accepted.
        """
        self.kind = kind
        self.value = str(value)
        self.allowed = sorted(set(allowed))
        self.suggestions = nearest(self.value, self.allowed)
        message = f"unknown {kind} {self.value!r}"
        message += f"; did you mean {' or '.join(repr(s) for s in self.suggestions)}?" if self.suggestions else "."
        if len(self.allowed) <= 24:
            message += f" Allowed: {', '.join(self.allowed)}."
        super().__init__(message)


class StoreError(GpuBazaarError):
    """The catalog file or its folder cannot be read or written."""

    code = "store"


class StoreBusy(StoreError):
    """Another process holds the writer lock."""

    code = "store_busy"


class CatalogMissing(StoreError):
    """No snapshot has been published in this home yet."""

    code = "catalog_missing"


class CatalogDamaged(StoreError):
    """A catalog file does not open or fails its checks."""

    code = "catalog_damaged"


class QueryRefused(GpuBazaarError):
    """A SQL text that the read-only sandbox does not run, or that fails in it."""

    code = "query_refused"


def nearest(value: str, allowed: Iterable[str], count: int = 3) -> list[str]:
    """The allowed names most like `value`, best first; letter case does not count."""
    folded: dict[str, str] = {}
    for name in allowed:
        folded.setdefault(name.casefold(), name)
    close = difflib.get_close_matches(value.casefold(), folded, n=count, cutoff=0.6)
    if not close:
        close = [name for name in sorted(folded) if len(value) >= 2 and value.casefold() in name][:count]
    return [folded[name] for name in close]
