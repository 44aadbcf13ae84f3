"""Activations of training: what each layer keeps, what the working layer needs, and the loss.

Bytes per token of one layer follow from the tensors that autograd saves (16-bit unless noted), as in
https://arxiv.org/abs/2205.05198 section 4, with flash attention in place of its 5 a s / h term. A plain RMSNorm works
on an fp32 copy of its input.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.training_formats import QUANTISED
from planner.training_job import TrainingJob

_GIB = 2.0**30
# Without flash attention the working layer holds scores, an fp32 softmax, its 16-bit cast and their gradients.
_EAGER_SCORE_BYTES = 20.0
# What stays of them per layer without checkpointing: fp32 softmax, 16-bit cast.
_SAVED_SCORE_BYTES = 6.0
# Share of a layer's saved tensors that selective checkpointing keeps (matrix products stay, the rest is recomputed).
_SELECTIVE_KEPT = 0.55
# The fp32 master of the loss: a quantised model under fp16 keeps fp32 logits where a 16-bit one keeps half-precision.
_FP32_LOGITS_EXTRA = 2.0
# A run in fp32 saves every activation in four bytes where one in 16 bit takes two.
_FP32_ACTIVATIONS = 2.0


@dataclass(frozen=True, slots=True)
class Activations:
    """Bytes on one GPU.

    `saved`: kept from forward to backward; `layer`: working set of the layer in backward; `loss`: logits and what the
    loss makes of them. The first two and the first and third occur together, `layer` and `loss` do not.
    """

    saved: float
    layer: float
    loss: float

    @property
    def peak(self) -> float:
        """The larger of the two stages: the loss, or the first layer of the backward pass."""
        return self.saved + max(self.layer, self.loss)


def layer_token_bytes(job: TrainingJob) -> float:
    """Bytes per token that one layer saves when nothing is recomputed, flash attention on."""
    model = job.model
    query, key = model.heads * model.head_dim, model.kv_heads * model.head_dim
    norms = 2 * (8 if job.framework.norms_in_fp32 else 4) * model.hidden
    attention = 2 * (query + 2 * key) + 2 * query
    matrices = 4 if model.gated_mlp else 2
    return norms + attention + matrices * 2 * mlp_width(job)


def quantised_input_bytes(job: TrainingJob) -> float:
    """Bytes per token and layer of the inputs that quantised linear layers keep for themselves."""
    if job.base not in QUANTISED or not job.adapters or job.framework.kernels != "eager":
        return 0.0
    return 2 * (2 * job.model.hidden + job.model.heads * job.model.head_dim + mlp_width(job))


def mlp_width(job: TrainingJob) -> float:
    """Feed-forward width that one token passes through: dense, or its experts and the shared ones."""
    model = job.model
    if not model.is_moe or not model.moe_intermediate:
        return float(model.intermediate)
    routed = model.experts_per_token * model.moe_intermediate + model.shared_intermediate
    share = model.moe_layers / model.layers
    return share * routed + (1 - share) * model.intermediate


def activations(job: TrainingJob) -> Activations:
    """Activation bytes of one micro-batch on one GPU, tensor and pipeline parallelism applied.

    Tensor parallelism is taken with sequence parallelism, so that all activations divide by it. A pipeline stage keeps
    as many micro-batches in flight as there are stages (1F1B), which cancels its smaller number of layers.
    """
    tokens = job.micro_tokens / job.tp * (_FP32_ACTIVATIONS if job.precision == "fp32" else 1.0)
    layers = job.model.layers / job.pp * min(job.pp, max(job.micro_batches, 1))
    inputs = 2.0 * job.model.hidden
    kept = layer_token_bytes(job) * job.framework.kept + quantised_input_bytes(job)
    scores = 0.0
    if not job.flash_attention:
        scores = job.model.heads * job.sequence_length * (job.model.attention_layers or job.model.layers)
        scores /= job.model.layers
    per_layer = {
        "none": kept + _SAVED_SCORE_BYTES * scores,
        "selective": inputs + _SELECTIVE_KEPT * (kept - inputs),
        "full": inputs,
    }[job.checkpointing]
    working = kept + _EAGER_SCORE_BYTES * scores
    saved = 0.0 if job.activation_offload else tokens * layers * per_layer
    if job.activation_offload:
        working += 2 * per_layer
    return Activations(saved=saved, layer=tokens * working, loss=_loss_bytes(job, job.micro_tokens / job.tp))


def _loss_bytes(job: TrainingJob, tokens: float) -> float:
    chunks = max(job.framework.loss_chunks, 8 if job.chunked_loss else 1)
    per_entry = job.framework.logits_bytes / chunks + (2.0 if chunks > 1 else 0.0)
    if job.adapters and job.framework.quantised_head_upcast and job.precision == "fp16":
        per_entry += _FP32_LOGITS_EXTRA if job.base in QUANTISED else 0.0
    return tokens * per_entry * job.model.vocab


def gib(size: float) -> float:
    """Bytes as GiB."""
    return size / _GIB
