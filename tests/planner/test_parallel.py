"""Legal splits, defaults, and layouts that do not add up."""

import pytest

from planner.model_config import spec_from_config
from planner.models import known_models
from planner.parallel import Layout, illegal, layout_of
from planner.request import RequestError, parse_request


def dense(heads=32, kv_heads=8, intermediate=14336, layers=32):
    return spec_from_config(
        "t",
        {
            "num_hidden_layers": layers,
            "hidden_size": heads * 128,
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "intermediate_size": intermediate,
            "vocab_size": 32000,
        },
    )


def dimensions(layout, model, group=0, engine="vllm"):
    return {reason["values"]["dimension"] for reason in illegal(layout, model, group, engine)}


@pytest.mark.parametrize(("tp", "legal"), [(1, True), (2, True), (3, False), (4, True), (8, False)])
def test_heads_divide(tp, legal):
    assert (not illegal(Layout(tp=tp), dense(heads=52, kv_heads=52, intermediate=17920), 0, "vllm")) is legal


def test_kv_heads_divide_or_are_copied():
    model = dense(heads=28, kv_heads=4, intermediate=18944)
    assert "kv_heads" in dimensions(Layout(tp=7), model)
    assert not dimensions(Layout(tp=4), model)
    assert not dimensions(Layout(tp=8), dense(heads=64, kv_heads=4))


def test_quantised_blocks_stay_whole():
    coder = known_models()["Qwen/Qwen3-Coder-480B-A35B-Instruct"]
    assert "moe_intermediate" in dimensions(Layout(tp=8), coder, group=128)
    assert not dimensions(Layout(tp=4), coder, group=128)
    assert not dimensions(Layout(tp=8, ep=8), coder, group=128)


def test_experts_divide_by_expert_ranks():
    deepseek = known_models()["deepseek-ai/DeepSeek-V3"]
    assert "experts" in dimensions(Layout(tp=3, ep=3), deepseek)
    assert not dimensions(Layout(tp=8, ep=8), deepseek)
    assert "experts" in dimensions(Layout(tp=2, ep=2), dense())


def test_layers_bound_the_stages_and_layer_splits_ignore_heads():
    assert "layers" in dimensions(Layout(pp=40), dense(layers=32))
    assert not dimensions(Layout(tp=3), dense(heads=32), engine="llama.cpp")


def layout(model, **keys):
    engine = keys.get("engine", "vllm")
    return layout_of(parse_request({"workload": "serve", **keys}), model, 0, engine)


def test_gpus_alone_take_the_widest_legal_split_and_say_so():
    chosen, said = layout(dense(heads=40, kv_heads=8, intermediate=13824), gpus=6)
    assert (chosen.tp, chosen.pp) == (2, 3)
    assert "tp = 2" in said[0]
    assert layout(dense(), gpus=8)[0] == Layout(tp=8)
    assert layout(dense(), gpus=3, engine="llama.cpp")[0] == Layout(pp=3)


def test_what_is_left_open_is_filled_in():
    assert layout(dense(), gpus=8, tp=4)[0] == Layout(tp=4, dp=2)
    assert layout(dense(), gpus=8, pp=2, dp=1)[0] == Layout(tp=4, pp=2)
    assert layout(dense(), tp=4)[0].gpus == 4


@pytest.mark.parametrize("keys", [{"gpus": 8, "tp": 3}, {"gpus": 2, "tp": 4}, {"gpus": 8, "tp": 2, "pp": 2, "dp": 1}])
def test_sizes_that_do_not_add_up_are_refused(keys):
    with pytest.raises(RequestError) as caught:
        layout(dense(), **keys)
    assert caught.value.code == "inconsistent_layout"
