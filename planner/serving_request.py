"""From a request to a serving case: defaults filled in, names made canonical, and every assumption said aloud."""

from __future__ import annotations

from dataclasses import dataclass, replace

from catalog.errors import nearest
from catalog.types import Accelerator
from planner.accelerator_choice import choose, slice_said
from planner.attention import CACHE_BYTES, cache_format
from planner.engines import engine_rule
from planner.model_config import ModelSpec
from planner.models import model_spec
from planner.parallel import Layout, layout_of
from planner.precision import weight_support
from planner.request import Request, RequestError
from planner.serving import ServingCase, split_group
from planner.weights import UnknownFormat, known_formats, weight_format

DEFAULT_CONTEXT = 8192
_IMAGE_TOKENS = 1024
# GPUs that one NVLink domain joins: eight in a server, 72 in an NVL72 rack.
_MACHINE_DOMAIN = 8
_RACK_DOMAIN = 72
_RACK_SCALE = ("gb200", "gb300", "rubin")
_MEASURED_FAMILIES = frozenset({"a100", "h100", "h200", "h20", "b200", "b300", "gb200", "gb300"})
_MEASURED_VENDORS = frozenset({"NVIDIA", "AMD"})
_WEIGHT_ALIASES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "f16": "fp16",
    "float8": "fp8",
    "fp8_block": "fp8",
    "w8a8": "int8",
    "w4a16": "int4",
    "nf4": "int4",
    "4bit": "int4",
    "8bit": "int8",
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that `fit_serving` takes, and what to say beside the answer."""

    spec: ModelSpec
    gpu: Accelerator
    layout: Layout
    case: ServingCase
    gpu_name: str
    assumptions: list[str]
    confidence: str


def prepare(request: Request) -> Prepared:
    """Resolve names and fill in defaults.

    Raises:
        RequestError: no GPU, unknown GPU, model or format, or a layout that does not add up.
    """
    if request.gpu is None:
        raise RequestError("missing_key", "a serving estimate needs gpu: a slug or any alias of an accelerator")
    said: list[str] = []
    gpu, candidates = choose(request.gpu)
    spec = model_spec(request)
    engine = request.engine or "vllm"
    if request.engine is None:
        said.append("engine vllm (none stated)")
    spec = _text_part(request, spec, engine, said)
    case = _case(request, spec, engine, said)
    case = _half_precision(case, gpu, said)
    layout, assumed = layout_of(request, spec, split_group(spec, weight_format(case.weights)), engine)
    said += assumed
    layout = _over_machines(layout, gpu, request, said)
    _say_hardware(gpu, candidates, layout, request, said)
    name = gpu.family if len(candidates) > 1 else gpu.gpu
    return Prepared(spec, gpu, layout, case, name, said, _confidence(gpu, candidates, layout, case))


def _text_part(request: Request, spec: ModelSpec, engine: str, said: list[str]) -> ModelSpec:
    """llama.cpp keeps the image or audio tower in a file of its own, which it loads only where it is asked to.

    Source: https://github.com/ggml-org/llama.cpp/blob/master/docs/multimodal.md (--mmproj).
    """
    if engine != "llama.cpp" or not spec.has_tower or request.images_per_request or not spec.budget.tower:
        return spec
    said.append("text only: llama.cpp loads the image tower from a file of its own (mmproj)")
    tower = spec.budget.tower / 1e9
    return replace(
        spec,
        budget=replace(spec.budget, tower=0.0),
        params_b=spec.params_b - tower,
        active_params_b=max(0.0, spec.active_params_b - tower) or spec.active_params_b,
    )


def _over_machines(layout: Layout, gpu: Accelerator, request: Request, said: list[str]) -> Layout:
    """GPUs beyond one machine's stand in several, where nothing is stated."""
    domain = _RACK_DOMAIN if gpu.gpu.startswith(_RACK_SCALE) else _MACHINE_DOMAIN
    if request.nodes is not None or layout.gpus <= domain:
        return layout
    machines = -(-layout.gpus // domain)
    said.append(f"{layout.gpus} GPUs stand in {machines} machines of {domain}")
    return replace(layout, nodes=machines)


def _case(request: Request, spec: ModelSpec, engine: str, said: list[str]) -> ServingCase:
    asked = (request.input_tokens or 0) + (request.output_tokens or 0)
    context = request.context or max(DEFAULT_CONTEXT, asked)
    if request.context is None:
        said.append(f"context {context}")
    input_tokens, output_tokens = _lengths(request, context)
    if request.input_tokens is None or request.output_tokens is None:
        said.append(f"input_tokens {input_tokens}, output_tokens {output_tokens}")
    if request.concurrency is None:
        said.append("concurrency 1")
    if request.images_per_request:
        input_tokens += request.images_per_request * _IMAGE_TOKENS
        said.append(
            f"{request.images_per_request} image(s) a request at {_IMAGE_TOKENS} tokens each, added to the input"
        )
        if not spec.has_tower:
            said.append("the configuration shows no vision tower: its weights are not counted")
    if input_tokens + output_tokens > context:
        said.append(
            f"requests of {input_tokens} + {output_tokens} tokens are longer than the context {context}: the engine "
            "would refuse or cut them, so the memory counts the context only"
        )
    if spec.max_context and context > spec.max_context:
        said.append(f"context {context} is beyond the model's own {spec.max_context}: rotary scaling assumed")
    weights = _weights(request, spec, engine, said)
    case = ServingCase(
        weights=weights,
        kv_cache=_cache(request, spec, engine, weights, said),
        context=context,
        concurrency=request.concurrency or 1,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        engine=engine,
        engine_version=request.engine_version,
        memory_utilization=request.memory_utilization,
        max_batched_tokens=request.max_batched_tokens,
        cuda_graphs=request.cuda_graphs is not False,
        interconnect=request.interconnect if request.interconnect != "auto" else None,
        prefix_cache_share=request.prefix_cache_share or 0.0,
        speculative_factor=request.speculative_factor or 1.0,
        lora_adapters=request.lora_adapters or 0,
        lora_rank=request.lora_rank or 16,
    )
    _say_options(request, case, said)
    return case


def _lengths(request: Request, context: int) -> tuple[int, int]:
    """Stated lengths, else three quarters of the context in and one quarter out."""
    if request.input_tokens and request.output_tokens:
        return request.input_tokens, request.output_tokens
    if request.input_tokens:
        return request.input_tokens, max(1, min(context // 4, context - request.input_tokens))
    if request.output_tokens:
        return max(1, context - request.output_tokens), request.output_tokens
    return max(1, context - context // 4), max(1, context // 4)


def _say_options(request: Request, case: ServingCase, said: list[str]) -> None:
    rule = engine_rule(case.engine, case.engine_version)
    if request.memory_utilization is None and rule.utilization and rule.memory_rule != "allocated":
        said.append(f"memory_utilization {rule.utilization:g} (default of {case.engine})")
    if request.engine_version is None:
        unstated = rule.source.startswith("no version stated")
        said.append(f"{case.engine}: {rule.source}" if unstated else f"{case.engine} at the newest version known here")
    if case.prefix_cache_share:
        said.append(f"{case.prefix_cache_share:.0%} of the input is a shared prefix: computed and cached once")
    if case.speculative_factor != 1:
        said.append(
            f"speculative decoding accepts {case.speculative_factor:g} tokens a step; draft weights not counted"
        )
    if case.lora_adapters:
        said.append(f"{case.lora_adapters} LoRA adapter(s) of rank {case.lora_rank} held in 16 bit")


def _weights(request: Request, spec: ModelSpec, engine: str, said: list[str]) -> str:
    asked = (request.weights or "native").strip()
    folded = _WEIGHT_ALIASES.get(asked.casefold(), asked)
    if folded.casefold() in {"native", "auto"}:
        folded = spec.native_format
        said.append(f"weights {folded} (the checkpoint's own)")
    if engine == "llama.cpp" and folded.casefold() == "mxfp4":
        folded = "gguf:MXFP4"  # experts in MXFP4, the rest in Q8_0
    try:
        return weight_format(folded).name
    except UnknownFormat:
        suggestions = nearest(asked, known_formats())
        hint = f"; did you mean {' or '.join(suggestions)}?" if suggestions else ""
        known = ", ".join(known_formats()[:13])
        raise RequestError(
            "unknown_format", f"unknown weights {asked!r}{hint} Known: {known}, gguf:TYPE.", suggestions
        ) from None


def _cache(request: Request, spec: ModelSpec, engine: str, weights: str, said: list[str]) -> str:
    asked = request.kv_cache or "auto"
    if asked.casefold() not in {"auto", "native"}:
        found = cache_format(asked)
        if found is None:
            suggestions = nearest(asked, CACHE_BYTES)
            raise RequestError(
                "unknown_kv_cache", f"unknown kv_cache {asked!r}. Known: {', '.join(CACHE_BYTES)}.", suggestions
            )
        return "fp8" if found.startswith("fp8") else found
    if spec.kv_cache_format and weights == spec.native_format:
        said.append(f"kv_cache {spec.kv_cache_format}, as the checkpoint is tagged")
        return spec.kv_cache_format
    if weights == "nvfp4" or (weights == "fp8" and engine == "tensorrt-llm"):
        said.append(f"kv_cache fp8: {weights} builds for this engine carry an FP8 cache tag (kv_cache_quant_algo)")
        return "fp8"
    chosen = "fp16" if engine == "llama.cpp" or spec.native_format == "fp16" else "bf16"
    said.append(f"kv_cache {chosen}, 2 bytes an element")
    return chosen


def _half_precision(case: ServingCase, gpu: Accelerator, said: list[str]) -> ServingCase:
    """Name what the card does with a format that it cannot compute in."""
    support = weight_support(case.engine, case.weights, gpu)
    if support.path == "fp16":
        said.append(
            f"{gpu.architecture} (compute capability {gpu.compute_capability}) has no bf16: runs as fp16 (float16), "
            "same size"
        )
        case = replace(case, weights="fp16", kv_cache="fp16" if case.kv_cache == "bf16" else case.kv_cache)
    elif support.path == "weight_only":
        said.append(
            f"{case.weights} is weight-only on {gpu.architecture}: weights are stored in it, arithmetic is 16 bit"
        )
    return case


def _say_hardware(
    gpu: Accelerator, candidates: tuple[str, ...], layout: Layout, request: Request, said: list[str]
) -> None:
    if len(candidates) > 1:
        said.append(f"{request.gpu} is one of {', '.join(candidates)}: planned on the least of each figure")
    said += slice_said(request.gpu)
    if gpu.memory_gib_usable_estimated:
        said.append(f"usable memory of {gpu.gpu} is estimated from its label")
    if gpu.vendor not in _MEASURED_VENDORS:
        said.append(f"speed on {gpu.gpu} follows from its published figures: none was measured")
    if "Grace" in gpu.architecture or gpu.gpu.startswith("gb10"):
        said.append("ARM host: the engine must be an aarch64 build")
    if layout.nodes > 1:
        said.append(f"{layout.nodes} machines joined by 400 Gb/s a GPU of InfiniBand or RoCE (assumed)")
    if request.interconnect == "nvlink" and gpu.link in {"none", ""}:
        said.append(f"{gpu.gpu} has no NVLink: PCIe is used")


def _confidence(gpu: Accelerator, candidates: tuple[str, ...], layout: Layout, case: ServingCase) -> str:
    if gpu.vendor != "NVIDIA" or layout.nodes > 1 or len(candidates) > 1 or case.engine == "transformers":
        return "low"
    if gpu.family in _MEASURED_FAMILIES and case.engine != "llama.cpp":
        return "high"
    return "medium"
