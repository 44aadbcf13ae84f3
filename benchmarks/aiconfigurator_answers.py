"""Answer serving requests with aiconfigurator_core, one JSON object a line from standard input to standard output.

Run by `accuracy.py` in an interpreter that has aiconfigurator_core 0.12 (Apache-2.0,
https://github.com/ai-dynamo/aiconfigurator). A request that the tool does not cover gives {"error": "..."}.
"""

from __future__ import annotations

import importlib.resources
import json
import logging
import sys
from typing import Any

GIB = 2**30
SYSTEMS = {
    "h100-sxm-80gb": "h100_sxm",
    "h100-pcie-80gb": "h100_pcie",
    "h200-sxm-141gb": "h200_sxm",
    "a100-sxm-80gb": "a100_sxm",
    "a100-pcie-80gb": "a100_pcie",
    "b200-sxm-180gb": "b200_sxm",
    "b300-sxm-288gb": "b300_sxm",
    "gb200-186gb": "gb200",
    "gb300-288gb": "gb300",
    "l40s-48gb": "l40s",
    "l4-24gb": "l4",
    "a30-24gb": "a30",
    "rtx-pro-6000-blackwell-server-96gb": "rtx_pro_6000_server",
    "arc-pro-b60-24gb": "b60",
}
BACKENDS = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
GEMM = {"bf16": "bfloat16", "fp16": "bfloat16", "fp8": "fp8", "int8": "sq", "nvfp4": "nvfp4", "awq": "int4_wo",
        "gptq": "int4_wo", "int4": "int4_wo", "mxfp4": "bfloat16"}  # fmt: skip
MOE = {**GEMM, "mxfp4": "w4a16_mxfp4", "fp8": "fp8_block"}
CACHE = {"bf16": "bfloat16", "fp16": "bfloat16", "fp8": "fp8", "int8": "int8"}


def main() -> None:
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = answer_one(request)
        except Exception as error:  # noqa: BLE001 - a foreign tool may fail in any way; the row counts as unanswered
            answer = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
        print(json.dumps(answer), flush=True)


def answer_one(request: dict[str, Any]) -> dict[str, Any]:
    system, backend = SYSTEMS.get(request["gpu"]), BACKENDS.get(request.get("engine") or "vllm")
    path = bundled(request.get("model"))
    if not system or not backend or not path:
        missing = "GPU" if not system else "engine" if not backend else "model"
        return {"error": f"{missing} not covered"}
    answer = speed(request, system, backend, path) if request.get("input_tokens") else {}
    return answer | memory(request, system, backend, path)


def bundled(model: Any) -> str | None:
    """The bundled configuration of a model id: same name but for vendor prefixes and the -Instruct of fine-tunes."""
    if not isinstance(model, str):
        return None
    folder = importlib.resources.files("aiconfigurator_core") / "model_configs"
    names = {}
    for entry in folder.iterdir():
        if entry.name.endswith("_config.json") and not entry.name.endswith("_hf_quant_config.json"):
            path = entry.name.removesuffix("_config.json").replace("--", "/", 1)
            names.setdefault(plain(path), path)
    return names.get(plain(model))


def plain(name: str) -> str:
    base = name.rsplit("/", 1)[-1].casefold().removeprefix("meta-")
    for ending in ("-instruct", "-it", "-bf16"):
        base = base.removesuffix(ending)
    return base.replace("llama-3.3-70b", "llama-3.1-70b")


def parallel(request: dict[str, Any]) -> dict[str, int]:
    tp, dp, ep = request.get("tp") or 1, request.get("dp") or 1, request.get("ep") or 1
    return {
        "tp_size": tp,
        "pp_size": request.get("pp") or 1,
        "attention_dp_size": dp,
        "moe_tp_size": tp * dp // ep,
        "moe_ep_size": ep,
    }


def modes(request: dict[str, Any]) -> dict[str, str]:
    weights = request.get("weights") or "bf16"
    found = {"gemm_quant_mode": GEMM.get(weights), "moe_quant_mode": MOE.get(weights)}
    found["kvcache_quant_mode"] = CACHE.get(request.get("kv_cache") or "")
    return {key: value for key, value in found.items() if value}


def speed(request: dict[str, Any], system: str, backend: str, path: str) -> dict[str, Any]:
    from aiconfigurator_core.sdk import perf_database
    from aiconfigurator_core.sdk.backends.factory import get_backend
    from aiconfigurator_core.sdk.config import RuntimeConfig
    from aiconfigurator_core.sdk.config_builders import build_model_config
    from aiconfigurator_core.sdk.models import get_model

    model = get_model(path, build_model_config(**parallel(request), **modes(request)), backend)
    database = perf_database.get_database_view(system, backend, "current", database_mode="HYBRID")
    batch = max(1, (request.get("concurrency") or 1) // (request.get("dp") or 1))
    isl, osl = request["input_tokens"], max(2, request["output_tokens"])
    runtime = RuntimeConfig(batch_size=batch, isl=isl, osl=osl)
    summary = get_backend(backend).run_agg(model, database, runtime, ctx_tokens=min(8192, isl * batch))
    result = summary.get_result_dict()
    users = batch * (request.get("dp") or 1)
    cycle_ms = result["ttft"] + (osl - 1) * result["tpot"]
    return {
        "tpot_ms": float(result["tpot"]),
        "ttft_ms": float(result["ttft"]),
        "output_tokens_s": float(users * osl / cycle_ms * 1e3),
    }


def memory(request: dict[str, Any], system: str, backend: str, path: str) -> dict[str, Any]:
    from aiconfigurator_core.sdk.memory import estimate_kv_cache

    kind = "of_free" if backend == "trtllm" else "of_total"
    try:
        found = estimate_kv_cache(
            path,
            system,
            backend,
            "current",
            max_num_tokens=request.get("max_batched_tokens") or 8192,
            max_batch_size=256,
            memory_fraction_kind=kind,
            memory_fraction_value=request.get("memory_utilization") or 0.9,
            **parallel(request),
            **modes(request),
        )
    except ValueError as error:
        if "budget" not in str(error):
            raise
        return {"starts": False, "verdict": "no"}
    capacity = found["total_kv_size_tokens"]
    breakdown = found.get("memory_breakdown") or {}
    context = request.get("context") or 8192
    tokens = capacity * (request.get("dp") or 1)
    return {
        "weights_gib_per_gpu": next((float(v) / GIB for k, v in breakdown.items() if "weight" in k.lower()), None),
        "kv_cache_gib_per_gpu": found["total_kv_size_bytes"] / GIB,
        "kv_cache_tokens": tokens,
        "starts": capacity >= context,
        "verdict": "fits" if capacity >= context and tokens >= context * (request.get("concurrency") or 1) else "no",
    }


if __name__ == "__main__":
    main()
