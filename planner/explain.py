"""The arithmetic of an estimate, line by line: what was computed, from what, by which rule and source."""

from __future__ import annotations

from planner.attention import CACHE_BYTES, CacheGroup
from planner.request import MEDIA, SERVING, Request
from planner.serving import ServingFit, fit_serving
from planner.serving_request import Prepared, prepare
from planner.speed import bandwidth_efficiency, coefficients, decode_terms_ms, fixed_us, touched_share
from planner.weights import GIB, weight_format

_RULES: dict[str, str] = {
    "share_of_card": "share of the card less weights, activations and context",
    "static_share": "share of the memory free before loading, less weights",
    "share_of_free": "share of what is free after weights, activations, context and graphs",
    "allocated": "all that weights, activations and context leave",
}


def explain_lines(request: Request) -> list[str]:
    """The lines for one request, in the order of the computation.

    Raises:
        RequestError: as `planner.estimate.estimate`.
    """
    if request.workload in MEDIA:
        from planner.media_explain import explain_media

        return explain_media(request)
    if request.workload not in SERVING:
        from planner.training_explain import explain_training

        return explain_training(request)
    ready = prepare(request)
    fit = fit_serving(ready.spec, ready.gpu, ready.layout, ready.case)
    return [
        *_weight_lines(ready, fit),
        *_cache_lines(ready, fit),
        *_memory_lines(ready, fit),
        *_speed_lines(ready, fit),
    ]


def _weight_lines(ready: Prepared, fit: ServingFit) -> list[str]:
    spec, form = ready.spec, weight_format(ready.case.weights)
    budget = spec.budget
    lines = [
        f"weights: {spec.model_id}, {budget.total() / 1e9:.2f} B parameters",
        f"  {form.name}: {form.body:.4g} bytes a quantised weight [data/weight_formats.csv, data/gguf_types.csv]",
    ]
    lines += [
        f"  {name}: {getattr(budget, name) / 1e9:.3f} B parameters -> {size / GIB:.3f} GiB"
        for name, size in fit.plan.parts.items()
        if size
    ]
    if spec.weight_bytes:
        lines.append(
            f"  checkpoint: {spec.weight_bytes / GIB:.3f} GiB read from its tensors; the classes are scaled to it"
        )
    layout = fit.layout
    lines.append(
        f"  per GPU: {fit.memory.weights_gib:.3f} GiB with tp {layout.tp}, pp {layout.pp}, ep {layout.ep} "
        "(norms, routers and latent down-projections are copied; the fullest pipeline stage counts)"
    )
    return lines


def _cache_lines(ready: Prepared, fit: ServingFit) -> list[str]:
    case = ready.case
    size = CACHE_BYTES[case.kv_cache]
    lines = [f"cache: {case.kv_cache}, {size:.4g} bytes an element"]
    lines += [_group_line(group, size) for group in ready.spec.cache]
    one = fit.need.sequence_bytes(case.context) / GIB
    further = fit.need.further_bytes(case.context) / GIB
    lines += [
        f"  whole model: {fit.kv_bytes_per_token:.0f} bytes a token at a context of {case.context}",
        f"  one sequence on one GPU: {one:.3f} GiB; KV heads are divided by tp down to one, latents are copied",
        *([f"  each further one: {further:.3f} GiB, since a prefill chunk is shared"] if further < one else []),
        f"  {case.concurrency} sequence(s) over dp {fit.layout.dp}: {fit.memory.cache_gib:.3f} GiB",
    ]
    return lines


def _group_line(group: CacheGroup, size: float) -> str:
    if group.kind == "state":
        return f"  {group.layers} layers with a state of {group.state_bytes / 2**20:.3f} MiB a sequence, not a token"
    window = "" if group.window is None else f", at most {group.window} tokens and one prefill step"
    ratio = "" if group.compress_ratio == 1 else f", one entry for {group.compress_ratio} tokens"
    indexer = f" + {group.indexer_dim} + 4 indexer bytes" if group.indexer_dim else ""
    return (
        f"  {group.layers} {group.kind} layers x {group.kv_heads} heads x ({group.key_dim} + {group.value_dim}) x "
        f"{size:.4g}{indexer} = {group.token_bytes(size):.0f} bytes a token{window}{ratio}"
    )


def _memory_lines(ready: Prepared, fit: ServingFit) -> list[str]:
    memory, rule = fit.memory, fit.rule
    share = ready.case.memory_utilization or rule.utilization
    shown = f"{share:g}" if share else "by memory tier"
    held = (memory.weights_gib, memory.cache_gib, memory.activations_gib, memory.graphs_gib, memory.context_gib)
    parts = " + ".join(f"{part:.3f}" for part in (*held, memory.lora_gib))
    return [
        f"activations: {memory.activations_gib:.3f} GiB, the wider of one forward step and the sampler [{rule.source}]",
        f"graphs: {memory.graphs_gib:.3f} GiB; CUDA context and communication: {memory.context_gib:.3f} GiB",
        f"required: {parts} = {memory.required_gib:.3f} GiB (weights, cache, activations, graphs, context, adapters)",
        f"available to the cache: {memory.available_gib:.3f} GiB of {memory.visible_gib:.2f} GiB on the card",
        f"  rule of {rule.engine}: {_RULES[rule.memory_rule]}; share {shown}",
        f"usable {memory.usable_gib:.3f} - required = headroom {memory.headroom_gib:.3f} GiB: {fit.verdict}",
    ]


def _speed_lines(ready: Prepared, fit: ServingFit) -> list[str]:
    speed, inputs, case = fit.speed, fit.inputs, ready.case
    if speed is None:
        return ["speed: not computed, since the replica cannot be built or the card's bandwidth is not published"]
    k, link = coefficients(), inputs.link
    batch, blocked = speed.running / inputs.dp, speed.tpot_ms - speed.step_ms
    terms = decode_terms_ms(inputs, batch, case.input_tokens + case.output_tokens / 2)
    touched = touched_share(inputs.expert_share, batch)
    rate = inputs.bandwidth_gb_s * bandwidth_efficiency(inputs, k)
    return [
        f"decode step of {batch:.0f} sequence(s) [coefficients and sources: data/speed.csv]",
        f"  fixed: {fixed_us(inputs, batch / inputs.pp, k) / 1e3:.3f} ms over {inputs.layers} layers",
        f"  weights: {inputs.stream_bytes / GIB:.3f} GiB, experts {touched:.0%} of {inputs.expert_bytes / GIB:.3f} GiB",
        f"  read with the cache at {rate:.0f} of {inputs.bandwidth_gb_s:.0f} GB/s: {terms['bandwidth']:.3f} ms",
        f"  arithmetic beyond that: {terms['compute']:.3f} ms at {inputs.gemm_tflops:.0f} TFLOPS peak",
        f"  all-reduce: {terms['interconnect']:.3f} ms over {link.kind}, as {link.system} [data/allreduce_us.csv]",
        f"  step {speed.step_ms:.3f} + others' prefill {blocked:.3f} = {speed.tpot_ms:.3f} ms a token",
        f"prefill of {case.input_tokens} tokens: {speed.prefill_ms:.2f} ms; first token at {speed.ttft_ms:.2f} ms",
        f"rate: {speed.running:.0f} x {case.output_tokens} tokens a cycle = {speed.output_tokens_s:.1f} tokens/s",
    ]
