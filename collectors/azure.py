"""Microsoft Azure: the public Retail Prices API, all accelerated (N) virtual machines in every region.

Documentation: https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices
Fields used per item: `armSkuName` (size), `armRegionName` (region id), `retailPrice` (`currencyCode` per
`unitOfMeasure`, one whole VM), `type` (Consumption, Reservation, DevTestConsumption), `reservationTerm`, `productName`
(operating system), `skuName` and `meterName` (Spot, Low Priority), `effectiveStartDate`, `isPrimaryMeterRegion`,
`savingsPlan[].{term, retailPrice}` (only with api-version 2023-01-01-preview; USD per hour).

Traps, each handled here: Linux and Windows share size and meter and differ only in `productName`; a Reservation's
price is the whole term although its unit says "1 Hour"; prices dated in the future are announced, not in force; Low
Priority, DevTest, dedicated hosts and Cloud Services are other products; 0 marks a preview size without a price; a
spot price may equal the on-demand price; sovereign regions (usgov, usdod) are in the list but open to few; the page
links carry a port, may grow without end, end with null or "", and were once missing on full pages; offset paging
repeats rows when the list moves. No specifications at all: `azure_sizes`. Secondary sources list the NC H100 v5 cards
with 80 GB and the ND H100 v5 boxes with 12 GPUs; the series pages say 94 GB (H100 NVL) and eight: they are followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar
from urllib.parse import parse_qsl, quote, urlsplit

from catalog.types import Document, PriceUnit, PurchaseOption, QuoteKind
from catalog.units import decimal_of
from collectors.azure_extras import FILTER as EXTRAS
from collectors.azure_extras import add_extras
from collectors.azure_sizes import Size, accelerator_label, has_gpu, size_facts
from collectors.contract import DAY_S, HOUR_S, MINUTE_S, Collector, Expect, Parsed, Request
from collectors.errors import LayoutChanged
from collectors.readers import changed, need, read_json
from collectors.rows import RowBuilder

API = "https://prices.azure.com/api/retail/prices"
API_VERSION = "2023-01-01-preview"
FAMILIES = ("NC", "ND", "NV", "NG")
PAGE_SIZES = (100, 1000)  # what a full page held before and after 2026; the page size cannot be asked for
_FILTER = "serviceName eq 'Virtual Machines' and contains(armSkuName, 'Standard_{family}')"
# The gaming family comes and goes; the others are always sold somewhere.
_MAY_BE_EMPTY = (_FILTER.format(family="NG"),)
_REQUIRED = ("armSkuName", "armRegionName", "retailPrice", "unitOfMeasure", "type", "productName")
_WINDOWS = re.compile(r"\bWin(?:dows)?\b", re.IGNORECASE)
_OTHER_PRODUCT = re.compile(r"Cloud\s?Services|Dedicated", re.IGNORECASE)
_SPOT = re.compile(r"\bSpot\b", re.IGNORECASE)
_LOW_PRIORITY = re.compile(r"\bLow Priority\b", re.IGNORECASE)
_YEARS = re.compile(r"(\d+)\s*Years?", re.IGNORECASE)
_SOVEREIGN = re.compile(r"us(?:gov|dod|sec)|china")


@dataclass(frozen=True, slots=True)
class _Price:
    """One price of one size: the fields that make an offer, and what decides between several."""

    document: Document
    size: str
    region: str
    option: PurchaseOption
    commitment_days: int
    unit: PriceUnit
    plan: str
    amount: object
    currency: str
    start: datetime | None
    end: datetime | None
    primary: bool

    def in_force(self, at: datetime) -> bool:
        """Whether the price holds at an instant: begun, and not ended."""
        return (self.start is None or self.start <= at) and (self.end is None or at < self.end)

    @property
    def key(self) -> tuple[object, ...]:
        return (self.size, self.region, self.option, self.commitment_days, self.plan, self.currency)


class Azure(Collector):
    """Azure virtual machines with GPUs: on demand, spot, reservations and savings plans, Linux."""

    provider = "azure"
    title = "Microsoft Azure"
    home_page = "https://azure.microsoft.com/pricing/details/virtual-machines/linux/"
    sources = (API,)
    kind = "api"
    cadence_s: ClassVar[int] = 12 * HOUR_S
    max_age_s: ClassVar[int] = 2 * DAY_S
    billing_increment_s = 1
    minimum_charge_s = MINUTE_S
    terms_note = "Retail prices before tax, no key; currencies other than USD are for reference only."
    expect = Expect(min_rows=20, gpus=frozenset({"h100-sxm-80gb", "h100-nvl-94gb", "a100-pcie-80gb"}))
    max_documents: ClassVar[int] = 400

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The first page of each accelerated family, and of what is billed beside machines."""
        del keys
        return [_page(odata, 0) for odata in (*(_FILTER.format(family=f) for f in FAMILIES), EXTRAS)]

    def follow(self, document: Document) -> Iterable[Request]:
        """The next page, built from its offset so that a link that grows or loses its parameters cannot lead astray."""
        page = read_json(document)
        skip = _next_skip(document, page)
        return [_page(_parameters(document.url).get("$filter", ""), skip)] if skip is not None else []

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per size, region, purchase option and term, for Linux, at the price in force when fetched."""
        rows = RowBuilder(self)
        pages = [(document, read_json(document)) for document in documents]
        if not any(_items(document, page) for document, page in pages):
            raise LayoutChanged(self.provider, "Items[]", f"no page of {API} holds an item")
        prices: dict[tuple[object, ...], list[_Price]] = {}
        for document, page in pages:
            add_extras(rows, document, (i for i in _items(document, page) if isinstance(i, dict)))
            for price in _prices(rows, document, page):
                prices.setdefault(price.key, []).append(price)
        unknown: set[str] = set()
        for candidates in prices.values():
            _add(rows, candidates, unknown)
        _check_pages(rows, pages)
        result = rows.finish()
        if not result.rows and not result.rejections:
            raise LayoutChanged(self.provider, "Items[].armSkuName", f"no Linux price of an N size in {API}")
        return result


def _page(odata_filter: str, skip: int) -> Request:
    family = re.search(r"'Standard_(\w+)'", odata_filter)
    offset = f"&$skip={skip}" if skip else ""
    url = f"{API}?api-version={API_VERSION}&currencyCode='USD'&$filter={quote(odata_filter)}{offset}"
    return Request(url, name=f"{family.group(1).lower() if family else 'extras'}-{skip}")


def _parameters(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


def _items(document: Document, page: Any) -> list[Any]:
    """The page's items; a bare list of items, as other tools keep them, is taken too."""
    items: list[Any] = page if isinstance(page, list) else need(document, page, "Items", kind=list)
    return items


def _next_skip(document: Document, page: Any) -> int | None:
    """The offset of the next page; None at the end or where the link does not lead forward."""
    here = int(_parameters(document.url).get("$skip", "0") or 0)
    count = len(_items(document, page))
    link = page.get("NextPageLink") if isinstance(page, dict) else None
    if not link:
        return here + count if count in PAGE_SIZES else None
    stated = _parameters(str(link)).get("$skip", "")
    return int(stated) if stated.isdigit() and int(stated) > here and count else None


def _prices(rows: RowBuilder, document: Document, page: Any) -> Iterator[_Price]:
    """Every Linux price of a page, in force or not."""
    items = [item for item in _items(document, page) if isinstance(item, dict)]
    for key in _REQUIRED:
        if items and not any(key in item for item in items):
            changed(document, f"Items[].{key}")
    if items and not any("meterName" in item or "skuName" in item for item in items):
        changed(document, "Items[].meterName", "neither meterName nor skuName tells spot from on demand")
    billing = page.get("BillingCurrency") if isinstance(page, dict) else None
    for item in items:
        size = str(item.get("armSkuName") or "")
        if not has_gpu(size):
            continue
        # Without a product's name it is not known whether Windows is in the price; a null price is an unpriced size.
        missing = [key for key in _REQUIRED if key not in item or (key == "productName" and not item[key])]
        names = f"{item.get('skuName') or ''} {item.get('meterName') or ''}"
        if missing or not names.strip():
            rows.reject("field_missing", missing[0] if missing else "meterName", "", sample=size)
            continue
        product = str(item["productName"])
        if _WINDOWS.search(product) or _OTHER_PRODUCT.search(product) or _LOW_PRIORITY.search(names):
            continue
        yield from _prices_of(rows, document, item, size, spot=bool(_SPOT.search(names)), billing=str(billing or "USD"))


def _prices_of(
    rows: RowBuilder, document: Document, item: Mapping[str, Any], size: str, *, spot: bool, billing: str
) -> Iterator[_Price]:
    kind = item["type"]
    if kind not in ("Consumption", "Reservation"):
        if kind != "DevTestConsumption":
            rows.reject("type_unknown", "type", kind, sample=size)
        return
    # A reservation's amount is the whole term, whatever unit stands beside it.
    if kind != "Reservation" and item["unitOfMeasure"] != "1 Hour":
        rows.reject("unit_unknown", "unitOfMeasure", item["unitOfMeasure"], sample=size)
        return
    start = _instant(item.get("effectiveStartDate"))
    if item.get("effectiveStartDate") and start is None:
        rows.reject("date_unreadable", "effectiveStartDate", item["effectiveStartDate"], sample=size)
        return
    end = _instant(item.get("effectiveEndDate"))
    region = "".join(str(item["armRegionName"] or "").lower().split())
    if not region:
        rows.reject("field_missing", "armRegionName", item["armRegionName"], sample=size)
        return
    currency = str(item.get("currencyCode") or billing)
    primary = item.get("isPrimaryMeterRegion") is not False

    def price(option: PurchaseOption, days: int, unit: PriceUnit, plan: str, amount: object) -> _Price:
        return _Price(document, size, region, option, days, unit, plan, amount, currency, start, end, primary)

    if kind == "Reservation":
        days = _term_days(item.get("reservationTerm"))
        if days is None:
            rows.reject("term_unknown", "reservationTerm", item.get("reservationTerm"), sample=size)
            return
        yield price("reserved", days, "term", "", item["retailPrice"])
        return
    yield price("spot" if spot else "on_demand", 0, "hour", "", item["retailPrice"])
    for plan in [] if spot else item.get("savingsPlan") or []:
        days = _term_days(plan.get("term")) if isinstance(plan, dict) else None
        if days is None:
            rows.reject("term_unknown", "savingsPlan.term", plan, sample=size)
            continue
        yield price("reserved", days, "hour", "savings-plan", plan.get("retailPrice"))


def _instant(value: object) -> datetime | None:
    try:
        instant = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _term_days(term: object) -> int | None:
    years = _YEARS.fullmatch(str(term or "").strip())
    return 365 * int(years.group(1)) if years else None


def _add(rows: RowBuilder, candidates: Sequence[_Price], unknown: set[str]) -> None:
    """One offer out of every price given for the same thing: primary meters first, then the latest one in force."""
    size = candidates[0].size
    facts = size_facts(size)
    if facts is None:
        if size not in unknown:
            unknown.add(size)
            rows.reject("size_unknown", "armSkuName", size)
            rows.unmapped(accelerator_label(size))
        return
    current = [p for p in candidates if p.in_force(p.document.fetched_at)]
    if not current:
        rows.reject("not_in_force", "effectiveStartDate", candidates[0].start, sample=size)
        return
    rank = max((p.primary, p.start or datetime.min.replace(tzinfo=UTC)) for p in current)
    best = [p for p in current if (p.primary, p.start or datetime.min.replace(tzinfo=UTC)) == rank]
    if len({decimal_of(p.amount) for p in best}) > 1:
        rows.reject("price_ambiguous", "retailPrice", sorted({str(p.amount) for p in best}), sample=size)
        return
    _offer(rows, best[0], facts)


def _offer(rows: RowBuilder, price: _Price, facts: Size) -> None:
    sovereign = bool(_SOVEREIGN.match(price.region))
    flags = ["sovereign_region"] if sovereign else []
    if price.start is None:
        flags.append("start_date_unknown")
    kind: QuoteKind = "market" if price.option == "spot" else "list_price"
    rows.offer(
        price.document,
        facts.gpu,
        sku=f"{price.size}/{price.plan}" if price.plan else price.size,
        instance_type=price.size,
        price=price.amount,
        price_unit=price.unit,
        currency=price.currency,
        availability="limited" if sovereign else "unknown",
        quote_kind=kind,
        flags=flags,
        region=price.region,
        purchase_option=price.option,
        commitment_days=price.commitment_days,
        vcpu_count=facts.vcpu_count,
        memory_gib=facts.memory_gib,
        local_storage_gb=facts.local_storage_gb,
        network_gbps=facts.network_gbps,
        gpu_interconnect=facts.gpu_interconnect,
        rdma=facts.rdma,
        cpu_arch=facts.cpu_arch,
    )


def _check_pages(rows: RowBuilder, pages: Sequence[tuple[Document, Any]]) -> None:
    """Each list must hold something and end with a page that leads nowhere, and no page may repeat another."""
    last: dict[str, tuple[Document, Any]] = {}
    bodies: dict[str, set[str]] = {}
    for document, page in pages:
        chain = _parameters(document.url).get("$filter", "")
        last[chain] = (document, page)
        items = _items(document, page)
        seen = bodies.setdefault(chain, set())
        if items and repr(items) in seen:
            rows.incomplete(f"two pages of {document.url} hold the same items")
        seen.add(repr(items))
    for chain, (document, page) in last.items():
        if bodies[chain] == {repr([])} and chain not in _MAY_BE_EMPTY:
            rows.incomplete(f"{document.url} holds no item")
        elif isinstance(page, list) or "NextPageLink" not in page:
            rows.incomplete(f"{document.url} does not say whether more pages follow")
        elif page["NextPageLink"] or len(_items(document, page)) in PAGE_SIZES:
            rows.incomplete(f"the page after {document.url} was not fetched")
