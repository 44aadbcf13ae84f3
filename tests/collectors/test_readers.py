"""The visible text of a page's nodes (footnotes and struck prices are not said) and the words over table columns."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup

from collectors.readers import read_table, tab_count, text_of


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


def headers(*lines: str, body: str = "<tr>" + "<td>1</td>" * 5 + "</tr>") -> tuple[str, ...]:
    page = "".join(f"<tr>{line}</tr>" for line in lines)
    return read_table(BeautifulSoup(f"<table>{page}{body}</table>", "html.parser").table).headers


GROUPS = '<th rowspan="2">GPU</th><th colspan="2">On-demand</th><th colspan="2;">Reserved</th>'
UNITS = "<th>USD</th><th>INR</th>" * 2
NAMED = ("GPU", "On-demand USD", "On-demand INR", "Reserved USD", "Reserved INR")


def test_groups_stand_before_what_they_span():
    assert headers(GROUPS, UNITS) == NAMED
    assert headers("<th>Prices per hour</th>", GROUPS, UNITS) == NAMED
    assert headers('<th colspan="2">Prices</th>', GROUPS, UNITS) == NAMED
    assert headers("<th>GPU</th><th>a</th><th>b</th><th>c</th><th>d</th>") == ("GPU", "a", "b", "c", "d")


@pytest.mark.parametrize(
    "lines",
    [
        (GROUPS.replace('<th colspan="2">On-demand</th>', ""), UNITS),
        (GROUPS, UNITS.removesuffix("<th>INR</th>")),
        ("<th>GPU</th><th>a</th><th>b</th><th>c</th>",),
        ("<th>GPU</th>",),
    ],
)
def test_a_header_row_short_of_a_cell_names_no_column(lines: tuple[str, ...]):
    assert headers(*lines) == ("",) * 5


@pytest.mark.parametrize(
    ("words", "count"),
    [("8x", 8), ("8x GPUs", 8), ("4× GPUs", 4), ("1 GPU", 1), ("16 GPUs", 16), ("Instances", None), ("2xlarge", None)],
)
def test_the_number_of_gpus_on_a_tab(words, count):
    soup = BeautifulSoup(
        f'<button id="t">{words}</button><div role="tabpanel" aria-labelledby="t"><table></table></div>', "lxml"
    )
    assert tab_count(soup, soup.table) == count
