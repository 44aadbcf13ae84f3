"""The policy of the guides, as rules: each test has a small catalog of invented offers that only the rule can order."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from planner.request import RequestError
from tests.plan_shop import a_surcharge, an_offer

LLAMA_8B = {"workload": "serve", "model": "meta-llama/Llama-3.1-8B-Instruct", "context": 4096}
LLAMA_70B = {"workload": "serve", "model": "meta-llama/Llama-3.1-70B-Instruct", "context": 8192}


def codes(row):
    return {r["code"] for r in row["reasons"]}


def warned(row):
    return {w["code"] for w in row["warnings"]}


def gpus(answer):
    return [row["gpu"] for row in answer["rows"]]


def test_hbm_stands_before_gddr_at_equal_memory_although_it_costs_more(shop):
    plan = shop([an_offer("gh200-96gb", "2.50"), an_offer("rtx-pro-6000-blackwell-server-96gb", "1.20")])
    answer = plan(LLAMA_8B)
    assert gpus(answer) == ["gh200-96gb", "rtx-pro-6000-blackwell-server-96gb"]
    assert "bandwidth" in codes(answer["rows"][0])
    assert "bandwidth_behind" in codes(answer["rows"][1])


def test_gddr_with_other_memory_is_ordered_by_cost(shop):
    plan = shop([an_offer("a100-sxm-80gb", "2.50"), an_offer("l40s-48gb", "0.90")])
    answer = plan(LLAMA_8B)
    assert gpus(answer) == ["l40s-48gb", "a100-sxm-80gb"]
    assert not codes(answer["rows"][1]) & {"bandwidth"}


def test_slow_hbm_does_not_stand_before_faster_gddr(shop):
    plan = shop([an_offer("v100-sxm-32gb", "0.90"), an_offer("rtx-5090-32gb", "0.60")])
    answer = plan({**LLAMA_8B, "weights": "awq"})
    assert gpus(answer)[0] == "rtx-5090-32gb"


def test_bandwidth_rule_does_not_bind_batch(shop):
    plan = shop([an_offer("gh200-96gb", "6.00"), an_offer("rtx-pro-6000-blackwell-server-96gb", "0.40")])
    assert gpus(plan({**LLAMA_8B, "workload": "batch"}))[0] == "rtx-pro-6000-blackwell-server-96gb"


def test_serve_and_batch_choose_different_first_rows_from_one_catalog(shop):
    offers = [
        an_offer("h100-sxm-80gb", "2.50"),
        an_offer("h100-sxm-80gb", "1.00", purchase_option="spot"),
        an_offer("b200-sxm-180gb", "4.00"),
    ]
    plan = shop(offers)
    serve, batch = plan(LLAMA_8B)["rows"][0], plan({**LLAMA_8B, "workload": "batch"})["rows"][0]
    assert serve["purchase_option"] == "on_demand"
    assert batch["purchase_option"] == "spot"


def test_no_user_facing_plan_on_spot(shop):
    plan = shop([an_offer(price="2.00"), an_offer(price="0.50", purchase_option="spot")])
    answer = plan(LLAMA_8B)
    assert [r["purchase_option"] for r in answer["rows"]] == ["on_demand"]
    assert answer["rejected"]["counts"] == {"spot_not_allowed": 1}


def test_spot_for_users_only_when_asked_and_then_priced_with_interruptions(shop):
    plan = shop([an_offer(price="2.00"), an_offer(price="0.50", purchase_option="spot", interruption_rate=0.2)])
    answer = plan(LLAMA_8B, only={"purchase_option": ("spot",)})
    (row,) = answer["rows"]
    assert row["purchase_option"] == "spot"
    assert any(line["kind"] == "interruption" for line in row["cost_lines"])
    assert answer["rejected"]["counts"] == {}


@pytest.mark.parametrize("objective", ["cost", "throughput", "balanced"])
def test_a_copy_is_not_split_while_one_gpu_fits(shop, objective):
    plan = shop([an_offer("h100-sxm-80gb", "2.00"), an_offer("l4-24gb", "1.00", gpu_count=4)])
    answer = plan({**LLAMA_8B, "concurrency": 16}, objective=objective)
    assert all(row["tp"] * row["pp"] == 1 for row in answer["rows"])
    assert all("split_aside" in codes(row) for row in answer["alternatives"] if row["tp"] > 1)


def test_split_because_nothing_fits(shop):
    plan = shop([an_offer("h100-sxm-80gb", "2.00"), an_offer("h100-sxm-80gb", "16.00", gpu_count=8)])
    answer = plan(LLAMA_70B)
    (row,) = answer["rows"]
    assert row["tp"] * row["pp"] > 1
    assert "split_no_fit" in codes(row)
    assert answer["rejected"]["counts"] == {"weights_exceed_memory": 1}


def test_split_because_no_single_gpu_meets_the_service_level(shop):
    plan = shop([an_offer("h100-sxm-80gb", "2.00"), an_offer("h100-sxm-80gb", "16.00", gpu_count=8)])
    answer = plan(LLAMA_8B, tpot_ms_max=4.5)
    assert answer["rows"]
    assert all("split_slo" in codes(row) for row in answer["rows"])
    assert all(row["tpot_ms"] <= 4.5 for row in answer["rows"])


def test_split_for_latency(shop):
    plan = shop([an_offer("h100-sxm-80gb", "2.00"), an_offer("h100-sxm-80gb", "16.00", gpu_count=8)])
    answer = plan(LLAMA_8B, objective="latency")
    first = answer["rows"][0]
    assert first["tp"] > 1
    assert "split_latency" in codes(first)
    assert first["tpot_ms"] == min(row["tpot_ms"] for row in answer["rows"])


def test_pinned_split_is_obeyed_and_says_so(shop):
    plan = shop([an_offer("h100-sxm-80gb", "16.00", gpu_count=8)])
    (row,) = plan({**LLAMA_8B, "gpus": 2})["rows"]
    assert (row["tp"], row["gpu_count"], row["plan_gpus"]) == (2, 8, 8)
    assert "split_asked" in codes(row)


def test_split_copies_prefer_nvlink_to_pcie(shop):
    plan = shop(
        [
            an_offer("l40s-48gb", "4.00", gpu_count=8),
            an_offer("a100-sxm-80gb", "14.00", gpu_count=8, gpu_interconnect="nvlink"),
        ]
    )
    answer = plan({**LLAMA_70B, "input_tokens": 256, "output_tokens": 256, "context": 1024})
    assert gpus(answer)[0] == "a100-sxm-80gb"
    assert "linked_gpus" in codes(answer["rows"][0])


def test_loosely_coupled_cards_never_carry_one_copy(shop):
    plan = shop([an_offer("h100-sxm-80gb", "2.00", rdma=False), an_offer("h100-sxm-80gb", "2.10", network_gbps=25.0)])
    answer = plan({**LLAMA_70B, "gpus": 4})
    assert answer["rows"] == []
    assert answer["rejected"]["counts"] == {"loosely_coupled": 2}


def test_one_copy_spans_whole_machines_over_a_known_fabric(shop):
    deepseek = {"workload": "serve", "model": "deepseek-ai/DeepSeek-R1", "context": 4096}
    node = {"gpu": "h100-sxm-80gb", "price": "20.00", "gpu_count": 8}
    joined, alone = an_offer(**node, rdma=True), an_offer(**node, instance_type="alone")
    answer = shop([joined, alone])(deepseek)
    rows = [row for row in answer["rows"] if row["instance_type"] == joined.offer.instance_type]
    assert rows, answer["rejected"]
    assert rows[0]["instances"] >= 2
    assert rows[0]["plan_gpus"] == 8 * rows[0]["instances"]
    assert answer["rejected"]["counts"] == {"loosely_coupled": 1}


def test_small_copies_fill_a_large_instance(shop):
    plan = shop([an_offer("h100-sxm-80gb", "16.00", gpu_count=8)])
    (row,) = plan({**LLAMA_8B, "concurrency": 400})["rows"]
    assert row["instances"] == 1
    assert row["plan_gpus"] == 8
    assert 1 < row["replicas"] <= 8
    assert row["dp"] == row["replicas"]


def test_every_fit_stands_before_every_tight(shop):
    offers = [an_offer("a100-sxm-40gb", "0.50"), an_offer("a100-sxm-80gb", "3.00"), an_offer("l40s-48gb", "2.00")]
    answer = shop(offers)({**LLAMA_8B, "context": 16384, "concurrency": 9}, ttft_ms_max=60000, tpot_ms_max=1000)
    verdicts = [row["verdict"] for row in answer["rows"]]
    assert verdicts == sorted(verdicts, key=["fits", "tight"].index)


def test_engine_and_gpu_without_the_format(shop):
    plan = shop([an_offer("v100-sxm-32gb", "0.50")])
    answer = plan({**LLAMA_8B, "weights": "fp8"})
    assert answer["rows"] == []
    assert answer["rejected"]["counts"] == {"unsupported_format": 1}


def test_sold_out_offers_are_left_out_and_named(shop):
    plan = shop([an_offer("h100-sxm-80gb", "1.00", availability="unavailable"), an_offer("a100-sxm-80gb", "2.00")])
    answer = plan(LLAMA_8B)
    assert gpus(answer) == ["a100-sxm-80gb"]
    assert answer["rejected"]["counts"] == {"sold_out": 1}
    scarce = next(w for w in answer["warnings"] if w["code"] == "scarce_supply")
    assert scarce["values"]["gpus"] == ["h100-sxm-80gb"]


@pytest.mark.parametrize(
    ("availability", "code"), [("unknown", "availability_unknown"), ("limited", "availability_limited")]
)
def test_uncertain_availability_is_ranked_with_a_warning(shop, availability, code):
    (row,) = shop([an_offer(availability=availability)])(LLAMA_8B)["rows"]
    assert code in warned(row)


def test_unpriced_offers_are_never_ranked(shop):
    answer = shop([an_offer(price=None), an_offer(price="2.00")])(LLAMA_8B)
    assert [row["price_usd_hour"] for row in answer["rows"]] == [2.0]
    assert answer["rejected"]["counts"] == {"unpriced": 1}


def test_windows_is_not_what_an_engine_runs_on(shop):
    answer = shop([an_offer(price="1.00", os="windows"), an_offer(price="2.00")])(LLAMA_8B)
    assert answer["rejected"]["counts"] == {"not_linux": 1}


def test_a_slice_is_planned_with_its_own_memory(shop):
    slice_ = an_offer("a10-24gb", "0.20", gpu_fraction=Decimal("0.33333"), gpu_memory_gb=8.0)
    answer = shop([slice_, an_offer("a10-24gb", "0.80")])({**LLAMA_8B, "weights": "awq", "concurrency": 4})
    assert [row["price_usd_hour"] for row in answer["rows"]] == [0.8]
    assert answer["rejected"]["nearest"]["gpu_memory_gb"] == pytest.approx(8.0)


def test_an_ambiguous_gpu_is_planned_on_its_least_candidate(shop):
    vague = an_offer("h100", "2.00", gpu_ambiguous=True, gpu_candidates=("h100-pcie-80gb", "h100-sxm-80gb"),
                     gpu_memory_gb=80.0)  # fmt: skip
    exact = an_offer("h100-pcie-80gb", "2.10")
    answer = shop([vague, exact])(LLAMA_8B)
    first, second = answer["rows"]
    assert first["tpot_ms"] == pytest.approx(second["tpot_ms"])
    assert {"gpu_ambiguous", "planned_on_least"} <= warned(first)


def test_resold_rows_give_way_to_the_providers_own_fresh_ones(shop):
    own, resold = an_offer(price="2.00"), an_offer(price="1.90", via="reseller")
    answer = shop([own, resold])(LLAMA_8B)
    assert [row["via"] for row in answer["rows"]] == [""]
    assert answer["rejected"]["counts"] == {"reseller_repeats_provider": 1}


def test_resold_rows_stay_where_the_provider_has_none_of_its_own(shop):
    answer = shop([an_offer(price="1.90", via="reseller")])(LLAMA_8B)
    assert [row["via"] for row in answer["rows"]] == ["reseller"]


def test_stale_rows_are_ranked_only_on_demand_of_the_user(shop):
    plan = shop([an_offer()], age=timedelta(days=3))
    assert plan(LLAMA_8B)["rows"] == []
    assert plan(LLAMA_8B)["rejected"]["counts"] == {"stale": 1}
    (row,) = plan(LLAMA_8B, allow_stale=True)["rows"]
    assert "price_old" in warned(row)


def test_aging_rows_are_ranked_with_a_warning(shop):
    (row,) = shop([an_offer()], age=timedelta(hours=30))(LLAMA_8B)["rows"]
    assert row["freshness"] == "aging"
    assert "price_aging" in warned(row)


def test_commitments_only_up_to_the_allowed_length(shop):
    offers = [an_offer(price="2.00"), an_offer(price="1.00", purchase_option="reserved", commitment_days=365)]
    plan = shop(offers)
    answer = plan(LLAMA_8B)
    assert [row["purchase_option"] for row in answer["rows"]] == ["on_demand"]
    assert answer["rejected"]["counts"] == {"commitment_too_long": 1}
    offered = [row for row in answer["alternatives"] if "alternative_commitment" in codes(row)]
    even = next(r["values"] for r in offered[0]["reasons"] if r["code"] == "commitment_break_even")
    assert even["months"] == pytest.approx(6.0)  # half the price: pays after half of the twelve months
    assert plan(LLAMA_8B, max_commitment_days=365)["rows"][0]["purchase_option"] == "reserved"


def test_pretraining_prefers_reserved_capacity_to_the_cheapest_spot(shop):
    node = {"gpu": "h100-sxm-80gb", "gpu_count": 8, "rdma": True, "network_gbps": 3200.0}
    offers = [
        an_offer(**node, price="8.00", purchase_option="spot"),
        an_offer(**node, price="20.00"),
        an_offer(**node, price="16.00", purchase_option="reserved", commitment_days=14),
    ]
    job = {"workload": "pretrain", "model": "meta-llama/Llama-3.1-8B-Instruct", "gpus": 64, "tokens": 20e9}
    answer = shop(offers)(job, max_commitment_days=14)
    assert [row["purchase_option"] for row in answer["rows"]] == ["reserved", "on_demand", "spot"]
    assert "reserved_first" in codes(answer["rows"][0])


def test_pretraining_over_an_unknown_fabric_is_refused(shop):
    job = {"workload": "pretrain", "model": "meta-llama/Llama-3.1-8B-Instruct", "gpus": 64, "tokens": 1e9}
    answer = shop([an_offer("h100-sxm-80gb", "20.00", gpu_count=8)])(job)
    assert answer["rows"] == []
    assert answer["rejected"]["counts"] == {"loosely_coupled": 1}


def test_qlora_starts_on_a_small_card(shop):
    offers = [an_offer("h100-sxm-80gb", "1.00"), an_offer("l40s-48gb", "2.00")]
    job = {"workload": "qlora", "model": "meta-llama/Llama-3.1-8B-Instruct", "tokens": 1e7}
    answer = shop(offers)(job)
    assert gpus(answer) == ["l40s-48gb", "h100-sxm-80gb"]
    assert "small_card_first" in codes(answer["rows"][0])


def test_spot_that_is_interrupted_all_the_time_is_refused_for_training(shop):
    node = {"gpu": "h100-sxm-80gb", "gpu_count": 8, "rdma": True, "network_gbps": 3200.0}
    offers = [an_offer(**node, price="2.00", purchase_option="spot", interruption_rate=0.9999)]
    job = {"workload": "full", "model": "meta-llama/Llama-3.1-70B-Instruct", "gpus": 8192, "tokens": 1e9}
    answer = shop(offers)(job)
    assert answer["rows"] == []
    assert answer["rejected"]["counts"] == {"spot_too_interrupted": 1}


def test_a_stated_service_level_is_never_given_up(shop):
    answer = shop([an_offer("l4-24gb", "0.50")])({**LLAMA_8B, "weights": "awq"}, tpot_ms_max=2)
    assert answer["rows"] == []
    assert answer["rejected"]["counts"] == {"service_level_missed": 1}
    assert answer["rejected"]["nearest"]["reason"]["code"] == "service_level_missed"


def test_the_default_service_level_is_given_up_with_a_warning_when_nothing_meets_it(shop):
    long_prompt = {**LLAMA_8B, "context": 32768, "input_tokens": 30000, "output_tokens": 500, "weights": "awq"}
    answer = shop([an_offer("l4-24gb", "0.50")])(long_prompt)
    assert answer["rows"]
    assert any(w["code"] == "default_service_level_missed" for w in answer["warnings"])


def test_replicas_follow_the_request_rate(shop):
    plan = shop([an_offer("h100-sxm-80gb", "2.00")])
    load = {**LLAMA_8B, "input_tokens": 1000, "output_tokens": 250}
    few, many = plan(load, requests_s=1)["rows"][0], plan(load, requests_s=60)["rows"][0]
    assert few["replicas"] == 1
    assert many["replicas"] > few["replicas"]
    assert many["output_tokens_s"] == pytest.approx(60 * 250)
    assert many["cost_total_usd"] > few["cost_total_usd"]


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"objective": "speed"}, "speed"),
        ({"requests_s": -1}, "requests_s"),
        ({"hours_per_day": 25}, "hours_per_day"),
        ({"egress_gb": "1e99"}, "egress_gb is at most"),
        ({"batch_share": 1}, "batch_share"),
        ({"max_commitment_days": 1.5}, "max_commitment_days"),
        ({"budget_usd": "lots"}, "budget_usd"),
        ({"budget": 5}, "budget"),
    ],
)
def test_bad_plan_keys_are_named(shop, keys, word):
    with pytest.raises(RequestError, match=word):
        shop([an_offer()])(LLAMA_8B, **keys)


def test_keys_of_a_service_do_not_apply_to_training(shop):
    with pytest.raises(RequestError, match="ttft_ms_max"):
        shop([an_offer()])({"workload": "lora", "model": "meta-llama/Llama-3.1-8B-Instruct"}, ttft_ms_max=100)


@pytest.mark.parametrize("gpu", ["cloud-ai-100-standard-16gb", "k80-12gb", "tpu-v5e-16gb"])
def test_chips_that_the_software_does_not_run_on_never_train(shop, gpu):
    job = {"workload": "lora", "model": "Qwen/Qwen2.5-0.5B-Instruct", "params_b": 0.5, "tokens": 1e6}
    answer = shop([an_offer(gpu, "0.10", gpu_count=8)])(job)
    assert answer["rows"] == []
    assert answer["rejected"]["counts"] == {"unsupported_engine": 1}


def test_traffic_and_cost_per_token_follow_the_mean_rate_and_replicas_the_peak(shop):
    plan = shop([an_offer("h100-sxm-80gb", "2.00")], [a_surcharge("egress", "0.10", "gb")])
    load = {**LLAMA_8B, "input_tokens": 1000, "output_tokens": 250}
    peak, mean = plan(load, requests_s=20)["rows"][0], plan(load, requests_s=20, average_requests_s=5)["rows"][0]
    assert mean["replicas"] == peak["replicas"]
    # 20 requests x 250 tokens x 250 bytes a second over 730 hours
    assert peak["cost_egress_usd"] == pytest.approx(20 * 250 * 250 * 730 * 3600 / 1e9 * 0.10, rel=1e-6)
    assert mean["cost_egress_usd"] == pytest.approx(peak["cost_egress_usd"] / 4, rel=1e-6)
    tokens = 5 * 250 * 730 * 3600 / 1e6
    assert mean["cost_usd_per_million_tokens"] == pytest.approx(mean["cost_total_usd"] / tokens, rel=1e-4)


def test_a_serverless_copy_sleeps_between_requests_at_a_low_rate(shop):
    offers = [an_offer("h100-sxm-80gb", "4.00", tenancy="serverless"), an_offer("h100-sxm-80gb", "2.00")]
    load = {**LLAMA_8B, "input_tokens": 500, "output_tokens": 100}
    rare = shop(offers)(load, requests_s=0.0005, egress_gb=0)["rows"]
    assert rare[0]["price_usd_hour"] == 4.0
    assert rare[0]["cost_total_usd"] < 400 < rare[1]["cost_total_usd"]


def test_stock_limits_the_machines(shop):
    answer = shop([an_offer("h100-sxm-80gb", "2.00", stock_count=1)])({**LLAMA_8B, "concurrency": 900})
    assert answer["rows"] == []
    assert answer["rejected"]["counts"] == {"stock_too_small": 1}


@pytest.mark.parametrize("objective", ["latency", "throughput", "balanced"])
def test_objectives_order_by_what_they_name(shop, objective):
    offers = [an_offer("l40s-48gb", "0.80"), an_offer("h100-sxm-80gb", "2.50"), an_offer("b200-sxm-180gb", "5.00")]
    rows = shop(offers)(LLAMA_8B, objective=objective)["rows"]
    by = {
        "latency": [r["ttft_ms"] + 1023 * r["tpot_ms"] for r in rows],
        "throughput": [-r["output_tokens_s"] for r in rows],
        "balanced": [r["cost_total_usd"] * (r["ttft_ms"] + 1023 * r["tpot_ms"]) for r in rows],
    }[objective]
    assert by == sorted(by)


def test_capacity_blocks_are_for_jobs_and_say_that_they_are_booked(shop):
    plan = shop([an_offer(price="1.00", purchase_option="scheduled"), an_offer(price="2.00")])
    serve = plan(LLAMA_8B)
    assert serve["rejected"]["counts"] == {"scheduled_not_allowed": 1}
    batch = plan({**LLAMA_8B, "workload": "batch"})
    assert batch["rows"][0]["purchase_option"] == "scheduled"
    assert "scheduled_window" in warned(batch["rows"][0])


def test_hosts_of_third_parties_are_named(shop):
    (row,) = shop([an_offer(tenancy="community")])(LLAMA_8B)["rows"]
    assert "community_host" in warned(row)


def test_a_reservation_of_unknown_length_needs_a_stated_limit(shop):
    plan = shop([an_offer(price="1.00", purchase_option="reserved", commitment_days=0), an_offer(price="2.00")])
    assert plan(LLAMA_8B)["rejected"]["counts"] == {"commitment_not_stated": 1}
    assert plan(LLAMA_8B, max_commitment_days=30)["rows"][0]["purchase_option"] == "reserved"


def test_a_job_pays_a_reservation_in_full(shop):
    offers = [an_offer(price="1.00", purchase_option="reserved", commitment_days=14)]
    job = {"workload": "lora", "model": "meta-llama/Llama-3.1-8B-Instruct", "tokens": 1e6}
    (row,) = shop(offers)(job, max_commitment_days=14)["rows"]
    assert row["cost_compute_usd"] == pytest.approx(14 * 24, abs=0.01)


def test_a_deadline_takes_more_machines_of_a_batch_job(shop):
    plan = shop([an_offer(price="2.00")])
    job = {**LLAMA_8B, "workload": "batch", "input_tokens": 1000, "output_tokens": 500}
    slow, fast = plan(job, requests=200_000)["rows"][0], plan(job, requests=200_000, deadline_h=2)["rows"][0]
    assert slow["instances"] == 1
    assert fast["instances"] > 1
    assert fast["hours"] <= 2
    assert fast["cost_usd_per_million_tokens"] == pytest.approx(fast["cost_total_usd"] / 100)


def test_a_deadline_that_nothing_meets_says_what_came_closest(shop):
    job = {"workload": "full", "model": "meta-llama/Llama-3.1-8B-Instruct", "gpus": 8, "tokens": 1e9}
    answer = shop([an_offer("h100-sxm-80gb", "16.00", gpu_count=8)])(job, deadline_h=1)
    assert answer["rows"] == []
    nearest = answer["rejected"]["nearest"]
    assert nearest["reason"]["code"] == "deadline_missed"
    assert nearest["reason"]["values"]["hours"] > 1


def test_an_attached_volume_is_paid_even_where_the_machine_has_a_disk(shop):
    plan = shop([an_offer("l40s-48gb", "0.90")], [a_surcharge("block_storage", "0.08", "gb_month")])
    bursts = {"hours_per_day": 2, "starts_per_day": 10}
    kept, attached = (
        plan(LLAMA_8B, cold_start=kind, **bursts)["rows"][0] for kind in ("cached_image", "attached_volume")
    )
    assert kept["cost_storage_usd"] == 0  # on the machine's own disk
    # 16.06 GB x 1.2 in whole gigabytes, all month whether the machine is up or not
    assert attached["cost_storage_usd"] == 1.60
    assert kept["cost_compute_usd"] > attached["cost_compute_usd"]


@pytest.mark.parametrize("workload", ["batch", "serve"])
def test_what_a_start_finds_is_echoed_and_said(shop, workload):
    plan = shop([an_offer("l40s-48gb", "0.90")])
    usual = plan({**LLAMA_8B, "workload": workload})
    assert usual["policy"]["cold_start"] == "object_store"
    said = [line for line in usual["assumptions"] if line.startswith("cold start: ")]
    # a service that is always up has no start to speak of
    assert said == (
        [] if workload == "serve"
        else ["cold start: image of 10 GB pulled at 0.1 GB/s, weights from an object store at 1.05 GB/s"]
    )  # fmt: skip
    with pytest.raises(RequestError, match="attached_volume"):
        plan({**LLAMA_8B, "workload": workload}, cold_start="attached_volumes")
