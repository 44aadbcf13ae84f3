"""What RunPod says of a GPU type's sizes and stock, in both of its interfaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from catalog.types import Availability
from catalog.units import decimal_of
from collectors.listing import as_object, whole_number

POD_SIZES = (1, 2, 4, 8)
"""GPU counts that are asked for; each is offered where it lies within a type's limits."""

Cloud = Literal["secure", "community"]
CLOUDS: tuple[Cloud, ...] = ("secure", "community")
_STOCK: Mapping[str, Availability] = {
    "high": "available",
    "medium": "available",
    "low": "limited",
    "none": "unavailable",
}
_STOCK_FIELDS = "minimumBidPrice uninterruptablePrice minVcpu minMemory stockStatus countryCode availableGpuCounts"


def graphql_query() -> str:
    """The query for every type: prices, limits, and the stock of each size in each cloud under its own alias."""
    stock = " ".join(
        f"{cloud}{count}: lowestPrice(input: {{gpuCount: {count}, secureCloud: {str(cloud == 'secure').lower()}}})"
        f" {{ {_STOCK_FIELDS} }}"
        for cloud in CLOUDS
        for count in POD_SIZES
    )
    return (
        "query GpuTypes { gpuTypes { id displayName manufacturer memoryInGb secureCloud communityCloud securePrice"
        " communityPrice secureSpotPrice communitySpotPrice clusterPrice minPodGpuCount maxGpuCount"
        f" maxGpuCountSecureCloud maxGpuCountCommunityCloud nodeGroupDatacenters {{ id }} {stock} }} }}"
    )


def pod_sizes(gpu: Mapping[str, Any], cloud: Cloud) -> list[int]:
    """The GPU counts to offer, up to the cloud's limit for this type; one GPU where no limit is stated."""
    limits = as_object(gpu.get("maxCount"))
    stated = whole_number(limits.get(cloud) if limits else gpu.get(f"maxGpuCount{cloud.capitalize()}Cloud"))
    largest = stated if stated is not None else whole_number(gpu.get("maxGpuCount")) or 1
    smallest = whole_number(gpu.get("minPodGpuCount")) or 1
    return sorted({n for n in (*POD_SIZES, largest) if smallest <= n <= largest})


def stock_of(gpu: Mapping[str, Any], cloud: Cloud, count: int) -> Mapping[str, Any] | None:
    """What is known of the stock of one size in one cloud; None where it was not asked."""
    asked = gpu.get(f"{cloud}{count}")
    if isinstance(asked, Mapping):
        return asked
    plain = gpu.get("lowestPrice")
    if not isinstance(plain, Mapping):
        return None
    # An answer that does not say which cloud it is of belongs to the one with this price, or to both where it is empty.
    price = decimal_of(plain.get("uninterruptablePrice"))
    of_cloud = price is None or price == decimal_of(gpu.get(f"{cloud}Price"))
    counts = plain.get("availableGpuCounts")
    of_count = count == 1 or (isinstance(counts, list) and count in counts)
    return plain if of_cloud and (of_count or price is None) else None


def availability_of(stock: Mapping[str, Any] | None) -> Availability:
    """The stock word of either interface; none stated where it was asked means none there."""
    if stock is None:
        return "unknown"
    word = str(stock.get("stockStatus") or stock.get("availability") or "none").casefold()
    return _STOCK.get(word, "unknown")
