"""AWS feeds: region labels that get renamed, types without specifications, spot prices that are missing, not free."""

import dataclasses
import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from catalog.types import Document
from collectors.aws import ADVISOR, FEED, SPOT, Aws
from collectors.aws_places import region_id
from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded

COLLECTOR = Aws()
FETCHED_AT = datetime(2026, 11, 30, tzinfo=UTC)
RANGES = [{"max": 100, "label": ">20%", "index": 4}, {"max": 11, "label": "5-10%", "index": 1},
          {"max": 5, "label": "<5%", "index": 0}]  # fmt: skip


def entry(instance_type, price, place="US East (N. Virginia)", **fields):
    return {
        "Instance Type": instance_type, "Instance Family": "GPU instance", "price": price, "Location": place,
        "License Model": "No License required", "Pre Installed S/W": "NA", "Operating System": "Linux",
        "Network Performance": "Up to 10 Gigabit", "Storage": "EBS only", "Memory": "61 GiB", "vCPU": "8",
        "rateCode": "SKU.JRTCKXETXF.6YS6EN2CT7", **fields,
    }  # fmt: skip


def feed(*entries, place="US East (N. Virginia)", currency="USD"):
    body = {"manifest": {"currencyCode": currency}, "regions": {place: {f"k{i}": e for i, e in enumerate(entries)}}}
    return Document("aws", f"{FEED}/x/Linux/index.json", json.dumps(body).encode(), FETCHED_AT)


def spot(prices, region="us-east-1", rate="perhr", column="linux"):
    sizes = [
        {
            "size": t,
            "valueColumns": [{"name": "mswin", "prices": {"USD": "9.9"}}, {"name": column, "prices": {"USD": p}}],
        }
        for t, p in prices.items()
    ]
    config = {"rate": rate, "currencies": ["USD"], "regions": [
        {"region": region, "instanceTypes": [{"type": "acceleratedComputingCurrentGen", "sizes": sizes}]}]}  # fmt: skip
    return Document("aws", SPOT, json.dumps({"vers": 0.01, "config": config}).encode(), FETCHED_AT)


def advisor(buckets, region="us-east-1"):
    body = {"ranges": RANGES, "instance_types": {}, "spot_advisor": {
        region: {"Linux": {t: {"s": 60, "r": r} for t, r in buckets.items()}}}}  # fmt: skip
    return Document("aws", ADVISOR, json.dumps(body).encode(), FETCHED_AT)


def test_asks_for_every_region_of_the_public_partition():
    names = [r.name for r in COLLECTOR.requests({})]
    assert len(names) == len(set(names)) >= 34
    assert {"ondemand-us-east-1", "ondemand-eu-central-2", "spot", "spot-advisor"} <= set(names)
    assert not [n for n in names if "gov" in n or n.startswith("ondemand-cn")]


@pytest.mark.parametrize(
    ("name", "region"),
    [
        ("EU (Ireland)", "eu-west-1"),
        ("Europe (Ireland)", "eu-west-1"),
        ("EU (Frankfurt)", "eu-central-1"),
        ("Europe (Frankfurt)", "eu-central-1"),
        ("AP (Mumbai)", "ap-south-1"),
        ("South America (São Paulo)", "sa-east-1"),
        ("Canada (Central)", "ca-central-1"),
        ("Mexico (Central)", "mx-central-1"),
        ("Asia Pacific (Osaka-Local)", "ap-northeast-3"),
        ("US West (Northern California)", "us-west-1"),
        ("US East (Northern Virginia)", "us-east-1"),
        ("AWS GovCloud (US-West)", "us-gov-west-1"),
        ("us-east", "us-east-1"),
        ("apac-tokyo", "ap-northeast-1"),
        ("ap-southeast-5", "ap-southeast-5"),
        ("America (Central)", None),
        ("Atlantis", None),
    ],
)
def test_region_labels_and_legacy_ids(name, region):
    assert region_id(name) == region


def test_an_unknown_region_is_said_not_dropped():
    result = COLLECTOR.parse([feed(entry("g5.xlarge", "1.006")), feed(entry("g5.xlarge", "1.1", "Atlantis (Deep)"),
                                                                    place="Atlantis (Deep)")])  # fmt: skip
    assert len(result.rows) == 1
    assert not result.complete
    assert [(r.reason, r.value) for r in result.rejections] == [("region_unknown", "Atlantis (Deep)")]


@pytest.mark.parametrize(
    ("instance_type", "gpu", "count", "fraction", "memory_gb"),
    [
        ("p2.16xlarge", "k80-12gb", 16, "1.00000", 12),
        ("p3.16xlarge", "v100-sxm-16gb", 8, "1.00000", 16),
        ("p3dn.24xlarge", "v100-sxm-32gb", 8, "1.00000", 32),
        ("p4d.24xlarge", "a100-sxm-40gb", 8, "1.00000", 40),
        ("p5.4xlarge", "h100-sxm-80gb", 1, "1.00000", 80),
        ("p5en.48xlarge", "h200-sxm-141gb", 8, "1.00000", 141),
        ("p6-b200.48xlarge", "b200-sxm-180gb", 8, "1.00000", 180),
        ("p6e-gb200.36xlarge", "gb200-186gb", 4, "1.00000", 186),
        ("g3.16xlarge", "m60-8gb", 4, "1.00000", 8),
        ("g4ad.16xlarge", "radeon-pro-v520-8gb", 4, "1.00000", 8),
        ("g5g.16xlarge", "t4-16gb", 2, "1.00000", 16),
        ("g6.48xlarge", "l4-24gb", 8, "1.00000", 24),
        ("g6f.2xlarge", "l4-24gb", 1, "0.25000", 6),
        ("gr6f.4xlarge", "l4-24gb", 1, "0.50000", 12),
        ("g7e.12xlarge", "rtx-pro-6000-blackwell-server-96gb", 2, "1.00000", 96),
        ("trn1.32xlarge", "trainium-32gb", 16, "1.00000", 32),
        ("trn2.48xlarge", "trainium2-96gb", 16, "1.00000", 96),
        ("inf1.24xlarge", "inferentia-8gb", 16, "1.00000", 8),
        ("inf2.48xlarge", "inferentia2-32gb", 12, "1.00000", 32),
        ("dl1.24xlarge", "gaudi-32gb", 8, "1.00000", 32),
    ],
)
def test_types_hold_what_the_reviewed_table_says(instance_type, gpu, count, fraction, memory_gb):
    [row] = COLLECTOR.parse([feed(entry(instance_type, "5.0"))]).rows
    offer = row.offer
    assert (offer.gpu, offer.gpu_count, str(offer.gpu_fraction)) == (gpu, count, fraction)
    assert offer.gpu_memory_gb == pytest.approx(memory_gb, rel=0.01)


def test_unknown_types_are_seen_cpu_types_are_not():
    result = COLLECTOR.parse([feed(entry("g5.xlarge", "1.006"), entry("g9.xlarge", "2.0"),
                                   entry("m5.large", "0.096", **{"Instance Family": "General purpose"}))])  # fmt: skip
    assert [r.offer.instance_type for r in result.rows] == ["g5.xlarge"]
    assert result.unmapped == ("g9.xlarge",)


@pytest.mark.parametrize(
    "other",
    [{"rateCode": "SKU.4NA7Y494T4.6YS6EN2CT7"}, {"Operating System": "Windows"}, {"Pre Installed S/W": "SQL Ent"}],
)
def test_other_terms_and_systems_are_not_the_linux_price(other):
    [row] = COLLECTOR.parse([feed(entry("g5.xlarge", "0.7", **other), entry("g5.xlarge", "1.006"))]).rows
    assert row.quote.price == Decimal("1.006")


def test_zero_is_no_price_and_capacity_blocks_are_a_third_state():
    result = COLLECTOR.parse([feed(entry("p5e.48xlarge", "0.0000000000"), entry("g5.xlarge", "0.0000000000"))])
    [block] = result.rows
    assert (block.offer.purchase_option, block.quote.price) == ("scheduled", None)
    assert "capacity_block_only" in block.quote.flags
    assert [r.reason for r in result.rejections] == ["not_a_price"]


def test_currency_is_the_feeds():
    [row] = COLLECTOR.parse([feed(entry("g5.xlarge", "7.1", "China (Beijing)"), currency="CNY")]).rows
    assert (row.quote.currency, row.quote.price_usd_hour, row.offer.country) == ("CNY", None, "CN")
    assert row.quote.availability == "limited"


def test_spot_takes_linux_and_its_interruption_bucket():
    prices = {"g5.xlarge": "0.45", "g4dn.xlarge": "0.1578", "m5.large": "0.03"}
    result = COLLECTOR.parse([spot(prices, region="us-east"), advisor({"g5.xlarge": 4, "g4dn.xlarge": 1})])
    read = {r.offer.instance_type: (r.offer.region, r.quote.price, r.quote.interruption_rate) for r in result.rows}
    assert read == {
        "g5.xlarge": ("us-east-1", Decimal("0.45"), 0.2),
        "g4dn.xlarge": ("us-east-1", Decimal("0.1578"), 0.1),
    }
    assert [r.offer.instance_type for r in result.rows if "interruption_rate_lower_bound" in r.quote.flags] == [
        "g5.xlarge"
    ]


@pytest.mark.parametrize("missing", ["0", "0.0000", "N/A", "N/A*"])
def test_a_missing_spot_price_is_neither_free_nor_invented(missing):
    result = COLLECTOR.parse([feed(entry("g6.xlarge", "0.8048")), spot({"g6.xlarge": missing, "g5.xlarge": "0.4"}),
                              advisor({"g6.xlarge": 1})])  # fmt: skip
    assert [(r.offer.instance_type, r.offer.purchase_option) for r in result.rows] == [
        ("g6.xlarge", "on_demand"), ("g5.xlarge", "spot"),
    ]  # fmt: skip
    assert not result.rejections


def test_an_odd_spot_price_is_rejected():
    result = COLLECTOR.parse([spot({"g6.xlarge": "soon", "g5.xlarge": "0.4"})])
    assert [r.offer.instance_type for r in result.rows] == ["g5.xlarge"]
    assert [r.reason for r in result.rejections] == ["not_a_price"]


def test_a_changed_spot_unit_or_column_gives_no_price():
    with pytest.raises(LayoutChanged, match="rate"):
        COLLECTOR.parse([spot({"g5.xlarge": "0.45"}, rate="perday")])
    result = COLLECTOR.parse([spot({"g5.xlarge": "0.45"}, column="unix")])
    assert not result.rows
    assert result.rejections


@pytest.mark.parametrize("key", ["Instance Type", "price", "Location"])
def test_a_renamed_key_is_a_changed_layout(key):
    [document] = [d for d in fixture_documents("aws") if d.name == "ondemand-us-east-1"]
    with pytest.raises(LayoutChanged, match=key):
        COLLECTOR.parse([dataclasses.replace(document, body=document.body.replace(f'"{key}"'.encode(), b'"renamed"'))])


def test_empty_and_truncated_answers_are_never_an_empty_success():
    documents = {d.name: d for d in fixture_documents("aws")}
    for name in ("ondemand-us-east-1", "spot", "spot-advisor"):
        for body in (b"", documents[name].body[:-100], b"[]", b"{}"):
            with pytest.raises(LayoutChanged):
                COLLECTOR.parse([dataclasses.replace(documents[name], body=body)])
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([feed()])
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([])


@pytest.mark.needs_recordings
def test_public_recordings_read_as_a_person_reads_them(recordings):
    names = [
        "awsstatic_ec2-ondemand-without-sec-sel_us-east-1_Linux.gpu.json",
        "awsstatic_ec2-ondemand-without-sec-sel_us-east-2_Linux.gpu.json",
        "spot.json_shape_example.json",
        "spot-advisor-data.gpu.json",
    ]
    result = COLLECTOR.parse([read_recorded(recordings / name, "aws") for name in names])
    assert not result.rejections
    assert not result.unmapped
    read = {
        (r.offer.instance_type, r.offer.region): (r.offer.gpu, r.offer.gpu_count, r.quote.price) for r in result.rows
    }
    assert len(result.rows) == 16
    assert read == {
        ("g6e.48xlarge", "us-east-1"): ("l40s-48gb", 8, Decimal("30.13118")),
        ("p4de.24xlarge", "us-east-1"): ("a100-sxm-80gb", 8, Decimal("27.44705")),
        ("p5.48xlarge", "us-east-1"): ("h100-sxm-80gb", 8, Decimal("55.04")),
        ("g6e.12xlarge", "us-east-1"): ("l40s-48gb", 4, Decimal("10.49264")),
        ("p5en.48xlarge", "us-east-1"): ("h200-sxm-141gb", 8, Decimal("63.296")),
        ("p6-b300.48xlarge", "us-east-1"): ("b300-sxm-288gb", 8, Decimal("142.416")),
        ("p4d.24xlarge", "us-east-1"): ("a100-sxm-40gb", 8, Decimal("21.957642")),
        ("g6e.xlarge", "us-east-1"): ("l40s-48gb", 1, Decimal("1.861")),
        ("p5.4xlarge", "us-east-1"): ("h100-sxm-80gb", 1, Decimal("6.88")),
        ("p6-b200.48xlarge", "us-east-1"): ("b200-sxm-180gb", 8, Decimal("113.9328")),
        ("p5.4xlarge", "us-east-2"): ("h100-sxm-80gb", 1, Decimal("6.88")),
        ("g6e.48xlarge", "us-east-2"): ("l40s-48gb", 8, Decimal("30.13118")),
        ("p4d.24xlarge", "us-east-2"): ("a100-sxm-40gb", 8, Decimal("21.95764")),
        ("p5.48xlarge", "us-east-2"): ("h100-sxm-80gb", 8, Decimal("55.04")),
        ("p5en.48xlarge", "us-east-2"): ("h200-sxm-141gb", 8, Decimal("63.296")),
        ("p6-b200.48xlarge", "us-east-2"): ("b200-sxm-180gb", 8, Decimal("113.9328")),
    }
    advisor_document = read_recorded(recordings / names[3], "aws")
    raw = json.loads(advisor_document.body)
    assert raw["spot_advisor"]["us-east-2"]["Linux"]["p5en.48xlarge"]["r"] == 4
    [row] = COLLECTOR.parse([spot({"p5en.48xlarge": "26.5714"}, region="us-east-2"), advisor_document]).rows
    assert row.quote.interruption_rate == 0.2
