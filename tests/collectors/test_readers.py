"""The visible text of a page's nodes: what is a footnote or struck through is not said."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup

from collectors.readers import text_of


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("H100<sup>1</sup>", "H100"),
        ("H200²", "H200"),
        ("$2.99³/h†", "$2.99/h"),
        ("<s>$3.99</s> $2.99/h", "$2.99/h"),
        ("<del>$3.99</del><ins>$2.99/h</ins>", "$2.99/h"),
        ('<span class="text-sm line-through">$3.99</span> <b>$2.99/h</b>', "$2.99/h"),
        ('<span style="text-decoration: line-through">$3.99</span> $2.99/h', "$2.99/h"),
        ("<span>8 x</span> <b>L40S</b>", "8 x L40S"),
    ],
)
def test_footnotes_and_old_prices_are_not_text(html: str, text: str):
    assert text_of(BeautifulSoup(f"<table><tr><td>{html}</td></tr></table>", "lxml").td) == text
