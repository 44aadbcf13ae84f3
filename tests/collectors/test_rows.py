"""What the row builder adds to what a parser read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from bs4 import BeautifulSoup

from catalog.types import Document
from collectors.errors import LayoutChanged
from collectors.modal import Modal
from collectors.pages import Terms, add_sizes
from collectors.readers import Table
from collectors.rows import GpuRead, RowBuilder
from collectors.shapes import shapes

DOCUMENT = Document(
    provider="modal", url="https://modal.com/pricing", body=b"", fetched_at=datetime(2026, 1, 1, tzinfo=UTC)
)


def interconnect(gpu, **stated):
    row = RowBuilder(Modal()).offer(DOCUMENT, gpu, sku="s", instance_type="s", price="10", **stated)
    assert row is not None
    return row.offer.gpu_interconnect


@pytest.mark.parametrize("stated", [{}, {"gpu_interconnect": "unknown"}, {"gpu_interconnect": "nvlink"}])
def test_one_gpu_has_no_interconnect_whatever_the_source_says(stated):
    assert interconnect(GpuRead(label="H100 SXM", count=1), **stated) == "none"


@pytest.mark.parametrize(
    ("label", "link"),
    [
        ("B200 SXM", "nvlink"),
        ("MI300X", "infinity_fabric"),
        ("L40S", "pcie"),
        ("A100 PCIe 80GB", "unknown"),
        ("H100", "unknown"),
    ],
)
def test_a_source_that_does_not_know_leaves_the_link_to_the_board(label, link):
    assert interconnect(GpuRead(label=label, count=8), gpu_interconnect="unknown") == link


def test_what_the_source_says_of_several_gpus_stands():
    assert interconnect(GpuRead(label="A100 PCIe 80GB", count=2), gpu_interconnect="nvlink") == "nvlink"
    assert interconnect(GpuRead(label="H100 SXM", count=2), gpu_interconnect="pcie") == "pcie"


@pytest.mark.parametrize(("stated_gb", "memory_gb"), [(80, 10), (94, 10), (10, 10), (11.4, 11.4), (None, 10)])
def test_the_memory_of_a_whole_card_is_not_the_slices(stated_gb, memory_gb):
    gpu = GpuRead(label="H100 MIG 1g.10gb", memory_gb=stated_gb)
    row = RowBuilder(Modal()).offer(DOCUMENT, gpu, sku="s", instance_type="s", price="1")
    assert row is not None
    assert row.offer.gpu_memory_gb == memory_gb
    assert row.offer.gpu_fraction < 1


@pytest.mark.parametrize(
    ("label", "instance_type", "gpu"),
    [
        ("H100_80GB", "8H100.80S.176V", "h100-sxm-80gb"),
        ("H100_80GB", "n3-H100-SXM5x8", "h100-sxm-80gb"),
        ("A100_80GB", "gpu_8x_a100_80gb_sxm4", "a100-sxm-80gb"),
        ("H200_141GB", "gpu-h200-sxm_1gpu-16vcpu-200gb", "h200-sxm-141gb"),
        ("H100_80GB", "h100-380", "h100"),
        ("H100 PCIe", "gpu_8x_h100_sxm5", "h100-pcie-80gb"),
        ("A100_80GB", "gpu_8x_h100_sxm5", "a100"),
    ],
)
def test_the_clouds_own_type_narrows_an_open_label_and_nothing_else(label, instance_type, gpu):
    row = RowBuilder(Modal()).offer(DOCUMENT, GpuRead(label=label), sku="s", instance_type=instance_type, price="2")
    assert row is not None
    assert (row.offer.gpu, row.offer.gpu_ambiguous) == (gpu, "-" not in gpu)


@pytest.mark.parametrize("label", ["", " ", "unknown", "N/A", "None", "NVIDIA", "NVIDIA GPU", "other", "-"])
def test_a_word_in_place_of_a_name_is_no_name(label):
    rows = RowBuilder(Modal())
    assert rows.offer(DOCUMENT, GpuRead(label=label, count=2), sku="s", instance_type="s", price="10") is None
    assert [r.reason for r in rows.finish().rejections] == ["gpu_unnamed"]


def test_an_unknown_name_is_kept_and_shown():
    rows = RowBuilder(Modal())
    assert rows.offer(DOCUMENT, GpuRead(label="Zorblax Z9000", count=1), sku="s", instance_type="s", price="10")
    assert rows.finish().unmapped == ("Zorblax Z9000",)


@pytest.mark.parametrize("label", ["Per vCPU", "vRAM 640GB", "VM with", "Contact us", "x8", "On-demand price", ""])
def test_words_that_name_no_product_are_no_new_gpu(label):
    rows = RowBuilder(Modal())
    assert rows.offer(DOCUMENT, GpuRead(label=label), sku="s", instance_type="s", price="1") is None
    result = rows.finish()
    assert [r.reason for r in result.rejections] == ["gpu_unnamed"]
    assert result.unmapped == ()


def test_a_name_outside_the_table_is_new_hardware():
    rows = RowBuilder(Modal())
    for label in ("NVIDIA Feynman", "Zeus 2 memory+", "R300", "6090"):
        assert rows.offer(DOCUMENT, GpuRead(label=label), sku=label, instance_type=label, price="1") is not None
    assert rows.finish().unmapped == ("NVIDIA Feynman", "Zeus 2 memory+", "R300", "6090")


def test_what_has_no_name_is_not_sold():
    rows = RowBuilder(Modal())
    assert rows.offer(DOCUMENT, GpuRead(label="L4"), sku="", instance_type="", price="1") is None
    assert [r.reason for r in rows.finish().rejections] == ["unnamed"]


@pytest.mark.parametrize("odd", ["abc", "", [], {}, True, -1, 0, "NaN", float("inf")])
def test_an_amount_of_another_kind_is_unknown(odd):
    row = RowBuilder(Modal()).offer(
        DOCUMENT, GpuRead(label="L4"), sku="s", instance_type="s", price="1", vcpu_count=odd, memory_gib=odd,
        local_storage_gb=odd,
    )  # fmt: skip
    assert row is not None
    assert (row.offer.vcpu_count, row.offer.memory_gib, row.offer.local_storage_gb) == (None, None, None)


def test_a_row_short_of_a_cell_is_rejected():
    rows = RowBuilder(Modal())
    lines = (("L4", "1", "0.80"), ("T4", "0.50"), ("A10", "1", "1.10"), ())
    table = Table(("GPU", "Count", "Price"), lines, (), BeautifulSoup("", "lxml"))
    assert list(table.whole_rows(rows)) == [lines[0], lines[2]]
    assert [(r.reason, r.value) for r in rows.finish().rejections] == [("row_unreadable", "T4 | 0.50")]


def test_an_open_label_has_the_sizes_of_every_product_it_may_be():
    def counts(label, provider):
        rows = RowBuilder(Modal())
        add_sizes(rows, DOCUMENT, label, "$2.30", Terms("hour", "gpu", "USD"), provider=provider)
        return [r.offer.gpu_count for r in rows.finish().rows]

    sold = {gpu: shape.gpu_counts for gpu, shape in shapes("crusoe").items()}
    assert sold["a100-sxm-80gb"] != sold["a100-pcie-80gb"]
    assert counts("A100 SXM 80GB", "crusoe") == list(sold["a100-sxm-80gb"])
    both = set(sold["a100-sxm-80gb"]) & set(sold["a100-pcie-80gb"])
    assert counts("A100 80GB", "crusoe") == sorted(both)
    assert counts("A100 80GB", "nobody") == [1]


class _Surprised(Modal):
    def parse(self, documents):
        return {}[documents[0].url]


def test_a_surprise_in_a_document_is_a_changed_layout():
    with pytest.raises(LayoutChanged, match=r"test_rows\.py:\d+: KeyError") as raised:
        _Surprised().read([DOCUMENT])
    assert isinstance(raised.value.__cause__, KeyError)


def memory(gpu):
    row = RowBuilder(Modal()).offer(DOCUMENT, gpu, sku="s", instance_type="s", price="1")
    assert row is not None
    return row.offer.gpu_memory_gb, row.quote.flags


@pytest.mark.parametrize(
    ("gpu", "memory_gb", "flags"),
    [
        # A smaller card of the same name: it holds what its source says.
        (GpuRead(label="RTX 4060 Ti", count=1, memory_gb=7.996), 7.996, ("memory_mismatch",)),
        (GpuRead(label="A40", count=1, memory_gb=24), 24, ("memory_mismatch",)),
        (GpuRead(label="RTX 4060 Ti", count=4, memory_gb=7.996, per_card=True), 7.996, ("memory_mismatch",)),
        # Another memory than the name states, a total, a share of a total, no memory at all, and a rounded figure.
        (GpuRead(label="A100 SXM4 80GB", count=1, memory_gb=40), 80, ("memory_mismatch",)),
        (GpuRead(label="A40", count=1, memory_gb=192), 48, ("memory_mismatch",)),
        (GpuRead(label="L40S", count=4, memory_gb=12), 48, ("memory_mismatch",)),
        (GpuRead(label="L40S", count=1, memory_gb=0.05), 48, ("memory_mismatch",)),
        (GpuRead(label="B300 SXM6", count=1, memory_gb=262), 288, ()),
        (GpuRead(gpu="a40-48gb", label="x", count=1, memory_gb=24), 48, ("memory_mismatch",)),
    ],
)
def test_no_card_is_given_more_memory_than_its_source_states(gpu, memory_gb, flags):
    assert memory(gpu) == (memory_gb, flags)
