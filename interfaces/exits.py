"""Exit codes, a public promise: scripts and cron jobs act on them."""

from __future__ import annotations

from catalog.errors import CatalogMissing, ConfigurationError, GpuBazaarError, QueryRefused, StoreBusy

OK = 0
UNEXPECTED = 1
USAGE = 2
NOTHING = 3
STALE = 4
SOME_FAILED = 5
BUSY = 6


def code_of(problem: GpuBazaarError, verb: str) -> int:
    """The exit code for an error that ends a verb."""
    if isinstance(problem, StoreBusy) and verb == "refresh":
        return BUSY
    if isinstance(problem, (ConfigurationError, QueryRefused)):
        return USAGE
    if isinstance(problem, CatalogMissing) and verb in {"plan", "offers"}:
        return NOTHING
    return UNEXPECTED
