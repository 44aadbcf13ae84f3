"""Vast.ai: a census of the marketplace's rentable offers from verified hosts, price band by price band.

Documentation: https://docs.vast.ai/api-reference/search/search-offers (POST /api/v0/bundles/, filters as JSON).
Fields used per offer: `machine_id`, `ask_contract_id` (ephemeral: only to drop repeats), `gpu_name`, `num_gpus`,
`gpu_ram` (MiB per GPU), `dph_total` (USD per hour of the whole offer with its disk), `dph_base` (without the disk),
`min_bid` (lowest accepted bid, without the disk), `search.diskHour`, `allocated_storage` (GB), `cpu_cores_effective`
(of the offer), `cpu_cores` and `cpu_ram` (of the machine; MiB), `bw_nvlink` (GB/s), `inet_up`/`inet_down` (Mbit/s),
`rentable`, `verification`, `reliability2`, `hosting_type` (1 = data centre), `geolocation` ("Guangxi, CN", "US").

Traps: without a key an answer stops at 64 rows, cheapest first, and says nothing; with a key at 512, drawn at random.
A full answer is continued, by price without a key and by halving ranges of contract ids with one, until every part
comes back short; what was not continued makes the run incomplete. Slices of one machine are listed side by side: they
are one offer per machine and GPU count, never separate stock. Spot is the bid plus the disk, so that both prices carry
it. Storage and traffic have a rate per host, so there are no surcharges for the provider as a whole. A key's quota is
20,000 rows a day, four or five censuses, so a key has its own variable and is not picked up from other tools' settings.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

from catalog.types import Document
from catalog.units import decimal_of, gib_from_mib
from collectors.contract import HOUR_S, Collector, Expect, Parsed, Request
from collectors.listing import as_object, positive, whole_number
from collectors.readers import changed
from collectors.rows import GpuRead, RowBuilder
from collectors.vast_census import (
    PRICE_BANDS,
    URL,
    band_query,
    is_full,
    offers_of,
    parts_of,
    query_key,
    query_of,
    search_request,
)

LOW_RELIABILITY = 0.9
_CONTINENTS = frozenset({"AF", "AN", "AS", "EU", "NA", "OC", "SA"})
_CPU_ARCHITECTURES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "arm64", "aarch64": "arm64"}


class Vast(Collector):
    """Vast.ai: on-demand offers, and interruptible ones at their lowest accepted bid."""

    provider = "vast"
    title = "Vast.ai"
    home_page = "https://vast.ai/pricing"
    sources = (URL,)
    kind = "api"
    cadence_s: ClassVar[int] = HOUR_S
    max_age_s: ClassVar[int] = 3 * HOUR_S
    on_demand = False
    host_interval_s: ClassVar[float] = 6.0  # ten requests a minute for this address
    billing_increment_s = 1
    terms_note = (
        "Verified hosts only; prices include a 10 GB disk. Storage and traffic cost extra at each host's own rates, "
        "storage also while stopped. Interruptible instances are paused when outbid."
    )
    optional_key_env: ClassVar[tuple[str, ...]] = ("VAST_CENSUS_KEY",)
    expect = Expect(min_rows=40, gpus=frozenset({"rtx-4090-24gb", "h100-sxm-80gb"}))
    max_documents = 400

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """One query per price band; with a key they are answered with up to 512 rows instead of 64."""
        key = keys.get("VAST_CENSUS_KEY", "")
        headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
        uppers: tuple[float | None, ...] = (*PRICE_BANDS[1:], None)
        for low, high in zip(PRICE_BANDS, uppers, strict=True):
            yield search_request(band_query(low, high), f"offers-from-{low:g}", headers)

    def follow(self, document: Document) -> Iterable[Request]:
        """The parts of a full answer."""
        for number, query in enumerate(parts_of(document)):
            yield search_request(query, f"{document.name}-{number}", {})

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One on-demand offer per machine and GPU count, and a spot one where a bid is accepted."""
        rows = RowBuilder(self)
        asked = {query_key(query_of(document)) for document in documents}
        groups: defaultdict[tuple[str, int], list[_Ask]] = defaultdict(list)
        seen: set[str] = set()
        full = 0
        listed = [(document, offers_of(document)) for document in documents]
        _check_fields(listed)
        for document, offers in listed:
            parts = parts_of(document, offers)
            if is_full(document, offers) and not (parts and all(query_key(part) in asked for part in parts)):
                full += 1
            for offer in offers:
                ask = _ask(rows, document, offer)
                if ask is not None and not (ask.contract and ask.contract in seen):
                    seen.add(ask.contract)
                    groups[ask.machine, ask.gpu_count].append(ask)
        if full:
            rows.incomplete(
                f"{full} of {len(documents)} answers were full and not continued; offers beyond them are missing"
            )
        sizes = Counter(machine for machine, _ in groups)
        for (machine, _), asks in groups.items():
            _add(rows, min(asks, key=lambda ask: ask.usd_hour), len(asks), shares_machine=sizes[machine] > 1)
        rows.note(f"{len(seen)} offers on {len(sizes)} machines from {len(documents)} queries")
        return rows.finish()


@dataclass(frozen=True, slots=True)
class _Ask:
    """One listed offer with what identifies it."""

    document: Document
    offer: Mapping[str, Any]
    contract: str
    machine: str
    gpu_count: int
    usd_hour: Decimal


def _check_fields(listed: Sequence[tuple[Document, Sequence[Any]]]) -> None:
    """Refuse answers without any offer, or where no offer has a field that none can do without."""
    offers = [offer for _, found in listed for offer in found]
    if not offers:
        changed(listed[0][0], "offers", f"no offer at all in {len(listed)} answers")
    for field in ("gpu_name", "num_gpus", "dph_total", "machine_id"):
        if not any(isinstance(offer, Mapping) and field in offer for offer in offers):
            changed(listed[0][0], f"offers/{field}")


def _ask(rows: RowBuilder, document: Document, offer: Any) -> _Ask | None:
    """One offer's identity and price, or None with a rejection."""
    if not isinstance(offer, Mapping):
        rows.reject("not_an_offer", "offers", offer)
        return None
    contract = str(offer.get("ask_contract_id") or offer.get("id") or "")
    count, price = whole_number(offer.get("num_gpus")), decimal_of(offer.get("dph_total"))
    if offer.get("verification") == "deverified":
        rows.reject("host_deverified", "verification", "deverified", sample=contract)
    elif offer.get("machine_id") is None:
        rows.reject("machine_unnamed", "machine_id", None, sample=contract)
    elif not count:
        rows.reject("gpu_count", "num_gpus", offer.get("num_gpus"), sample=contract)
    elif price is None or price <= 0:
        rows.reject("not_a_price", "dph_total", offer.get("dph_total"), sample=contract)
    else:
        return _Ask(document, offer, contract, str(offer["machine_id"]), count, price)
    return None


def _add(rows: RowBuilder, ask: _Ask, stock: int, *, shares_machine: bool) -> None:
    offer = ask.offer
    rentable = offer.get("rentable") is not False
    verification, reliability = offer.get("verification"), decimal_of(offer.get("reliability2"))
    flags = [
        *(["shares_machine"] if shares_machine else []),
        *(["host_unverified"] if verification not in (None, "verified") else []),
        *(["low_reliability"] if reliability is not None and reliability < Decimal(str(LOW_RELIABILITY)) else []),
    ]
    memory_mib = positive(offer.get("gpu_ram"))
    place = str(offer.get("geolocation") or "").strip()

    def add(purchase_option: str, price: Decimal) -> None:
        rows.offer(
            ask.document,
            GpuRead(
                label=str(offer.get("gpu_name") or ""),
                count=ask.gpu_count,
                memory_gb=gib_from_mib(memory_mib) if memory_mib else None,
                per_card=True,
            ),
            sku=f"machine-{ask.machine}-{ask.gpu_count}x",
            instance_type=f"{ask.gpu_count}x {offer.get('gpu_name')}",
            variant=f"machine-{ask.machine}",
            price=price,
            quote_kind="market",
            purchase_option=purchase_option,
            availability="available" if rentable else "unavailable",
            stock_count=stock if rentable else 0,
            flags=flags,
            region=place,
            country=_country(place),
            tenancy="secure" if offer.get("hosting_type") == 1 else "community",
            **_shape(ask),
        )

    add("on_demand", ask.usd_hour)
    bid, disk = decimal_of(offer.get("min_bid")), _disk_usd_hour(ask)
    if bid is not None and bid > 0 and disk is not None:
        add("spot", bid + disk)


def _disk_usd_hour(ask: _Ask) -> Decimal | None:
    """What the disk adds to an hour, or None where the offer does not tell."""
    stated = decimal_of(as_object(ask.offer.get("search")).get("diskHour"))
    base = decimal_of(ask.offer.get("dph_base"))
    if stated is None and base is not None:
        stated = ask.usd_hour - base
    return stated if stated is not None and stated >= 0 else None


def _shape(ask: _Ask) -> dict[str, Any]:
    """The offer's share of its machine; unknown where a figure is missing, never zero."""
    offer = ask.offer
    cores, machine_cores, machine_mib = (
        positive(offer.get(key)) for key in ("cpu_cores_effective", "cpu_cores", "cpu_ram")
    )
    nvlink = decimal_of(offer.get("bw_nvlink"))
    speeds = [speed for key in ("inet_up", "inet_down") if (speed := positive(offer.get(key)))]
    disk = positive(offer.get("allocated_storage") or query_of(ask.document).get("allocated_storage"))
    interconnect = "unknown"
    if ask.gpu_count > 1 and nvlink is not None:
        interconnect = "nvlink" if nvlink > 0 else "pcie"
    return {
        "vcpu_count": cores,
        "memory_gib": gib_from_mib(machine_mib * cores / machine_cores)
        if machine_mib and cores and machine_cores
        else None,
        "local_storage_gb": disk,
        "gpu_interconnect": interconnect,
        "network_gbps": min(speeds) / 1000 if speeds else None,
        "cpu_arch": _CPU_ARCHITECTURES.get(str(offer.get("cpu_arch"))),
    }


def _country(place: str) -> str | None:
    """The country code at the end of a location: "Guangxi, CN", "US", "France, FR, EU" (a continent may follow)."""
    codes = [part.strip() for part in place.split(",")]
    if len(codes) > 1 and codes[-1] in _CONTINENTS and _is_code(codes[-2]):
        codes.pop()
    return codes[-1] if _is_code(codes[-1]) else None


def _is_code(text: str) -> bool:
    return len(text) == 2 and text.isascii() and text.isalpha() and text.isupper()
