"""Every reason has words, in English and in Hindi, with the same values in both."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from interfaces.assumptions import SENTENCES, assumption, recognised
from interfaces.messages import LABELS, TEMPLATES, VALUES, label, sentence
from interfaces.money import Money, grouped
from interfaces.words import translations
from planner.cost_start import START_KINDS, start_assumption
from planner.estimate import estimate
from planner.request import parse_request

ROOT = Path(__file__).parents[2]
PLACES = re.compile(r"\{(\w+)\}")
# Codes that are composed from a part known only at run time.
COMPOSED = {
    "alternative_weights",
    "alternative_kv_cache",
    "fits_with_quant",
    "fits_with_offload",
    "fits_with_vae_tiling",
}


def codes_in(folder: str) -> set[str]:
    """First arguments of every call of `reason` or of a refusal."""
    found: set[str] = set()
    for path in (ROOT / folder).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args or not isinstance(node.func, ast.Name):
                continue
            first = node.args[0]
            if node.func.id == "reason" and isinstance(first, ast.Constant):
                found.add(first.value)
    return found


def test_every_code_of_the_planner_has_words():
    missing = codes_in("planner") - TEMPLATES.keys() - LABELS.keys()
    assert missing == set()
    assert TEMPLATES.keys() >= COMPOSED


SAID = {text: text for text in SENTENCES}


@pytest.mark.parametrize(
    "texts", [TEMPLATES, LABELS, VALUES, SAID], ids=["sentences", "labels", "values", "assumptions"]
)
def test_every_text_is_translated_with_the_same_values(texts):
    hindi = translations("hi")
    free = {TEMPLATES["catalog"]}  # the text itself
    for code, text in texts.items():
        if text in free:
            continue
        assert text in hindi, f"{code}: no translation"
        assert set(PLACES.findall(hindi[text])) == set(PLACES.findall(text)), code


LLAMA = {"workload": "serve", "model": "meta-llama/Llama-3.1-70B-Instruct", "gpu": "h100", "gpus": 4}


@pytest.mark.parametrize(
    "request_",
    [
        LLAMA,
        {**LLAMA, "gpu": "a100", "gpus": 3, "weights": "fp8", "prefix_cache_share": 0.5, "speculative_factor": 2,
         "lora_adapters": 3, "images_per_request": 1},
        {**LLAMA, "gpu": "v100-sxm-32gb", "gpus": 16, "engine": "llama.cpp"},
        {**LLAMA, "gpu": "h200-sxm-141gb", "gpus": 16, "tp": 8, "kv_cache": "fp8", "context": 200_000},
        {**LLAMA, "gpu": "l40s", "gpus": 8, "interconnect": "nvlink", "dp": 2, "weights": "nvfp4"},
        {**LLAMA, "model": "deepseek-ai/DeepSeek-R1", "gpu": "gb200", "engine": "tensorrt-llm"},
        {"workload": "qlora", "model": "meta-llama/Llama-3.1-70B-Instruct", "gpu": "h100", "gpus": 16},
        {"workload": "video", "model": "THUDM/CogVideoX-5b", "gpu": "h100-sxm-80gb"},
        {"workload": "audio", "model": "openai/whisper-large-v3", "gpu": "h100-sxm-80gb"},
    ],
)  # fmt: skip
def test_every_assumption_of_the_fit_models_has_words(request_):
    said = estimate(parse_request(request_))["assumptions"]
    assert said
    assert [text for text in said if not recognised(text)] == []


@pytest.mark.parametrize("kind", START_KINDS)
def test_the_start_is_said_in_every_language(kind):
    text = start_assumption(kind)
    assert assumption(text, "en") == text
    assert re.search("[\u0900-\u097f]", assumption(text, "hi"))
    figures = re.compile(r"\d[\d.]*")
    assert figures.findall(assumption(text, "hi")) == figures.findall(text)


def test_an_assumption_keeps_its_figures_and_an_unknown_one_its_words():
    text = "h100 is one of h100-pcie-80gb, h100-sxm-80gb: planned on the least of each figure"
    assert assumption(text, "hi") == "h100 इनमें से एक है: h100-pcie-80gb, h100-sxm-80gb; हर मान का सबसे छोटा लिया गया"
    assert assumption("input_tokens 6144, output_tokens 2048", "hi") == "input_tokens 6144, output_tokens 2048"
    assert assumption("never heard of before", "hi") == "never heard of before"
    assert not recognised("never heard of before")


def test_sums_in_sentences_follow_the_currency():
    over = {"code": "over_budget", "values": {"cost_total_usd": 123456.0, "budget_usd": 0.96}}
    rupees = Money("inr", 0.0120)
    assert sentence(over, "en", rupees) == "costs ₹1,02,88,000.00, budget ₹80.00"
    assert sentence(over, "hi", rupees) == "लागत ₹1,02,88,000.00, बजट ₹80.00"
    assert sentence(over, "hi") == "लागत $1,23,456.00, बजट $0.96"


def test_hindi_is_written_in_devanagari():
    plain = [text for text in translations("hi").values() if not re.search("[\u0900-\u097f]", text)]
    assert plain == []


def test_a_sentence_without_its_values_is_no_crash():
    assert "?" in sentence({"code": "weights_exceed_memory", "values": {}}, "en")
    assert sentence({"code": "never_heard_of", "values": {"n": 1.5}}, "en") == "never heard of (n 1.5)"
    assert label("never_heard_of", "en") == "never heard of"


def test_values_are_rounded_for_people():
    text = sentence({"code": "over_budget", "values": {"cost_total_usd": 1234.5, "budget_usd": 500}}, "en")
    assert text == "costs $1,234.50, budget $500.00"
    spot = {"code": "spot_priced_with_interruptions", "values": {"overhead_share": 0.0123, "mean_hours": 6834.0}}
    assert sentence(spot, "en") == "spot, 1.23 % added for interruptions (every 6,834 h)"


@pytest.mark.parametrize(
    ("amount", "currency", "lang", "text"),
    [
        (1234567.891, "usd", "en", "$1,234,567.89"),
        (1234567.891, "inr", "en", "₹12,34,567.89"),
        (1234567.891, "inr", "hi", "₹12,34,567.89"),
        (None, "inr", "en", ""),
    ],
)
def test_money_in_the_grouping_of_its_readers(amount, currency, lang, text):
    assert grouped(amount, currency, lang) == text
