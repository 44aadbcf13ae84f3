"""Cells, cards, meters and sizes of price pages, whatever the words and the markup."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from bs4 import BeautifulSoup

from catalog.types import Document
from collectors.cards import gpu_cards, price_cards
from collectors.meters import add_free_egress, add_meters, per_gb
from collectors.modal import Modal
from collectors.pages import (
    Terms,
    add_cell,
    cell_state,
    commitment_days_in,
    gpu_memory_gb_in,
    memory_gib_in,
    option_in,
    per_gpu_memory_gb,
    slug,
    storage_gb_in,
    terms_in,
    whole_number_in,
)
from collectors.rows import GpuRead, RowBuilder

DOCUMENT = Document("modal", "https://modal.com/pricing", b"x", datetime(2026, 11, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("$2.49", "priced"), ("from $2.49/hr", "priced"), ("0,75 EUR/h", "priced"), ("₹671", "priced"),
        ("Contact us", "on_request"), ("Talk to our team", "on_request"), ("Request a quote", "on_request"),
        ("Auf Anfrage", "on_request"), ("POA", "on_request"), ("Sur devis", "on_request"),
        ("[Contact us](#form)", "on_request"), ("Sold out", "unavailable"), ("Coming soon", "unavailable"),
        ("Join the waitlist", "unavailable"), ("—", "absent"), ("––", "absent"), ("", "absent"), ("N/A", "absent"),
        ("n/a", "absent"), ("TBD", "absent"), ("$0.00", "unreadable"), ("0", "unreadable"), ("cheap", "unreadable"),
    ],
)  # fmt: skip
def test_what_a_cell_says(text, state):
    assert cell_state(text) == state


def offer(text, **fields):
    rows = RowBuilder(Modal())
    row = add_cell(rows, DOCUMENT, GpuRead(label="NVIDIA L4", count=2), text, Terms("hour", "gpu"), sku="x",
                   instance_type="x", **fields)  # fmt: skip
    return row, rows.finish()


@pytest.mark.parametrize(
    ("text", "hourly"), [("$1.00", 2.0), ("$0.001 / sec", 7.2), ("$0.02/min", 2.4), ("$730 per month", 2.0)]
)
def test_the_unit_in_the_cell_goes_before_the_header(text, hourly):
    assert offer(text)[0].quote.price_usd_hour == pytest.approx(hourly)


@pytest.mark.parametrize(
    "text",
    [
        "$31.20/node-hr",
        "$8 per 2 GPUs per hour",
        "$650/wk",
        "$9,000 / year",
        "$1 per 10 min",
        "$8/hr for 2 GPUs",
        "$650 weekly",
    ],
)
def test_a_measure_that_the_header_does_not_know_is_refused(text):
    row, result = offer(text)
    assert row is None
    assert [r.reason for r in result.rejections] == ["unit_unknown"]


@pytest.mark.parametrize("text", ["$31.20 per node per hour", "$31.20/hr for 2 GPUs", "$31.20 per 2 GPUs per hour"])
def test_a_price_per_instance_stands_where_instances_are_priced(text):
    rows = RowBuilder(Modal())
    row = add_cell(rows, DOCUMENT, GpuRead(label="NVIDIA L4", count=2), text,
                   Terms("hour", "instance"), sku="x", instance_type="x")  # fmt: skip
    assert row is not None
    assert row.quote.price_usd_hour == pytest.approx(31.2)


def test_a_lower_bound_is_flagged_and_a_zero_rejected():
    assert offer("from $1.00")[0].quote.flags == ("from_price",)
    row, result = offer("$0.00")
    assert row is None
    assert [(r.reason, r.value) for r in result.rejections] == [("not_a_price", "$0.00")]


def test_a_reserved_price_needs_its_term():
    row, _ = offer("$1.00", purchase_option="reserved")
    assert row.quote.price is None
    assert "term_not_stated" in row.quote.flags
    assert offer("$1.00", purchase_option="reserved", commitment_days=30)[0].quote.price == 1


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("2 weeks – 1 year", 14), ("7-30 days", 7), ("181+ days", 181), ("36_months", 1095), ("12 months", 365),
        ("6 months", 182), ("1 year+", 365), ("3-year", 1095), ("On-demand", None), ("", None),
    ],
)  # fmt: skip
def test_the_shortest_term(text, days):
    assert commitment_days_in(text) == days


@pytest.mark.parametrize(
    ("text", "gib"),
    [
        ("2900 GiB", 2900),
        ("2.5TB", 2560),
        ("96 GB", 96),
        ("4,096", 4096),
        ("512 MiB", 0.5),
        ("96-1152", None),
        ("", None),
    ],
)
def test_host_memory(text, gib):
    assert memory_gib_in(text) == gib


@pytest.mark.parametrize(
    ("text", "gb"),
    [("22 TiB SSD", 24189.3), ("512 GiB", 549.76), ("61.44 TB", 61440), ("200GB NVMe", 200), ("-", None)],
)
def test_disks_in_decimal_gb(text, gb):
    assert storage_gb_in(text) == (None if gb is None else pytest.approx(gb, rel=1e-4))


def test_other_figures():
    assert gpu_memory_gb_in("80 GiB VRAM") == 80
    assert whole_number_in("1,024") == 1024
    assert whole_number_in("8-40") is None
    assert slug("NVIDIA  H100 (8x)", "", 80) == "nvidia-h100-8x-80"
    assert per_gb(Decimal(1)) == Decimal("0.931322574615")


@pytest.mark.parametrize(
    ("header", "option"),
    [("Preemptible, GPU-hour", "spot"), ("Current spot", "spot"), ("On-Demand Price", "on_demand"),
     ("Reserved", "reserved"), ("1-year commitment", "reserved"), ("Price", None), ("On-demand and spot", None)],
)  # fmt: skip
def test_options_in_headers(header, option):
    assert option_in(header) == option


@pytest.mark.parametrize(
    ("header", "terms"),
    [("On-demand, GPU-hour", ("hour", "gpu")), ("Price per node per hour", ("hour", "instance")), ("Price", None)],
)
def test_terms_in_headers(header, terms):
    found = terms_in(header)
    assert (None if found is None else (found.unit, found.scope)) == terms


@pytest.mark.parametrize(
    ("label", "stated", "count", "each"),
    [("H100", 640, 8, 80), ("H100", 80, 8, 80), ("L40S", 48, 1, 48), ("L40S", 333, 4, None), ("L40S", None, 4, None)],
)
def test_memory_as_a_total_or_of_one_card(label, stated, count, each):
    assert per_gpu_memory_gb(label, stated, count) == each


def cards(html):
    return [(c.label, c.prices) for c in price_cards(BeautifulSoup(html, "lxml"))]


@pytest.mark.parametrize(
    "html",
    [
        "<li><span>NVIDIA H100</span><span>$2.00 /hr</span></li>",
        "<div><div><h4>NVIDIA H100</h4></div><div><p><b>$</b><b>2.00</b> /hr</p></div></div>",
        "<table><tr><td>NVIDIA H100</td><td>$2.00 /hr</td></tr></table>",
        "<div>NVIDIA H100 $2.00 /hr</div>",
    ],
)
def test_a_card_in_any_markup(html):
    ((label, prices),) = cards(html)
    assert label == "NVIDIA H100"
    assert [p.replace("$ ", "$") for p in prices] == ["$2.00 /hr"]


def test_scripts_comments_and_loose_currency_words_are_no_cards():
    html = """<p>All prices in USD</p><script>var a = "$9.00 /hr"</script><!-- L4 $8.00 /hr -->
    <div><span>NVIDIA L4</span><i>$1.00 /hr</i></div>"""
    assert cards(html) == [("NVIDIA L4", ("$1.00 /hr",))]


def test_neighbours_stay_apart():
    html = "<ul><li>NVIDIA L4 <b>$1 /hr</b></li><li>NVIDIA T4 <b>$2 /hr</b> <b>$99 /month</b></li></ul>"
    assert cards(html) == [("NVIDIA L4", ("$1 /hr",)), ("NVIDIA T4", ("$2 /hr", "$99 /month"))]


def test_meters_become_prices_per_hour_once_per_kind():
    rows = RowBuilder(Modal())
    lines = [("CPU core", "$0.0000131 / core / sec"), ("CPU core", "$9 / sec"), ("Memory", "$0.00222 / GiB / min"),
             ("Volumes, first 100 GB free", "$0.05 /GB/month"), ("Memory", "$5")]  # fmt: skip
    add_meters(rows, DOCUMENT, lines)
    found = {s.kind: (s.price, s.unit, s.included_quantity) for s in rows.finish().surcharges}
    assert found == {
        "cpu": (Decimal("0.04716"), "core_hour", None),
        "memory": (Decimal("0.1332"), "gib_hour", None),
        "block_storage": (Decimal("0.05"), "gb_month", 100),
    }


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("No egress fees.", True),
        ("Ingress and egress are free.", True),
        ("Egress costs $0.01 per GB.", False),
        ("", False),
    ],
)
def test_free_traffic_in_words(text, free):
    rows = RowBuilder(Modal())
    add_free_egress(rows, DOCUMENT, text)
    assert [s.price for s in rows.finish().surcharges] == ([0] if free else [])


@pytest.mark.parametrize(
    ("page", "labels"),
    [
        ("<ul><li>H100 $3/hr</li><li>L4 $1/hr</li></ul><p>Try an H200 from $2/hr today!</p>", ["H100", "L4"]),
        (
            '<i class="row a">H100 $3/hr</i><i class="row b">L4 $1/hr</i><i class="ad">New: T4 $2/hr!</i>',
            ["H100", "L4"],
        ),
        ("<p><b>H100</b><i>$3/hr</i></p><div>Get an <b>L4</b> for <i>$1/hr</i></div>", ["H100", "Get an L4 for"]),
        ("<p><b>H100</b><i>from $3/hr</i></p>", ["H100"]),
        ("<p><b>H100</b><i>$1,800/H100/mo</i></p>", ["H100"]),
    ],
)
def test_a_sentence_with_a_price_is_no_line_of_a_list(page, labels):
    rows = RowBuilder(Modal())
    cards = price_cards(root := BeautifulSoup(page, "lxml"))
    assert [card.label for card in gpu_cards(rows, DOCUMENT, root)] == labels
    assert len(rows.finish().rejections) == len(cards) - len(labels)
