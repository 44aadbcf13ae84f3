"""All-reduce times: the table is hit exactly, grows with size and ranks, and scales to other links."""

import pytest

from catalog.accelerators import accelerator
from planner.estimate import estimate_line
from planner.links import allreduce_us, link_of

H100 = accelerator("h100-sxm-80gb")
L40S = accelerator("l40s-48gb")
A100_PCIE = accelerator("a100-pcie-80gb")


def test_a_measured_point_comes_back():
    link = link_of(H100, 8, None)
    assert (link.kind, link.system, link.measured) == ("nvlink", "h100_sxm", True)
    assert allreduce_us(link, "vllm", 8, 8192) == pytest.approx(5.3, rel=0.03)


def test_one_gpu_reduces_nothing():
    assert allreduce_us(link_of(H100, 1, None), "vllm", 1, 1e6) == 0


@pytest.mark.parametrize("gpu", [H100, L40S, accelerator("mi300x-192gb"), accelerator("rtx-3090-24gb")])
def test_longer_messages_take_longer(gpu):
    link = link_of(gpu, 4, None)
    times = [allreduce_us(link, "vllm", 4, elements) for elements in (1e4, 1e6, 1e7, 1e9)]
    assert times == sorted(times)


def test_pcie_is_slower_than_nvlink_and_older_pcie_slower_still():
    nvlink = allreduce_us(link_of(H100, 4, None), "vllm", 4, 1e6)
    pcie5 = allreduce_us(link_of(H100, 4, "pcie"), "vllm", 4, 1e6)
    pcie4 = allreduce_us(link_of(L40S, 4, None), "vllm", 4, 1e6)
    pcie3 = allreduce_us(link_of(accelerator("t4-16gb"), 4, None), "vllm", 4, 1e6)
    assert nvlink < pcie5 < pcie4 < pcie3


def test_bridges_join_two_cards_and_only_where_stated():
    assert link_of(A100_PCIE, 2, None).kind == "pcie"
    assert link_of(A100_PCIE, 2, "nvlink").kind == "nvlink"
    assert link_of(A100_PCIE, 4, "nvlink").kind == "pcie"
    assert link_of(accelerator("h100-nvl-94gb"), 2, None).kind == "nvlink"


def test_a_second_machine_costs_a_hop():
    link = link_of(H100, 8, None)
    assert allreduce_us(link, "vllm", 16, 1e5, nodes=2) > allreduce_us(link, "vllm", 8, 1e5) + 30


@pytest.mark.parametrize("slug", ["gb300-288gb", "b200-sxm-180gb", "h100-sxm-80gb", "a100-sxm-40gb"])
@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_pcie_is_never_faster_than_the_nvlink_it_leaves_unused(slug, gpus):
    card = accelerator(slug)
    for elements in (1e3, 1e4, 1e5, 1e6, 1e7):
        own = allreduce_us(link_of(card, gpus, None), "vllm", gpus, elements)
        assert allreduce_us(link_of(card, gpus, "pcie"), "vllm", gpus, elements) >= own


@pytest.mark.parametrize("slug", ["a100-sxm-40gb", "b200-sxm-180gb", "l40s-48gb", "mi300x-192gb"])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
def test_a_longer_message_is_never_faster(slug, engine):
    for gpus in (2, 4, 8):
        link = link_of(accelerator(slug), gpus, None)
        times = [allreduce_us(link, engine, gpus, 2.0**n) for n in range(6, 28)]
        assert times == sorted(times)


def test_copies_of_a_bridged_pair_use_their_bridges():
    """Two pairs of H100 NVL are two bridges: as fast together as each alone."""
    shared = {"workload": "serve", "model": "Qwen/Qwen3.5-122B-A10B", "gpu": "h100-nvl-94gb", "weights": "fp8",
              "tp": 2, "context": 4096}  # fmt: skip
    pair, pairs = (estimate_line({**shared, "dp": n, "gpus": 2 * n, "concurrency": n}) for n in (1, 2))
    assert pairs["output_tokens_s"] == pytest.approx(2 * pair["output_tokens_s"], rel=0.01)
