"""The one filter type shared by every interface: names are column names, unknown ones are errors with a suggestion."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from catalog.accelerators import accelerators
from catalog.errors import ConfigurationError, UnknownName
from catalog.names import gpu_slugs_for
from catalog.types import AVAILABILITIES, FORM_FACTORS, GPU_INTERCONNECTS, PURCHASE_OPTIONS, TENANCIES

FRESHNESS = ("fresh", "aging", "stale", "expired")
SUPPORTS = ("fp8", "fp4", "int8", "bf16")
_RANGE = re.compile(r"^(\d+)?\s*\.\.\s*(\d+)?$|^(\d+)\s*-\s*(\d+)$")

Condition = tuple[str, list[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferFilter:
    """Which offers are wanted. Lists match any of their values; None and empty mean no restriction.

    `gpu` takes slugs, families, aliases and globs; `gpu_count` one number or a range a..b. Memory is in GB per GPU,
    bandwidth in GB/s, prices in US dollars per hour.
    """

    gpu: tuple[str, ...] = ()
    vendor: tuple[str, ...] = ()
    form_factor: tuple[str, ...] = ()
    memory_type: tuple[str, ...] = ()
    min_gpu_memory_gb: float | None = None
    min_total_gpu_memory_gb: float | None = None
    min_memory_bandwidth_gb_s: float | None = None
    supports: tuple[str, ...] = ()
    gpu_interconnect: tuple[str, ...] = ()
    rdma: bool | None = None
    gpu_count: str | None = None
    purchase_option: tuple[str, ...] = ()
    max_commitment_days: int | None = None
    provider: tuple[str, ...] = ()
    via: tuple[str, ...] = ()
    region: tuple[str, ...] = ()
    country: tuple[str, ...] = ()
    tenancy: tuple[str, ...] = ()
    max_price_usd_hour: float | None = None
    max_price_usd_gpu_hour: float | None = None
    max_billing_increment_s: int | None = None
    available: bool | None = None
    freshness: tuple[str, ...] = ()
    cpu_arch: tuple[str, ...] = ()


NAMES: tuple[str, ...] = tuple(f.name for f in fields(OfferFilter))
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "form_factor": FORM_FACTORS,
    "supports": SUPPORTS,
    "gpu_interconnect": GPU_INTERCONNECTS,
    "purchase_option": PURCHASE_OPTIONS,
    "tenancy": TENANCIES,
    "freshness": FRESHNESS,
}
_FACTS = ("vendor", "memory_type")
_WHOLE = ("max_commitment_days", "max_billing_increment_s")
_MINIMA = {
    "min_gpu_memory_gb": "gpu_memory_gb", "min_total_gpu_memory_gb": "total_gpu_memory_gb",
    "min_memory_bandwidth_gb_s": "memory_bandwidth_gb_s",
}  # fmt: skip
_MAXIMA = {
    "max_commitment_days": "commitment_days", "max_price_usd_hour": "price_usd_hour",
    "max_price_usd_gpu_hour": "price_usd_gpu_hour", "max_billing_increment_s": "billing_increment_s",
}  # fmt: skip
_EXACT = ("provider", "via", "region", "tenancy", "freshness", "gpu_interconnect", "purchase_option", "form_factor",
          "cpu_arch")  # fmt: skip


def build_filter(values: Mapping[str, Any]) -> OfferFilter:
    """A checked filter from flag or query values; lists may also be comma-separated text.

    Raises:
        UnknownName: an unknown filter or a value outside its vocabulary, with the nearest guess.
        ConfigurationError: a number or range that is not one.
    """
    checked: dict[str, Any] = {}
    kinds = {f.name: str(f.type) for f in fields(OfferFilter)}
    for name, value in values.items():
        if name not in kinds:
            raise UnknownName("filter", name, NAMES)
        if value is None or value == ():
            continue
        if kinds[name].startswith("tuple"):
            checked[name] = _listed(name, value)
        elif kinds[name].startswith("bool"):
            checked[name] = _boolean(name, value)
        elif name == "gpu_count":
            checked[name] = str(value)
            count_range(str(value))
        else:
            checked[name] = _number(name, value)
    return OfferFilter(**checked)


def _listed(name: str, value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else list(value)
    items = tuple(part.strip() for text in texts for part in str(text).split(",") if part.strip())
    if not items:
        raise ConfigurationError(f"{name} is empty: give a value, or leave {name} out")
    for item in items:
        if name in _CHOICES and item not in _CHOICES[name]:
            raise UnknownName(name, item, _CHOICES[name])
        if name in _FACTS and item.casefold() not in (known := _known(name)):
            raise UnknownName(name, item, known.values())
        if name == "country" and not re.fullmatch(r"[A-Za-z]{2}", item):
            raise ConfigurationError(f"country {item!r} is not an ISO 3166-1 alpha-2 code such as IN, DE or US")
        if name == "gpu":
            gpu_slugs_for(item)
    return items


def _known(name: str) -> dict[str, str]:
    """What the accelerator table holds under a column, by its folded form."""
    return {str(getattr(facts, name)).casefold(): str(getattr(facts, name)) for facts in accelerators().values()}


def _boolean(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).casefold()
    if text in {"true", "yes", "1"}:
        return True
    if text in {"false", "no", "0"}:
        return False
    raise ConfigurationError(f"{name} must be true or false, got {value!r}")


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ConfigurationError(f"{name} must be a number, got {value!r}") from None
    if not 0 <= number < float("inf"):
        raise ConfigurationError(f"{name} must be a finite number of at least 0, got {value!r}")
    if name in _WHOLE and number != int(number):
        raise ConfigurationError(f"{name} must be a whole number, got {value!r}")
    return number


def count_range(text: str) -> tuple[int, int]:
    """Read "8", "1..4", "2.." or "..8" as an inclusive range.

    Raises:
        ConfigurationError: it is none of these.
    """
    if text.strip().isdigit() and int(text) > 0:
        return int(text), int(text)
    found = _RANGE.match(text.strip())
    if not found or not any(found.groups()):
        raise ConfigurationError(f"gpu_count {text!r} is neither a number nor a range such as 1..8")
    low, high = int(found.group(1) or found.group(3) or 1), int(found.group(2) or found.group(4) or 1_000_000)
    if low > high or low < 1:
        raise ConfigurationError(f"gpu_count {text!r}: a range runs from a smaller number of at least 1 to a larger")
    return low, high


def conditions(wanted: OfferFilter) -> list[Condition]:
    """The filter as SQL conditions over `v_offers`, each with its parameters."""
    return [*_listed_conditions(wanted), *_bound_conditions(wanted), *_flag_conditions(wanted)]


def _listed_conditions(wanted: OfferFilter) -> list[Condition]:
    found: list[Condition] = [_gpu_condition(wanted.gpu)] if wanted.gpu else []
    exact = {name: getattr(wanted, name) for name in _EXACT}
    found += [(f"{name} IN ({_marks(values)})", list(values)) for name, values in exact.items() if values]
    folded = {name: [v.casefold() for v in getattr(wanted, name)] for name in _FACTS}
    found += [(f"lower({name}) IN ({_marks(values)})", list(values)) for name, values in folded.items() if values]
    if wanted.country:
        found.append((f"country IN ({_marks(wanted.country)})", [c.upper() for c in wanted.country]))
    return found


def _bound_conditions(wanted: OfferFilter) -> list[Condition]:
    bounds = [(name, f"{column} >= ?") for name, column in _MINIMA.items()]
    bounds += [(name, f"{column} <= ?") for name, column in _MAXIMA.items()]
    found: list[Condition] = [
        (sql, [getattr(wanted, name)]) for name, sql in bounds if getattr(wanted, name) is not None
    ]
    if wanted.gpu_count is not None:
        found.append(("gpu_count BETWEEN ? AND ?", list(count_range(wanted.gpu_count))))
    return found


def _flag_conditions(wanted: OfferFilter) -> list[Condition]:
    found: list[Condition] = [(f"supports_{name}", []) for name in wanted.supports]
    if wanted.rdma is not None:
        found.append(("rdma" if wanted.rdma else "rdma IS NOT TRUE", []))
    if wanted.available is not None:
        known = [a for a in AVAILABILITIES if (a in {"available", "limited"}) is wanted.available]
        found.append((f"availability IN ({_marks(known)})", list(known)))
    return found


def _gpu_condition(names: Iterable[str]) -> Condition:
    """Offers of these GPUs; an offer with an ambiguous name matches when one of its candidates does."""
    slugs = sorted({slug for name in names for slug in gpu_slugs_for(name)})
    return f"(gpu IN ({_marks(slugs)}) OR list_has_any(gpu_candidates, [{_marks(slugs)}]))", [*slugs, *slugs]


def _marks(values: Iterable[Any]) -> str:
    return ", ".join("?" for _ in values)
