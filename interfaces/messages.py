"""Reasons and warnings arrive as codes with values; this turns them into sentences in the reader's language.

`TEMPLATES` are English sentences and `LABELS` a few words for counts, both keyed by code; their translations live in
`locale/<lang>/gpubazaar.po` under the English text. A code without a template is shown with its values as they are, so
that nothing is hidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interfaces.money import DOLLARS, Money
from interfaces.words import say

TEMPLATES: Mapping[str, str] = {
    # what fits and what does not
    "weights_exceed_memory": "weights need {required_gib_per_gpu} GiB per GPU, {missing_gib_per_gpu} GiB too much",
    "activations_exceed_memory": "no room for activations: {missing_gib_per_gpu} GiB more per GPU needed",
    "kv_exceeds_memory": "no room for the cache of one sequence: {missing_gib_per_gpu} GiB more per GPU needed",
    "concurrency_exceeds_memory": "the cache of all users needs {missing_gib_per_gpu} GiB more per GPU",
    "training_exceeds_memory": "training peaks at {required_gib_per_gpu} GiB, {missing_gib_per_gpu} GiB a GPU too much",
    "media_exceeds_memory": "generation peaks at {required_gib_per_gpu} GiB, {missing_gib_per_gpu} GiB too much",
    "exceeds_memory": "peaks at {required_gib} GiB of {usable_gib} GiB usable, in stage {stage}",
    "unsupported_format": "{engine} does not run {format} on {gpu} ({architecture}); nearest that runs: {nearest}",
    "unsupported_kv_cache": "{engine} does not keep a {kv_cache} cache on {gpu}; nearest that works: {nearest}",
    "unsupported_engine": "{engine} does not run on {gpu}",
    "speed_unknown": "the memory bandwidth of {gpu} is not published",
    "split_illegal": "{dimension} = {size} cannot be split that way",
    "loosely_coupled": "needs {gpus} GPUs, a machine has {instance_gpus}, no fast network between them is known",
    "link_not_asked": "GPUs are joined by {link}, not as asked",
    "disk_too_small": "disk of {disk_gb} GB for {need_gb} GB, and no volume price is known",
    "service_level_missed": "{tpot_ms} ms a token (limit {tpot_ms_max}), first in {ttft_ms} ms (limit {ttft_ms_max})",
    "over_budget": "costs {cost_total_usd}, budget {budget_usd}",
    "deadline_missed": "takes {hours} h, deadline {deadline_h} h",
    "stock_too_small": "{instances} machines needed, {stock} in stock",
    "costs": "costs {cost_total_usd}",
    "takes": "takes {hours} h",
    "spot_too_interrupted": "interrupted too often to make progress",
    # what would help
    "fits_with_weights": "fits with {weights} weights",
    "fits_with_kv_cache": "fits with a {kv_cache} cache",
    "fits_on_more_gpus": "fits on {gpus} GPUs",
    "fits_with_fewer_users": "fits for {concurrency} users",
    "fits_with_shorter_context": "fits with a context of {context}",
    "fits_with_workload": "fits as {workload}",
    "fits_with_micro_batch": "fits with micro-batch {micro_batch}",
    "fits_with_quant": "fits in {value}",
    "fits_with_offload": "fits with offload {value}",
    "fits_with_vae_tiling": "fits with VAE tiling",
    "try": "try {key} {value}",
    # why a row stands where it stands
    "split_no_fit": "split over {gpus} GPUs: no single GPU fits",
    "split_slo": "split over {gpus} GPUs: no single GPU meets the service level",
    "split_latency": "split over {gpus} GPUs for latency",
    "split_asked": "split over {gpus} GPUs, as asked",
    "split_aside": "split over {gpus} GPUs although one fits",
    "bandwidth": "{memory_type} at {bandwidth_gb_s} GB/s stands before {over} at equal memory",
    "bandwidth_behind": "{memory_type} stands behind HBM at equal memory",
    "linked_gpus": "GPUs joined by {link}",
    "reserved_first": "reserved capacity first",
    "small_card_first": "one card of {memory_gb} GB is enough",
    "pareto": "nothing is both cheaper and faster",
    "spot_priced_with_interruptions": "spot, {overhead_percent} % added for interruptions (every {mean_hours} h)",
    "cold_start": "cold start {cold_start_s} s ({kind}): p99 TTFT {ttft_p99_ms_cold} ms, {ttft_p99_ms_warm} ms warm",
    "commitment_break_even": "pays from {months} months of use on (term {term_months} months)",
    "checkpoints": "checkpoint of {size_gb} GB in {write_s} s",
    "cost_per_thousand_items": "{usd} per 1,000 items",
    "alternative_weights": "weights in {value} save {saves_usd} and {saves_gib_per_gpu} GiB per GPU",
    "alternative_kv_cache": "cache in {value} saves {saves_usd} and {saves_gib_per_gpu} GiB per GPU",
    "alternative_context": "a context of {value} saves {saves_usd}",
    "alternative_users": "{value} users save {saves_usd}",
    "alternative_larger": "one size up: {headroom_gib_per_gpu} GiB to spare, for {costs_more_usd} more",
    "alternative_neighbour": "available instead of {instead_of}",
    "alternative_commitment": "{commitment_days} days of commitment save {saves_usd}",
    "quality_risk": "measure the quality of {format} on your own data first",
    "two_tiers": "rows are the interactive tier, {interactive_share} of the load; the batch tier takes {batch_share}",
    # warnings
    "availability_unknown": "availability is not published",
    "availability_limited": "limited stock",
    "community_host": "the machine belongs to a third party, not to the provider",
    "scheduled_window": "capacity is booked for a fixed window, not rented at any time",
    "price_old": "price of {age_days} days ago ({freshness})",
    "price_aging": "price of {age_h} h ago",
    "price_not_live": "{provenance} price",
    "prices_not_live": "these are {provenance} prices of the dates shown, not live ones",
    "gpu_ambiguous": "the provider does not say which of {candidates} it is",
    "planned_on_least": "planned on the least of {candidates}",
    "interconnect_assumed": "link between GPUs not stated; {link} assumed",
    "weight_only_format": "{gpu} stores the format but computes in 16 bit",
    "fabric_rate_assumed": "network rate not stated; {gbps} Gb/s a machine assumed",
    "storage_price_unknown": "no price for {need_gb} GB of storage is known: not counted",
    "egress_price_unknown": "no price for {egress_gb} GB of traffic is known: not counted",
    "billing_increment_unknown": "billing increment not stated: whole hours assumed",
    "stopped_is_billed": "a stopped machine is billed in full there: delete it between bursts",
    "meters_assumed": "CPU and memory are billed apart; sizes assumed",
    "default_service_level_missed": "default service level not met: {tpot_ms} ms a token, {ttft_ms} ms to the first",
    "scarce_supply": "{offers} offers are sold out: {gpus}",
    "rows_cut": "{shown} of {rows} plans shown; --limit shows more",
    "currency_converted": "some prices are in other currencies and were converted at the dated rate in the catalog",
    "taxes_not_included": "taxes are not included",
    "catalog": "{text}",
    "recorded_home_not_refreshed": "this home holds recorded prices; nothing was refreshed",
    "provider_trouble": "{provider}: last refresh {outcome}, last good prices used ({note})",
    "refresh_failed": "{provider}: refresh failed, last good prices used ({problem})",
    "refresh_held": "{provider}: new prices held back, last good ones used ({problem})",
    "refresh_partial": "{provider}: refreshed in part ({problem})",
    "flag_from_price": "the price is a \"from\" price",
    "flag_second_source": "the price comes from a second source",
    "flag_spot_not_discounted": "spot costs as much as on demand here",
    "flag_price_not_monotonic": "more GPUs cost less than fewer: check this price",
    "flag_memory_mismatch": "the provider's memory figure differs from the product's",
    "flag_interruption_rate_lower_bound": "the interruption rate is a lower bound",
    "flag_term_not_stated": "the length of the term is not stated",
    "flag_end_of_service": "the provider announced the end of this product",
    # from the fit models
    "experts_not_quantised": "experts stay in 16 bit ({format})",
    "fabric_assumed": "network between machines assumed at {gb_s_per_node} GB/s",
    "gpus_do_not_pool": "{gpus} GPUs do not pool their memory here",
    "host_memory_needed": "needs {gib_per_node} GiB of host memory a machine",
    "interconnect_bound": "limited by the {link} link",
    "needs_shared_storage": "needs storage shared by {nodes} machines",
    "peak_stage": "peaks in stage {stage} at {required_gib} GiB",
    "precision_unsupported": "{gpu} has no {precision}",
    "stated_minimum": "the maker states a minimum ({source})",
    "stored_fp32": "{model} is stored in 32 bit",
}  # fmt: skip

LABELS: Mapping[str, str] = {
    "weights_exceed_memory": "weights too big",
    "activations_exceed_memory": "no room for activations",
    "kv_exceeds_memory": "no room for one sequence",
    "concurrency_exceeds_memory": "no room for the users",
    "training_exceeds_memory": "training too big",
    "media_exceeds_memory": "model too big",
    "unsupported_format": "format unsupported",
    "unsupported_kv_cache": "cache format unsupported",
    "unsupported_engine": "engine does not run there",
    "speed_unknown": "speed unknown",
    "split_illegal": "no legal split",
    "loosely_coupled": "loosely coupled",
    "link_not_asked": "other link than asked",
    "disk_too_small": "disk too small",
    "service_level_missed": "too slow",
    "split_not_needed": "one GPU is enough",
    "over_budget": "over budget",
    "stock_too_small": "fewer in stock than needed",
    "deadline_missed": "too late",
    "spot_too_interrupted": "interrupted too often",
    "unknown_gpu": "unknown GPU",
    "unpriced": "no price",
    "not_linux": "not Linux",
    "closed_region": "closed region",
    "reseller_repeats_provider": "resold; the provider's own price is fresh",
    "sold_out": "sold out",
    "spot_not_allowed": "spot, not for users",
    "scheduled_not_allowed": "capacity blocks, not for users",
    "reserved_not_allowed": "reserved, not asked",
    "on_demand_not_allowed": "on demand, not asked",
    "commitment_too_long": "commitment too long",
    "commitment_not_stated": "commitment of unknown length",
    "stale": "price too old",
}


# Values that are words themselves.
VALUES: Mapping[str, str] = {
    "object_store": "from an object store",
    "cached_image": "image cached",
    "attached_volume": "from an attached volume",
}


class _Values(dict[str, str]):
    """Values by name; one that a template expects and nobody gave is a question mark, not a crash."""

    def __missing__(self, key: str) -> str:
        return "?"


def sentence(reason: Mapping[str, Any] | str, lang: str, money: Money = DOLLARS) -> str:
    """One reason in words, its sums in the currency of `money`."""
    if isinstance(reason, str):
        return say(reason, lang)
    code, values = str(reason.get("code")), dict(reason.get("values") or {})
    if "overhead_share" in values:
        values["overhead_percent"] = 100 * values["overhead_share"]
    template = TEMPLATES.get(code)
    if template is None:
        figures = ", ".join(f"{k} {_short(v)}" for k, v in values.items())
        return f"{code.replace('_', ' ')}" + (f" ({figures})" if figures else "")
    return say(template, lang).format_map(_Values({k: _value(k, v, lang, money) for k, v in values.items()}))


def label(code: str, lang: str) -> str:
    """A reason code in a few words, for counts."""
    return say(LABELS.get(code, code.replace("_", " ")), lang)


def _value(name: str, value: Any, lang: str, money: Money) -> str:
    if "usd" in name and isinstance(value, (int, float)):
        return money.text(value, lang)
    return say(VALUES[value], lang) if isinstance(value, str) and value in VALUES else _short(value)


def _short(value: Any) -> str:
    if value is None:
        return "?"
    if isinstance(value, float):
        text = f"{value:,.2f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)
