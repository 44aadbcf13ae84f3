"""What each objective minimises."""

from tests.plan_shop import an_offer

IMAGES = {"workload": "image", "model": "stabilityai/stable-diffusion-xl-base-1.0", "items": 50}


def test_the_latency_of_a_job_is_its_end_with_the_start_of_the_machine(shop):
    slow_to_boot = an_offer("b200-sxm-180gb", "30.00", gpu_count=8, boot_time_s=3600, region="slow")
    at_once = an_offer("a100-sxm-80gb", "2.00", boot_time_s=5, region="fast")
    rows = shop([slow_to_boot, at_once])(IMAGES, objective="latency")["rows"]
    assert [row["region"] for row in rows] == ["fast", "slow"]
    assert rows[0]["hours"] < rows[1]["hours"]
    assert rows[0]["seconds_per_item"] > rows[1]["seconds_per_item"]


def test_jobs_end_in_order_when_speed_is_the_objective(recorded):
    tuning = {"workload": "qlora", "model": "meta-llama/Llama-3.1-70B-Instruct", "tokens": 20_000_000, "quant": "nf4"}
    rows = recorded(tuning, objective="latency")["rows"]
    for verdict in ("fits", "tight"):
        hours = [row["hours"] for row in rows if row["verdict"] == verdict]
        assert hours == sorted(hours)


def test_a_plan_is_on_the_frontier_when_nothing_is_both_cheaper_and_sooner(recorded):
    rows = recorded(IMAGES, limit=1000)["rows"]
    frontier = [row for row in rows if any(reason["code"] == "pareto" for reason in row["reasons"])]
    assert frontier
    for row in frontier:
        assert not any(
            other["cost_total_usd"] < row["cost_total_usd"] - 1e-5 and other["hours"] < row["hours"] - 1e-6
            for other in rows
        )
