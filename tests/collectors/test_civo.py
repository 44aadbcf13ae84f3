"""Civo: hourly beside monthly figures, commitments by block, sizes without an on-demand price, units of memory."""

import dataclasses
from decimal import Decimal
from pathlib import Path

import pytest

from collectors.civo import Civo
from collectors.errors import Blocked, LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded

RECORDING = Path(__file__).resolve().parents[2].parent / "shared" / "recordings" / "civo" / "pricing_excerpt.html"


def page_with(*changes):
    (document,) = fixture_documents("civo")
    text = document.text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return dataclasses.replace(document, body=text.encode())


def parse(*changes):
    return Civo().parse([page_with(*changes)])


def test_blocked_and_empty_pages_are_refused():
    page = page_with()
    with pytest.raises(Blocked):
        Civo().parse([dataclasses.replace(page, body=b"<title>Just a moment...</title>", status=403)])
    for body in (b"", b"<h1>Pricing</h1>", page.body[:150]):
        with pytest.raises(LayoutChanged):
            Civo().parse([dataclasses.replace(page, body=body)])


def prices(result, name):
    return {r.offer.commitment_days: r.quote.price for r in result.rows if r.offer.instance_type == name}


def test_commitments_stand_beside_the_on_demand_price():
    assert prices(parse(), "NVIDIA L40S 48GB Small") == {
        0: Decimal("1.29"), 182: Decimal("1.19"), 365: Decimal("1.09"), 730: Decimal("0.99"), 1095: Decimal("0.89")
    }  # fmt: skip


def test_a_size_that_is_only_committed_has_no_on_demand_offer():
    assert set(prices(parse(), "NVIDIA B200 Extra Large")) == {365, 730, 1095}


def test_the_hidden_monthly_figure_is_not_the_price():
    assert max(r.quote.price for r in parse().rows) < 40


def test_prices_are_of_the_instance():
    row = next(r for r in parse().rows if r.offer.instance_type == "NVIDIA H100 SXM Extra Large")
    assert (row.offer.gpu_count, row.quote.price_usd_hour, row.quote.price_usd_gpu_hour) == (8, 23.92, 2.99)


def test_memory_in_terabytes():
    assert {r.offer.memory_gib for r in parse().rows if "B200" in r.offer.instance_type} == {2560}


def test_a_size_without_a_count_is_rejected():
    result = parse(("8 x NVIDIA B200 - 180GB", "NVIDIA B200"))
    assert [(r.reason, r.value) for r in result.rejections] == [("gpu_count", "NVIDIA B200")]


@pytest.mark.parametrize(
    "change",
    [
        ('id="nvidia-gpus"', 'id="gpus"'),
        ('data-title="On-demand price"', 'data-title="Price"'),
        ('data-title="Commitment price"', 'data-title="Deal"'),
        ('data-option="hourly"', 'data-option="h"'),
        ("product-detail", "detail"),
    ],
)
def test_a_changed_page_is_refused(change):
    with pytest.raises(LayoutChanged):
        parse(change)


@pytest.mark.needs_recordings
def test_recorded_page():
    if not RECORDING.is_file():
        pytest.skip("recordings are not here")
    result = Civo().parse([read_recorded(RECORDING, "civo")])
    assert len(result.rows) == 15
    by_hand = {
        "NVIDIA L40S 48GB Small": [1.29, 1.19, 1.09, 0.99, 0.89],
        "NVIDIA L40S 48GB Medium": [2.58, 2.38, 2.18, 1.98, 1.78],
        "NVIDIA L40S 48GB Large": [5.16, 4.76, 4.36, 3.96, 3.56],
    }
    for name, amounts in by_hand.items():
        assert [float(p) for p in prices(result, name).values()] == amounts
