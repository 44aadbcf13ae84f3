"""OVHcloud: units of 1e-8, tiers by plan code, two companies, and a catalog of full size in bounded memory."""

import dataclasses
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents
from collectors.ovh import Ovh

COLLECTOR = Ovh()


@pytest.fixture
def catalogs():
    return {d.name: d for d in fixture_documents("ovh")}


def with_addon(document, code, change):
    content = json.loads(document.body)
    change(next(a for a in content["addons"] if a["planCode"] == code))
    return dataclasses.replace(document, body=json.dumps(content).encode())


def rows(*documents):
    return {(r.offer.source_sku, r.offer.region): r for r in COLLECTOR.parse(documents).rows}


def test_asks_both_companies(catalogs):
    requests = list(COLLECTOR.requests({}))
    assert {r.name for r in requests} == set(catalogs)
    assert {r.url for r in requests} == {d.url for d in catalogs.values()}


def test_prices_are_exact_and_in_the_catalog_currency(catalogs):
    found = rows(*catalogs.values())
    h200 = found["h200-1920.consumption", ""]
    assert (h200.quote.price, h200.quote.currency) == (Decimal("42.00000000"), "EUR")
    assert h200.quote.price_usd_hour is None  # no exchange rate in a parser
    l40s = found["l40s-90.consumption", ""]
    assert (l40s.quote.price, l40s.quote.currency, l40s.offer.variant) == (Decimal("1.8"), "USD", "us")
    assert l40s.offer.country is None


def test_the_tier_is_the_end_of_the_plan_code(catalogs):
    for unit in ("none", "month", "minute"):
        changed = with_addon(
            catalogs["catalog-fr"],
            "h100-380.consumption",
            lambda a, unit=unit: a["pricings"][0].update(intervalUnit=unit),
        )
        assert rows(changed)["h100-380.consumption", ""].quote.price_unit == "hour"
    monthly = rows(catalogs["catalog-fr"])["h100-380.monthly.postpaid", ""]
    assert (monthly.quote.price_unit, monthly.offer.purchase_option, monthly.offer.commitment_days) == (
        "month", "reserved", 30,
    )  # fmt: skip


def test_what_is_not_a_linux_gpu_instance_is_left_out(catalogs):
    result = COLLECTOR.parse(list(catalogs.values()))
    codes = {r.offer.source_sku for r in result.rows}
    assert not [c for c in codes if c.startswith(("win-", "ai-", "b3-"))]
    reasons = {(r.reason, r.value) for r in result.rejections}
    assert ("tier_unknown", "h100-380.hourly.prepaid") in reasons
    assert ("not_a_price", "0") in reasons
    assert "l40s-90.monthly" not in {r.value for r in result.rejections}


def test_coming_soon_has_a_price_and_cannot_be_had(catalogs):
    soon = rows(catalogs["catalog-fr"])["a10-45.consumption", ""]
    assert (soon.quote.availability, soon.quote.price) == ("unavailable", Decimal("0.76"))
    assert soon.quote.flags == ("coming_soon",)


def test_regions_of_any_addon_of_a_plan_count(catalogs):
    def change(addon):
        addon["configurations"] = [{"name": "region", "values": ["US-EAST-VA-1", "US-WEST-OR-1"]}]

    found = rows(with_addon(catalogs["catalog-us"], "l40s-90.monthly", change))
    assert {region for code, region in found if code == "l40s-90.consumption"} == {"US-EAST-VA-1", "US-WEST-OR-1"}
    assert found["l40s-90.consumption", "US-EAST-VA-1"].offer.country == "US"


def test_zones_of_their_own_price_are_variants(catalogs):
    def change(addon):
        addon["planCode"] += ".3AZ"

    [row] = [
        r
        for r in COLLECTOR.parse([with_addon(catalogs["catalog-fr"], "l4-90.consumption", change)]).rows
        if r.offer.source_sku == "l4-90.consumption.3AZ"
    ]
    assert row.offer.variant == "3az"


def test_addons_nested_in_plans_are_read(catalogs):
    content = json.loads(catalogs["catalog-fr"].body)
    content["plans"][0]["addonFamilies"][0]["addons"] = content["addons"]
    content["addons"] = []
    moved = dataclasses.replace(catalogs["catalog-fr"], body=json.dumps(content).encode())
    assert rows(moved).keys() == rows(catalogs["catalog-fr"]).keys()


def test_a_price_that_its_own_text_contradicts_is_rejected(catalogs):
    def change(addon):
        addon["pricings"][0]["price"] = 2_800_000  # as if the unit were 1e-6

    result = COLLECTOR.parse([with_addon(catalogs["catalog-fr"], "h100-380.consumption", change)])
    assert ("price_disagrees", "formattedPrice") in {(r.reason, r.field) for r in result.rejections}
    assert "h100-380.consumption" not in {r.offer.source_sku for r in result.rows}


def test_rounded_text_does_not_contradict(catalogs):
    changed = with_addon(
        catalogs["catalog-fr"],
        "l4-90.consumption",
        lambda a: a["pricings"][0].update(price=75_490_000, formattedPrice="0,75 €"),
    )
    assert rows(changed)["l4-90.consumption", ""].quote.price == Decimal("0.7549")


def test_two_prices_for_one_plan_are_not_guessed(catalogs):
    def change(addon):
        addon["pricings"].append({**addon["pricings"][0], "price": 1})

    result = COLLECTOR.parse([with_addon(catalogs["catalog-fr"], "l4-90.consumption", change)])
    assert "price_ambiguous" in {r.reason for r in result.rejections}
    installed = with_addon(
        catalogs["catalog-fr"],
        "l4-90.consumption",
        lambda a: a["pricings"].append({"price": 0, "capacities": ["installation"]}),
    )
    assert rows(installed)["l4-90.consumption", ""].quote.price == Decimal("0.75")


@pytest.mark.parametrize("number", [0, 0.5, None, "two"])
def test_a_count_that_is_none_is_rejected(catalogs, number):
    changed = with_addon(
        catalogs["catalog-fr"],
        "h100-380.consumption",
        lambda a: a["blobs"]["technical"]["gpu"].update(number=number),
    )
    assert "gpu_count" in {r.reason for r in COLLECTOR.parse([changed]).rejections}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"addons": [', b'"items": ['),
        (b'"currencyCode"', b'"currency"'),
        (b'"brick": "gpu"', b'"brick": "accelerator"'),
        (b'"subsidiary": "FR"', b'"subsidiary": "DE"'),
        (b'"locale"', b'"place"'),
    ],
)
def test_another_shape_is_a_changed_catalog(catalogs, old, new):
    document = catalogs["catalog-fr"]
    assert old in document.body
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(document, body=document.body.replace(old, new))])


@pytest.mark.parametrize("body", [b"", b"{}", b'{"locale": {"currencyCode": "EUR"}, "addons": []}', b'{"locale": {'])
def test_an_empty_or_cut_catalog_is_never_an_empty_success(catalogs, body):
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([dataclasses.replace(catalogs["catalog-fr"], body=body)])


FULL_SIZE = """
import json, sys
from datetime import datetime, UTC
from pathlib import Path
from catalog.types import Document
from collectors.ovh import Ovh
catalog = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
filler = json.dumps(catalog["addons"][0])
real = [json.dumps(addon) for addon in catalog["addons"]]
head = json.dumps({k: v for k, v in catalog.items() if k != "addons"})[:-1] + ', "addons": ['
del catalog
count = 8 * 2**20 // len(filler)
body = (head + ", ".join([filler.replace("b3-8.", f"b3-{n}.") for n in range(count)] + real) + "]}").encode()
documents = [
    Document("ovh", url, body.replace(b'"FR"', s), datetime.now(UTC))
    for url, s in zip(Ovh.sources, (b'"FR"', b'"US"'), strict=True)
]
del body
rows = Ovh().parse(documents).rows
status = Path("/proc/self/status").read_text()  # ru_maxrss would count what the parent had before it started this
peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
print(len(documents[0].body), len(rows), peak)
"""


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="peak memory is read from Linux's /proc")
def test_two_catalogs_of_full_size_stay_below_300_mib():
    root = Path(__file__).resolve().parents[2]
    run = subprocess.run(
        [sys.executable, "-c", FULL_SIZE, str(root / "fixtures" / "ovh" / "catalog-fr.json")],
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    size, count, peak_kib = map(int, run.stdout.split())
    assert size > 8 * 2**20
    assert count == 16
    assert peak_kib < 300 * 1024


@pytest.mark.needs_recordings
def test_plans_agree_with_recorded_specifications(catalogs, recordings):
    """The recordings hold no catalog, only another project's specifications of the same plans."""
    specs = {s["server_id"]: s for s in json.loads((recordings / "sparecores_gpu_servers.json").read_bytes())}
    compared = 0
    for row in COLLECTOR.parse(list(catalogs.values())).rows:
        spec = specs.get(row.offer.instance_type)
        if spec:
            assert row.offer.gpu_count == spec["gpu_count"]
            assert row.offer.gpu_memory_gb == spec["gpu_memory_min"] / 1024
            assert (row.offer.vcpu_count, row.offer.memory_gib) == (spec["vcpus"], spec["memory_amount"] / 1024)
            assert row.offer.local_storage_gb == spec["storage_size"]
            compared += 1
    assert compared == 8
