"""The guard against every way in which a source has been seen to go wrong, and against being too strict."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.types import Offer, OfferRow, Quote
from catalog.validate import check_rows
from collectors.contract import Expect
from collectors.registry import collectors_by_provider
from collectors.rows import with_usd
from jobs.guard import Known, compare, examine, price_hour_of, thresholds

NOW = datetime(2026, 11, 30, tzinfo=UTC)
GPUS = ("h100-sxm-80gb", "a100-sxm-80gb", "l40s-48gb", "l4-24gb", "h200-sxm-141gb", "a10-24gb")
USD_PER_GPU = (3.0, 1.6, 1.2, 0.5, 4.1, 0.9)
EXPECT = Expect(min_rows=20, gpus=frozenset({"h100-sxm-80gb"}))


def row(gpu: int, size: int, region: str, option: str, factor: float = 1.0, currency: str = "USD") -> OfferRow:
    offer = Offer(
        provider="example", source_sku=f"{GPUS[gpu]}-{size}", instance_type=f"{GPUS[gpu]}-{size}", gpu=GPUS[gpu],
        gpu_count=size, region=region, purchase_option=option,
    )  # fmt: skip
    price = Decimal(str(round(USD_PER_GPU[gpu] * size * factor * (0.55 if option == "spot" else 1), 6)))
    quote = Quote(offer.offer_id, NOW, price, currency, price_usd_hour=float(price))
    return OfferRow(offer, quote)


def healthy() -> list[OfferRow]:
    """48 offers per region: 6 kinds of GPU in 4 sizes, on demand and spot, each region a little dearer."""
    places = {"us": 1.0, "eu": 1.07, "in": 1.13}
    return [
        row(gpu, size, region, option, factor)
        for gpu in range(len(GPUS))
        for size in (1, 2, 4, 8)
        for region, factor in places.items()
        for option in ("on_demand", "spot")
    ]


def known(rows: Sequence[OfferRow]) -> list[Known]:
    return [
        Known(
            r.offer.offer_id, r.offer.gpu, r.offer.region, r.offer.purchase_option, r.offer.instance_type,
            r.quote.currency, price_hour_of(r),
        )
        for r in rows
    ]  # fmt: skip


def tripped(rows: Sequence[OfferRow], before: Sequence[OfferRow] | None = None, **given: Any) -> set[str]:
    checked = check_rows(OfferRow(r.offer, with_usd(r.quote, r.offer, r.quote.currency, Decimal(1))) for r in rows)
    comparison = compare(
        given.pop("provider", "example"), checked.rows, known(before if before is not None else healthy()),
        **{"rejected_count": len(checked.rejections), "complete": True, "expect": EXPECT, **given},
    )  # fmt: skip
    found = examine(comparison)
    assert all(t.before and t.after and t.limit and t.sentence() for t in found)
    return {t.rule for t in found}


def repriced(rows: Sequence[OfferRow], price: Callable[[OfferRow], Any], **changed: Any) -> list[OfferRow]:
    return [
        OfferRow(
            r.offer,
            dataclasses.replace(r.quote, price=(p := Decimal(str(price(r)))), price_usd_hour=float(p), **changed),
        )
        for r in rows
    ]


def money(r: OfferRow) -> Decimal:
    assert r.quote.price is not None
    return r.quote.price


def shifted_by_one(rows: Sequence[OfferRow]) -> list[OfferRow]:
    prices = [money(r) for r in rows]
    moved = iter([*prices[1:], prices[0]])
    return repriced(rows, lambda r: next(moved))


def spot_at_full_price(rows: Sequence[OfferRow]) -> list[OfferRow]:
    full = {(r.offer.instance_type, r.offer.region): money(r) for r in rows if r.offer.purchase_option == "on_demand"}
    return repriced(rows, lambda r: full[r.offer.instance_type, r.offer.region])


CASES: dict[str, tuple[Callable[[list[OfferRow]], list[OfferRow]], set[str]]] = {
    "nothing came": (lambda rows: [], {"too_few_rows", "gpu_missing", "rows_vanished"}),
    "half the list": (lambda rows: rows[: len(rows) // 2], {"rows_vanished"}),
    "currency": (lambda rows: repriced(rows, money, currency="EUR"), {"currency_switched"}),
    "month for hour": (lambda rows: repriced(rows, lambda r: money(r) * 730), {"many_rejected"}),
    "cents for dollars": (lambda rows: repriced(rows, lambda r: money(r) / 100), {"many_rejected"}),
    "per GPU for instance": (lambda rows: repriced(rows, lambda r: money(r) / r.offer.gpu_count), {"prices_shifted"}),
    "unit label": (lambda rows: repriced(rows, money, price_unit="day"), {"prices_shifted"}),
    "rows shifted by one": (shifted_by_one, {"prices_moved"}),
    "a region gone": (lambda rows: [r for r in rows if r.offer.region != "in"], {"regions_vanished"}),
    "a kind of GPU gone": (lambda rows: [r for r in rows if r.offer.gpu != "l4-24gb"], {"gpu_kinds_vanished"}),
    "a required GPU gone": (lambda rows: [r for r in rows if r.offer.gpu != "h100-sxm-80gb"], {"gpu_missing"}),
    "spot at full price": (spot_at_full_price, {"spot_not_discounted"}),
    "no prices": (
        lambda rows: [OfferRow(r.offer, dataclasses.replace(r.quote, price=None, price_usd_hour=None)) for r in rows],
        {"prices_vanished"},
    ),
    "up by two thirds": (lambda rows: repriced(rows, lambda r: money(r) * Decimal("1.67")), {"prices_shifted"}),
    "a third of prices times five": (
        lambda rows: repriced(rows, lambda r: money(r) * (5 if r.offer.gpu in GPUS[:2] else 1)), {"prices_jumped"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_broken_source_is_held(case: str) -> None:
    change, expected = CASES[case]
    assert expected <= tripped(change(healthy()))


HARMLESS: dict[str, Callable[[list[OfferRow]], list[OfferRow]]] = {
    "nothing changed": lambda rows: rows,
    "everything 10 % cheaper": lambda rows: repriced(rows, lambda r: money(r) * Decimal("0.9")),
    "one GPU at half price": lambda rows: repriced(
        rows, lambda r: money(r) / (2 if r.offer.gpu == "l4-24gb" else 1)
    ),
    "one size of one GPU gone": lambda rows: [r for r in rows if r.offer.instance_type != "l4-24gb-8"],
    "spot moves by a third": lambda rows: repriced(
        rows, lambda r: money(r) * (Decimal("1.33") if r.offer.purchase_option == "spot" else 1)
    ),
    "a new GPU": lambda rows: [*rows, *(dataclasses.replace(r, offer=dataclasses.replace(
        r.offer, source_sku=f"new-{r.offer.source_sku}", gpu="b200-sxm-180gb")) for r in rows[:6])],
}  # fmt: skip


@pytest.mark.parametrize("case", HARMLESS)
def test_an_ordinary_day_is_published(case: str) -> None:
    assert tripped(HARMLESS[case](healthy())) == set()


def test_a_first_run_is_judged_by_itself() -> None:
    assert tripped(healthy(), before=[]) == set()
    assert tripped(healthy()[:10], before=[]) == {"too_few_rows"}
    assert "spot_not_discounted" in tripped(spot_at_full_price(healthy()), before=[])


def test_a_partial_run_may_miss_rows_but_not_change_its_unit() -> None:
    assert tripped(healthy()[:30], complete=False) == set()
    day = repriced(healthy()[:30], money, price_unit="day")
    assert "prices_shifted" in tripped(day, complete=False)


def test_a_page_that_came_twice() -> None:
    assert "rows_repeated" in tripped(healthy(), duplicate_count=30)
    assert tripped(healthy(), duplicate_count=2) == set()


def test_a_slow_drift_trips_though_no_step_does() -> None:
    marks = {r.offer.gpu or "": price / r.offer.gpu_count for r in healthy() if (price := price_hour_of(r))}
    rows, steps = healthy(), 0
    while True:
        after = repriced(rows, lambda r: (money(r) * Decimal("1.2")).quantize(Decimal("0.000001")))
        assert tripped(after, before=rows) == set()
        rows, steps = after, steps + 1
        if "prices_drifted" in tripped(rows, before=rows, marks=marks):
            break
        assert steps < 10
    assert steps > 1


def test_markets_may_move_where_list_prices_may_not() -> None:
    moved = repriced(healthy(), lambda r: money(r) * (Decimal("1.8") if r.offer.gpu_count < 8 else 1))
    assert "prices_shifted" in tripped(moved)
    assert tripped(moved, provider="vast", expect=Expect(min_rows=1)) == set()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.92, 1.08), min_size=144, max_size=144), st.sets(st.integers(0, 143), max_size=5))
def test_small_changes_of_any_kind_are_published(factors: list[float], gone: set[int]) -> None:
    changes = iter(factors)
    after = repriced(healthy(), lambda r: round(float(money(r)) * next(changes), 6))
    assert tripped([r for i, r in enumerate(after) if i not in gone]) == set()


def test_every_provider_named_in_the_thresholds_exists_or_is_to_come() -> None:
    limits = thresholds()
    assert "*" in limits
    assert all(0 <= v.min_row_share <= 1 <= v.max_median_price_ratio for v in limits.values())
    assert set(limits) & set(collectors_by_provider())
