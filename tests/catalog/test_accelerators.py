"""The accelerator table: complete, sourced, and consistent with what each architecture can do."""

import pytest

from catalog.accelerators import accelerator, accelerators, families
from catalog.errors import UnknownName
from catalog.types import FORM_FACTORS, Accelerator

ALL = list(accelerators().values())
NVIDIA = [facts for facts in ALL if facts.vendor == "NVIDIA"]
LINKS = {"none", "nvlink", "nvlink_bridge", "infinity_fabric", "ualink", "xe_link", "ici", "neuronlink", "ethernet"}
NO_BF16 = {"Kepler", "Maxwell", "Pascal", "Volta", "Turing"}
NO_FP8 = NO_BF16 | {"Ampere", "CDNA", "CDNA 2", "Vega20", "Vega (GCN5)", "RDNA 1", "RDNA 2", "RDNA 3"}
FP4_ARCHITECTURES = ("Blackwell", "Rubin", "CDNA 4", "CDNA 5", "TPU", "NeuronCore-v4")


def test_every_row_is_named_sourced_and_plausible():
    assert len(ALL) >= 143
    for facts in ALL:
        assert facts.gpu == facts.gpu.lower()
        assert facts.vendor
        assert facts.model
        assert facts.source_url
        assert facts.verification
        assert facts.form_factor in FORM_FACTORS
        assert facts.link in LINKS
        assert 8 <= facts.memory_gb <= 500
        assert facts.gpu.endswith(f"-{facts.memory_gb:g}gb")


@pytest.mark.parametrize("facts", ALL, ids=lambda facts: facts.gpu)
def test_usable_memory_is_below_the_label(facts: Accelerator):
    assert 0.9 * facts.memory_gb <= facts.memory_gib_usable <= facts.memory_gb


@pytest.mark.parametrize(
    ("gpu", "gib"),
    [
        ("h100-sxm-80gb", 79.65),
        ("h200-sxm-141gb", 140.4),
        ("b300-sxm-288gb", 268.6),
        ("l40s-48gb", 45.0),
        ("t4-16gb", 15.0),
        ("rtx-pro-6000-blackwell-server-96gb", 95.6),
        ("mi300x-192gb", 192.0),
        ("mi250-128gb", 128.0),
    ],
)
def test_usable_memory_is_what_the_driver_reports(gpu: str, gib: float):
    assert accelerator(gpu).memory_gib_usable == pytest.approx(gib, abs=0.06)
    assert not accelerator(gpu).memory_gib_usable_estimated


def test_unpublished_usable_memory_is_marked():
    assert accelerator("a40-48gb").memory_gib_usable_estimated
    assert accelerator("a40-48gb").memory_gib_usable == pytest.approx(48 * 0.93, abs=0.01)
    assert accelerator("rtx-a6000-48gb").memory_gib_usable == pytest.approx(48 * 0.98, abs=0.01)


@pytest.mark.parametrize("facts", ALL, ids=lambda facts: facts.gpu)
def test_precisions_follow_the_architecture(facts: Accelerator):
    if facts.architecture in NO_BF16:
        assert facts.bf16_tflops is None
        assert facts.tf32_tflops is None
    if facts.architecture in NO_FP8:
        assert facts.fp8_tflops is None
    if facts.fp4_tflops is not None:
        assert facts.architecture.startswith(FP4_ARCHITECTURES)


@pytest.mark.parametrize("facts", NVIDIA, ids=lambda facts: facts.gpu)
def test_figures_are_dense_not_sparse(facts: Accelerator):
    if facts.fp16_tflops and facts.bf16_tflops:
        assert facts.bf16_tflops == pytest.approx(facts.fp16_tflops, rel=0.01)
    if facts.bf16_tflops and facts.fp8_tflops and facts.architecture != "Rubin":
        assert facts.fp8_tflops == pytest.approx(2 * facts.bf16_tflops, rel=0.02)
    if facts.fp8_tflops and facts.fp4_tflops and not facts.architecture.startswith(("Blackwell Ultra", "Rubin")):
        # GeForce halves FP8 with FP32 accumulation, but not FP4.
        times = 4 if facts.segment == "consumer" else 2
        assert facts.fp4_tflops == pytest.approx(times * facts.fp8_tflops, rel=0.02)


def test_compute_capability_tells_consumer_blackwell_from_data_centre_blackwell():
    assert accelerator("rtx-pro-6000-blackwell-server-96gb").compute_capability == "12.0"
    assert accelerator("b200-sxm-180gb").compute_capability == "10.0"
    assert accelerator("b300-sxm-288gb").compute_capability == "10.3"


def test_form_factors_are_never_merged():
    assert {accelerator(gpu).form_factor for gpu in families()["h100"]} == {"sxm", "pcie", "nvl"}
    assert accelerator("mi300x-192gb").form_factor == "oam"
    assert accelerator("gb200-186gb").form_factor == "chip"


def test_families_cover_every_accelerator_once():
    members = [gpu for gpus in families().values() for gpu in gpus]
    assert sorted(members) == sorted(accelerators())


def test_an_unknown_slug_is_answered_with_guesses():
    with pytest.raises(UnknownName, match="h100-sxm-80gb"):
        accelerator("h100-sxm-80g")
