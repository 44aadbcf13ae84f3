"""Amazon EC2: the price calculator's feed of each region, the public spot feed, and the Spot Instance Advisor.

Sources and fields used (all keyless; every value of the first two is text):
* https://b0.p.awsstatic.com/pricing/2.0/meteredUnitMaps/ec2/USD/current/ec2-ondemand-without-sec-sel/<label>/Linux/
  index.json, the feed behind https://calculator.aws: `regions.<label>.<key>.{Instance Type, Location, price (USD per
  instance-hour), vCPU, Memory, Storage, Network Performance, Operating System, Pre Installed S/W, rateCode}`.
* https://website.spot.ec2.aws.a2z.com/spot.json, the feed behind https://aws.amazon.com/ec2/spot/pricing/:
  `config.{rate, regions[].{region, instanceTypes[].sizes[].{size, valueColumns[].{name, prices.USD}}}}`.
* https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json, behind https://aws.amazon.com/ec2/spot/instance-advisor/:
  `ranges[].{index, max, label}`, `spot_advisor.<region>.Linux.<type>.r` (share interrupted in a month, a bucket).

Traps: labels, not ids, name the regions and get renamed; the keys of entries are not the type; the middle of
`rateCode` tells on-demand from other terms; a price of 0 (p5e) means sold by Capacity Block only; "0" and "N/A*" in the
spot feed mean missing, never free, and no spot price is made up from the advisor's savings; the spot feed uses six
legacy region ids and its predecessor stood still for years unnoticed; no source names GPUs (`aws_instances`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote, unquote, urlsplit

from catalog.types import Document
from catalog.units import decimal_of
from collectors.aws_instances import CAPACITY_BLOCK, gpu_of, is_accelerated, offer_fields, sold_as
from collectors.aws_places import is_other_partition, region_id
from collectors.contract import DAY_S, HOUR_S, MINUTE_S, Collector, Expect, Parsed, Request
from collectors.errors import LayoutChanged
from collectors.listing import as_object
from collectors.readers import changed, need, read_json
from collectors.regions import regions
from collectors.rows import RowBuilder

FEED = "https://b0.p.awsstatic.com/pricing/2.0/meteredUnitMaps/ec2/USD/current/ec2-ondemand-without-sec-sel"
SPOT = "https://website.spot.ec2.aws.a2z.com/spot.json"
ADVISOR = "https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json"
_ON_DEMAND_TERM = "JRTCKXETXF"
_GPU_FAMILIES = ("GPU instance", "Machine Learning ASIC Instances")
_ENTRY_KEYS = ("Instance Type", "price", "Location")
_GIB = re.compile(r"([\d,.]+)\s*GiB")
_GBPS = re.compile(r"(\d+(?:\.\d+)?)\s*Gigabit")
_DISKS = re.compile(r"(\d+)\s*x\s*(\d+)")


@dataclass(frozen=True, slots=True)
class _Feeds:
    """The documents by what they are, decoded."""

    on_demand: list[tuple[Document, Mapping[str, Any]]]
    spot: list[tuple[Document, Mapping[str, Any]]]
    interruption: Mapping[tuple[str, str], tuple[float, bool]]


class Aws(Collector):
    """Amazon EC2 instances with GPUs and machine-learning chips: on demand and spot, Linux."""

    provider = "aws"
    title = "Amazon Web Services"
    home_page = "https://aws.amazon.com/ec2/pricing/on-demand/"
    sources = (FEED, SPOT, ADVISOR)
    kind = "feed"
    cadence_s: ClassVar[int] = HOUR_S
    max_age_s: ClassVar[int] = DAY_S
    billing_increment_s = 1
    minimum_charge_s = MINUTE_S
    terms_note = "Linux prices before tax. Public feeds without an account; the price and spot feeds are undocumented."
    expect = Expect(min_rows=20, gpus=frozenset({"h100-sxm-80gb", "h200-sxm-141gb", "l40s-48gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """One price feed per region of the public partition, the spot feed and the advisor."""
        del keys
        for region in regions("aws").values():
            if not is_other_partition(region.region):
                label = quote(region.label.split("|")[0])
                yield Request(f"{FEED}/{label}/Linux/index.json", name=f"ondemand-{region.region}")
        yield Request(SPOT, name="spot")
        yield Request(ADVISOR, name="spot-advisor", optional=True)

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per region and type on demand, and one on spot where the spot feed holds a price."""
        rows = RowBuilder(self)
        feeds = _sorted(documents)
        unknown: set[str] = set()
        for document, content in feeds.on_demand:
            _add_region(rows, document, content, unknown)
        for document, content in feeds.spot:
            _add_spot(rows, document, content, feeds.interruption, unknown)
        result = rows.finish()
        if not result.rows and not result.rejections:
            raise LayoutChanged(
                self.provider, "regions.*.*['Instance Type']", "no accelerated instance type in any feed"
            )
        return result


def _sorted(documents: Sequence[Document]) -> _Feeds:
    on_demand, spot = [], []
    interruption: dict[tuple[str, str], tuple[float, bool]] = {}
    for document in documents:
        content = need(document, read_json(document), kind=dict)
        if "spot_advisor" in content:
            interruption.update(_interruption(document, content))
        elif "config" in content or urlsplit(document.url).path.endswith("/spot.json"):
            spot.append((document, content))
        else:
            on_demand.append((document, content))
    return _Feeds(on_demand, spot, interruption)


def _interruption(document: Document, content: Mapping[str, Any]) -> dict[tuple[str, str], tuple[float, bool]]:
    """(region, type) to the share of instances interrupted in a month and whether that is only a lower bound.

    A bucket such as "5-10%" counts with its upper end; the open one (">20%") with its lower.
    """
    buckets: dict[int, tuple[float, bool]] = {}
    for entry in need(document, content, "ranges", kind=list):
        percent = re.findall(r"\d+(?:\.\d+)?", str(need(document, entry, "label")))
        if percent:
            buckets[need(document, entry, "index", kind=int)] = (float(percent[-1]) / 100, ">" in str(entry["label"]))
    found = {}
    for place, systems in need(document, content, "spot_advisor", kind=dict).items():
        for instance_type, entry in as_object(as_object(systems).get("Linux")).items():
            index = entry.get("r") if isinstance(entry, dict) else None
            bucket = buckets.get(index) if isinstance(index, int) else None
            if bucket:
                found[region_id(place) or place, instance_type] = bucket
    return found


def _add_region(rows: RowBuilder, document: Document, content: Mapping[str, Any], unknown: set[str]) -> None:
    places = need(document, content, "regions", kind=dict)
    entries = [(label, e) for label, place in places.items() for e in need(document, place, kind=dict).values()]
    if not entries:
        changed(document, "regions.*", f"no instance type in {document.url}")
    for key in _ENTRY_KEYS:
        if not any(isinstance(e, dict) and key in e for _, e in entries):
            changed(document, f"regions.*.*['{key}']")
    currency = str((content.get("manifest") or {}).get("currencyCode") or _currency(document.url))
    for label, entry in entries:
        if isinstance(entry, dict) and _is_linux_on_demand(entry):
            _add_on_demand(rows, document, label, entry, currency, unknown)


def _currency(url: str) -> str:
    found = re.search(r"/ec2/([A-Z]{3})/", unquote(urlsplit(url).path))
    return found.group(1) if found else "USD"


def _is_linux_on_demand(entry: Mapping[str, Any]) -> bool:
    terms = str(entry.get("rateCode", "")).split(".")
    return (
        (len(terms) < 2 or terms[1] == _ON_DEMAND_TERM)
        and str(entry.get("Operating System", "Linux")) == "Linux"
        and str(entry.get("Pre Installed S/W") or "NA") == "NA"
    )


def _add_on_demand(
    rows: RowBuilder, document: Document, label: str, entry: Mapping[str, Any], currency: str, unknown: set[str]
) -> None:
    instance_type = str(entry.get("Instance Type", ""))
    if not is_accelerated(instance_type) and entry.get("Instance Family") not in _GPU_FAMILIES:
        return
    place = str(entry.get("Location") or label)
    region = region_id(place)
    if region is None:
        if place not in unknown:
            unknown.add(place)
            rows.reject("region_unknown", "Location", place, sample=instance_type)
            rows.incomplete(f"the region of {place!r} is not known")
        return
    blocks_only = sold_as(instance_type) == CAPACITY_BLOCK and decimal_of(entry.get("price")) == 0
    measured = {key: value for key, value in _measures(entry).items() if value is not None}
    _add(
        rows,
        document,
        instance_type,
        region,
        unknown,
        price=None if blocks_only else entry.get("price", ""),
        currency=currency,
        purchase_option="scheduled" if blocks_only else "on_demand",
        flags=["capacity_block_only"] if blocks_only else [],
        **measured,
    )


def _measures(entry: Mapping[str, Any]) -> dict[str, float | None]:
    """Size figures as the feed writes them: "2048 GiB", "8 x 3840 GB SSD", "3200 Gigabit" ("Up to …" is no promise)."""
    memory = _GIB.search(str(entry.get("Memory", "")))
    disks = _DISKS.search(str(entry.get("Storage", "")))
    network = _GBPS.fullmatch(str(entry.get("Network Performance", "")))
    vcpus = str(entry.get("vCPU", ""))
    return {
        "vcpu_count": float(vcpus) if vcpus.isdigit() else None,
        "memory_gib": float(memory.group(1).replace(",", "")) if memory else None,
        "local_storage_gb": float(disks.group(1)) * float(disks.group(2)) if disks else None,
        "network_gbps": float(network.group(1)) if network else None,
    }


def _add_spot(
    rows: RowBuilder,
    document: Document,
    content: Mapping[str, Any],
    interruption: Mapping[tuple[str, str], tuple[float, bool]],
    unknown: set[str],
) -> None:
    if need(document, content, "config", "rate", kind=str) != "perhr":
        changed(document, "config/rate", f"is {content['config']['rate']!r}, expected 'perhr', in {document.url}")
    places = need(document, content, "config", "regions", kind=list)
    if not places:
        changed(document, "config/regions[]", f"empty in {document.url}")
    for place in places:
        region = region_id(need(document, place, "region", kind=str)) or str(place["region"])
        for group in need(document, place, "instanceTypes", kind=list):
            for size in need(document, group, "sizes", kind=list):
                instance_type = need(document, size, "size", kind=str)
                if not is_accelerated(instance_type):
                    continue
                text = _linux_price(size)
                if text is None:
                    rows.reject("field_missing", "valueColumns[name=linux].prices.USD", "", sample=instance_type)
                    continue
                if _is_missing(text):
                    continue
                rate, is_lower_bound = interruption.get((region, instance_type), (None, False))
                _add(
                    rows,
                    document,
                    instance_type,
                    region,
                    unknown,
                    price=text,
                    currency="USD",
                    purchase_option="spot",
                    quote_kind="market",
                    interruption_rate=rate,
                    flags=["interruption_rate_lower_bound"] if is_lower_bound else [],
                )


def _linux_price(size: Mapping[str, Any]) -> str | None:
    """The text of a type's Linux price in dollars, or None where the columns do not hold one."""
    for column in size.get("valueColumns") or []:
        if isinstance(column, dict) and column.get("name") == "linux" and isinstance(column.get("prices"), dict):
            text = column["prices"].get("USD")
            return None if text is None else str(text)
    return None


def _is_missing(text: str) -> bool:
    """The spot feed writes "N/A*" and "0" where it holds no price."""
    return decimal_of(text) == 0 or text.upper().startswith("N/A")


def _add(
    rows: RowBuilder, document: Document, instance_type: str, region: str, unknown: set[str], **stated: Any
) -> None:
    gpu = gpu_of(instance_type)
    if gpu is None:
        if instance_type not in unknown:
            unknown.add(instance_type)
            rows.reject("type_unknown", "Instance Type", instance_type)
            rows.unmapped(instance_type)
        return
    closed = is_other_partition(region)
    stated["flags"] = [*stated["flags"], *(["sovereign_region"] if closed else [])]
    rows.offer(
        document,
        gpu,
        sku=instance_type,
        instance_type=instance_type,
        region=region,
        availability="limited" if closed else "unknown",
        **{**offer_fields(instance_type), **stated},
    )
