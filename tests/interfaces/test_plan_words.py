"""Every reason has words, in English and in Hindi, with the same values in both."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from interfaces.messages import LABELS, TEMPLATES, label, sentence
from interfaces.money import grouped
from interfaces.words import translations

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


@pytest.mark.parametrize("texts", [TEMPLATES, LABELS], ids=["sentences", "labels"])
def test_every_text_is_translated_with_the_same_values(texts):
    hindi = translations("hi")
    free = {TEMPLATES["catalog"]}  # the text itself
    for code, text in texts.items():
        if text in free:
            continue
        assert text in hindi, f"{code}: no translation"
        assert set(PLACES.findall(hindi[text])) == set(PLACES.findall(text)), code


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
