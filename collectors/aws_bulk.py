"""AWS price list bulk files: reserved instances, savings plans, block storage and egress, of the main GPU regions.

Documentation: https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-the-aws-price-list-bulk-api.html
* EC2 CSV per region (hundreds of MB, kept lines only): five lines of metadata, the header, then a row per price. Used:
  TermType, Unit (Hrs, or Quantity for the upfront fee), PricePerUnit, Currency, LeaseContractLength (1yr, 3yr),
  PurchaseOption, OfferingClass, Instance Type, Region Code, Operating System, Tenancy, Pre Installed S/W, usageType.
* Savings plan CSV per region, found through region_index.json: DiscountedRate (per instance-hour, whatever is paid
  upfront), PurchaseOption, LeaseContractLength with its unit, Product Family, DiscountedUsageType, DiscountedOperation.
* Data transfer CSV per region: Transfer Type, To Location, StartingRange and EndingRange in GB, PricePerUnit.

Traps: a partial-upfront reservation is two rows of one SKU and term, a fee and an hourly rate, of which either alone is
wrong; a row without its partner gives no price; convertible reservations, other tenancies, systems and software share
the type; column names and their case vary ("Usage Type", "usageType"); on-demand and Capacity Block rows are left to
the quick source; every region's file is on the us-east-1 host.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from catalog.types import Document, Tier, Upfront
from catalog.units import decimal_of
from collectors.aws_instances import gpu_of, offer_fields
from collectors.contract import DAY_S, MINUTE_S, Collector, Expect, Parsed, Request
from collectors.errors import LayoutChanged
from collectors.line_sieve import KeepLines
from collectors.readers import changed, need, read_json
from collectors.rows import RowBuilder

HOST = "https://pricing.us-east-1.amazonaws.com"
REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-central-1", "ap-south-1", "ap-northeast-1")
PLANS = f"{HOST}/savingsPlan/v1.0/aws/AWSComputeSavingsPlan/current/region_index.json"
HEAD_LINES = 6
_TYPE = rb'[":](?:p|g|gr|trn|inf|dl)\d[\w-]*\.\w[\w-]*"'
_EC2_LINES = KeepLines(HEAD_LINES, (((b'"Reserved"', b'"Linux"', b'"Shared"'), _TYPE), ((b"VolumeUsage.gp3",), b"")))
_PLAN_LINES = KeepLines(HEAD_LINES, (((b"BoxUsage:", b'"RunInstances"'), _TYPE),))
_TRANSFER_LINES = KeepLines(HEAD_LINES, (((b'"AWS Outbound"', b'"External"'), b""),))
_UPFRONT: Mapping[str, Upfront] = {"no upfront": "none", "partial upfront": "partial", "all upfront": "all"}
_YEARS = re.compile(r"(\d+)\s*(?:yr|year)?s?", re.IGNORECASE)
_BOX = re.compile(r"(?:^|-)BoxUsage:([\w-]+\.[\w-]+)$")
_HOURS_PER_YEAR = Decimal(8760)
_PLAN_SKUS = {"computesavingsplans": "compute-savings-plan", "ec2instancesavingsplans": "instance-savings-plan"}
_File = Literal["ec2", "plan", "transfer"]


@dataclass(slots=True)
class _Reservation:
    """The two prices of one reservation: what is paid at once and what is paid per hour."""

    row: Mapping[str, str]
    hourly: Decimal | None = None
    fee: Decimal | None = None
    contradictory: bool = field(default=False)

    def add(self, unit: str, amount: Decimal) -> None:
        before = self.hourly if unit == "hrs" else self.fee
        self.contradictory |= before is not None and before != amount
        if unit == "hrs":
            self.hourly = amount
        else:
            self.fee = amount


class AwsBulk(Collector):
    """Amazon EC2: reserved instances and savings plans, gp3 storage and egress, for seven regions."""

    provider = "aws_bulk"
    part_of: ClassVar[str] = "aws"
    title = "Amazon Web Services, price list files"
    home_page = "https://aws.amazon.com/savingsplans/compute-pricing/"
    sources = (HOST,)
    kind = "bulk"
    cadence_s: ClassVar[int] = 7 * DAY_S
    max_age_s: ClassVar[int] = 14 * DAY_S
    on_demand: ClassVar[bool] = False
    counted: ClassVar[bool] = False
    billing_increment_s = 1
    minimum_charge_s = MINUTE_S
    terms_note = "Published price list files, no account; about 2 GB are read a week, a few MB of it are kept."
    expect = Expect(min_rows=5, gpus=frozenset({"t4-16gb"}))

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The EC2 and data transfer files of each region, and the index of the savings plan files."""
        del keys
        for region in REGIONS:
            for name, service, keep in (
                ("ec2", "AmazonEC2", _EC2_LINES),
                ("transfer", "AWSDataTransfer", _TRANSFER_LINES),
            ):
                url = f"{HOST}/offers/v1.0/aws/{service}/current/{region}/index.csv"
                yield Request(url, name=f"{name}-{region}", keep=keep)
        yield Request(PLANS, name="plans")

    def follow(self, document: Document) -> Iterable[Request]:
        """The savings plan file of each region."""
        if not document.url.endswith("/region_index.json"):
            return
        listed = need(document, read_json(document), "regions", kind=list)
        urls = {need(document, r, "regionCode", kind=str): need(document, r, "versionUrl", kind=str) for r in listed}
        for region in REGIONS:
            if region in urls:
                url = HOST + urls[region].replace("index.json", "index.csv")
                yield Request(url, name=f"plans-{region}", keep=_PLAN_LINES)

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One offer per type, region, plan, term and upfront share; storage and egress per region."""
        rows = RowBuilder(self)
        for document in documents:
            kind = _kind(document)
            if kind == "ec2":
                _add_ec2(rows, document)
            elif kind == "plan":
                _add_plans(rows, document)
            elif kind == "transfer":
                _add_egress(rows, document)
        result = rows.finish()
        if not (result.rows or result.surcharges or result.rejections):
            raise LayoutChanged(self.provider, "Instance Type", "no reserved GPU type in any price list file")
        return result


def _kind(document: Document) -> _File | None:
    path = urlsplit(document.url).path
    if not path.endswith(".csv"):
        return None
    return "plan" if "/savingsPlan/" in path else "transfer" if "/AWSDataTransfer/" in path else "ec2"


def _lines(rows: RowBuilder, document: Document, *columns: str) -> Iterator[Mapping[str, str]]:
    """The rows as mappings with keys in lower case without spaces, so that "Usage Type" and "usageType" are one.

    Raises:
        LayoutChanged: no header with the given columns after the metadata.
    """
    reader = csv.reader(document.text().splitlines())
    header: list[str] = []
    for cells in reader:
        names = ["".join(cell.split()).casefold() for cell in cells]
        if "sku" in names:
            header = names
            break
    for column in columns:
        if column not in header:
            changed(document, f"CSV column {column}", f"not in the header of {document.url}")
    for cells in reader:
        if len(cells) == len(header):
            yield dict(zip(header, cells, strict=True))
        elif cells:
            rows.reject("row_unreadable", "CSV line", reader.line_num, sample=cells[:3])


def _add_ec2(rows: RowBuilder, document: Document) -> None:
    found: dict[tuple[str, str], _Reservation] = {}
    columns = (
        "termtype", "unit", "priceperunit", "currency", "leasecontractlength", "purchaseoption", "offeringclass",
        "instancetype", "regioncode", "operatingsystem", "tenancy", "preinstalleds/w", "usagetype", "offertermcode",
    )  # fmt: skip
    for row in _lines(rows, document, *columns):
        if row["usagetype"].endswith("EBS:VolumeUsage.gp3") and row["termtype"] == "OnDemand":
            if row["unit"] == "GB-Mo":
                rows.surcharge(
                    document, "block_storage", row["priceperunit"], "gb_month",
                    region=row["regioncode"], currency=row["currency"],
                )  # fmt: skip
        elif _is_linux_reservation(row):
            amount, unit = decimal_of(row["priceperunit"]), row["unit"].casefold()
            if amount is None or unit not in ("hrs", "quantity"):
                rows.reject("unit_unknown", "Unit", row["unit"], sample=row["instancetype"])
                continue
            key = (row["sku"], row["offertermcode"])
            found.setdefault(key, _Reservation(row)).add(unit, amount)
    for reservation in found.values():
        _add_reservation(rows, document, reservation)


def _is_linux_reservation(row: Mapping[str, str]) -> bool:
    return (
        row["termtype"] == "Reserved"
        and row["operatingsystem"] == "Linux"
        and row["tenancy"] == "Shared"
        and row["offeringclass"] == "standard"
        and row["preinstalleds/w"] in ("", "NA")
        and bool(gpu_of(row["instancetype"]))
    )


def _add_reservation(rows: RowBuilder, document: Document, reservation: _Reservation) -> None:
    row = reservation.row
    upfront, days = _UPFRONT.get(row["purchaseoption"].casefold()), _days(row["leasecontractlength"])
    if upfront is None or days is None:
        rows.reject("term_unknown", "PurchaseOption", f"{row['purchaseoption']} {row['leasecontractlength']}",
                    sample=row["instancetype"])  # fmt: skip
        return
    whole = reservation.hourly is not None if upfront == "none" else None not in (reservation.hourly, reservation.fee)
    if upfront == "all" and reservation.fee is not None:
        whole = True  # the hourly row of an all-upfront reservation is 0 and may be missing
    if not whole or reservation.contradictory:
        rows.reject("price_incomplete", "PricePerUnit", f"{reservation.hourly} per hour, {reservation.fee} upfront",
                    sample=f"{row['instancetype']} {row['purchaseoption']}")  # fmt: skip
        return
    hourly, fee = reservation.hourly or Decimal(0), reservation.fee or Decimal(0)
    term = fee + hourly * _HOURS_PER_YEAR * days / 365
    price: dict[str, Any] = {"price": hourly} if not fee else {"price": term, "price_unit": "term"}
    _offer(rows, document, row["instancetype"], row["regioncode"], "", upfront, days, currency=row["currency"], **price)


def _add_plans(rows: RowBuilder, document: Document) -> None:
    columns = (
        "discountedrate", "currency", "unit", "discountedusagetype", "discountedoperation", "purchaseoption",
        "leasecontractlength", "leasecontractlengthunit", "productfamily", "discountedregioncode",
    )  # fmt: skip
    for row in _lines(rows, document, *columns):
        box = _BOX.search(row["discountedusagetype"])
        plan = _PLAN_SKUS.get("".join(row["productfamily"].split()).casefold())
        if box is None or plan is None or row["discountedoperation"] != "RunInstances" or not gpu_of(box.group(1)):
            continue
        upfront = _UPFRONT.get(row["purchaseoption"].casefold())
        days = _days(row["leasecontractlength"] + row["leasecontractlengthunit"])
        if upfront is None or days is None or row["unit"].casefold() != "hrs":
            rows.reject("term_unknown", "PurchaseOption", f"{row['purchaseoption']} {row['leasecontractlength']}",
                        sample=box.group(1))  # fmt: skip
            continue
        _offer(rows, document, box.group(1), row["discountedregioncode"], plan, upfront, days,
               price=row["discountedrate"], currency=row["currency"])  # fmt: skip


def _days(length: str) -> int | None:
    years = _YEARS.fullmatch(length.strip())
    return 365 * int(years.group(1)) if years else None


def _offer(
    rows: RowBuilder, document: Document, instance_type: str, region: str, plan: str, upfront: Upfront, days: int,
    **price: Any,
) -> None:  # fmt: skip
    gpu = gpu_of(instance_type)
    if gpu is not None:
        rows.offer(
            document, gpu, sku=f"{instance_type}/{plan}" if plan else instance_type, instance_type=instance_type,
            region=region, purchase_option="reserved", commitment_days=days, upfront=upfront,
            **offer_fields(instance_type), **price,
        )  # fmt: skip


def _add_egress(rows: RowBuilder, document: Document) -> None:
    """Traffic to the internet, in steps of GB a month."""
    steps: dict[tuple[str, str], list[Tier]] = defaultdict(list)
    columns = ("transfertype", "tolocation", "startingrange", "unit", "priceperunit", "currency", "fromregioncode")
    for row in _lines(rows, document, *columns):
        start, amount = decimal_of(row["startingrange"]), decimal_of(row["priceperunit"])
        if row["transfertype"] != "AWS Outbound" or row["tolocation"] != "External" or row["unit"] != "GB":
            continue
        if start is None or amount is None or amount < 0:
            rows.reject("not_a_price", "surcharge.egress", row["priceperunit"], sample=row["fromregioncode"])
            continue
        steps[row["fromregioncode"], row["currency"]].append(Tier(start, amount))
    for (region, currency), tiers in steps.items():
        paid = sorted((t for t in tiers if t.price > 0), key=lambda t: t.from_quantity)
        if paid:
            rows.surcharge(document, "egress", paid[0].price, "gb", region=region, currency=currency, tiers=tuple(paid))
