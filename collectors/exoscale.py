"""Exoscale GPU instances: the public price list, joined with the instance types of the API.

Price list: https://portal.exoscale.com/api/pricing/opencompute, an object by currency (usd, eur, chf: equal figures) of
flat maps: key "running_<family>_<size>" to decimal text, per instance and hour, before tax, with no zone; also "volume"
(GiB-hour) and "traffic" (GiB out). Types: https://openapi-v2.exoscale.com/operation/operation-list-instance-types,
`/v2/instance-type` of any zone: `instance-types[]` {`family`, `size`, `cpus`, `gpus`, `memory`, `zones[]`,
`authorized`}. No field names the GPU: `data/exoscale-families.csv` is the reviewed map.

Traps: one product has a price in three currencies (dollars are taken where the list has them); families are also spelt
with an underscore ("running_gpu_a5000_small") and sizes with a hyphen ("extra-large"); `memory` is bytes in the schema
and MiB in some answers; `authorized` false means that support must allow it first; a type may have no price (on
request), and a price no type: then only the smallest size is known to be one GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from catalog.types import Document
from catalog.units import BYTES_PER_GIB, HOURS_PER_MONTH, MIB_PER_GIB, decimal_of
from collectors.contract import DAY_S, HOUR_S, Collector, Expect, Parsed, Request
from collectors.errors import LayoutChanged
from collectors.listing import as_list, as_object, positive, whole_number
from collectors.meters import per_gb
from collectors.readers import changed, need, need_somewhere, read_json
from collectors.rows import GpuRead, RowBuilder
from collectors.specs import spec_rows

_CURRENCIES = ("usd", "eur", "chf")
_GPU_KEY = re.compile(r"^running_(gpu\w*_\w+)$", re.IGNORECASE)
_SMALLEST_MEMORY_BYTES = 2**28  # anything below cannot be bytes of a GPU machine


@dataclass(frozen=True, slots=True)
class _Listed:
    """A price of the list, with the document it stands in."""

    document: Document
    price: object
    currency: str


class Exoscale(Collector):
    """Exoscale: on-demand GPU instances, per zone where the types are known."""

    provider = "exoscale"
    title = "Exoscale"
    home_page = "https://www.exoscale.com/pricing/"
    sources = (
        "https://portal.exoscale.com/api/pricing/opencompute",
        "https://api-ch-gva-2.exoscale.com/v2/instance-type",
    )
    kind = "api"
    cadence_s: ClassVar[int] = 6 * HOUR_S
    max_age_s: ClassVar[int] = 2 * DAY_S
    billing_increment_s = 1
    terms_note = "Prices before tax, billed by the second. GPU types need an allowance from support."
    expect = Expect(min_rows=4, gpus=frozenset({"a40-48gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The price list and the types."""
        del keys
        yield Request(self.sources[0], name="opencompute")
        yield Request(self.sources[1], name="instance-type")

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per type and zone; a price without a type once, where its size is known."""
        rows = RowBuilder(self)
        types: list[tuple[Document, Mapping[str, Any]]] = []
        prices: dict[str, _Listed] = {}
        for document in documents:
            content = need(document, read_json(document), kind=dict)
            if "instance-types" in content or "instance-type" in document.url:
                types += [(document, kind) for kind in _gpu_types(document, content)]
            else:
                prices |= _prices(document, content)
                _add_surcharges(rows, document, content)
        seen = set()
        for document, kind in types:
            name = f"{kind.get('family')}.{str(kind.get('size')).replace('-', '_')}".lower()
            seen.add(name)
            _add_type(rows, document, kind, prices.get(name))
        unsized = [name for name in prices if name not in seen and not _add_price(rows, name, prices[name])]
        if unsized:
            rows.note(f"left out, because nothing says how many GPUs they hold: {', '.join(unsized)}")
        if not rows.row_count:
            raise LayoutChanged(self.provider, "running_gpu*", "no price and no type of a GPU could be read")
        return rows.finish()


def _gpu_types(document: Document, content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    kinds = need(document, content, "instance-types", kind=list)
    need_somewhere(document, kinds, "family", "size", "gpus", "zones")
    gpus: list[Mapping[str, Any]] = [kind for kind in kinds if isinstance(kind, dict) and kind.get("gpus")]
    if not gpus:
        changed(document, "instance-types/*/gpus", f"no type with a GPU in {document.url}")
    return gpus


def _prices(document: Document, content: Mapping[str, Any]) -> dict[str, _Listed]:
    """Family and size ("gpu3.small") to a price in the first currency that states one."""
    lists = {code: need(document, content, code, kind=dict) for code in _CURRENCIES if code in content}
    # One more currency is none of ours; a name that stands in for one of ours is a change.
    if not lists or (len(lists) < len(_CURRENCIES) and set(content) - set(_CURRENCIES)):
        changed(document, "usd", f"lists are {', '.join(sorted(content)) or 'missing'} in {document.url}")
    found: dict[str, _Listed] = {}
    for code, prices in lists.items():
        for key, price in prices.items():
            gpu = _GPU_KEY.match(key)
            name = _type_name(gpu[1]) if gpu else ""
            if gpu and (name not in found or not decimal_of(found[name].price)):
                found[name] = _Listed(document, price, code.upper())
    if not found:
        changed(document, "usd/running_gpu*", f"no price of a GPU in {document.url}")
    return found


def _type_name(key: str) -> str:
    """The type that a price key is of: "gpu3_small" is gpu3.small, "gpu_a5000_small" gpua5000.small."""
    parts = key.lower().replace("-", "_").split("_")
    for cut in range(len(parts) - 1, 0, -1):
        if _family("".join(parts[:cut])):
            return f"{''.join(parts[:cut])}.{'_'.join(parts[cut:])}"
    return f"{parts[0]}.{'_'.join(parts[1:])}"


def _add_surcharges(rows: RowBuilder, document: Document, content: Mapping[str, Any]) -> None:
    """Volumes and outbound traffic, listed per GiB, in the list's dollars."""
    prices = as_object(content.get("usd"))
    volume, traffic = decimal_of(prices.get("volume")), decimal_of(prices.get("traffic"))
    if volume is not None:
        rows.surcharge(document, "block_storage", per_gb(volume * HOURS_PER_MONTH), "gb_month")
    if traffic is not None:
        rows.surcharge(document, "egress", per_gb(traffic), "gb")


def _family(name: str) -> Mapping[str, str] | None:
    return next((row for row in spec_rows("exoscale-families.csv") if row["family"] == name.lower()), None)


def _add_type(rows: RowBuilder, document: Document, kind: Mapping[str, Any], listed: _Listed | None) -> None:
    family, size, count = str(kind.get("family")), str(kind.get("size")), whole_number(kind.get("gpus"))
    if not count:
        rows.reject("gpu_count", "gpus", kind.get("gpus"), sample=f"{family}.{size}")
        return
    known = _family(family)
    quoted = listed or _Listed(document, None, "USD")
    for zone in as_list(kind.get("zones")) or [""]:
        rows.offer(
            quoted.document,
            GpuRead(label=family, gpu=known["gpu"] if known else None, count=count),
            sku=f"{family}.{size}",
            instance_type=f"{family}.{size}",
            price=quoted.price,
            currency=quoted.currency,
            availability="unknown" if zone else "unavailable",
            flags=["needs_approval"] if kind.get("authorized") is False else [],
            region=str(zone),
            vcpu_count=positive(kind.get("cpus")),
            memory_gib=_memory_gib(kind.get("memory")),
        )


def _memory_gib(stated: object) -> float | None:
    amount = positive(stated)
    if amount is None:
        return None
    return amount / (BYTES_PER_GIB if amount >= _SMALLEST_MEMORY_BYTES else MIB_PER_GIB)


def _add_price(rows: RowBuilder, name: str, listed: _Listed) -> bool:
    """Add a price whose type is not known. False where not even the reviewed smallest size says what it buys."""
    family, _, size = name.partition(".")
    known = _family(family)
    if known is None or known["smallest_size"] != size:
        return False
    rows.offer(
        listed.document,
        GpuRead(label=family, gpu=known["gpu"], count=int(known["smallest_gpus"])),
        sku=name,
        instance_type=name,
        price=listed.price,
        currency=listed.currency,
    )
    return True
