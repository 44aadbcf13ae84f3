"""From a request to a training job with every choice made, and what was assumed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, cast

from catalog.types import Accelerator
from planner.models import ModelSpec
from planner.request import Request, RequestError
from planner.training_formats import BASE_BYTES, QUANTISED, base_format
from planner.training_frameworks import Framework, Regime, framework_class

Method = Literal["lora", "qlora", "full", "pretrain"]
ADAPTER_METHODS = frozenset({"lora", "qlora"})
DEFAULT_SEQUENCE = 2048
DEFAULT_RANK = 16
GPUS_PER_NODE = 8
_TARGETS_ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """One training job, nothing left open.

    Lengths in tokens, batches in sequences; `micro_batch` is per data-parallel rank, `micro_batches` how many of them
    one optimizer step takes. `gpus` are all GPUs of the job, over all `nodes`. `base` is the format in which frozen or
    trained weights are held (`training_formats`). `fabric_gb_s` is one node's network rate, one way, None where it
    is not stated. `total_tokens` is None when the request states no amount of work.
    """

    method: Method
    model: ModelSpec
    framework: Framework
    accelerator: Accelerator
    gpus: int = 1
    nodes: int = 1
    interconnect: str = "auto"
    fabric_gb_s: float | None = None
    base: str = "bf16"
    precision: str = "bf16"
    strategy: str = "none"
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    sequence_length: int = DEFAULT_SEQUENCE
    micro_batch: float = 1
    micro_batches: int = 1
    lora_rank: int = DEFAULT_RANK
    lora_targets: str = _TARGETS_ALL
    optimizer: str = "adamw"
    checkpointing: str = "full"
    flash_attention: bool = True
    chunked_loss: bool = False
    cpu_offload: bool = False
    activation_offload: bool = False
    total_tokens: float | None = None
    assumptions: tuple[tuple[str, Any], ...] = field(default=())

    @property
    def adapters(self) -> bool:
        """Whether only adapters are trained."""
        return self.method in ADAPTER_METHODS

    @property
    def quantised(self) -> bool:
        """Whether the base is held in 8 bit or less."""
        return self.base in QUANTISED

    @property
    def base_bytes(self) -> float:
        """Bytes of one base parameter."""
        return BASE_BYTES[self.base]

    @property
    def regime(self) -> Regime:
        """Bytes per parameter of full training; DeepSpeed keeps a share of the gradients in fp32 for the step.

        Source: 18 bytes a parameter over the GPUs, https://deepspeed.readthedocs.io/en/latest/memory.html.
        """
        regime = self.framework.regime
        return "mixed18" if regime == "mixed16" and self.strategy in {"zero1", "zero2", "zero3"} else regime

    @property
    def dp(self) -> int:
        """Data-parallel replicas."""
        return max(1, self.gpus // (self.tp * self.pp * self.cp))

    @property
    def shards(self) -> int:
        """Ranks over which a sharding strategy divides states (data and context parallel together)."""
        return self.dp * self.cp

    @property
    def micro_tokens(self) -> float:
        """Tokens of one micro-batch of one rank."""
        return self.micro_batch * self.sequence_length / self.cp

    @property
    def step_tokens(self) -> float:
        """Tokens of one optimizer step, whole job."""
        return self.micro_batch * self.sequence_length * self.micro_batches * self.dp


def resolve_job(request: Request, model: ModelSpec, accelerator: Accelerator) -> TrainingJob:
    """Make every choice that the request leaves open and note it.

    Raises:
        RequestError: the parallel layout does not divide the GPUs, or a format or optimizer is unknown.
    """
    notes: list[tuple[str, Any]] = []

    def default(name: str, value: Any) -> Any:
        stated = getattr(request, name)
        if stated is None:
            notes.append((name, value))
            return value
        return stated

    gpus = request.gpus or 1
    tp, pp, cp, ep = (value or 1 for value in (request.tp, request.pp, request.cp, request.ep))
    # Splitting a model over GPUs by hand is what Megatron-class software does; plain modules cannot.
    unnamed = "megatron" if max(tp, pp, cp, ep) > 1 else None
    framework, known = framework_class(request.framework or unnamed)
    if not known:
        notes.append(("framework", f"{framework.name}: {request.framework} is not known here"))
    elif request.framework is None:
        notes.append(("framework", framework.name))
    _check_layout(gpus, tp, pp, cp)
    _check_split(model, tp, pp, ep)
    nodes = request.nodes or -(-gpus // _node_size(accelerator))
    if request.nodes is None and nodes > 1:
        notes.append(("nodes", nodes))
    precision = default("precision", "bf16" if accelerator.bf16_tflops else "fp16")
    micro_batch, micro_batches = _batches(request, max(1, gpus // (tp * pp * cp)), pp, notes)
    method = cast("Method", request.workload)
    return TrainingJob(
        method=method,
        model=model,
        framework=framework,
        accelerator=accelerator,
        gpus=gpus,
        nodes=nodes,
        interconnect=request.interconnect or "auto",
        base=base_format(method, request.quant, precision, framework),
        precision=precision,
        strategy=_strategy(request, framework, gpus // (tp * pp), notes),
        tp=tp,
        pp=pp,
        cp=cp,
        ep=ep,
        sequence_length=default("sequence_length", DEFAULT_SEQUENCE),
        micro_batch=micro_batch,
        micro_batches=micro_batches,
        lora_rank=default("lora_rank", DEFAULT_RANK) if method in ADAPTER_METHODS else DEFAULT_RANK,
        lora_targets=default("lora_targets", _TARGETS_ALL) if method in ADAPTER_METHODS else _TARGETS_ALL,
        optimizer=default("optimizer", _usual_optimizer(framework, method, gpus)),
        checkpointing=default("gradient_checkpointing", framework.default_checkpointing),
        flash_attention=default("flash_attention", True),
        chunked_loss=bool(request.chunked_loss),
        cpu_offload=bool(request.cpu_offload),
        activation_offload=bool(request.activation_offload),
        total_tokens=_total_tokens(request),
        assumptions=tuple(notes),
    )


def _check_layout(gpus: int, tp: int, pp: int, cp: int) -> None:
    if gpus % (tp * pp * cp):
        raise RequestError(
            "bad_layout",
            f"{gpus} GPUs cannot be divided by tp x pp x cp = {tp} x {pp} x {cp}; choose values whose product divides "
            "the number of GPUs",
        )


def _check_split(model: ModelSpec, tp: int, pp: int, ep: int) -> None:
    """Heads divide by tensor ranks, experts by expert ranks; every stage has a layer (Megatron-LM, arguments.py)."""
    if model.heads % tp:
        raise RequestError("bad_layout", f"tp = {tp} does not divide the {model.heads} attention heads")
    if pp > model.layers:
        raise RequestError("bad_layout", f"pp = {pp} stages are more than the {model.layers} layers")
    if ep > 1 and (not model.is_moe or (model.experts and model.experts % ep)):
        found = f"the {model.experts} experts" if model.is_moe else "a model without experts"
        raise RequestError("bad_layout", f"ep = {ep} does not divide {found}")


def _node_size(accelerator: Accelerator) -> int:
    return 256 if accelerator.vendor.casefold() == "google" else GPUS_PER_NODE


def _strategy(request: Request, framework: Framework, replicas: int, notes: list[tuple[str, Any]]) -> str:
    if request.strategy:
        return request.strategy
    if replicas <= 1:
        return "none"
    chosen = "zero1" if framework.name == "megatron" else "fsdp"
    notes.append(("strategy", chosen))
    return chosen


def _usual_optimizer(framework: Framework, method: Method, gpus: int) -> str:
    """The torchtune single-device full recipes use paged 8-bit AdamW; everything else starts from AdamW."""
    return "paged_adamw_8bit" if framework.name == "torchtune" and method == "full" and gpus == 1 else "adamw"


def _batches(request: Request, dp: int, pp: int, notes: list[tuple[str, Any]]) -> tuple[float, int]:
    """Sequences of a micro-batch, and micro-batches of a step, from what is stated of the three batch keys."""
    micro, accum, overall = request.micro_batch, request.grad_accum, request.global_batch
    if micro is None and overall is not None:
        micro = max(1, overall // (dp * (accum or overall // dp or 1)))
    if micro is None:
        micro = 1
    if request.micro_batch is None:
        notes.append(("micro_batch", micro))
    if accum is None and overall is not None:
        accum = max(1, round(overall / (dp * micro)))
    if accum is None:
        accum = 4 * pp if pp > 1 else 1
        notes.append(("grad_accum", accum))
    return micro, accum


def _total_tokens(request: Request) -> float | None:
    """The job's amount of work: tokens as stated, or examples x tokens per example x epochs."""
    if request.tokens is not None:
        return request.tokens
    if request.examples is None:
        return None
    per_example = request.tokens_per_example or request.sequence_length or DEFAULT_SEQUENCE
    return request.examples * per_example * (request.epochs or 1.0)
