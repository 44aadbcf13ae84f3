"""The allow-list of formats, engines and architectures."""

import pytest

from catalog.accelerators import accelerator
from planner.engines import engine_rule
from planner.precision import cache_support, engine_support, weight_support


@pytest.mark.parametrize(
    ("engine", "form", "gpu", "path"),
    [
        ("vllm", "fp8", "h100-sxm-80gb", "native"),
        ("vllm", "fp8", "a100-sxm-80gb", "weight_only"),
        ("vllm", "fp8", "v100-sxm-16gb", None),
        ("vllm", "fp8", "mi300x-192gb", "native"),
        ("vllm", "fp8", "mi210-64gb", None),
        ("vllm", "nvfp4", "b200-sxm-180gb", "native"),
        ("vllm", "nvfp4", "rtx-5090-32gb", "native"),
        ("vllm", "nvfp4", "h100-sxm-80gb", "weight_only"),
        ("vllm", "nvfp4", "mi300x-192gb", None),
        ("vllm", "mxfp4", "mi355x-288gb", "native"),
        ("vllm", "bf16", "t4-16gb", "fp16"),
        ("vllm", "bf16", "a10-24gb", "native"),
        ("vllm", "int8", "b200-sxm-180gb", None),
        ("tensorrt-llm", "nvfp4", "h100-sxm-80gb", None),
        ("tensorrt-llm", "fp8", "a100-sxm-80gb", None),
        ("llama.cpp", "gguf:Q4_K_M", "p40-24gb", "native"),
        ("llama.cpp", "awq", "rtx-4090-24gb", None),
        ("vllm", "fp8", "gaudi-2-96gb", "native"),
    ],
)
def test_weight_formats(engine, form, gpu, path):
    support = weight_support(engine, form, accelerator(gpu))
    assert support.path == path
    if path is None:
        assert support.reason["code"] == "unsupported_format"
        nearest = support.reason["values"]["nearest"]
        probe = "gguf:Q4_K_M" if nearest == "gguf" else nearest
        assert weight_support(engine, probe, accelerator(gpu)).path is not None


@pytest.mark.parametrize(
    ("engine", "form", "gpu", "runs"),
    [
        ("vllm", "nvfp4", "b200-sxm-180gb", True),
        ("vllm", "nvfp4", "rtx-5090-32gb", False),
        ("vllm", "nvfp4", "rtx-pro-6000-blackwell-server-96gb", False),
        ("vllm", "fp8", "rtx-3090-24gb", True),
        ("vllm", "fp8", "v100-sxm-16gb", False),
        ("vllm", "q8_0", "h100-sxm-80gb", False),
        ("llama.cpp", "q8_0", "rtx-3090-24gb", True),
    ],
)
def test_cache_formats(engine, form, gpu, runs):
    support = cache_support(engine, form, accelerator(gpu))
    assert (support.reason is None) is runs
    if not runs:
        assert support.reason["code"] == "unsupported_kv_cache"


@pytest.mark.parametrize(
    ("engine", "gpu", "runs"),
    [
        ("vllm", "p40-24gb", False),
        ("vllm", "t4-16gb", True),
        ("sglang", "v100-sxm-16gb", False),
        ("llama.cpp", "p40-24gb", True),
        ("tensorrt-llm", "mi300x-192gb", False),
        ("tensorrt-llm", "v100-sxm-16gb", False),
        ("vllm", "tpu-v6e-32gb", True),
        ("vllm", "tpu-v3-32gb", False),
        ("sglang", "tpu-v6e-32gb", False),
        ("vllm", "arc-pro-b60-24gb", True),
        ("vllm", "trainium2-96gb", False),
        ("vllm", "gaudi-3-128gb", True),
    ],
)
def test_engines_and_chips(engine, gpu, runs):
    rule = engine_rule(engine, None)
    support = engine_support(engine, rule.vendors, rule.minimum_capability, accelerator(gpu))
    assert (support.reason is None) is runs
