"""The census of Vast.ai's marketplace: which queries cover it, and whether an answer was cut at a row cap.

Row caps, measured by https://github.com/RajTrivedi06/Basis and by the compute offers census of
https://github.com/username-gigo-is-not-available/ai-compute-arbitrage-monitor (2026): 64 without a key, cheapest
first, whatever limit was asked for; 512 with a key, a random sample where more match.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from catalog.types import Document
from catalog.units import decimal_of
from collectors.contract import Request
from collectors.readers import need, read_json

URL = "https://console.vast.ai/api/v0/bundles/"
KEYLESS_ROWS = 64
KEYED_ROWS = 512
ALLOCATED_STORAGE_GB = 10
PRICE_BANDS = (0.0, 0.2, 0.4, 0.8, 2.0, 8.0)
"""Lower ends in USD per hour and offer; each band is asked for, and continued, by itself."""
MAX_CONTRACT_ID = 2**31

Query = dict[str, Any]


def band_query(low: float, high: float | None) -> Query:
    """The search for one price band, from `low` up to but without `high` (USD per hour and offer)."""
    return {
        "verified": {"eq": True},
        "rentable": {"eq": True},
        "rented": {"eq": False},
        "external": {"eq": False},
        "dph_total": {"gte": low} if high is None else {"gte": low, "lt": high},
        "allocated_storage": ALLOCATED_STORAGE_GB,
        "type": "on-demand",
        "order": [["dph_total", "asc"]],
        "limit": KEYED_ROWS,
    }


def search_request(query: Query, name: str, headers: Mapping[str, str]) -> Request:
    """The request that sends a query; one that follows an answer states no headers and gets those of the first."""
    return Request(URL, "POST", headers, query_key(query).encode(), name)


def query_key(query: Query) -> str:
    """One text per query, whatever the order of its keys."""
    return json.dumps(query, sort_keys=True, default=float)


def query_of(document: Document) -> Query:
    """The query that a document answers; empty where its request was not kept."""
    try:
        query = json.loads(document.request_body or "{}")
    except ValueError:
        return {}
    return query if isinstance(query, dict) else {}


def offers_of(document: Document) -> list[Any]:
    """The listed offers.

    Raises:
        LayoutChanged: no such list.
    """
    found: list[Any] = need(document, read_json(document), "offers", kind=list)
    return found


def is_full(document: Document, offers: Sequence[Any]) -> bool:
    """Whether an answer stopped at a row cap: the server's defaults, or the limit that was asked for."""
    limit = decimal_of(query_of(document).get("limit"))
    return len(offers) in {KEYLESS_ROWS, KEYED_ROWS} or (limit is not None and len(offers) >= limit)


def parts_of(document: Document, offers: Sequence[Any] | None = None) -> list[Query]:
    """The queries that together hold what a full answer left out; empty where it is not full or cannot be split."""
    listed = offers_of(document) if offers is None else offers
    query = query_of(document)
    if not query or not is_full(document, listed):
        return []
    if len(listed) == KEYLESS_ROWS:
        return _from_price(query, listed)
    ids = query.get("ask_contract_id") or {}
    low, high = int(ids.get("gte", 0)), int(ids.get("lt", MAX_CONTRACT_ID))
    middle = (low + high) // 2
    if middle in {low, high}:
        return []
    return [{**query, "ask_contract_id": {"gte": a, "lt": b}} for a, b in ((low, middle), (middle, high))]


def _from_price(query: Query, offers: Sequence[Any]) -> list[Query]:
    """The same query from the dearest price of the answer on: rows at that very price come twice and are dropped."""
    prices = [decimal_of(offer.get("dph_total")) for offer in offers if isinstance(offer, Mapping)]
    dearest = max((float(price) for price in prices if price is not None), default=0.0)
    band = query.get("dph_total") or {}
    if dearest <= float(band.get("gte", 0)):
        return []
    return [{**query, "dph_total": {**band, "gte": dearest}}]
