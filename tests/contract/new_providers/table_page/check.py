"""Acme: words instead of a price, a header without its unit."""

import pytest

from collectors.errors import LayoutChanged


def test_words_are_no_price(parse_page):
    assert {r.quote.price for r in parse_page().rows if r.offer.gpu == "b200-sxm-180gb"} == {None}


def test_a_header_without_its_unit_is_refused(parse_page):
    with pytest.raises(LayoutChanged, match="GPU-hour"):
        parse_page(("Price per GPU-hour", "Price"))
