"""Assumptions in the reader's language. The planner says them in English, with figures in them.

Each kind of sentence stands here once as a template, and its translation in `locale/<lang>/gpubazaar.po`. A sentence is
recognised by its fixed words; `name value` pairs are keys of a request and read the same in any language. A sentence
that no template fits is shown in English, so that nothing is hidden.
"""

from __future__ import annotations

import re
from functools import cache

from interfaces.words import say

# Where two could fit, the one with more fixed words stands first.
SENTENCES: tuple[str, ...] = (
    # serving
    "engine {engine} (none stated)",
    "weights {format} (the checkpoint's own)",
    "kv_cache {format}, 2 bytes an element",
    "kv_cache {format}, as the checkpoint is tagged",
    "kv_cache fp8: {weights} builds for this engine carry an FP8 cache tag (kv_cache_quant_algo)",
    "memory_utilization {share} (default of {engine})",
    "{engine}: no version stated: the mean of the terms of the V1 engine from {first} to {last}",
    "{engine} at the newest version known here",
    "{images} image(s) a request at {tokens} tokens each, added to the input",
    "text only: llama.cpp loads the image tower from a file of its own (mmproj)",
    "the configuration shows no vision tower: its weights are not counted",
    (
        "requests of {input} + {output} tokens are longer than the context {context}: the engine would refuse or cut "
        "them, so the memory counts the context only"
    ),
    "context {context} is beyond the model's own {own}: rotary scaling assumed",
    "{share} of the input is a shared prefix: computed and cached once",
    "speculative decoding accepts {tokens} tokens a step; draft weights not counted",
    "{adapters} LoRA adapter(s) of rank {rank} held in 16 bit",
    "{architecture} (compute capability {capability}) has no bf16: runs as fp16 (float16), same size",
    "{format} is weight-only on {architecture}: weights are stored in it, arithmetic is 16 bit",
    "{gpu} is one of {candidates}: planned on the least of each figure",
    "{slice} is {share} of a GPU with {memory} GB of its own",
    "usable memory of {gpu} is estimated from its label",
    "speed on {gpu} follows from its published figures: none was measured",
    "ARM host: the engine must be an aarch64 build",
    "{machines} machines joined by 400 Gb/s a GPU of InfiniBand or RoCE (assumed)",
    "{gpus} GPUs stand in {machines} machines of {domain}",
    "{gpu} has no NVLink: PCIe is used",
    "dp = {dp}: {gpus} GPUs hold {copies} copies of tp {tp} x pp {pp}",
    "tp = {tp}: one replica over all {gpus} GPUs",
    "tp = {tp}, pp = {pp}: the widest legal split of {gpus} GPUs",
    "{size} = {count}: {gpus} GPUs over {others}",
    "layers split over {gpus} GPUs (pp = {pp}), as {engine} does",
    # training
    "framework {framework}: {name} is not known here",
    "fabric {gb_s} GB/s a node one way: the network is not stated",
    "{tokens} tokens of training (none stated)",
    "weights in 16 bit x {factor} and the kept checkpoints are stored for the job's duration",
    # media
    "disk for weights is sized by the memory that they peak at",
    "{items} items (none stated)",
    # of plans
    "egress not counted: neither egress_gb nor requests_s is stated",
    "replicas are planned at {share} of their measured capacity",
    "job of {tokens} output tokens (requests not stated)",
    "cold start: image of {image_gb} GB pulled at {image_gb_s} GB/s, weights from an object store at {gb_s} GB/s",
    "cold start: image cached, weights from an object store at {gb_s} GB/s",
    "cold start: image cached, weights read from an attached volume at {gb_s} GB/s",
)
_PAIRS = re.compile(r"\w+ \S+(?:, \w+ \S+)*")
_PLACE = re.compile(r"\\\{(\w+)\\\}")


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((text, re.compile(_PLACE.sub(r"(?P<\1>.+?)", re.escape(text)))) for text in SENTENCES)


def recognised(text: str) -> bool:
    """Whether a sentence can be said in every language."""
    return _PAIRS.fullmatch(text) is not None or any(pattern.fullmatch(text) for _, pattern in _patterns())


def assumption(text: str, lang: str) -> str:
    """One assumption of the planner in words of `lang`."""
    if lang == "en":
        return text
    for template, pattern in _patterns():
        found = pattern.fullmatch(text)
        if found is not None:
            return say(template, lang).format_map(found.groupdict())
    return text
