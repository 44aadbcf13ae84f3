"""Lambda: cluster tables, island scripts, counts in tabs, dashes, the keyed list, and pages that are not the page."""

import dataclasses
import json
from decimal import Decimal

import pytest

from collectors.errors import Blocked, LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded
from collectors.lambda_cloud import LambdaCloud


def documents():
    return {d.name: d for d in fixture_documents("lambda_cloud")}


def with_body(document, body):
    return dataclasses.replace(document, body=body.encode())


def parse(*docs):
    return LambdaCloud().parse(docs)


def page_with(old, new):
    page = documents()["pricing"]
    assert old in page.text()
    return with_body(page, page.text().replace(old, new))


def test_each_row_is_read_once_although_it_stands_twice_on_the_page():
    rows = parse(documents()["pricing"]).rows
    skus = [r.offer.source_sku for r in rows]
    assert len(skus) == len(set(skus)) == 29
    assert sum(r.offer.purchase_option == "on_demand" for r in rows) == 22


def test_the_count_comes_from_the_tab_and_the_price_is_per_gpu():
    row = next(r for r in parse(documents()["pricing"]).rows if r.offer.source_sku == "4x-nvidia-b200-sxm6-180-gb")
    assert (row.offer.gpu_count, row.quote.price, row.quote.price_scope) == (4, Decimal("6.79"), "gpu")
    assert row.quote.price_usd_hour == pytest.approx(27.16)


def test_another_tab_text_means_another_count():
    rows = parse(page_with(">4x</button>", ">6x</button>")).rows
    assert {r.offer.gpu_count for r in rows if r.offer.purchase_option == "on_demand"} == {1, 2, 6, 8}


def test_a_tab_without_a_count_is_refused():
    with pytest.raises(LayoutChanged, match="aria-labelledby"):
        parse(page_with(">4x</button>", ">Four</button>"))


def test_a_dash_is_sold_on_request_and_has_no_price():
    rows = [r for r in parse(documents()["pricing"]).rows if r.offer.commitment_days == 365]
    assert [r.quote.price for r in rows] == [None]
    assert rows[0].quote.flags == ("on_request", "unpriced")


def test_cluster_rows_are_reserved_for_the_shortest_term():
    rows = [r for r in parse(documents()["pricing"]).rows if r.offer.purchase_option == "reserved" and r.quote.price]
    assert {r.offer.commitment_days for r in rows} == {14}
    assert {r.offer.billing_increment_s for r in rows} == {7 * 86_400}
    assert {r.offer.gpu_count for r in rows} == {16, 64, 256}


def test_memory_of_the_row_decides_between_two_products_of_one_name():
    rows = parse(documents()["pricing"]).rows
    eight = {r.offer.gpu: r.quote.price for r in rows if r.offer.gpu_count == 8 and "A100" in r.offer.instance_type}
    assert eight == {"a100-sxm-80gb": Decimal("2.79"), "a100-sxm-40gb": Decimal("1.99")}


def test_stock_comes_from_the_keyed_list():
    rows = parse(*documents().values()).rows
    a6000 = {r.offer.region for r in rows if r.offer.instance_type == "gpu_4x_a6000"}
    assert a6000 == {"us-east-1", "us-west-2", "europe-central-1"}
    empty = next(r for r in rows if r.offer.instance_type == "gpu_8x_h100_sxm5gdr")
    assert (empty.offer.region, empty.quote.availability) == ("", "unavailable")
    assert not any(r.offer.instance_type.startswith("cpu_") for r in rows)
    assert not any(r.offer.source_sku == "8x-nvidia-h100-sxm-80-gb" for r in rows), "listed once, by the API"


def changed_api(change):
    document = documents()["instance-types"]
    data = json.loads(document.body)
    change(data["data"]["gpu_4x_a6000"]["instance_type"])
    return with_body(document, json.dumps(data))


def test_a_page_price_that_differs_is_flagged_and_the_charged_one_kept():
    api = changed_api(lambda t: t.update(price_cents_per_hour=400))
    rows = [r for r in parse(documents()["pricing"], api).rows if r.offer.instance_type == "gpu_4x_a6000"]
    assert {(r.quote.price, r.quote.flags) for r in rows} == {(Decimal(4), ("page_price_differs",))}


def test_zero_cents_are_no_price():
    result = parse(changed_api(lambda t: t.update(price_cents_per_hour=0)))
    assert not any(r.offer.instance_type == "gpu_4x_a6000" for r in result.rows)
    assert {r.reason for r in result.rejections} == {"not_a_price"}


def test_a_key_missing_in_one_type_costs_that_type_only():
    result = parse(changed_api(lambda t: t.pop("price_cents_per_hour")))
    assert not any(r.offer.instance_type == "gpu_4x_a6000" for r in result.rows)
    assert {r.offer.instance_type for r in result.rows} >= {"gpu_2x_a6000", "gpu_8x_v100_n"}
    assert {r.reason for r in result.rejections} == {"not_a_price"}


@pytest.mark.parametrize("key", ["price_cents_per_hour", "specs"])
def test_a_key_missing_everywhere_names_itself(key):
    document = documents()["instance-types"]
    data = json.loads(document.body)
    for entry in data["data"].values():
        entry["instance_type"].pop(key)
    with pytest.raises(LayoutChanged, match=key):
        parse(with_body(document, json.dumps(data)))


def test_an_empty_list_of_types_is_refused():
    with pytest.raises(LayoutChanged):
        parse(with_body(documents()["instance-types"], '{"data": {}}'))


def test_an_error_body_of_the_api_is_refused():
    body = '{"error": {"code": "global/invalid-api-key", "message": "API key was invalid"}}'
    with pytest.raises(LayoutChanged, match="data"):
        parse(with_body(documents()["instance-types"], body))


@pytest.mark.parametrize(
    ("old", "new", "selector"),
    [
        ('data-label="VRAM/GPU"', 'data-label="MEMORY"', "VRAM/GPU"),
        ('data-label="PRICE/GPU/HR*"', 'data-label="PRICE/NODE/HR*"', "PRICE/GPU/HR"),
        ('<tr class="r-vq4" data-plan=', '<tr class="r-vq4" data-name=', "data-plan"),
    ],
)
def test_a_changed_page_is_refused(old, new, selector):
    with pytest.raises(LayoutChanged, match=selector):
        parse(page_with(old, new))


def test_class_names_do_not_matter():
    assert len(parse(page_with("-vq4", "-zz9")).rows) == 29


def test_challenge_and_empty_pages_are_never_an_empty_success():
    page = documents()["pricing"]
    with pytest.raises(Blocked):
        parse(dataclasses.replace(with_body(page, "<title>Just a moment...</title>"), status=503))
    with pytest.raises(LayoutChanged):
        parse(with_body(page, ""))
    with pytest.raises(LayoutChanged):
        parse(with_body(page, page.text()[:3000]))


@pytest.mark.needs_recordings
def test_recorded_page(recordings):
    path = recordings / "pricing_page_excerpt.html"
    document = read_recorded(path, "lambda_cloud")
    rows = {r.offer.source_sku: r for r in parse(document).rows}
    assert len(rows) == 30
    by_hand = {
        "8x-nvidia-b200-sxm6-180-gb": ("b200-sxm-180gb", 8, "6.69"),
        "8x-nvidia-a100-sxm-40-gb": ("a100-sxm-40gb", 8, "1.99"),
        "4x-nvidia-h100-sxm-80-gb": ("h100-sxm-80gb", 4, "4.09"),
        "2x-nvidia-a6000-48-gb": ("rtx-a6000-48gb", 2, "1.09"),
        "1x-nvidia-gh200-96-gb": ("gh200-96gb", 1, "2.29"),
        "1x-nvidia-h100-pcie-80-gb": ("h100-pcie-80gb", 1, "3.29"),
        "1-click-cluster-nvidia-h100-x256": ("h100", 256, "5.54"),
    }
    for sku, (gpu, count, price) in by_hand.items():
        row = rows[sku]
        assert (row.offer.gpu, row.offer.gpu_count, str(row.quote.price)) == (gpu, count, price)
        assert f"${price}" in document.text()
