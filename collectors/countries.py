"""Country names as marketplaces write them, to ISO 3166-1 alpha-2 codes (https://www.iso.org/obp/ui/#search)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from collectors.specs import spec_rows


@cache
def _codes() -> Mapping[str, str]:
    return {row["name"]: row["country"] for row in spec_rows("countries.csv")}


def country_named(text: str) -> str | None:
    """The code of a country's English name ("South Korea", "USA", "united_states"), or None for any other text."""
    return _codes().get(" ".join(text.replace("_", " ").replace("-", " ").casefold().split()))


def country_code(text: str) -> str | None:
    """The text itself, in capitals, where it is shaped like an alpha-2 code; the code of a name otherwise, or None."""
    plain = text.strip()
    if len(plain) == 2 and plain.isascii() and plain.isalpha():
        code = plain.upper()
        return "GB" if code == "UK" else code
    return country_named(plain)
