"""OCI: shapes priced per GPU, old shape tokens, decoys, bad lines, and a missing shape list."""

import dataclasses
import json
from decimal import Decimal

import pytest

from collectors.errors import LayoutChanged
from collectors.fixtures import fixture_documents, read_recorded
from collectors.oci import Oci


def documents(**changed):
    """The fixture's documents, each changed by a function of its decoded JSON where one is given."""
    result = []
    for document in fixture_documents("oci"):
        body = json.loads(document.body)
        if document.name in changed:
            changed[document.name](body)
        result.append(dataclasses.replace(document, body=json.dumps(body).encode()))
    return result


def shape(body, name):
    return next(item for item in body["items"] if item["name"] == name)


def by_shape(parsed, purchase_option="on_demand"):
    return {r.offer.instance_type: r for r in parsed.rows if r.offer.purchase_option == purchase_option}


def test_price_is_per_gpu_and_not_per_ocpu():
    row = by_shape(Oci().parse(documents()))["BM.GPU.H100.8"]
    assert row.quote.price == 10
    assert row.quote.price_scope == "gpu"
    assert row.quote.price_usd_hour == 80


@pytest.mark.parametrize(
    ("shape", "gpu"),
    [("BM.GPU4.8", "a100-sxm-40gb"), ("VM.GPU3.4", "v100-sxm-16gb"), ("VM.GPU2.1", "p100"),
     ("BM.GPU.A100-v2.8", "a100-sxm-80gb"), ("BM.GPU.MI300X.8", "mi300x-192gb")],
)  # fmt: skip
def test_shape_tokens(shape, gpu):
    assert by_shape(Oci().parse(documents()))[shape].offer.gpu == gpu


def test_display_suffix_is_not_part_of_the_name():
    row = by_shape(Oci().parse(documents()))["BM.GPU.GB200.4"]
    assert row.offer.cpu_arch == "arm64"
    assert row.offer.source_sku == "BM.GPU.GB200.4"


def test_x86_shapes_marked_arm_stay_x86_and_get_two_vcpus_per_ocpu():
    row = by_shape(Oci().parse(documents()))["BM.GPU4.8"]
    assert (row.offer.cpu_arch, row.offer.vcpu_count) == ("x86_64", 128)


def test_memory_stated_per_gpu_is_not_divided_again():
    assert by_shape(Oci().parse(documents()))["BM.GPU.MI355X.8"].offer.gpu_memory_gb == 288


def test_missing_specs_come_from_the_table():
    row = by_shape(Oci().parse(documents()))["BM.GPU.RTXPRO.8"]
    assert (row.offer.vcpu_count, row.offer.memory_gib) == (288, 3072)


def test_preemptible_is_half_and_only_where_allowed():
    parsed = Oci().parse(documents())
    spot = by_shape(parsed, "spot")
    assert set(spot) == {"VM.GPU2.1", "VM.GPU3.1", "VM.GPU3.2", "VM.GPU3.4"}
    assert spot["VM.GPU3.4"].quote.price_usd_hour == pytest.approx(5.9)
    assert spot["VM.GPU3.4"].quote.quote_kind == "derived"


def test_minimum_charges():
    rows = by_shape(Oci().parse(documents()))
    assert (rows["VM.GPU3.1"].offer.minimum_charge_s, rows["BM.GPU4.8"].offer.minimum_charge_s) == (60, 3600)


def test_surcharges_of_the_price_list():
    extras = {s.kind: (s.price, s.unit, s.included_quantity) for s in Oci().parse(documents()).surcharges}
    assert extras == {
        "egress": (Decimal("0.0085"), "gb", Decimal(10240)),
        "block_storage": (Decimal("0.0255"), "gb_month", None),
    }


def test_surcharges_that_are_gone_cost_no_offer():
    def gpus_only(body):
        body["items"] = [i for i in body["items"] if "GPU" in i["displayName"]]

    parsed = Oci().parse(documents(products=gpus_only))
    assert not parsed.surcharges
    assert by_shape(parsed)["BM.GPU4.8"]


def test_bad_dollar_line_drops_its_shape_with_a_reason():
    parsed = Oci().parse(documents())
    assert "BM.GPU.B300.8" not in by_shape(parsed)
    assert any(r.reason == "not_a_price" and r.sample == "BM.GPU.B300.8" for r in parsed.rejections)


def test_decoys_hidden_and_inactive_shapes_are_not_offers():
    parsed = Oci().parse(documents())
    assert not {"BM.GPU2.2", "BM.GPU.H100T.8", "VM.DenseIO2.8", "VM.Standard2.4"} & set(by_shape(parsed))
    assert not any("Roving" in r.sample or "VMware" in r.sample or "@" in r.sample for r in parsed.rejections)


def test_new_shape_with_a_known_token_and_one_with_an_unknown_token():
    def add(body):
        for name, part, count in (("VM.GPU.L40S.2", "B109479", 2), ("BM.GPU.XQ9.8", "B95909", 8)):
            copied = dict(shape(body, "BM.GPU.L40S.4"), name=name, gpuQty=count, gpuMemoryQty=None)
            copied["products"] = [{"partNumber": part, "qty": None, "type": {"value": "ocpu"}}]
            body["items"].append(copied)

    parsed = Oci().parse(documents(shapes=add))
    rows = by_shape(parsed)
    assert (rows["VM.GPU.L40S.2"].offer.gpu, rows["VM.GPU.L40S.2"].offer.gpu_count) == ("l40s-48gb", 2)
    assert rows["BM.GPU.XQ9.8"].offer.gpu is None
    assert parsed.unmapped == ("XQ9",)


def test_price_list_alone_uses_the_table_of_shapes():
    parsed = Oci().parse([d for d in documents() if d.name == "products"])
    assert by_shape(parsed)["BM.GPU.H200.8"].quote.price_usd_hour == 80
    assert parsed.notes


def test_a_shape_list_without_gpus_is_incomplete():
    def cpu_only(body):
        body["items"] = [shape(body, "VM.DenseIO2.8")]

    parsed = Oci().parse(documents(shapes=cpu_only))
    assert not parsed.complete
    assert by_shape(parsed)["BM.GPU.H100.8"].quote.price == 10


def test_the_estimators_own_product_list_serves_as_price_list():
    def as_estimator(body):
        body["items"] = [
            {"partNumber": i["partNumber"], "billingModel": "UCM", "pricetype": "HOUR",
             "currencyCodeLocalizations": i["currencyCodeLocalizations"]}
            for i in body["items"]
        ]  # fmt: skip

    assert by_shape(Oci().parse(documents(products=as_estimator)))["BM.GPU4.8"].quote.price_usd_hour == 24.4


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("products", lambda b: b.pop("items")),
        ("products", lambda b: b.update(items=[])),
        ("products", lambda b: [i.update(metricName="OCPU Per Hour") for i in b["items"]]),
        ("shapes", lambda b: b.update(items=[])),
        ("shapes", lambda b: [i.pop("products") for i in b["items"]]),
        ("shapes", lambda b: [i.pop("name") for i in b["items"]]),
    ],
)
def test_changed_documents_are_refused(name, change):
    with pytest.raises(LayoutChanged):
        Oci().parse(documents(**{name: change}))


@pytest.mark.parametrize(
    "change",
    [lambda b: shape(b, "VM.GPU3.1").pop("products"), lambda b: shape(b, "VM.GPU3.1").update(products=None)],
)
def test_one_shape_without_its_parts_is_rejected_alone(change):
    result = Oci().parse(documents(shapes=change))
    assert ("field_missing", "products", "VM.GPU3.1") in {(r.reason, r.field, r.sample) for r in result.rejections}
    assert by_shape(result).keys() == by_shape(Oci().parse(documents())).keys() - {"VM.GPU3.1"}


@pytest.mark.parametrize("field", ["status", "hidden"])
@pytest.mark.parametrize("lost", [None, "missing"])
def test_a_shape_that_may_be_retired_or_hidden_is_not_offered(field, lost):
    def change(body):
        if lost is None:
            shape(body, "VM.GPU3.1")[field] = None
        else:
            del shape(body, "VM.GPU3.1")[field]

    result = Oci().parse(documents(shapes=change))
    assert ("field_missing", field, "VM.GPU3.1") in {(r.reason, r.field, r.sample) for r in result.rejections}
    assert "VM.GPU3.1" not in by_shape(result)


def test_other_currency_is_never_taken_as_dollars():
    def euros(body):
        for entry in body["items"]:
            for money in entry["currencyCodeLocalizations"]:
                money["currencyCode"] = "EUR"

    with pytest.raises(LayoutChanged, match="USD"):
        Oci().parse(documents(products=euros))


def test_truncated_body_is_refused():
    cut = [dataclasses.replace(d, body=d.body[: len(d.body) // 2]) for d in fixture_documents("oci")]
    with pytest.raises(LayoutChanged):
        Oci().parse(cut)


@pytest.mark.needs_recordings
def test_public_recording(recordings):
    path = recordings / "cetools_v1_products.gpu.json"
    rows = by_shape(Oci().parse([read_recorded(path, "oci")]))
    raw = {i["partNumber"]: i["currencyCodeLocalizations"][0]["prices"][0]["value"]
           for i in json.loads(path.read_bytes())["items"]}  # fmt: skip
    sample = {
        "BM.GPU.B300.8": ("B112237", 8),
        "BM.GPU.GB300.4": ("B112140", 4),
        "VM.GPU2.1": ("B88518", 1),
        "BM.GPU.MI355X.8": ("B111758", 8),
        "BM.GPU.L40S.4": ("B109479", 4),
        "BM.GPU.A10.4": ("B95909", 4),
    }
    for shape, (part, count) in sample.items():
        assert rows[shape].quote.price_usd_hour == pytest.approx(raw[part] * count)
