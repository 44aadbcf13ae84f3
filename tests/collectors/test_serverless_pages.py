"""Modal, Cerebrium, Beam, Baseten: units of time, meters beside the GPU, decoys, slices, changed pages."""

from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged
from collectors.registry import collector

PAGES = ("modal", "cerebrium", "beam", "baseten")


@pytest.fixture
def parse(changed_page):
    """`parse(provider, (old, new), …)`: what is read in that provider's page with texts replaced."""
    return lambda provider, *changes: collector(provider).parse([changed_page(provider, *changes)])


def row(result, name, tenancy="serverless"):
    return next(r for r in result.rows if r.offer.instance_type == name and r.offer.tenancy == tenancy)


@pytest.mark.parametrize(("provider", "unit"), [("modal", " / sec"), ("cerebrium", "/s<"), ("beam", " /sec")])
def test_a_price_without_a_unit_is_refused(provider, unit, parse):
    if provider == "beam":
        assert not [r for r in parse(provider, (unit, "")).rows if r.offer.tenancy == "serverless"]
    else:
        with pytest.raises(LayoutChanged, match="unit of time"):
            parse(provider, (unit, unit[-1] if unit.endswith("<") else ""))


def test_the_unit_is_the_one_that_stands_in_the_price(parse):
    result = parse("modal", ("$0.001097 / sec", "$3.9492 / h"))
    found = row(result, "Nvidia H100 x1")
    assert (found.quote.price_unit, found.quote.price_usd_hour) == ("hour", pytest.approx(3.9492))
    assert row(result, "Nvidia T4 x1").quote.price_unit == "second"


def test_modal_sells_up_to_eight_but_a10_up_to_four(parse):
    counts = {}
    for r in parse("modal").rows:
        counts.setdefault(r.offer.gpu, []).append(r.offer.gpu_count)
    assert counts["t4-16gb"] == [1, 2, 4, 8]
    assert counts["a10-24gb"] == [1, 2, 4]


def test_processor_and_memory_are_meters_per_hour(parse):
    meters = {s.kind: (s.price, s.unit) for s in parse("modal").surcharges}
    assert meters["cpu"] == (Decimal("0.04716"), "core_hour")
    assert meters["memory"] == (Decimal("0.007992"), "gib_hour")
    storage = next(s for s in parse("cerebrium").surcharges if s.kind == "block_storage")
    assert (storage.price, storage.unit, storage.included_quantity) == (Decimal("0.05"), "gb_month", 100)


@pytest.mark.parametrize("provider", PAGES)
def test_plan_fees_and_processors_are_no_offers(provider, parse):
    result = parse(provider)
    assert all(r.offer.gpu for r in result.rows)
    assert not result.unmapped
    assert not [r for r in result.rows if r.quote.price in {Decimal(100), Decimal(89), Decimal(30), Decimal(250)}]


def test_markup_does_not_matter(parse):
    changes = (
        ('<div class="line-item svelte-1x"><p class="text-sm">', "<section><b>"),
        ('</p><p class="price text-right">', "</b><i>"),
        ("</p></div>", "</i></section>"),
    )
    plain = parse("modal", *changes)
    assert [r.quote.price for r in plain.rows] == [r.quote.price for r in parse("modal").rows]


def test_a_new_gpu_under_the_heading_is_kept_as_unmapped(parse):
    result = parse("modal", ("Nvidia H100<", "Nvidia X900<"))
    assert result.unmapped == ("Nvidia X900",)


def test_a_new_gpu_in_a_table_of_gpus_is_kept_as_unmapped(parse):
    assert parse("baseten", (">A10G<", ">Zorblax Z900<")).unmapped == ("Zorblax Z900",)


def test_beam_lists_one_chip_on_two_terms(parse):
    result = parse("beam")
    assert row(result, "H100 PCIE x1").quote.price == Decimal("0.000986")
    dedicated = row(result, "H100 PCIe x1", "vm")
    assert (dedicated.quote.price, dedicated.quote.flags) == (Decimal("1.74"), ("from_price",))
    assert dedicated.offer.billing_increment_s == 3600


def test_baseten_takes_the_unit_from_the_table_header(parse):
    assert row(parse("baseten"), "T4 x1").quote.price_unit == "minute"
    hourly = parse("baseten", ("Price per minute", "Price per hour"))
    assert row(hourly, "T4 x1").quote.price_unit == "hour"
    with pytest.raises(LayoutChanged):
        parse("baseten", ("Price per minute", "Price"))


def test_a_slice_is_not_a_whole_gpu(parse):
    found = row(parse("baseten"), "H100 MIG 40GB x1")
    assert found.offer.gpu_fraction == Decimal("0.42857")
    assert found.offer.gpu_memory_gb == 40
    unsized = parse("baseten", ("40 GiB VRAM, 8 vCPUs, 59 GiB RAM", "8 vCPUs"))
    assert [r.reason for r in unsized.rejections] == ["slice_size"]
