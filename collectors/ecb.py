"""Euro reference rates of the European Central Bank, one day's list: the exchange rates of the catalog.

Source: https://www.ecb.europa.eu/stats/policy_and_exchange_rates/euro_reference_exchange_rates/html/index.en.html
Document: `eurofxref-daily.xml`, `Cube[@time]` holding `Cube[@currency][@rate]` = units of that currency per euro.
Updated around 16:00 CET on working days. Not a provider of GPUs: it yields rates only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import ClassVar

from lxml import etree

from catalog.types import Document, ExchangeRate
from catalog.units import decimal_of
from collectors.contract import DAY_S, HOUR_S, Collector, Expect, Parsed, Request
from collectors.readers import changed
from collectors.rows import RowBuilder

_RATE_DIGITS = Decimal("0.00000001")


class Ecb(Collector):
    """European Central Bank: dated dollar values of one unit of each currency."""

    provider = "ecb"
    title = "European Central Bank"
    home_page = "https://www.ecb.europa.eu/stats/policy_and_exchange_rates/euro_reference_exchange_rates/"
    sources = ("https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml",)
    kind = "rates"
    cadence_s: ClassVar[int] = 12 * HOUR_S
    max_age_s: ClassVar[int] = 4 * DAY_S  # no rates on weekends and holidays
    currency = "EUR"
    terms_note = "Reference rates for information; free to use with the source named."
    expect = Expect(min_rows=0)
    counted: ClassVar[bool] = False

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The daily list."""
        del keys
        yield Request(self.sources[0], name="eurofxref-daily")

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """One rate per currency and day, the euro included, as US dollars per unit."""
        rows = RowBuilder(self)
        for document in documents:
            for day, per_euro in _days(document):
                dollars = per_euro.get("USD")
                if not dollars:
                    changed(document, "Cube[@currency='USD']")
                for currency, units in {**per_euro, "EUR": Decimal(1)}.items():
                    if currency == "USD":
                        continue
                    rows.rate(ExchangeRate(day, currency, (dollars / units).quantize(_RATE_DIGITS), document.url))
        return rows.finish()


def _days(document: Document) -> list[tuple[str, dict[str, Decimal]]]:
    """Each day's units of currency per euro."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    try:
        root = etree.fromstring(document.body, parser)
    except etree.XMLSyntaxError as problem:
        changed(document, "Envelope", f"not XML at {document.url}: {problem}")
    found = []
    for day in root.iterfind(".//{*}Cube[@time]"):
        rates = {str(c.get("currency")): decimal_of(c.get("rate")) for c in day.iterfind("{*}Cube[@currency]")}
        good = {currency: rate for currency, rate in rates.items() if rate is not None and rate > 0}
        found.append((str(day.get("time")), good))
    if not found:
        changed(document, "Cube[@time]")
    return found
