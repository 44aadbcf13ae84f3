"""GPU labels as providers write them, and what they must resolve to."""

from decimal import Decimal

import pytest

from catalog.accelerators import accelerators, families
from catalog.datafiles import csv_rows
from catalog.errors import UnknownName
from catalog.names import gpu_slugs_for, resolve

# label, gpu, count
CERTAIN = """
8x NVIDIA A100 SXM4 80GB | a100-sxm-80gb | 8
NVIDIA A100-SXM4-80GB | a100-sxm-80gb |
NVIDIA A100-PCIE-40GB | a100-pcie-40gb |
NVIDIA A100 80GB PCIe | a100-pcie-80gb |
A100_80GB SXM4 | a100-sxm-80gb |
A100-80G-PCIe-NVLink | a100-pcie-80gb |
gpu_8x_a100_80gb_sxm4 | a100-sxm-80gb | 8
crusoe_A100-80G-sxm4x8 | a100-sxm-80gb | 8
massedcompute_A100-sxm4-80GBx8 | a100-sxm-80gb | 8
4xA100-SXM4-40GB | a100-sxm-40gb | 4
H100 SXM 8x80GB | h100-sxm-80gb | 8
8x80GB H100 SXM | h100-sxm-80gb | 8
NVIDIA A16 (4x 16GB) | a16-16gb | 4
L40S² | l40s-48gb |
8x NVIDIA H100 SXM5³ † | h100-sxm-80gb | 8
H100 SXM 8x80GB 2x960GB NVMe | h100-sxm-80gb | 8
L4 2x24GB RAM | l4-24gb |
x8 H100 SXM | h100-sxm-80gb | 8
PCIe x16 L40S | l40s-48gb |
RTX 4090x24GB | rtx-4090-24gb |
A100-40GB-PCIE x 4 | a100-pcie-40gb | 4
1A100.40S.22V | a100-sxm-40gb | 1
8H100.80S.176V | h100-sxm-80gb | 8
NVIDIA H100 80GB HBM3 | h100-sxm-80gb |
NVIDIA HGX H100 | h100-sxm-80gb |
NVIDIA DGX H100 | h100-sxm-80gb |
gpu_8x_h100_sxm5gdr | h100-sxm-80gb | 8
n3-H100-SXM5x8 | h100-sxm-80gb | 8
nvidia-h100-mega-80gb | h100-sxm-80gb |
H100 SXM5 PCIe Gen5 x16 | h100-sxm-80gb |
H100 PCIe NVLink (80GB) | h100-pcie-80gb |
H100 NVL | h100-nvl-94gb |
H100 94GB | h100-nvl-94gb |
H100 PCIe 94GB | h100-nvl-94gb |
H100 NVL 80GB | h100-nvl-94gb |
H100 SXM5 96GB | h100-sxm-96gb |
H200 SXM (141GB) | h200-sxm-141gb |
H200 NVL (141GB) NVLink | h200-nvl-141gb |
NVIDIA GH200 480GB | gh200-96gb |
GH200 144G HBM3e | gh200-144gb |
B300 Ultra | b300-sxm-288gb |
1x B300 SXM6 262GB | b300-sxm-288gb | 1
8x B300 SXM6 268GB | b300-sxm-288gb | 8
NVIDIA B300, liquid-cooled (8x) | b300-sxm-288gb | 8
gpu-b200-sxm_8gpu-160vcpu-1792gb | b200-sxm-180gb | 8
vbm-256c-3072gb-8-b200-gpu | b200-sxm-180gb | 8
NVIDIA GB200 NVL72 | gb200-186gb |
NVIDIA GB300 NVL72 | gb300-288gb |
2 x NVIDIA L40S - 48GB | l40s-48gb | 2
1x_L40S_SECURE | l40s-48gb | 1
gpu-l40sx1-48gb | l40s-48gb | 1
NVIDIA L40 | l40-48gb |
nvidia-l4 | l4-24gb |
T4x4x16 | t4-16gb |
nvidia-tesla-t4 | t4-16gb |
gpu_1x_a10 | a10-24gb | 1
A10G:2x24x96 | a10g-24gb | 2
NVIDIA RTX A4000 | rtx-a4000-16gb |
NVIDIA A40 | a40-48gb |
n3-RTX-A6000x2 | rtx-a6000-48gb | 2
RTXA6000 | rtx-a6000-48gb |
NVIDIA Quadro RTX 6000 | quadro-rtx-6000-24gb |
RTX 6000 24GB PCIe | quadro-rtx-6000-24gb |
1RTX6000ADA.10V | rtx-6000-ada-48gb | 1
NVIDIA RTX 6000 Ada Generation | rtx-6000-ada-48gb |
RTX4000 Ada x4 Medium | rtx-4000-ada-20gb | 4
rtx4000sada | rtx-4000-sff-ada-20gb |
NVIDIA RTX PRO 6000 Blackwell Server Edition | rtx-pro-6000-blackwell-server-96gb |
RTX PRO Server 6000 | rtx-pro-6000-blackwell-server-96gb |
RTX PRO 6000 S | rtx-pro-6000-blackwell-server-96gb |
Pro 6000 SE 96GB PCIe | rtx-pro-6000-blackwell-server-96gb |
RTX PRO 6000 WK | rtx-pro-6000-blackwell-ws-96gb |
NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition | rtx-pro-6000-blackwell-max-q-96gb |
Pro6000mq | rtx-pro-6000-blackwell-max-q-96gb |
RTXPRO4500 | rtx-pro-4500-blackwell-32gb |
16x-RTX_5090-32-65536 | rtx-5090-32gb | 16
NVIDIA GeForce RTX 4090 D | rtx-4090-d-24gb |
RTX 4070S Ti | rtx-4070-ti-super-16gb |
8x4090 | rtx-4090-24gb | 8
dual RTX 3090 | rtx-3090-24gb | 2
Tesla V100-SXM2-32GB | v100-sxm-32gb |
V100 SXM3 32GB | v100-sxm-32gb |
Tesla V100S | v100s-pcie-32gb |
MI300x | mi300x-192gb |
gpu-mi300x8-1536gb | mi300x-192gb | 8
AMD Instinct™ MI325X (8×) | mi325x-256gb | 8
8 x Gaudi3 | gaudi-3-128gb | 8
HL-338 | gaudi-3-pcie-128gb |
Intel Gaudi 2 | gaudi-2-96gb |
16x AWS Trainium2 | trainium2-96gb | 16
Inferentia | inferentia-8gb |
Qualcomm AI100 | cloud-ai-100-standard-16gb |
H100-SXM:8 | h100-sxm-80gb | 8
(8x) H100 SXM | h100-sxm-80gb | 8
A100SXM480GB | a100-sxm-80gb |
RTXPRO6000SE | rtx-pro-6000-blackwell-server-96gb |
Gaudi HL-325L | gaudi-3-128gb |
MI-300X | mi300x-192gb |
A3 Mega H100 80GB GPU | h100-sxm-80gb |
Nvidia Tesla P4 GPU running in Americas | p4-8gb |
Cloud GPU (30 vCPUs, 380 GiB RAM, 4040 GB NVMe storage, 4xL40S 48 GiB VRAM) | l40s-48gb | 4
8 NVIDIA L4 GPUs | l4-24gb | 8
"""

# label, family, candidates, memory per GPU, count
OPEN = """
H100 | h100 | h100-pcie-80gb h100-sxm-80gb h100-nvl-94gb | 80 |
nvidia_h100 | h100 | h100-pcie-80gb h100-sxm-80gb h100-nvl-94gb | 80 |
NVIDIA H100 80GB | h100 | h100-pcie-80gb h100-sxm-80gb | 80 |
gpu-h100x8-640gb | h100 | h100-pcie-80gb h100-sxm-80gb | 80 | 8
A100 | a100 | a100-pcie-40gb a100-sxm-40gb a100-pcie-80gb a100-sxm-80gb | 40 |
8x A100 40 GB | a100 | a100-pcie-40gb a100-sxm-40gb | 40 | 8
8x A100 320GB | a100 | a100-pcie-40gb a100-sxm-40gb | 40 | 8
A100 80GB NVLink | a100 | a100-pcie-80gb a100-sxm-80gb | 80 |
A100 SXM4 | a100 | a100-sxm-40gb a100-sxm-80gb | 40 |
V100 (32GB) | v100 | v100-pcie-32gb v100-sxm-32gb | 32 |
8 x H200 | h200 | h200-sxm-141gb h200-nvl-141gb | 141 | 8
NVIDIA GH200 | gh200 | gh200-96gb gh200-144gb | 96 |
Dedicated 96GB + RTX6000 GPU x3 | rtx-6000 | quadro-rtx-6000-24gb rtx-6000-ada-48gb | 24 | 3
"""

UNKNOWN = """
Cloud AI 100 Ultra
H100 CNX
A100X
H100X
NVIDIA A1000
RTX A1000 Laptop GPU
NVIDIA GeForce RTX 4090 Laptop GPU
RTX 3080 Mobile
RTX 2080 Max-Q
Rubin Ultra
Rubin CPX
Quadro RTX 5000 with Max-Q Design
RTX 5090 D
RTX 3060 Ti
rtx3060m
rtx4070s
rtx2000eada
GTX 1080
TITAN Xp
GB202
AD102
GA100
GH100
Trainium4
A800 80GB PCIe
H20-3e 141GB
RTX PRO 6000D
RTX PRO 5000 Blackwell Laptop GPU
RTX 4070 SUPER
v4
Gaudi 4
NVIDIA
a2-highgpu-1g
p4d.24xlarge
t4g.xlarge
Standard_A2_v2
Intel Xeon E5-2690 v4
OCI - Compute - GPU - H100T

unknown
"""

# label, gpu, fraction, slice memory
SLICES = """
NVIDIA A100-SXM4-80GB MIG 3g.40gb | a100-sxm-80gb | 0.42857 | 40
NVIDIA A100-PCIE-40GB MIG 1g.5gb | a100-pcie-40gb | 0.14286 | 5
A100 MIG 1g.10gb | a100 | 0.14286 | 10
H100 MIG 1g.12gb+me | h100-nvl-94gb | 0.14286 | 12
B200 MIG 7g.180gb | b200-sxm-180gb | 1 | 180
A30 MIG 1g.6gb | a30-24gb | 0.25 | 6
NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 2g.48gb | rtx-pro-6000-blackwell-server-96gb | 0.5 | 48
PRO 6000 MIG 24GB | rtx-pro-6000 | 0.25 | 24
RTX PRO 5000 MIG 1g.24gb | rtx-pro-5000-blackwell-48gb | 0.5 | 24
1/8 A40 | a40-48gb | 0.125 | 6
A16 1/2 | a16-16gb | 0.5 | 8
1/3 x A10 24GB | a10-24gb | 0.33333 | 8
½ L4 | l4-24gb | 0.5 | 12
0.25x L4 | l4-24gb | 0.25 | 6
NVIDIA A40-8Q | a40-48gb | 0.16667 | 8
"""

TPUS = """
v2-8 | tpu-v2-16gb | 4
v3-32 | tpu-v3-32gb | 16
v4-2048 | tpu-v4-32gb | 1024
v5p-8 | tpu-v5p-95gb | 4
v5litepod-64 | tpu-v5e-16gb | 64
v5e-16 | tpu-v5e-16gb | 16
v6e-256 | tpu-v6e-32gb | 256
tpu7x-128 | tpu7x-192gb | 64
TPU v4 2x2x2 | tpu-v4-32gb | 8
ct5lp-hightpu-4t | tpu-v5e-16gb | 4
ct6e-standard-8t | tpu-v6e-32gb | 8
tpu7x-standard-4t | tpu7x-192gb | 4
tpu-v5-lite-podslice | tpu-v5e-16gb |
TPU v6e (Trillium) | tpu-v6e-32gb |
8x TPU v5e | tpu-v5e-16gb | 8
Ironwood | tpu7x-192gb |
"""


def table(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in text.strip("\n").splitlines()]


@pytest.mark.parametrize(("label", "gpu", "count"), table(CERTAIN))
def test_one_product(label: str, gpu: str, count: str):
    found = resolve(label)
    assert (found.gpu, found.gpu_candidates, found.gpu_ambiguous) == (gpu, (gpu,), False)
    assert found.gpu_count == (int(count) if count else None)
    assert found.gpu_fraction == 1
    assert found.gpu_memory_gb == float(gpu.rsplit("-", 1)[1].removesuffix("gb"))


@pytest.mark.parametrize(("label", "family", "candidates", "memory_gb", "count"), table(OPEN))
def test_several_products_keep_their_family(label: str, family: str, candidates: str, memory_gb: str, count: str):
    found = resolve(label)
    assert (found.gpu, found.gpu_ambiguous) == (family, True)
    assert set(found.gpu_candidates) == set(candidates.split())
    assert found.gpu_memory_gb == float(memory_gb)
    assert found.gpu_count == (int(count) if count else None)


@pytest.mark.parametrize("label", UNKNOWN.strip("\n").splitlines())
def test_unknown_stays_unknown(label: str):
    found = resolve(label)
    assert (found.gpu, found.gpu_candidates, found.gpu_ambiguous, found.gpu_memory_gb) == (None, (), False, None)


@pytest.mark.parametrize(("label", "gpu", "fraction", "memory_gb"), table(SLICES))
def test_slices_keep_their_parent(label: str, gpu: str, fraction: str, memory_gb: str):
    found = resolve(label)
    assert found.gpu == gpu
    assert found.gpu_fraction == Decimal(fraction)
    assert found.gpu_memory_gb == float(memory_gb)


@pytest.mark.parametrize(("label", "gpu", "count"), table(TPUS))
def test_tpu_suffixes_count_cores_or_chips(label: str, gpu: str, count: str):
    found = resolve(label)
    assert found.gpu == gpu
    assert found.gpu_count == (int(count) if count else None)


def test_every_alias_points_into_the_table():
    rows = csv_rows("catalog", "aliases.csv")
    assert len({row["alias"] for row in rows}) == len(rows)
    for row in rows:
        assert row["mode"] in {"word", "alone", "never"}
        if row["mode"] != "never":
            assert row["target"] in accelerators() or row["target"] in families()
    assert {row["gpu"] for row in csv_rows("catalog", "uncommon_variants.csv")} <= set(accelerators())


def test_prose_is_not_searched_without_end():
    assert resolve("A100 " * 5000).gpu == "a100"
    assert resolve(" " * 4 + "x" * 100_000).gpu is None


def test_a_mig_slice_of_unstated_size_has_no_share():
    found = resolve("H100MIG")
    assert (found.gpu, found.gpu_fraction, found.gpu_memory_gb) == ("h100", None, None)


def test_two_products_in_one_label_are_not_guessed():
    found = resolve("NVIDIA HGX B300 / B200")
    assert found.gpu is None
    assert found.gpu_ambiguous
    assert set(found.gpu_candidates) == {"b300-sxm-288gb", "b200-sxm-180gb"}


def test_the_same_product_named_twice_is_one():
    assert resolve("DGX B200 (8x B200 180GB)").gpu == "b200-sxm-180gb"
    assert resolve("lambda H100: NVIDIA H100 SXM5").gpu == "h100-sxm-80gb"


@pytest.mark.parametrize(
    ("label", "memory_gb", "form_factor", "gpu"),
    [
        ("A100 SXM4", 39.4, None, "a100-sxm-40gb"),
        ("A100", 80, "PCIe", "a100-pcie-80gb"),
        ("NVIDIA H100", 81559 / 1024, "SXM5", "h100-sxm-80gb"),
        ("H200", 143771 / 1024, "sxm", "h200-sxm-141gb"),
        ("RTX 6000", 48, None, "rtx-6000-ada-48gb"),
        ("RTX 6000", 96, None, "rtx-6000"),
        ("L40S", 24, "sxm", "l40s-48gb"),
        ("H100", 200, None, "h100"),
        ("H100 PCIe", 80, "sxm", "h100-pcie-80gb"),
    ],
)
def test_facts_stated_elsewhere_narrow_but_never_decide(label, memory_gb, form_factor, gpu):
    assert resolve(label, memory_gb=memory_gb, form_factor=form_factor).gpu == gpu


@pytest.mark.parametrize(
    ("wanted", "slugs"),
    [
        ("h100-sxm-80gb", {"h100-sxm-80gb"}),
        ("L40S", {"l40s-48gb"}),
        ("h200", {"h200-sxm-141gb", "h200-nvl-141gb"}),
        ("h200*", {"h200-sxm-141gb", "h200-nvl-141gb"}),
        ("A100 80GB", {"a100-sxm-80gb", "a100-pcie-80gb"}),
        ("rtx-4090*", {"rtx-4090-24gb", "rtx-4090-d-24gb"}),
        ("4090", {"rtx-4090-24gb"}),
        ("mi3?0x*", {"mi300x-192gb", "mi350x-288gb"}),
    ],
)
def test_filters_take_slugs_families_labels_and_globs(wanted: str, slugs: set[str]):
    assert set(gpu_slugs_for(wanted)) == slugs


@pytest.mark.parametrize("wanted", ["h1000", "banana", "xyz*", "", "NVIDIA HGX B300 / B200"])
def test_filters_refuse_what_names_nothing(wanted: str):
    with pytest.raises(UnknownName, match="unknown GPU"):
        gpu_slugs_for(wanted)


def test_a_misspelt_filter_is_answered_with_guesses():
    with pytest.raises(UnknownName, match="h100"):
        gpu_slugs_for("h10O")


@pytest.mark.parametrize(
    ("text", "gpu"),
    [
        ("NVIDIA L4 Ada Lovelace", "l4-24gb"),
        ("L40S Ada", "l40s-48gb"),
        ("L40 Ada Generation", "l40-48gb"),
        ("GeForce RTX 4090 Ada Lovelace", "rtx-4090-24gb"),
        ("RTX 6000 Ada Lovelace", "rtx-6000-ada-48gb"),
        ("RTX 4090 Ada Laptop GPU", None),
    ],
)
def test_an_architecture_behind_its_own_card_changes_nothing(text, gpu):
    assert resolve(text).gpu == gpu


@pytest.mark.parametrize(
    ("label", "gpu", "memory_gb", "count"),
    [
        ("A100-80", "a100", 80, None),
        ("A100 SXM4 80", "a100-sxm-80gb", 80, None),
        ("8x A100 SXM 80", "a100-sxm-80gb", 80, 8),
        ("gpu-a100-sxm-40", "a100-sxm-40gb", 40, None),
        ("V100-32", "v100", 32, None),
        ("H100 NVL 94", "h100-nvl-94gb", 94, None),
        ("A100 64", "a100", 40, None),  # no product of that name has so much
        ("V100 16", "v100", 16, None),  # sixteen may be a count
        ("A100 x 80", "a100", 40, 80),
        ("A100 40GB 80", "a100", 40, None),
    ],
)
def test_a_last_bare_number_is_memory_where_the_name_comes_with_it(label, gpu, memory_gb, count):
    found = resolve(label)
    assert (found.gpu, found.gpu_memory_gb, found.gpu_count) == (gpu, memory_gb, count)
