"""AWS price list files: two rows that make one reservation, plans apart from reservations, and files sieved small."""

import csv
import dataclasses
import io
import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from catalog.types import Document
from collectors.aws_bulk import HOST, PLANS, REGIONS, AwsBulk
from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents
from collectors.line_sieve import LineSieve

COLLECTOR = AwsBulk()
AT = datetime(2026, 11, 30, tzinfo=UTC)
META = [
    ["FormatVersion", "v1.0"],
    ["Disclaimer", "x"],
    ["Publication Date", "2026"],
    ["Version", "1"],
    ["OfferCode", "x"],
]
EC2 = {
    "SKU": "S1", "OfferTermCode": "T1", "RateCode": "r", "TermType": "Reserved", "Unit": "Hrs", "PricePerUnit": "1.0",
    "Currency": "USD", "LeaseContractLength": "1yr", "PurchaseOption": "No Upfront", "OfferingClass": "standard",
    "Instance Type": "g4dn.xlarge", "Operating System": "Linux", "Tenancy": "Shared", "Pre Installed S/W": "NA",
    "usageType": "BoxUsage:g4dn.xlarge", "Region Code": "us-east-1",
}  # fmt: skip
PLAN = {
    "SKU": "P1", "RateCode": "r", "Unit": "Hrs", "DiscountedRate": "0.4", "Currency": "USD", "DiscountedSKU": "S1",
    "DiscountedUsageType": "BoxUsage:g4dn.xlarge", "DiscountedOperation": "RunInstances",
    "PurchaseOption": "No Upfront", "LeaseContractLength": "1",
    "LeaseContractLengthUnit": "year", "Product Family": "ComputeSavingsPlans",
    "DiscountedRegionCode": "us-east-1",
}  # fmt: skip
TRANSFER = {
    "SKU": "D1", "Transfer Type": "AWS Outbound", "To Location": "External", "StartingRange": "0", "Unit": "GB",
    "PricePerUnit": "0.09", "Currency": "USD", "From Region Code": "us-east-1",
}  # fmt: skip


def document(path, template, *changes):
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([*META, list(template), *[list((template | c).values()) for c in changes]])
    return Document("aws_bulk", HOST + path, text.getvalue().encode(), AT)


def ec2(*changes, template=EC2):
    return document("/offers/v1.0/aws/AmazonEC2/current/us-east-1/index.csv", template, *changes)


def plans(*changes):
    return document("/savingsPlan/v1.0/aws/AWSComputeSavingsPlan/1/us-east-1/index.csv", PLAN, *changes)


def transfer(*changes):
    return document("/offers/v1.0/aws/AWSDataTransfer/current/us-east-1/index.csv", TRANSFER, *changes)


def read(result):
    return {(r.offer.source_sku, r.offer.commitment_days, r.offer.upfront): r.quote for r in result.rows}


def test_rows_are_amazons_own_and_not_a_provider_more():
    rows = COLLECTOR.parse(fixture_documents("aws_bulk")).rows
    assert {(r.offer.provider, r.offer.via) for r in rows} == {("aws", "")}
    assert not COLLECTOR.counted
    assert not COLLECTOR.on_demand


def test_fee_and_hourly_rate_make_one_price():
    partial = {"PurchaseOption": "Partial Upfront", "OfferTermCode": "T2"}
    whole = {"PurchaseOption": "All Upfront", "OfferTermCode": "T3", "LeaseContractLength": "3yr"}
    result = COLLECTOR.parse(
        [ec2({"PricePerUnit": "0.331"}, {**partial, "PricePerUnit": "0.158"},
             {**partial, "Unit": "Quantity", "PricePerUnit": "1383"}, {**whole, "PricePerUnit": "0.0"},
             {**whole, "Unit": "Quantity", "PricePerUnit": "5000"})]
    )  # fmt: skip
    quotes = read(result)
    assert quotes["g4dn.xlarge", 365, "none"].price_usd_hour == 0.331
    assert quotes["g4dn.xlarge", 365, "partial"].price == Decimal(1383) + Decimal("0.158") * 8760
    assert quotes["g4dn.xlarge", 365, "partial"].price_usd_hour == pytest.approx(0.158 + 1383 / 8760)
    assert quotes["g4dn.xlarge", 1095, "all"].price_usd_hour == pytest.approx(5000 / 26280)
    assert len(quotes) == 3


@pytest.mark.parametrize(
    "alone",
    [
        [{"PurchaseOption": "Partial Upfront", "PricePerUnit": "0.158"}],
        [{"PurchaseOption": "Partial Upfront", "PricePerUnit": "1383", "Unit": "Quantity"}],
        [{"PurchaseOption": "All Upfront", "PricePerUnit": "0.0"}],
        [{"PricePerUnit": "0.331"}, {"PricePerUnit": "0.35"}],
        [{"PricePerUnit": "0.331", "LeaseContractLength": "soon"}],
        [{"PricePerUnit": "0.331", "Unit": "Days"}],
        [{"PricePerUnit": "0.0"}],
    ],
)
def test_half_a_reservation_is_no_price(alone):
    result = COLLECTOR.parse([ec2(*alone)])
    assert not result.rows
    assert result.rejections


def test_other_systems_tenancies_and_classes_are_other_products():
    others = [
        {"Operating System": "Windows"}, {"Tenancy": "Dedicated"}, {"OfferingClass": "convertible"},
        {"Pre Installed S/W": "SQL Ent"}, {"TermType": "OnDemand"}, {"Instance Type": "m5.large"},
    ]  # fmt: skip
    result = COLLECTOR.parse(
        [ec2({"PricePerUnit": "0.331"}, *[{"PricePerUnit": "9", "OfferTermCode": "X", **o} for o in others])]
    )
    assert [(r.offer.instance_type, r.quote.price) for r in result.rows] == [("g4dn.xlarge", Decimal("0.331"))]


def test_plans_are_hourly_whatever_is_paid_upfront():
    result = COLLECTOR.parse(
        [plans({}, {"PurchaseOption": "All Upfront", "DiscountedRate": "0.37"},
               {"Product Family": "EC2InstanceSavingsPlans", "LeaseContractLength": "3", "DiscountedRate": "0.2"},
               {"DiscountedOperation": "RunInstances:0002", "DiscountedRate": "0.9"},
               {"DiscountedUsageType": "DedicatedUsage:g4dn.xlarge"},
               {"DiscountedUsageType": "USE2-UnusedBox:g4dn.xlarge"},
               {"DiscountedUsageType": "BoxUsage:m5.large"})]
    )  # fmt: skip
    assert {k: (q.price, q.price_unit) for k, q in read(result).items()} == {
        ("g4dn.xlarge/compute-savings-plan", 365, "none"): (Decimal("0.4"), "hour"),
        ("g4dn.xlarge/compute-savings-plan", 365, "all"): (Decimal("0.37"), "hour"),
        ("g4dn.xlarge/instance-savings-plan", 1095, "none"): (Decimal("0.2"), "hour"),
    }
    both = COLLECTOR.parse([ec2({"PricePerUnit": "0.331"}), plans({})])
    assert len({r.offer.offer_id for r in both.rows}) == 2


def test_storage_and_egress_are_surcharges_of_the_provider():
    gp3 = {"TermType": "OnDemand", "Unit": "GB-Mo", "PricePerUnit": "0.08", "Instance Type": "",
           "usageType": "USE2-EBS:VolumeUsage.gp3"}  # fmt: skip
    steps = [
        {"StartingRange": "10240", "PricePerUnit": "0.085"},
        {},
        {"To Location": "US East (Ohio)", "PricePerUnit": "0.01"},
    ]
    result = COLLECTOR.parse([ec2(gp3, {"PricePerUnit": "0.331"}), transfer(*steps)])
    storage, egress = result.surcharges
    assert (storage.provider, storage.kind, storage.price, storage.unit) == (
        "aws",
        "block_storage",
        Decimal("0.08"),
        "gb_month",
    )
    assert (egress.kind, egress.price, egress.unit, egress.region) == ("egress", Decimal("0.09"), "gb", "us-east-1")
    assert [(t.from_quantity, t.price) for t in egress.tiers] == [(0, Decimal("0.09")), (10240, Decimal("0.085"))]


def test_columns_are_read_by_name_in_either_spelling():
    renamed = {("Usage Type" if k == "usageType" else k): v for k, v in EC2.items()}
    assert len(COLLECTOR.parse([ec2({"PricePerUnit": "0.331"}, template=renamed)]).rows) == 1
    for column in ("PricePerUnit", "LeaseContractLength", "Tenancy", "OfferingClass", "Unit", "TermType"):
        odd = {("Other" if k == column else k): v for k, v in EC2.items()}
        with pytest.raises(LayoutChanged, match=column.casefold()):
            COLLECTOR.parse([ec2({}, template=odd)])


def test_empty_and_foreign_files_are_never_an_empty_success():
    whole = ec2({"PricePerUnit": "0.331"})
    for body in (b"", b"<html>busy</html>", whole.body[:60]):
        with pytest.raises(LayoutChanged):
            COLLECTOR.parse([dataclasses.replace(whole, body=body)])
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([ec2({"Instance Type": "m5.large"})])
    with pytest.raises(LayoutChanged):
        COLLECTOR.parse([])


def test_the_sieve_keeps_what_is_read_and_drops_the_rest():
    keeps = {r.name: r.keep for r in COLLECTOR.requests({})}
    kept = [{"PricePerUnit": "0.331"}, {"TermType": "OnDemand", "usageType": "EBS:VolumeUsage.gp3"}]
    dropped = [
        {"TermType": "OnDemand"},
        {"Operating System": "Windows"},
        {"Instance Type": "m5.large", "usageType": "BoxUsage:m5.large"},
    ]
    for name, full, small in (
        ("ec2-us-east-1", ec2(*kept, *dropped), ec2(*kept)),
        ("transfer-us-east-1", transfer({}, {"To Location": "EU (Ireland)"}), transfer({})),
    ):
        sieve = LineSieve(keeps[name])
        assert sieve.feed(full.body) + sieve.finish() == small.body


def test_plan_files_are_found_through_the_index():
    path = "/savingsPlan/v1.0/aws/AWSComputeSavingsPlan/7"
    listed = [{"regionCode": r, "versionUrl": f"{path}/{r}/index.json"} for r in ("us-east-1", "me-south-1")]
    index = {"regions": listed}
    found = list(COLLECTOR.follow(Document("aws_bulk", PLANS, json.dumps(index).encode(), AT)))
    assert [r.url for r in found] == [f"{HOST}{path}/us-east-1/index.csv"]
    sieve = LineSieve(found[0].keep)
    body = plans({}, {"DiscountedUsageType": "BoxUsage:m5.large"}).body
    assert sieve.feed(body) + sieve.finish() == plans({}).body
    assert len(REGIONS) == 7
    with pytest.raises(LayoutChanged, match="regions"):
        list(COLLECTOR.follow(Document("aws_bulk", PLANS, b'{"places": []}', AT)))
