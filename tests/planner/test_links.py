"""All-reduce times: the table is hit exactly, grows with size and ranks, and scales to other links."""

import pytest

from catalog.accelerators import accelerator
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
