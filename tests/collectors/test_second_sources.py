"""The catalogs of other projects: always under `via`, never more certain than they are, and never silently empty."""

import dataclasses
import io
import zipfile
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from catalog.types import Document
from collectors import gpuhunt_catalog, skypilot_catalog
from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents
from collectors.gpuhunt_catalog import GpuhuntCatalog
from collectors.skypilot_catalog import SkypilotCatalog

AT = datetime(2026, 11, 30, tzinfo=UTC)
SKY_HEADER = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
)
HUNT_HEADER = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,flags"


def sky(*lines, cloud="nebius", header=SKY_HEADER):
    return sky_text("\n".join([header, *lines]), cloud)


def sky_text(text, cloud="nebius"):
    document = Document("skypilot_catalog", f"{skypilot_catalog.BASE}/{cloud}/vms.csv", text.encode(), AT)
    return SkypilotCatalog().parse([document])


def archive(*lines, header=HUNT_HEADER):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as writer:
        writer.writestr("data.csv", "\n".join([header, *lines]))
    return packed.getvalue()


def hunt(*lines, provider="nebius", header=HUNT_HEADER):
    url = f"{gpuhunt_catalog.BASE}/{provider}/20261130-1/catalog.zip"
    return GpuhuntCatalog().parse([Document("gpuhunt_catalog", url, archive(*lines, header=header), AT)])


def test_they_are_no_providers_of_their_own():
    for collector in (SkypilotCatalog(), GpuhuntCatalog()):
        assert not collector.counted
        assert not collector.on_demand
        rows = collector.parse(fixture_documents(collector.provider)).rows
        assert {r.offer.via for r in rows} == {collector.provider}
        assert collector.provider not in {r.offer.provider for r in rows}
        assert all("second_source" in r.quote.flags for r in rows)


def test_a_row_gives_on_demand_and_spot_and_zero_is_neither():
    result = sky(
        "t1,H100-SXM,8,128,1600,,23.60,10.00,eu-north1,",
        "t2,L40S,1,8,32,,1.82,0.00,eu-north1,",
        "t3,L40S,1,8,32,,,,eu-north1,",
        "cpu,,,4,16,,0.10,,eu-north1,",
    )
    assert [(r.offer.instance_type, r.offer.purchase_option, r.quote.price) for r in result.rows] == [
        ("t1", "on_demand", Decimal("23.60")), ("t1", "spot", Decimal("10.00")), ("t2", "on_demand", Decimal("1.82")),
    ]  # fmt: skip
    assert result.rows[0].offer.gpu == "h100-sxm-80gb"


def test_one_on_demand_price_per_region_and_a_spot_price_per_zone():
    lines = [f"p5.48xlarge,H100,8,192,2048,,55.04,{p},us-east-1,use1-az{z}" for z, p in ((1, "20.1"), (2, "21.2"))]
    rows = sky(*lines, cloud="aws").rows
    assert [(r.offer.purchase_option, r.offer.zone, r.offer.gpu) for r in rows] == [
        ("on_demand", "", "h100-sxm-80gb"),
        ("spot", "use1-az1", "h100-sxm-80gb"),
        ("spot", "use1-az2", "h100-sxm-80gb"),
    ]


def test_two_on_demand_prices_in_one_region_are_said():
    lines = [f"p5.48xlarge,H100,8,192,2048,,{p},,us-east-1,use1-az1" for p in ("55.04", "56.00")]
    assert [r.reason for r in sky(*lines, cloud="aws").rejections] == ["duplicate_key"]


def test_shares_and_form_factors_are_kept_and_open_names_stay_open():
    result = sky(
        "f,L4,0.125,2,8,,0.2,,r,", "x,A100-80GB,1,8,117,{'Gpus': [{'Name': 'A100 PCIe'}]},1.39,,r,",
        "y,A100,8,1,1,,10,,r,", "z,NEWCHIP9,8,1,1,,10,,r,",
    )  # fmt: skip
    share, card, open_name, new = (r.offer for r in result.rows)
    assert (share.gpu, share.gpu_fraction, share.gpu_count) == ("l4-24gb", Decimal("0.12500"), 1)
    assert card.gpu == "a100-pcie-80gb"
    assert open_name.gpu_ambiguous
    assert new.gpu is None
    assert result.unmapped == ("NEWCHIP9",)


def test_resold_rows_belong_to_the_supplier_and_country_regions_are_countries():
    line = "datacrunch__8xH100_80GB__176__1480,H100,8.0,176.0,1480,,15.77,,IS,ICE-01"
    [row] = sky(line, cloud="primeintellect").rows
    assert (row.offer.provider, row.offer.region, row.offer.country) == ("verda", "ICE-01", "IS")


def test_gpuhunt_rows():
    result = hunt(
        "p1,eu-north1,23.6,128,1600,8,H100,80,False,", "p1,eu-north1,10.0,128,1600,8,H100,80,True,",
        "p2,eu-north1,9.0,128,1600,8,H100,80,False,gcp-dws-calendar-mode", "cpu,eu-north1,0.1,4,16,0,,,False,",
        "p3,eu-north1,nan,128,1600,8,H100,80,False,", "p4,eu-north1,1.0,8,8,1,L4,24,maybe,",
    )  # fmt: skip
    assert [(r.offer.instance_type, r.offer.purchase_option) for r in result.rows] == [
        ("p1", "on_demand"),
        ("p1", "spot"),
    ]
    assert {r.reason for r in result.rejections} == {"not_a_price", "field_unreadable"}


def test_a_total_given_as_memory_per_gpu_is_flagged():
    [row] = hunt("d,nyc,23.92,160,1920,8,H200,1128,False,").rows
    assert "memory_mismatch" in row.quote.flags


def test_gpuhunt_names_the_catalog_by_its_version():
    version = Document("gpuhunt_catalog", f"{gpuhunt_catalog.BASE}/aws/version", b"20261130-7\n", AT)
    [request] = GpuhuntCatalog().follow(version)
    assert (request.url, request.name) == (f"{gpuhunt_catalog.BASE}/aws/20261130-7/catalog.zip", "aws-catalog")
    with pytest.raises(LayoutChanged):
        list(GpuhuntCatalog().follow(dataclasses.replace(version, body=b"<html>")))
    catalogs = [d for d in fixture_documents("gpuhunt_catalog") if d.name == "azure-catalog"]
    assert not GpuhuntCatalog().parse([version, *catalogs]).complete


@pytest.mark.parametrize("column", ["AcceleratorName", "Price", "Region"])
def test_a_renamed_column_is_a_changed_layout(column):
    with pytest.raises(LayoutChanged, match=column):
        sky("t,H100,8,1,1,,10,,r,", header=SKY_HEADER.replace(column, "Other", 1))
    with pytest.raises(LayoutChanged, match="price"):
        hunt("p,r,1,1,1,1,H100,80,False,", header=HUNT_HEADER.replace("price", "cost"))


def test_short_lines_are_rejected_and_empty_files_are_changes():
    result = sky("t,H100,8,1,1,,10,,r,", "t2,H100,8,1,1,,1")
    assert [r.reason for r in result.rejections] == ["row_unreadable"]
    for lines in ([], ["cpu,,,4,16,,0.1,,r,"]):
        with pytest.raises(LayoutChanged):
            sky(*lines)
        with pytest.raises(LayoutChanged):
            hunt()
    [whole] = [d for d in fixture_documents("gpuhunt_catalog") if d.name == "aws-catalog"]
    for body in (b"", whole.body[:300], b"PK"):
        with pytest.raises(LayoutChanged, match="zip"):
            GpuhuntCatalog().parse([dataclasses.replace(whole, body=body)])
    for collector in (SkypilotCatalog(), GpuhuntCatalog()):
        with pytest.raises(LayoutChanged):
            collector.parse([])


def test_a_price_cut_at_the_end_of_a_file_is_no_price():
    header = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Region,SpotPrice,Price"
    lines = [header, "t,H100,8,1,1,r,9.50,30.00", "t2,H100,8,1,1,r,9.50,36.72"]
    whole = "\r\n".join(lines) + "\r\n"
    assert [r.quote.price for r in sky_text(whole).rows if r.offer.purchase_option == "on_demand"] == [
        30,
        Decimal("36.72"),
    ]
    for length in range(len(whole) - len("36.72\r\n"), len(whole) - 1):
        result = sky_text(whole[:length])
        assert {r.offer.instance_type for r in result.rows} <= {"t", "t2"}
        assert {r.quote.price for r in result.rows} <= {30, Decimal("9.50")}, whole[:length]


def test_the_type_states_form_factor_tenancy_and_the_clouds_own_table_decides():
    rows = sky("gpu-h100-sxm_8gpu-128vcpu-1600gb,H100,8,128,1600,,23.6,,eu-north1,", cloud="nebius").rows
    assert [(r.offer.gpu, r.offer.gpu_ambiguous, r.offer.country) for r in rows] == [("h100-sxm-80gb", False, "FI")]
    oracle = sky(
        "BM.GPU.H100.8,H100,8,224,2048,,80,,af-johannesburg-1,",
        "VM.GPU3.2,V100,2,24,180,,5.9,,eu-frankfurt-1,",
        cloud="oci",
    ).rows
    assert [(r.offer.gpu, r.offer.tenancy, r.offer.country) for r in oracle] == [
        ("h100-sxm-80gb", "bare_metal", "ZA"),
        ("v100-sxm-16gb", "vm", "DE"),
    ]
    assert sky("g4dn.metal,T4,8,96,384,,7.8,,us-east-1,", cloud="aws").rows[0].offer.tenancy == "bare_metal"
