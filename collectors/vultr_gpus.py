"""Which GPUs a Vultr plan holds: its own fields, else its id, with reviewed tables where both leave it open."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from catalog.names import resolve
from catalog.units import decimal_of
from collectors.rows import GpuRead, RowBuilder
from collectors.specs import spec_rows

_ID_CARD = re.compile(r"^vcg-(?P<card>[a-z0-9]+)-\d+c-\d+g-(?P<vram>\d+)vram", re.IGNORECASE)
_ID_METAL = re.compile(r"-(?P<count>\d+)-(?P<card>[a-z0-9]+)-gpu$", re.IGNORECASE)
_WHOLE_CARD = Decimal("0.88")  # 262 of 288 GB is a whole card; 40 of 80 is not
_FRACTION_STEP = Decimal("0.00001")


def gpu_of(rows: RowBuilder, plan: Mapping[str, Any]) -> GpuRead | None:
    """What a plan says of its GPU, from its fields, else from its id; None for a CPU plan."""
    plan_id = str(plan["id"])
    in_id = _ID_CARD.match(plan_id) or _ID_METAL.search(plan_id)
    label = str(plan.get("gpu_type") or "") or (in_id["card"] if in_id else "")
    if not label:
        if plan.get("gpu_count") or plan.get("gpu_vram_gb"):
            rows.reject("gpu_unnamed", "gpu_type", plan.get("gpu_type"), sample=plan_id)
        return None
    named = in_id.groupdict() if in_id else {}
    total = decimal_of(plan.get("gpu_vram_gb")) or decimal_of(named.get("vram"))
    count, share = _count(plan.get("gpu_count"))
    if count is None and share is None:
        count = _reviewed_count(plan_id) or (int(named["count"]) if named.get("count") else None)
    gpu, card_gb = _card(label)
    if share is not None:
        return GpuRead(label=label, gpu=gpu, count=1, fraction=share, memory_gb=float(total) if total else None)
    if total is None or not card_gb:
        return GpuRead(label=label, gpu=gpu, count=count)
    if count is None:
        count = max(1, int((total / card_gb).to_integral_value()))
    per_gpu = total / count
    if plan_id in {row["plan"] for row in spec_rows("vultr-plans.csv")}:
        return GpuRead(label=label, gpu=gpu, count=count)
    if count > 1 and per_gpu < _WHOLE_CARD * card_gb:
        # Slices are sold singly, so eight GPUs with "80" have it each; any other figure shows as a mismatch.
        return GpuRead(label=label, gpu=gpu, count=count, memory_gb=float(min(total, card_gb)))
    if per_gpu < _WHOLE_CARD * card_gb:
        share = (per_gpu / card_gb).quantize(_FRACTION_STEP)
        return GpuRead(label=label, gpu=gpu, count=count, fraction=share, memory_gb=float(per_gpu))
    return GpuRead(label=label, gpu=gpu, count=count, memory_gb=float(per_gpu))


def _count(value: object) -> tuple[int | None, Decimal | None]:
    """Whole GPUs, or the share of one: 8 and "8" give 8, "1/8" gives 0.125."""
    above, slash, below = str(value if value is not None else "").partition("/")
    whole, parts = decimal_of(above), decimal_of(below)
    if slash and whole and parts:
        return None, (whole / parts).quantize(_FRACTION_STEP)
    if whole is None or whole <= 0:
        return None, None
    return (int(whole), None) if whole == int(whole) else (None, whole.quantize(_FRACTION_STEP))


def _reviewed_count(plan_id: str) -> int | None:
    return next((int(row["gpu_count"]) for row in spec_rows("vultr-plans.csv") if row["plan"] == plan_id), None)


def _card(label: str) -> tuple[str | None, Decimal | None]:
    """The name to resolve instead of the label, where a card comes in two sizes, and the memory of one whole card."""
    bare = re.sub(r"^(?:NVIDIA|AMD)[_ ]", "", label, flags=re.IGNORECASE).upper()
    for row in spec_rows("vultr-cards.csv"):
        if row["gpu_type"] == bare:
            return row["gpu"], Decimal(row["memory_gb"])
    found = resolve(label)
    return None, decimal_of(found.gpu_memory_gb)
