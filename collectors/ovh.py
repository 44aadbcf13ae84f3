"""OVHcloud Public Cloud GPU instances: the public order catalogs of two companies, in EUR and in USD.

Documentation: https://api.ovh.com/console/?section=%2Forder&branch=v1#get-/order/catalog/public/cloud (no key).
Fields used: `locale.currencyCode`; `addons[]` (also objects in `plans[].addonFamilies[].addons`) with `planCode`,
`invoiceName`, `product`, `pricings[]` {`price` in 1e-8 of the currency, before tax; `formattedPrice`, rounded;
`capacities`}, `configurations[]` {`name` "region", `values`}, `blobs.commercial.brick` "gpu", `blobs.tags`, and
`blobs.technical` {`cpu.cores`, `memory.size` GB, `gpu` {`model`, `number`, `memory.size` GB per GPU}, `os.family`,
`nvme.disks[]` and `storage.disks[]` {`capacity` GB, `number`}, `bandwidth.level` Mbit/s}.

Traps: about 8 MB per catalog; the tier is the planCode's ending (".consumption" by the hour, ".monthly.postpaid" by
the calendar month), because the US catalog writes "none" as intervalUnit of both, and ".monthly" is a stub without a
price; AI products carry a full GPU blob at prices per minute but another brick; Windows twins (not offered here) hold a
licence; "coming_soon" rows have a price and cannot be had; the catalog knows no stock, and regions of some plans only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from catalog.types import Document, PriceUnit, PurchaseOption
from catalog.units import decimal_of, number_in
from collectors.contract import DAY_S, HOUR_S, Collector, Expect, Parsed, Request
from collectors.listing import as_list, as_object, positive, whole_number
from collectors.readers import changed, need, read_json
from collectors.rows import GpuRead, RowBuilder

_PLAN = re.compile(r"^(?P<name>.+?)\.(?P<tier>consumption|monthly\.postpaid|monthly)(?:\.(?P<zone>3AZ|LZ(?:\.\w+)?))?$")
_TIERS: Mapping[str, tuple[PriceUnit, PurchaseOption, int]] = {
    "consumption": ("hour", "on_demand", 0),
    "monthly.postpaid": ("month", "reserved", 30),
}
_SCALE = -8  # prices are integers of 1e-8 currency units
_DISPLAY_ROUNDING = Decimal("0.006")


class Ovh(Collector):
    """OVHcloud: on-demand and monthly GPU instances of OVHcloud (EUR) and OVHcloud US (USD)."""

    provider = "ovh"
    title = "OVHcloud"
    home_page = "https://www.ovhcloud.com/en/public-cloud/gpu/"
    sources = (
        "https://api.ovh.com/1.0/order/catalog/public/cloud?ovhSubsidiary=FR",
        "https://api.us.ovhcloud.com/1.0/order/catalog/public/cloud?ovhSubsidiary=US",
    )
    kind = "bulk"
    cadence_s: ClassVar[int] = DAY_S
    max_age_s: ClassVar[int] = 2 * DAY_S
    on_demand: ClassVar[bool] = False
    currency = "EUR"
    billing_increment_s = HOUR_S
    terms_note = "Prices before tax. OVHcloud US is a company of its own: another account, another catalog."
    expect = Expect(min_rows=8, gpus=frozenset({"h100", "l4-24gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """Both catalogs."""
        del keys
        for url in self.sources:
            yield Request(url, name=f"catalog-{_subsidiary(url).lower()}")

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per plan, tier and stated region."""
        rows = RowBuilder(self)
        for document in documents:
            _add_catalog(rows, document)
        return rows.finish()


def _subsidiary(url: str) -> str:
    return parse_qs(urlsplit(url).query).get("ovhSubsidiary", [""])[0].upper()


def _add_catalog(rows: RowBuilder, document: Document) -> None:
    catalog = read_json(document)
    currency = need(document, catalog, "locale", "currencyCode", kind=str)
    stated = str(catalog["locale"].get("subsidiary") or "").upper()
    asked = _subsidiary(document.url)
    if stated and asked and stated != asked:
        changed(document, "locale/subsidiary", f"asked for {asked}, got {stated} from {document.url}")
    need(document, catalog, "addons", kind=list)
    addons = {str(addon["planCode"]): addon for addon in _gpu_addons(catalog)}
    if not addons:
        changed(document, "addons/*/blobs/commercial/brick", f"no addon of brick gpu in {document.url}")
    regions = _regions(addons)
    for code, addon in addons.items():
        _add_plan(rows, document, code, addon, currency, regions)


def _gpu_addons(catalog: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Addons of GPU instances, wherever the catalog keeps them; most families hold codes only."""
    nested = (
        addon
        for plan in as_list(catalog.get("plans"))
        for family in as_list(as_object(plan).get("addonFamilies"))
        for addon in as_list(as_object(family).get("addons"))
    )
    for addon in (*catalog["addons"], *nested):
        if not isinstance(addon, dict) or not addon.get("planCode"):
            continue
        commercial = as_object(as_object(addon.get("blobs")).get("commercial"))
        if commercial.get("brick") == "gpu" and addon.get("product", "publiccloud-instance") == "publiccloud-instance":
            yield addon


def _regions(addons: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Plan name to the regions that any of its addons states."""
    found: dict[str, list[str]] = {}
    for code, addon in addons.items():
        plan = _PLAN.match(code)
        for configuration in map(as_object, as_list(addon.get("configurations"))):
            if plan and configuration.get("name") == "region":
                found.setdefault(plan["name"], []).extend(map(str, as_list(configuration.get("values"))))
    return {name: list(dict.fromkeys(values)) for name, values in found.items()}


def _add_plan(
    rows: RowBuilder,
    document: Document,
    code: str,
    addon: Mapping[str, Any],
    currency: str,
    regions: Mapping[str, Sequence[str]],
) -> None:
    plan = _PLAN.match(code)
    technical = as_object(addon["blobs"].get("technical"))
    if as_object(technical.get("os")).get("family") == "windows" or code.startswith("win-"):
        return
    if plan is None:
        rows.reject("tier_unknown", "planCode", code)
        return
    if plan["tier"] not in _TIERS:
        return  # a stub that only names regions
    price = _price(rows, code, addon)
    if price is None:
        return
    unit, option, days = _TIERS[plan["tier"]]
    gpu = as_object(technical.get("gpu"))
    count, memory = whole_number(gpu.get("number")), positive(as_object(gpu.get("memory")).get("size"))
    if not count:
        rows.reject("gpu_count", "blobs.technical.gpu.number", gpu.get("number"), sample=code)
        return
    tags = [str(tag) for tag in as_list(addon["blobs"].get("tags"))]
    us = _subsidiary(document.url) == "US"
    for region in regions.get(plan["name"]) or [""]:
        rows.offer(
            document,
            GpuRead(label=str(gpu.get("model") or ""), count=count, memory_gb=memory),
            sku=code,
            instance_type=str(addon.get("invoiceName") or plan["name"]),
            price=price,
            price_unit=unit,
            currency=currency,
            availability="unavailable" if "coming_soon" in tags else "unknown",
            flags=[tag for tag in tags if tag in {"legacy", "coming_soon"}],
            purchase_option=option,
            commitment_days=days,
            region=region,
            variant="-".join(part for part in ("us" if us else "", (plan["zone"] or "").lower()) if part),
            **_shape(technical),
        )


def _price(rows: RowBuilder, code: str, addon: Mapping[str, Any]) -> Decimal | None:
    """The price in currency units; None with a rejection where it is missing, zero, or not what the text shows."""
    offered = [
        pricing
        for pricing in as_list(addon.get("pricings"))
        if isinstance(pricing, dict) and "installation" not in as_list(pricing.get("capacities"))
    ]
    amounts = {decimal_of(pricing.get("price")) for pricing in offered}
    amount = next(iter(amounts), None)
    if len(amounts) > 1:
        rows.reject("price_ambiguous", "pricings", sorted(map(str, amounts)), sample=code)
        return None
    if amount is None or amount <= 0:
        rows.reject("not_a_price", "pricings/price", amount, sample=code)
        return None
    price = amount.scaleb(_SCALE)
    shown = number_in(str(offered[0].get("formattedPrice") or ""))
    if shown is not None and abs(shown - price) > _DISPLAY_ROUNDING:
        rows.reject("price_disagrees", "formattedPrice", offered[0]["formattedPrice"], sample=f"{code}: {price}")
        return None
    return price


def _shape(technical: Mapping[str, Any]) -> dict[str, Any]:
    disks = [
        disk
        for kind in ("nvme", "storage")
        for disk in map(as_object, as_list(as_object(technical.get(kind)).get("disks")))
    ]
    stored = sum((positive(disk.get("capacity")) or 0) * (positive(disk.get("number")) or 1) for disk in disks)
    level = positive(as_object(technical.get("bandwidth")).get("level"))
    return {
        "vcpu_count": positive(as_object(technical.get("cpu")).get("cores")),
        "memory_gib": positive(as_object(technical.get("memory")).get("size")),
        "local_storage_gb": stored or None,
        "network_gbps": level / 1000 if level else None,
    }
