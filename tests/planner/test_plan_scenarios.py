"""Worked scenarios on recorded prices. Each cost is worked out by hand here, line by line, and compared to the cent.

Hours of jobs come from the fit model itself (`estimate`), so that a better model does not break the arithmetic.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

import pytest

from planner.estimate import estimate
from planner.request import parse_request

EUROPE = ("AT", "BE", "CZ", "DE", "DK", "ES", "FI", "FR", "IE", "IT", "NL", "PL", "PT", "SE")


def cents(value):
    return Decimal(str(value)).quantize(Decimal("0.01"), ROUND_HALF_UP)


def find(answer, part="rows", **wanted):
    found = [row for row in answer[part] if all(row[k] == v for k, v in wanted.items())]
    assert found, f"no row with {wanted}: {[(r['provider'], r['instance_type']) for r in answer[part]]}"
    return found[0]


def lines(row):
    return {line["kind"]: Decimal(str(line["cost_usd"])) for line in row["cost_lines"]}


def codes(items):
    return {item["code"] for item in items}


def value_of(row, code):
    return next(r["values"] for r in row["reasons"] if r["code"] == code)


def only(*providers, **more):
    return {"provider": providers, **more}


def job_hours(**request):
    return Decimal(str(estimate(parse_request(request))["hours"]))


def test_quantised_7b_chat_on_one_24_gb_card(recorded):
    chat = {"workload": "serve", "model": "Qwen/Qwen2.5-7B-Instruct", "weights": "awq", "context": 4096,
            "concurrency": 4, "gpu": "l4"}  # fmt: skip
    answer = recorded(chat, only=only("scaleway"))
    row = find(answer, instance_type="L4-1-24G")
    assert (row["verdict"], row["plan_gpus"], row["tp"]) == ("fits", 1, 1)
    # 0.7875 EUR an hour x 1.1269 USD = 0.88743375; 730 hours a month; no volume price is published
    assert cents(row["cost_total_usd"]) == cents(Decimal("0.88743375") * 730) == Decimal("647.83")
    assert "storage_price_unknown" in codes(row["warnings"])


def test_quantised_13b_chat_on_one_24_gb_card(recorded):
    chat = {"workload": "serve", "params_b": 13.0, "layers": 40, "hidden": 5120, "heads": 40, "kv_heads": 40,
            "vocab": 32000, "intermediate": 13824, "weights": "awq", "context": 4096, "concurrency": 2,
            "gpu": "rtx-4090-24gb"}  # fmt: skip
    row = find(recorded(chat, only=only("runpod", tenancy=("secure",))), instance_type="1x NVIDIA GeForce RTX 4090")
    assert row["verdict"] in {"fits", "tight"}
    # 730 h x 0.74; weights of some 7 GB x 1.2 need a volume of 9 GB at 0.10 a month
    assert lines(row) == {"compute": Decimal("540.2"), "block_storage": Decimal("0.9")}
    assert cents(row["cost_total_usd"]) == Decimal("541.10")


def test_70b_in_bf16_does_not_fit_one_80_gb_card(recorded):
    chat = {"workload": "serve", "model": "meta-llama/Llama-3.1-70B-Instruct", "weights": "bf16", "gpu": "h100"}
    alone = recorded(chat, only=only("nebius", gpu_count="1"))
    assert alone["rows"] == []
    assert alone["rejected"]["counts"] == {"spot_not_allowed": 1, "weights_exceed_memory": 1}
    assert alone["rejected"]["nearest"]["missing_gib_per_gpu"] > 50
    assert "fits_on_more_gpus" in codes(alone["rejected"]["nearest"]["remedies"])
    row = find(recorded(chat, only=only("nebius")), instance_type="NVIDIA HGX H100 x8")
    assert row["tp"] * row["pp"] > 1
    assert "split_no_fit" in codes(row["reasons"])
    # 730 h x 30.80 = 22,484.00; 141 GB x 1.2 = 170 GB at 0.049360096
    assert lines(row)["compute"] == Decimal("22484.0")
    assert cents(row["cost_total_usd"]) == Decimal("22492.39")


def test_70b_in_fp8_at_long_context_where_the_cache_outgrows_the_weights(recorded):
    chat = {"workload": "serve", "model": "meta-llama/Llama-3.1-70B-Instruct", "weights": "fp8", "context": 131072,
            "input_tokens": 4000, "output_tokens": 500, "concurrency": 4}  # fmt: skip
    answer = recorded(chat, only=only("nebius", gpu=("h200-sxm-141gb", "b200-sxm-180gb", "b300-sxm-288gb")))
    # one sequence of 131,072 tokens keeps 40 GiB: four of them 160 GiB beside 68 GiB of weights
    row = answer["rows"][0]
    assert row["required_gib_per_gpu"] * row["tp"] * row["pp"] > 160 + 67
    assert find(answer, gpu="b300-sxm-288gb", gpu_count=1)["plan_gpus"] == 1
    # 730 x 7.85 + 88 GB (72.7 GB x 1.2) x 0.049360096
    assert cents(find(answer, gpu="b300-sxm-288gb", gpu_count=1)["cost_total_usd"]) == Decimal("5734.84")


def test_frontier_mixture_of_experts_on_one_node(recorded):
    chat = {"workload": "serve", "model": "deepseek-ai/DeepSeek-R1", "context": 8192, "concurrency": 8}
    answer = recorded(chat, only=only("nebius", gpu=("h200-sxm-141gb",)), tpot_ms_max=100, ttft_ms_max=10000)
    row = find(answer, instance_type="NVIDIA HGX H200 x8")
    assert (row["instances"], row["plan_gpus"], row["tp"] * row["pp"]) == (1, 8, 8)
    assert "split_no_fit" in codes(row["reasons"])
    storage = lines(row)["block_storage"]
    assert lines(row)["compute"] == Decimal("26280.0")  # 730 x 36.00
    assert cents(row["cost_total_usd"]) == cents(Decimal(26280) + storage)
    assert storage / Decimal("0.049360096") > 800  # 671 GB x 1.2


def test_nightly_batch_on_spot(recorded):
    night = {"workload": "batch", "model": "meta-llama/Llama-3.1-8B-Instruct", "concurrency": 64, "context": 4096,
             "input_tokens": 1000, "output_tokens": 500, "gpu": "h100-sxm-80gb"}  # fmt: skip
    answer = recorded(night, only=only("nebius", gpu_count="1"), requests=20_000, deadline_h=8)
    first, second = answer["rows"][:2]
    assert [first["purchase_option"], second["purchase_option"]] == ["spot", "on_demand"]
    speed = estimate(parse_request(night))["output_tokens_s"]
    hours = Decimal(str(20_000 * 500 / speed / 3600))
    # a start is billed: 180 s boot, 100 s image, 16.06 GB of weights at 1.05 GB/s
    cold = (Decimal(280) + Decimal(str(16.06 / 1.05))) / 3600
    expected = (hours + cold) * Decimal("3.85")
    assert float(second["cost_compute_usd"]) == pytest.approx(float(expected), abs=0.02)
    # ten per cent a month: 720 h / -ln 0.9 between interruptions, each costs a start
    mean_h = 720 / -math.log(0.9)
    again = hours * Decimal(str((280 + 16.06 / 1.05) / 3600 / mean_h))
    assert float(first["cost_compute_usd"]) == pytest.approx(float((hours + again + cold) * Decimal("2.15")), abs=0.02)
    assert value_of(first, "spot_priced_with_interruptions")["rate_stated"] is False


def test_bursty_endpoint_where_the_hour_loses_to_the_second(recorded):
    chat = {"workload": "serve", "model": "meta-llama/Llama-3.1-8B-Instruct", "context": 4096, "gpu": "l40s"}
    where = only("beam", "runpod", gpu_count="1", tenancy=("vm", "community"))
    always = recorded(chat, only=where)
    assert always["rows"][0]["provider"] == "beam"  # 0.72 an hour against 0.79
    bursts = recorded(chat, only=where, hours_per_day=2, starts_per_day=10)
    assert bursts["rows"][0]["provider"] == "runpod"
    by_hour, by_second = find(bursts, provider="beam"), find(bursts, provider="runpod")
    # ten starts a day x 730/24 days, each 12 min and a cold start, each billed as one whole hour
    starts = Decimal(730) / 24 * 10
    assert cents(by_hour["cost_compute_usd"]) == cents(starts * Decimal("0.72")) == Decimal("219.00")
    # by the second: 12 min + 36 s boot + 100 s image + 16.06 GB at 1.05 GB/s, rounded up to whole seconds
    session_s = math.ceil(720 + 36 + 100 + 16.06 / 1.05)
    assert session_s == 872
    expected = starts * session_s / 3600 * Decimal("0.79")
    assert cents(by_second["cost_compute_usd"]) == cents(expected) == Decimal("58.20")
    cold = value_of(by_second, "cold_start")
    assert cold["ttft_p99_ms_cold"] == pytest.approx(
        cold["ttft_p99_ms_warm"] + 1000 * (36 + 100 + 16.06 / 1.05), abs=60
    )


@pytest.mark.parametrize(
    ("kind", "image_s", "gb_s", "session_s", "compute"),
    [
        # 12 min + 36 s boot + image + weights, whole seconds; x 304.1667 starts a month at 0.79 an hour
        ("object_store", 100, 1.05, 872, "58.20"),
        ("cached_image", 0, 1.05, 772, "51.53"),
        ("attached_volume", 0, 1.99, 765, "51.06"),
    ],
)
def test_bursts_by_what_a_start_finds(recorded, kind, image_s, gb_s, session_s, compute):
    chat = {"workload": "serve", "model": "meta-llama/Llama-3.1-8B-Instruct", "context": 4096, "gpu": "l40s"}
    where = only("beam", "runpod", gpu_count="1", tenancy=("vm", "community"))
    bursts = recorded(chat, only=where, hours_per_day=2, starts_per_day=10, cold_start=kind)
    assert bursts["policy"]["cold_start"] == kind
    assert [line for line in bursts["assumptions"] if line.startswith("cold start: ")]
    by_hour, by_second = find(bursts, provider="beam"), find(bursts, provider="runpod")
    assert bursts["rows"][0]["provider"] == "runpod"  # whole hours lose whatever a start finds
    assert cents(by_hour["cost_compute_usd"]) == Decimal("219.00")  # 304.1667 hours at 0.72
    assert math.ceil(720 + 36 + image_s + 16.06 / gb_s) == session_s
    assert cents(by_second["cost_compute_usd"]) == Decimal(compute)
    cold = value_of(by_second, "cold_start")
    assert (cold["kind"], cold["image_s"]) == (kind, image_s)
    assert cold["cold_start_s"] == pytest.approx(36 + image_s + 16.06 / gb_s, abs=0.06)
    assert cold["ttft_p99_ms_cold"] == pytest.approx(cold["ttft_p99_ms_warm"] + 1000 * cold["cold_start_s"], abs=60)


def test_egress_turns_a_ranking_round(recorded):
    chat = {"workload": "serve", "model": "meta-llama/Llama-3.1-8B-Instruct", "context": 4096}
    where = only("aws", "lambda_cloud", gpu=("h100-sxm-80gb", "b200-sxm-180gb"), gpu_count="1",
                 min_gpu_memory_gb=80)  # fmt: skip
    quiet = [r for r in recorded(chat, only=where, egress_gb=0)["rows"] if r["price_usd_hour"] > 6]
    loud = [r for r in recorded(chat, only=where, egress_gb=2000)["rows"] if r["price_usd_hour"] > 6]
    assert quiet[0]["provider"] == "aws"  # 6.88 against 6.99 an hour
    assert loud[0]["provider"] == "lambda_cloud"
    aws = next(r for r in loud if r["provider"] == "aws" and r["region"] == "us-east-1")
    free = next(r for r in loud if r["provider"] == "lambda_cloud")
    assert cents(aws["cost_total_usd"]) == Decimal("5202.40")  # 730 x 6.88 + 2,000 GB x 0.09, disk included
    assert cents(free["cost_total_usd"]) == Decimal("5102.70")  # 730 x 6.99


def test_reserved_against_on_demand(recorded):
    chat = {"workload": "serve", "model": "meta-llama/Llama-3.1-8B-Instruct", "context": 4096}
    where = only("azure", region=("eastus",), gpu=("a100-pcie-80gb",), gpu_count="1")
    full = recorded(chat, only=where, max_commitment_days=365)
    half = recorded(chat, only=where, max_commitment_days=365, hours_per_day=12, starts_per_day=0)
    assert full["rows"][0]["purchase_option"] == "reserved"
    # 26,784 USD a year = 3.057534247 an hour, billed for all 730 hours whatever the use; an address at 0.005 an hour
    assert cents(full["rows"][0]["cost_compute_usd"]) == Decimal("2235.65")
    # twelve months at 2,235.65 are paid after 9.99 months at 2,684.94 on demand
    even = value_of(full["rows"][0], "commitment_break_even")
    assert (even["months"], even["term_months"], even["wins"]) == (pytest.approx(9.99, abs=0.01), 12.0, True)
    assert value_of(find(half, purchase_option="reserved"), "commitment_break_even")["wins"] is False
    assert half["rows"][0]["purchase_option"] == "on_demand"
    assert (
        cents(half["rows"][0]["cost_compute_usd"])
        == cents(365 * Decimal("3.673") + Decimal("3.65"))
        == Decimal("1344.30")
    )
    reserved = find(half, purchase_option="reserved")
    assert cents(reserved["cost_compute_usd"]) == Decimal("2235.65")
    assert lines(reserved)["commitment"] == pytest.approx(lines(reserved)["compute"])


@pytest.mark.parametrize(
    ("workload", "model", "gpu", "provider", "instance_type", "price"),
    [
        ("qlora", "meta-llama/Llama-3.1-70B-Instruct", "h100-sxm-80gb", "nebius", "NVIDIA HGX H100 x1", "3.85"),
        ("lora", "meta-llama/Llama-3.1-8B-Instruct", "l40s-48gb", "nebius", "NVIDIA L40S with AMD CPU x1", "1.55"),
        ("full", "meta-llama/Llama-3.1-8B-Instruct", "h200-sxm-141gb", "nebius", "NVIDIA HGX H200 x8", "36.0"),
    ],
)
def test_fine_tuning(recorded, workload, model, gpu, provider, instance_type, price):
    gpus = 8 if instance_type.endswith("x8") else 1
    job = {"workload": workload, "model": model, "gpu": gpu, "gpus": gpus, "tokens": 20e6, "interconnect": "nvlink"}
    if gpus == 1:
        job.pop("interconnect")
    answer = recorded(job, only=only(provider))
    row = find(answer, instance_type=instance_type, purchase_option="on_demand")
    fit = estimate(parse_request(job))
    hours = Decimal(str(fit["hours"]))
    params_gb = Decimal({"8B": "8.03", "70B": "70.55"}["70B" if "70B" in model else "8B"]) * 2
    cold = (Decimal(280) + params_gb / Decimal("1.05")) / 3600
    assert float(row["cost_compute_usd"]) == pytest.approx(float((hours + cold) * Decimal(price)), rel=2e-3, abs=0.02)
    # weights in 16 bit x 1.2 and three checkpoints, for the hours of the job
    stored_gb = math.ceil((float(params_gb) * 1.2 + fit["checkpoint_gib"] * 3 * 2**30 / 1e9) / 10) * 10
    storage = stored_gb * 0.049360096 * float(hours) / 730
    assert float(row["cost_storage_usd"]) == pytest.approx(storage, abs=0.01)
    assert row["cost_usd_month"] is None
    assert row["hours"] == pytest.approx(float(hours + cold), rel=1e-3)


def test_pretraining_7b_on_64_gpus_needs_a_known_fabric(recorded):
    job = {"workload": "pretrain", "params_b": 6.7, "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 32,
           "vocab": 32000, "intermediate": 11008, "gpus": 64, "tokens": 10e9}  # fmt: skip
    unknown = recorded(job, only=only("nebius"))
    assert unknown["rows"] == []
    assert set(unknown["rejected"]["counts"]) <= {"loosely_coupled", "unpriced", "sold_out"}
    known = recorded(job, only=only("aws", gpu=("h100-sxm-80gb",), country=("US",)))
    row = find(known, instance_type="p5.48xlarge", region="us-east-1", purchase_option="on_demand")
    assert (row["instances"], row["plan_gpus"]) == (8, 64)
    compute = next(line for line in row["cost_lines"] if line["kind"] == "compute")
    assert compute["unit_price_usd"] == 55.04
    # eight machines for the hours of the job; all of them start once: 280 s and 13.4 GB of weights
    cold = 8 * (280 + 13.4 / 1.05) / 3600
    start = next(line for line in row["cost_lines"] if line["kind"] == "cold_start")
    assert start["quantity"] == pytest.approx(cold, abs=0.001)
    assert cents(start["cost_usd"]) == cents(start["quantity"] * 55.04)
    assert float(row["hours"]) == pytest.approx(compute["quantity"] / 8 + cold / 8, rel=1e-6)


@pytest.mark.parametrize(
    ("request_", "price"),
    [
        ({"workload": "image", "model": "black-forest-labs/FLUX.1-dev", "items": 5000, "steps": 28}, "3.85"),
        ({"workload": "video", "model": "THUDM/CogVideoX-5b", "items": 200}, "3.85"),
        ({"workload": "audio", "model": "openai/whisper-large-v3", "items": 3000, "task": "transcribe", "seconds": 600},
         "3.85"),
    ],
)  # fmt: skip
def test_media_jobs(recorded, request_, price):
    answer = recorded({**request_, "gpu": "h100-sxm-80gb"}, only=only("nebius", gpu_count="1"), egress_gb=0)
    row = find(answer, purchase_option="on_demand")
    each = Decimal(str(estimate(parse_request({**request_, "gpu": "h100-sxm-80gb"}))["seconds_per_item"]))
    hours = each * request_["items"] / 3600
    compute = next(line for line in row["cost_lines"] if line["kind"] == "compute")
    assert float(compute["cost_usd"]) == pytest.approx(float(hours * Decimal(price)), rel=1e-4)
    assert row["seconds_per_item"] == pytest.approx(float(each), rel=1e-4)
    per_thousand = Decimal(str(row["cost_total_usd"])) / request_["items"] * 1000
    assert value_of(row, "cost_per_thousand_items")["usd"] == pytest.approx(float(per_thousand), rel=1e-6)


def test_transcription_fleet_meets_a_deadline(recorded):
    tape = {"workload": "audio", "model": "openai/whisper-large-v3", "items": 200_000, "seconds": 600,
            "task": "transcribe", "gpu": "h100-sxm-80gb"}  # fmt: skip
    answer = recorded(tape, only=only("nebius", gpu_count="1"), deadline_h=24)
    row = find(answer, purchase_option="on_demand")
    assert row["instances"] > 1
    assert row["hours"] <= 24
    assert row["plan_usd_hour"] == pytest.approx(3.85 * row["instances"])


def test_two_tiers(recorded):
    load = {"workload": "serve", "model": "meta-llama/Llama-3.1-8B-Instruct", "context": 4096, "concurrency": 40,
            "gpu": "h100-sxm-80gb"}  # fmt: skip
    answer = recorded(load, only=only("nebius", gpu_count="1"), batch_share=0.6)
    front, back = answer["tiers"]
    assert (front["concurrency"], back["concurrency"]) == (16, 24)
    assert {r["purchase_option"] for r in front["rows"]} == {"on_demand"}
    assert back["rows"][0]["purchase_option"] == "spot"
    disk = Decimal("0.987202")  # 20 GB x 0.049360096
    assert cents(front["cost_usd_month"]) == cents(730 * Decimal("3.85") + disk) == Decimal("2811.49")
    spot = back["rows"][0]
    assert lines(spot)["compute"] == Decimal("1569.5")  # 730 x 2.15
    assert 0 < lines(spot)["interruption"] < 1
    total = Decimal(str(front["cost_usd_month"])) + Decimal(str(back["cost_usd_month"]))
    assert Decimal(str(answer["tiers_cost_usd_month"])) == total


def test_only_in_europe(recorded):
    chat = {"workload": "serve", "model": "meta-llama/Llama-3.1-8B-Instruct", "context": 4096, "concurrency": 8}
    answer = recorded(chat, only={"country": EUROPE})
    assert answer["rows"]
    assert {row["country"] for row in answer["rows"]} <= set(EUROPE)
    row = find(answer, provider="verda", instance_type="1A100.22V")
    assert cents(row["cost_compute_usd"]) == cents(730 * Decimal("1.29")) == Decimal("941.70")


def test_india(recorded):
    chat = {"workload": "serve", "model": "meta-llama/Llama-3.1-8B-Instruct", "weights": "awq", "context": 4096}
    answer = recorded(chat, only=only("jarvislabs", country=("IN",)))
    row = find(answer, instance_type="L4 x1")
    assert row["country"] == "IN"
    # 730 x 0.44 and 7 GB at 0.10 a month
    assert cents(row["cost_total_usd"]) == Decimal("321.90")


def test_a_budget_that_nothing_meets(recorded):
    chat = {"workload": "serve", "model": "meta-llama/Llama-3.1-70B-Instruct", "weights": "fp8", "concurrency": 8}
    answer = recorded(chat, only=only("nebius"), budget_usd=500)
    assert answer["rows"] == []
    nearest = answer["rejected"]["nearest"]
    assert nearest["reason"]["code"] == "over_budget"
    best = recorded(chat, only=only("nebius"))["rows"][0]
    assert nearest["reason"]["values"]["cost_total_usd"] == pytest.approx(best["cost_total_usd"], abs=0.01)
    assert answer["rejected"]["counts"]["over_budget"] >= 1


def test_a_gpu_that_is_sold_out(recorded):
    chat = {"workload": "serve", "model": "meta-llama/Llama-3.1-8B-Instruct", "context": 4096, "gpu": "b200"}
    answer = recorded(chat, only=only("runpod"))
    assert answer["rows"] == []
    assert answer["rejected"]["counts"] == {"sold_out": 2}
    scarce = next(w for w in answer["warnings"] if w["code"] == "scarce_supply")
    assert scarce["values"] == {"gpus": ["b200-sxm-180gb"], "offers": 2}
    neighbours = answer["alternatives"]
    assert neighbours
    assert all(row["gpu"] != "b200-sxm-180gb" for row in neighbours)
    assert "alternative_neighbour" in codes(neighbours[0]["reasons"])
