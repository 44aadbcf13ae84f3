"""Cost rules one by one: rounding, starts, meters, tiers, included quantities, interruptions, commitment."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cost import Usage, price
from planner.cost_extras import address_lines, billed, egress_lines, meter_lines, storage_lines, surcharge_table
from planner.cost_lines import Charge, cost_of
from planner.cost_rates import _rates, rate, start_habit
from planner.cost_spot import checkpointed, hours_between, restarted
from planner.cost_start import START_KINDS, ColdStart, cold_start, rounded_up_s
from planner.datafiles import data_rows


def offer(**changes):
    return {
        "provider": "acme", "region": "here", "tenancy": "vm", "purchase_option": "on_demand", "commitment_days": 0,
        "price_usd_hour": 2.0, "billing_increment_s": 1, "minimum_charge_s": None, "boot_time_s": None,
        "local_storage_gb": None, "vcpu_count": None, "memory_gib": None, "gpu_count": 1, "source_url": "https://x",
        "interruption_rate": None,
    } | changes  # fmt: skip


def meter(kind, price_usd, unit, **changes):
    return {
        "provider": "acme", "region": "", "kind": kind, "price": Decimal(str(price_usd)), "currency": "USD",
        "price_usd": price_usd, "unit": unit, "included_quantity": None, "tiers": None, "source_url": "https://m",
    } | changes  # fmt: skip


START = ColdStart(boot_s=60, image_s=40, load_s=20, billed_s=120, source="test")


def usage(**changes):
    return Usage(**({
        "monthly": True, "instances": 1, "hours": 730.0, "starts": 0.0, "storage_gb": 0.0, "storage_shared": False,
        "egress_gb": None, "addresses": False, "start": START,
    } | changes))  # fmt: skip


def kinds(priced):
    return {charge.kind: charge.quantity for charge in priced.cost.charges}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 500)), max_size=8))
def test_lines_always_make_the_total(pairs):
    cost = cost_of(Charge("compute", quantity, "h", unit_price, "s") for quantity, unit_price in pairs).exact()
    assert cost.total == sum((line.cost_usd for line in cost.lines), Decimal(0))
    assert cost.total == cost.compute + cost.storage + cost.egress
    assert all(line.cost_usd == line.cost_usd.quantize(Decimal("0.000001")) for line in cost.lines)
    assert all(abs(line.quantity * line.unit_price_usd - line.cost_usd) <= Decimal("0.0000005") for line in cost.lines)


def test_an_always_on_service_pays_730_hours():
    assert kinds(price(offer(), usage(), surcharge_table([]))) == {"compute": 730.0}


@pytest.mark.parametrize(
    ("seconds", "increment", "minimum", "billed"),
    [(61, 60, None, 120), (60, 60, None, 60), (10, 1, 60, 60), (3601, 3600, None, 7200), (5, None, None, 3600),
     (90, 60, 600, 600)],
)  # fmt: skip
def test_rounding_up_to_what_is_billed(seconds, increment, minimum, billed):
    assert rounded_up_s(seconds, increment, minimum) == billed


@settings(max_examples=50, deadline=None)
@given(st.floats(0.001, 1e6), st.sampled_from([1, 60, 3600]), st.sampled_from([None, 60, 600]))
def test_billed_seconds_are_never_fewer_and_less_than_a_step_more(seconds, increment, minimum):
    billed = rounded_up_s(seconds, increment, minimum)
    wanted = max(seconds, minimum or 0)
    assert wanted - 1e-3 <= billed < wanted + increment + 1e-3


def test_each_start_is_billed_with_its_cold_start_and_rounding():
    # 4 starts of 30 min; each 1,800 + 120 s, rounded up to the hour
    priced = price(offer(billing_increment_s=3600), usage(hours=2.0, starts=4.0), surcharge_table([]))
    found = kinds(priced)
    assert found["compute"] == 2.0
    assert found["cold_start"] == pytest.approx(4 * 120 / 3600)
    assert sum(found.values()) == pytest.approx(4.0)


def test_a_reservation_is_paid_whether_used_or_not():
    reserved = offer(purchase_option="reserved", commitment_days=365)
    assert sum(kinds(price(reserved, usage(hours=100.0, starts=30.0), surcharge_table([]))).values()) == 730.0
    job = usage(monthly=False, hours=100.0, starts=1.0)
    assert (
        sum(kinds(price(offer(purchase_option="reserved", commitment_days=14), job, surcharge_table([]))).values())
        == 336.0
    )


def test_serverless_meters_of_processor_and_memory():
    table = surcharge_table([meter("cpu", 0.05, "core_hour"), meter("memory", 0.008, "gib_hour")])
    stated = offer(tenancy="serverless", vcpu_count=8.0, memory_gib=32.0)
    charges, assumed = meter_lines(table, stated, 10.0)
    assert ([c.quantity for c in charges], assumed) == ([80.0, 320.0], False)
    charges, assumed = meter_lines(table, offer(tenancy="serverless", gpu_count=2), 10.0)
    assert ([c.quantity for c in charges], assumed) == ([80.0, 320.0], True)  # 4 cores and 16 GiB a GPU
    assert meter_lines(table, offer(), 10.0) == ([], False)


def test_weights_that_do_not_fit_the_default_disk():
    """170 GB needed: no on a disk of 100 GB without volumes, yes on 500 GB, a volume where its price is known."""
    none = surcharge_table([])
    hourly = {"need_gb": 170.0, "instances": 1, "hours": 730.0, "shared": False}
    *_, refusal = storage_lines(none, offer(local_storage_gb=100.0), **hourly)
    assert refusal["code"] == "disk_too_small"
    charges, _, refusal = storage_lines(none, offer(local_storage_gb=500.0), **hourly)
    assert ([c.unit_price_usd for c in charges], refusal) == ([0.0], None)
    volumes = surcharge_table([meter("block_storage", 0.1, "gb_month")])
    charges, _, refusal = storage_lines(volumes, offer(local_storage_gb=100.0), **hourly)
    cost = cost_of(charges).exact().total
    assert (cost, refusal) == (Decimal(17), None)
    assert 2 + float(cost) / 730 == pytest.approx(2.0233, abs=1e-4)
    assert storage_lines(none, offer(), **hourly)[1][0]["code"] == "storage_price_unknown"


def test_a_disk_costs_on_while_its_machine_is_stopped():
    # 500 GB at 0.08 a month beside 100 of 730 hours at 1.00
    table = surcharge_table([meter("block_storage", 0.08, "gb_month")])
    priced = price(offer(price_usd_hour=1.0), usage(hours=100.0, storage_gb=500.0, storage_shared=True), table)
    assert priced.cost.exact().total == Decimal(140)


def test_storage_beyond_what_is_included():
    table = surcharge_table([meter("block_storage", 0.05, "gb_month", included_quantity=Decimal(100))])
    charges, *_ = storage_lines(table, offer(), need_gb=90.0, instances=2, hours=365.0, shared=False)
    assert charges[0].quantity == pytest.approx((180 - 100) / 2)


def test_moving_weights_costs_more_than_a_short_run():
    # ten starts of 140 GB from another cloud at 0.09 beside ten hours at 2.00
    charges, _ = egress_lines(surcharge_table([meter("egress", 0.09, "gb")]), offer(), 1400.0)
    assert cost_of(charges).exact().total == Decimal(126)


def test_egress_by_tiers_and_beyond_what_is_free():
    steps = ((0, "0.09"), (10240, "0.085"), (51200, "0.07"))
    tiers = [{"from_quantity": Decimal(start), "price": Decimal(each)} for start, each in steps]
    table = surcharge_table([meter("egress", 0.09, "gb", tiers=tiers, included_quantity=Decimal(100))])
    charges, _ = egress_lines(table, offer(), 20_100.0)
    assert [(c.quantity, c.unit_price_usd) for c in charges] == [(10240.0, 0.09), (9760.0, pytest.approx(0.085))]


def test_tiers_in_another_currency_are_converted_at_the_meters_own_rate():
    euro = meter("egress", 0.11, "gb", price=Decimal("0.10"), currency="EUR",
                 tiers=[{"from_quantity": Decimal(1000), "price": Decimal("0.05")}])  # fmt: skip
    assert billed(euro, 1500.0) == [(1000.0, 0.11), (500.0, pytest.approx(0.055))]


def test_tiers_whose_first_step_is_free_count_it():
    # price list: 100 GB free, then 0.08, from 10,240 GB on 0.065
    steps = [
        {"from_quantity": Decimal(start), "price": Decimal(each)} for start, each in ((100, "0.08"), (10240, "0.065"))
    ]
    table = surcharge_table([meter("egress", 0.08, "gb", tiers=steps, included_quantity=Decimal(100))])
    cost = {gb: cost_of(egress_lines(table, offer(), gb)[0]).exact().total for gb in (50.0, 100.0, 1100.0, 20_000.0)}
    # 10,140 x 0.08 = 811.20 and 9,760 x 0.065 = 634.40
    assert cost == {50.0: 0, 100.0: 0, 1100.0: Decimal(80), 20_000.0: Decimal("1445.60")}


def test_storage_by_tiers_and_beyond_what_is_free():
    # 50 GB free, then 0.10, from the 200th paid gigabyte on 0.06; half a month
    steps = [{"from_quantity": Decimal(start), "price": Decimal(each)} for start, each in ((0, "0.10"), (200, "0.06"))]
    table = surcharge_table([meter("block_storage", 0.10, "gb_month", tiers=steps, included_quantity=Decimal(50))])
    charges, *_ = storage_lines(table, offer(), need_gb=450.0, instances=1, hours=365.0, shared=True)
    assert [(c.quantity, c.unit_price_usd) for c in charges] == [(100.0, 0.1), (100.0, pytest.approx(0.06))]
    assert cost_of(charges).exact().total == Decimal(16)
    charges, *_ = storage_lines(table, offer(), need_gb=40.0, instances=1, hours=730.0, shared=True)
    assert cost_of(charges).exact().total == 0


@settings(max_examples=50, deadline=None)
@given(
    st.floats(0, 1e6),
    st.sampled_from([None, 0, 100, 744]),
    st.lists(st.tuples(st.integers(0, 20_000), st.floats(0.01, 1)), max_size=4, unique_by=lambda step: step[0]),
)
def test_what_is_billed_is_what_goes_beyond_the_included_quantity(amount, included, steps):
    tiers = [{"from_quantity": Decimal(start), "price": Decimal(str(each))} for start, each in steps]
    parts = billed(meter("egress", 0.09, "gb", tiers=tiers, included_quantity=included), amount)
    assert sum(n for n, _ in parts) == pytest.approx(max(0.0, amount - (included or 0)), abs=1e-6)
    assert all(n > 0 for n, _ in parts)


def test_egress_of_a_region_that_nobody_published_is_not_free():
    table = surcharge_table([meter("egress", 0.09, "gb", region="us"), meter("egress", 0.15, "gb", region="br")])
    charges, _ = egress_lines(table, offer(region="elsewhere"), 10.0)
    assert charges[0].unit_price_usd == 0.15
    assert egress_lines(table, offer(provider="other"), 10.0)[1][0]["code"] == "egress_price_unknown"


def test_addresses_beyond_the_free_one():
    table = surcharge_table([meter("public_ipv4", 0.005, "hour")])
    assert kinds(price(offer(), usage(addresses=True, instances=2), table))["public_ipv4"] == 1460.0
    free = surcharge_table([meter("public_ipv4", 0.005, "hour", included_quantity=Decimal(744))])
    assert "public_ipv4" not in kinds(price(offer(), usage(addresses=True), free))
    # an account has its 744 free hours once: 3 x 730 - 744 = 1,446 hours at 0.005
    three = price(offer(price_usd_hour=0.0), usage(addresses=True, instances=3), free)
    assert three.cost.exact().total == Decimal("7.23")
    # a job of 100 hours has the month's free hours, too, and monthly addresses are counted in months
    assert address_lines(free, offer(), 4, 100.0) == []
    monthly = surcharge_table([meter("public_ipv4", 3.0, "month", included_quantity=Decimal(1))])
    assert cost_of(address_lines(monthly, offer(), 3, 730.0)).exact().total == Decimal(6)


@pytest.mark.parametrize(
    ("checkpoint_s", "restart_s", "mean_h", "interval_min", "factor"),
    [(60, 600, 24, 54, 1.044), (60, 600, 2, 15.5, 1.21)],
)
def test_young_and_the_cost_of_interruptions(checkpoint_s, restart_s, mean_h, interval_min, factor):
    share = 1 - math.exp(-720 / mean_h)
    found = checkpointed(min(share, 0.99), checkpoint_s, restart_s, instances=1) if share < 0.99 else None
    if found is None:  # rates above 99 % a month are capped; several machines bring the same mean time
        one = hours_between(0.99, 1)
        found = checkpointed(0.99, checkpoint_s, restart_s, instances=round(one / mean_h))
    assert found.mean_hours == pytest.approx(mean_h, rel=0.1)
    assert found.interval_h * 60 == pytest.approx(interval_min, rel=0.06)
    assert 1 + found.overhead == pytest.approx(factor, abs=0.012)


def test_a_monthly_share_as_hours_between_interruptions():
    assert hours_between(0.10, 1) == pytest.approx(6834, abs=1)  # ten per cent a month: some 6,800 hours
    assert hours_between(0.10, 16) == pytest.approx(6834 / 16, abs=1)
    assert hours_between(None, 1) == hours_between(float(rate("spot_monthly_share")), 1)


def test_independent_pieces_lose_a_start_and_what_was_in_flight():
    found = restarted(0.10, 300, 60)
    assert found.overhead == pytest.approx(360 / 3600 / hours_between(0.10, 1))
    assert restarted(0.10, 300, 60, instances=8).overhead == found.overhead


def test_interrupted_hours_are_paid():
    found = restarted(0.5, 3600, 0)
    job = usage(monthly=False, hours=100.0, starts=1.0, interruptions=found)
    quantities = kinds(price(offer(), job, surcharge_table([])))
    assert quantities["interruption"] == pytest.approx(100 * found.overhead)


def test_cold_starts_by_kind_of_offer_and_habit_of_provider():
    vm, box = cold_start(offer(), 10.5), cold_start(offer(tenancy="serverless"), 10.5)
    assert (vm.boot_s, vm.image_s, vm.load_s) == (180, 100, 10)
    assert (box.boot_s, box.image_s) == (4, 0)
    assert cold_start(offer(boot_time_s=42), 10.5).boot_s == 42
    assert cold_start(offer(provider="lambda_cloud"), 10.5).billed_s == 110  # boot is not billed there
    assert start_habit("nobody").boot_billed


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 2000), st.sampled_from(["vm", "bare_metal", "serverless", "community"]))
def test_the_more_a_start_finds_the_shorter_it_is(weights_gb, tenancy):
    pulled, cached, attached = (cold_start(offer(tenancy=tenancy), weights_gb, kind) for kind in START_KINDS)
    assert pulled.total_s >= cached.total_s >= attached.total_s
    assert pulled.billed_s >= cached.billed_s >= attached.billed_s
    assert cached.image_s == attached.image_s == 0
    assert pulled.boot_s == cached.boot_s == attached.boot_s


def test_a_start_with_cached_image_and_with_an_attached_volume():
    cached, attached = cold_start(offer(), 21.0, "cached_image"), cold_start(offer(), 19.9, "attached_volume")
    assert (cached.boot_s, cached.image_s, cached.load_s) == (180, 0, pytest.approx(20))
    assert (attached.boot_s, attached.image_s, attached.load_s) == (180, 0, pytest.approx(10))
    assert attached.billed_s == pytest.approx(190)


def test_every_rate_has_a_source_and_a_unit():
    assert all(row["source"] and row["unit"] for row in data_rows("cost_rates.csv"))
    assert len(_rates()) == len(data_rows("cost_rates.csv"))
    assert all(row["source"].startswith("https://") for row in data_rows("cost_starts.csv"))
