"""Hot Aisle: AMD Instinct machines, virtual and bare metal (needs a key and the name of a team).

Documentation: https://github.com/hotaisle/hotaisle-cli/blob/main/swagger.json (`GET /api/teams/{team}/virtual_machines/
available/` and `/bare_metal/available/`). Fields used of each entry: `Quantity` (free machines), `OnDemandPrice` (US
cents per machine and hour), `MinimumReservationMinutes`, and `Specs`: `cpu_cores`, `ram_capacity` and `disk_capacity`
(bytes), `gpus[]` (`count`, `manufacturer`, `model`).

Traps: prices are cents; a minimum of a day or more is a commitment, a shorter one a minimum charge. Entries have no id,
so one is made of what is sold. The lists hold what is free now: both empty is taken for a failure, not for sold out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from catalog.types import Document
from catalog.units import gib_from_bytes
from collectors.cents import check_cents, dollars
from collectors.contract import DAY_S, HOUR_S, MINUTE_S, Collector, Expect, Parsed, Request
from collectors.listing import as_list, as_object, positive, whole_items, whole_number
from collectors.readers import changed, need, read_json
from collectors.rows import GpuRead, RowBuilder

BASE = "https://admin.hotaisle.app/api/teams"
LISTS = ("virtual_machines", "bare_metal")


class Hotaisle(Collector):
    """Hot Aisle: machines that are free now."""

    provider = "hotaisle"
    title = "Hot Aisle"
    home_page = "https://hotaisle.xyz/pricing"
    sources = (f"{BASE}/",)
    kind = "api"
    cadence_s: ClassVar[int] = HOUR_S
    max_age_s: ClassVar[int] = 3 * HOUR_S
    billing_increment_s = MINUTE_S
    terms_note = "Prices of the team whose key is used; older customers may see lower ones."
    key_env: ClassVar[tuple[str, ...]] = ("HOTAISLE_API_KEY", "HOTAISLE_TEAM")
    expect = Expect(min_rows=1)

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """Both lists of the team."""
        headers = {"authorization": f"Token {keys.get('HOTAISLE_API_KEY', '')}"}
        for name in LISTS:
            yield Request(f"{BASE}/{keys.get('HOTAISLE_TEAM', '')}/{name}/available/", headers=headers, name=name)

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per kind of machine."""
        rows = RowBuilder(self)
        listed = [(document, need(document, read_json(document), kind=list)) for document in documents]
        if not any(entries for _, entries in listed):
            changed(documents[0], "[0]", f"nothing is free, or the list changed: {documents[0].url}")
        for document, entries in listed:
            if not entries:
                continue
            whole = whole_items(rows, document, entries, "", "OnDemandPrice", "Specs")
            check_cents(document, "OnDemandPrice", ((entry["OnDemandPrice"], _gpus(entry)[0]) for entry in whole))
            for entry in whole:
                _add(rows, document, entry)
        return rows.finish()


def _gpus(entry: Mapping[str, Any]) -> tuple[int, list[str]]:
    """How many GPUs a machine has, and their different models."""
    gpus = [gpu for gpu in as_list(as_object(entry["Specs"]).get("gpus")) if isinstance(gpu, Mapping)]
    count = sum((whole_number(gpu.get("count")) or 0) for gpu in gpus)
    return count, sorted({f"{gpu.get('manufacturer') or ''} {gpu.get('model') or ''}".strip() for gpu in gpus})


def _add(rows: RowBuilder, document: Document, entry: Mapping[str, Any]) -> None:
    specs, (count, models) = as_object(entry["Specs"]), _gpus(entry)
    bare_metal = "/bare_metal/" in document.url
    if len(models) != 1:
        rows.reject("mixed_gpus" if models else "gpu_unnamed", "gpus", models, sample=specs)
        return
    cores, free = whole_number(specs.get("cpu_cores")), whole_number(entry.get("Quantity"))
    ram, disk = positive(specs.get("ram_capacity")), positive(specs.get("disk_capacity"))
    minutes = whole_number(entry.get("MinimumReservationMinutes"))
    minimum_s = (minutes or 0) * MINUTE_S
    days = minimum_s // DAY_S
    name = f"{count}x {models[0]}{' bare metal' if bare_metal else ''}"
    rows.offer(
        document,
        GpuRead(label=models[0], count=count),
        sku=f"{'bare-metal' if bare_metal else 'vm'}-{count}x-{models[0]}-{cores or 0}-cores".replace(
            " ", "-"
        ).casefold(),
        instance_type=name,
        price=dollars(entry["OnDemandPrice"]),
        quote_kind="api_quote",
        purchase_option="reserved" if days else "on_demand",
        commitment_days=days,
        availability="unknown" if free is None else "available" if free > 0 else "unavailable",
        stock_count=free,
        tenancy="bare_metal" if bare_metal else "vm",
        vcpu_count=float(cores) if cores else None,
        memory_gib=gib_from_bytes(ram) if ram else None,
        local_storage_gb=disk / 1e9 if disk else None,
        minimum_charge_s=minimum_s or None,
    )
