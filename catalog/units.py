"""Units and exact money: what a price text says, and what it comes to per hour.

Prices stay `Decimal` in their own currency. A month is 730 hours (8,760 / 12), the convention of the public price
calculators of AWS (https://aws.amazon.com/calculator/calculator-assumptions/) and Azure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from catalog.types import PriceScope, PriceUnit

HOURS_PER_MONTH: Final = Decimal(730)
HOURS_PER_DAY: Final = Decimal(24)
BYTES_PER_GIB: Final = 2**30
MIB_PER_GIB: Final = 1024

_HOURS_PER_UNIT: Final[dict[str, Decimal]] = {
    "second": Decimal(1) / Decimal(3600),
    "minute": Decimal(1) / Decimal(60),
    "hour": Decimal(1),
    "day": HOURS_PER_DAY,
    "month": HOURS_PER_MONTH,
}
# The longer sign goes first: a yuan may be written CN¥.
_CURRENCY_SIGNS: Final[dict[str, str]] = {
    "$": "USD", "€": "EUR", "£": "GBP", "₹": "INR", "CN¥": "CNY", "元": "CNY", "¥": "JPY", "円": "JPY", "₩": "KRW",
    "₽": "RUB", "₺": "TRY", "₪": "ILS", "₫": "VND", "฿": "THB", "₴": "UAH", "zł": "PLN", "Kč": "CZK",
}  # fmt: skip
_CURRENCY_WORDS: Final = {
    "Rs": "INR", "RMB": "CNY", "Euro": "EUR", "Euros": "EUR", "EURO": "EUR", "euro": "EUR", "euros": "EUR",
}  # fmt: skip
# Other dollars, and the real, share the sign: R$12 is not US$12.
_DOLLAR_PREFIXES: Final[dict[str, str]] = {
    "US": "USD", "CA": "CAD", "C": "CAD", "AU": "AUD", "A": "AUD", "S": "SGD", "SG": "SGD", "R": "BRL", "HK": "HKD",
    "NZ": "NZD", "MX": "MXN", "NT": "TWD",
}  # fmt: skip
_DOLLARS: Final = re.compile(rf"(?<![A-Za-z])({'|'.join(_DOLLAR_PREFIXES)})\$", re.IGNORECASE)
_CURRENCY_CODES: Final = frozenset({
    "AED", "AUD", "BRL", "CAD", "CHF", "CLP", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "IDR", "ILS", "INR",
    "JPY", "KRW", "MXN", "MYR", "NOK", "NZD", "PLN", "RON", "RUB", "SAR", "SEK", "SGD", "THB", "TWD", "UAH", "USD",
    "VND", "ZAR",
})  # fmt: skip
_UNIT_WORDS: Final[dict[str, PriceUnit]] = {
    "s": "second", "sec": "second", "secs": "second", "second": "second", "seconds": "second",
    "m": "minute", "min": "minute", "mins": "minute", "minute": "minute", "minutes": "minute",
    "h": "hour", "hr": "hour", "hrs": "hour", "hour": "hour", "hours": "hour", "hourly": "hour", "stunde": "hour",
    "std": "hour",
    "d": "day", "day": "day", "days": "day", "daily": "day", "tag": "day",
    "mo": "month", "mon": "month", "month": "month", "months": "month", "monthly": "month", "monat": "month",
}  # fmt: skip
# A number with optional thousands groups and decimals, in either the English or the continental way of writing. A space
# groups three digits and nothing else: the 2 of "$2.99 2" is a footnote.
_DIGITS: Final = r"(?:\d{1,3}(?:[  \u202f’']\d{3}(?!\d))+(?:[.,]\d+)?|\d[\d.,]*|\.\d+)(?:[eE][-+]?\d+)?"
_NUMBER: Final = re.compile(rf"(?<![\w.,])-?{_DIGITS}")
# Page scripts escape "$" as "$$"; some pages print "$2 .0000".
_SPLIT_DECIMAL: Final = re.compile(r"(\d)\s+([.,]\d)")
_GPU_WORDS: Final = frozenset({"gpu", "gpus", "card", "accelerator", "chip"})
MACHINE_WORDS: Final = frozenset({"node", "instance", "server", "machine", "vm", "system", "host", "box"})
# A footnote's figure may stand right behind a unit: "/hr1" names no GPU, and the H of an H100 is no unit.
_FOOTNOTED: Final = (
    rf"(?:{'|'.join(sorted(_UNIT_WORDS, key=len, reverse=True))})[\d\u00b9\u00b2\u00b3\u2070-\u2079](?!\w)"
)
_GPU_NAME: Final = re.compile(rf"(?!{_FOOTNOTED})[a-z]{{1,3}}\d{{1,4}}[a-z]*")  # "$2.49 per H100 hour"
_UNIT: Final = re.compile(
    r"(?:/|per|pro|\ban?\b)\s*(?:1\s*)?"
    rf"(?:(?:{'|'.join(sorted(_GPU_WORDS | MACHINE_WORDS))}|{_GPU_NAME.pattern})\b)?"
    r"[\s\-·*/]*(?:per\s+)?([a-z]+)(?![a-z_]|\d{2})",
    re.IGNORECASE,
)
# What stands right behind an amount: "/GPU-hr", " per node per hour", "/ 1 hour", " (per week)"; a remark behind it
# (" - on demand", " *billed by the minute") is none of it.
_MEASURES: Final = re.compile(
    r"\d\s*(?:[A-Z]{3}|[$€£₹])?\s*\(?((?:(?:/|\bper\b|\bpro\b)\s*[\w.]+(?:[-·*][a-z]+)*\s*)+)",
    re.IGNORECASE,
)
# How many GPUs a price is for: "$24/hr for 8 GPUs", "8x H100: $24/hr", "$24/hr (8x H100)". A number inside a longer
# remark ("(8 GPUs per node)", "Min. 8 GPUs") describes the offer, not the price.
_COUNTED_GPUS: Final = (
    r"([2-9]|\d{2,3})\s*"
    rf"(?:[x×]|(?:{_GPU_NAME.pattern}\s+)?(?:gpus|cards|accelerators|chips)\b|{_GPU_NAME.pattern}\b)"
)
_SEVERAL_GPUS: Final = re.compile(
    rf"(?:^|\bfor\s+){_COUNTED_GPUS}|\(\s*{_COUNTED_GPUS}(?:\s*(?!per\b)[\w-]+){{0,3}}\s*\)", re.IGNORECASE
)
_OTHER_PERIOD: Final = re.compile(r"(?<!billed )(?<!paid )\b(weekly|quarterly|yearly|annually)\b", re.IGNORECASE)
_GPU_SCOPE: Final = re.compile(
    rf"(?:/|per)\s*(?:gpu|card|accelerator|chip|{_GPU_NAME.pattern}(?!\.\d))\b|\bgpu[\s\-]*(?:hr|hour|h)\b",
    re.IGNORECASE,
)
_CURRENCY: Final = (
    rf"(?:{'|'.join(map(re.escape, _CURRENCY_SIGNS))}"
    rf"|(?<![A-Za-z])(?:{'|'.join(sorted(_CURRENCY_CODES | set(_CURRENCY_WORDS)))})(?![A-Za-z]))"
)
# A number between a name and a sign is the name's ("H100 80 $2.49").
_BESIDE_CURRENCY: Final = re.compile(
    rf"{_CURRENCY}(?:(?<=Rs)\.)?\s*(-?{_DIGITS})|(?<![\w.,])(-?{_DIGITS})\s*{_CURRENCY}(?!\s*\d)"
)
_PRICE_WORDS: Final = frozenset({
    *(code.casefold() for code in (*_CURRENCY_CODES, *_CURRENCY_WORDS)),
    "from", "starting", "starts", "at", "as", "low", "ab", "only", "ex", "excl", "excluding", "incl", "including",
    "plus", "vat", "tax", "taxes", "gst", "mwst", "dollars", "dollar",
})  # fmt: skip
_PER_WORDS: Final = frozenset({
    *_UNIT_WORDS, *_GPU_WORDS, *MACHINE_WORDS, "per", "pro", "a", "an", "each", "billed",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class PriceText:
    """What a human-readable price says. `unit` and `scope` are None where the text does not state them.

    `lower_bound` is True for "from $2.49" and "starting at": the true price may be higher. `other_measure` is what the
    price is for besides a GPU and a unit of time ("node", "week", "8"), which no default may overrule.
    """

    amount: Decimal
    currency: str | None
    unit: PriceUnit | None
    scope: PriceScope | None
    lower_bound: bool
    other_measure: str | None = None


def decimal_of(value: object) -> Decimal | None:
    """An exact finite Decimal from a JSON number or numeric text, or None for anything that is not one.

    NaN, infinities, booleans, blanks and words ("N/A", "Contact sales") give None.
    """
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, float):
        value = repr(value)
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def number_in(text: str) -> Decimal | None:
    """The first number written in a text, read by its separators: 1,234.56 and 1.234,56 are the same number."""
    found = _NUMBER.search(
        _SPLIT_DECIMAL.sub(r"\1\2", text.replace("$", " $ ").replace("€", " € ").replace("₹", " ₹ "))
    )
    if found is None:
        return None
    return decimal_of(_plain_number(found.group()))


def _money_in(text: str) -> Decimal | None:
    """The amount of a price text: the number beside a currency, else the only words may be units and terms of a price.

    "8 GPUs for $24" is 24; "Available in 3 weeks" and "5 left" are no price.
    """
    whole = _SPLIT_DECIMAL.sub(r"\1\2", text)
    beside = _BESIDE_CURRENCY.search(whole)
    if beside:
        return number_in(beside.group(1) or beside.group(2))
    words = {word.casefold() for word in re.findall(r"[^\W\d_]+", _NUMBER.sub(" ", whole, count=1))}
    known = _PRICE_WORDS | (_PER_WORDS if unit_in(whole) else frozenset())
    return number_in(whole) if words <= known else None


def _plain_number(written: str) -> str:
    digits = re.sub(r"[  ’'\s]", "", written).rstrip(".,")
    comma, dot = digits.rfind(","), digits.rfind(".")
    if comma >= 0 and dot >= 0:
        group, point = (",", ".") if dot > comma else (".", ",")
        return digits.replace(group, "").replace(point, ".")
    if comma >= 0:
        head, _, tail = digits.rpartition(",")
        # "2,488" is a thousands group; "0,75", "1,5" and "0,750" are decimals.
        grouped = len(tail) == 3 and head.strip("-0") != "" and all(len(p) == 3 for p in head.split(",")[1:])
        return digits.replace(",", "" if grouped or digits.count(",") > 1 else ".")
    return digits.replace(".", "") if digits.count(".") > 1 else digits


_LOWER_BOUND = re.compile(
    r"\b(?:from|starting|starts|as low as|ab|à partir de|a partire da|desde)\b"
    r"|\d\s*(?:[-–—]|\bto\b)\s*(?:[$€£₹]|[A-Z]{3}\s?)?\d",
    re.IGNORECASE,
)
_TWO_PRICES = re.compile(
    r"[$€£₹]\s*\d[\d.,]*\s*((?:/|\bper\b)[^$€£₹\d()]*?)?\s*[$€£₹]\s*\d[\d.,]*\s*(?(1)\1(?!\w))"
    rf"|\d\s*({_CURRENCY})\s+\d[\d.,]*\s*\2",
    re.IGNORECASE,
)


def read_price(text: str | None) -> PriceText | None:
    """Read a price as pages write it: "$2.99 / GPU / hour", "0,75 EUR/h ex. VAT", "from $2.49", "$0.00122 /s".

    Returns:
        None when the text holds no price: "Contact us", "N/A", "—", "Sold out", "coming soon", zero or below; and
        where two prices stand side by side ("$3.99 $2.99/h", "$3.99/h $2.99/h"), of which one is not the
        price any more. The lower end of a range is a lower bound.
    """
    if not text:
        return None
    squeezed = " ".join(text.split())
    amount = _money_in(squeezed)
    if amount is None or amount <= 0 or _TWO_PRICES.search(squeezed):
        return None
    return PriceText(
        amount=amount,
        currency=currency_in(squeezed),
        unit=unit_in(squeezed),
        scope="gpu" if _GPU_SCOPE.search(squeezed) else None,
        lower_bound=bool(_LOWER_BOUND.search(squeezed)),
        other_measure=other_measure_in(squeezed),
    )


def other_measure_in(text: str) -> str | None:
    """What a price is for besides a GPU and a unit of time ("$31.20/node-hr": "node"; "$24 for 8 GPUs": "8")."""
    several = None if _GPU_SCOPE.search(text) else _SEVERAL_GPUS.search(text)
    if several:
        return several.group(1) or several.group(2)
    found = _MEASURES.search(text)
    if found is None:
        period = None if unit_in(text) else _OTHER_PERIOD.search(text)
        return period.group(1).casefold() if period else None
    measures = re.sub(r"\b1\s*[x×](?![a-z])|\b(gpu)(?=h(?:r|our)?s?\b)", r"\1 ", found.group(1).casefold())
    measures = re.sub(rf"\b{_FOOTNOTED}", lambda unit: unit.group()[:-1], measures)
    words = re.findall(rf"{_GPU_NAME.pattern}|\d[\d.,]*|[^\W\d_]+", measures)
    known = _GPU_WORDS | _UNIT_WORDS.keys() | {"per", "pro", "1"}
    return next((word for word in words if word not in known and not _GPU_NAME.fullmatch(word)), None)


def currency_in(text: str) -> str | None:
    """The ISO 4217 code that a price text names by code or sign, or None."""
    for word in re.findall(rf"(?<![A-Za-z])(?:[A-Z]{{3}}|{'|'.join(_CURRENCY_WORDS)})(?![A-Za-z])", text):
        if word in _CURRENCY_CODES or word in _CURRENCY_WORDS:
            return _CURRENCY_WORDS.get(word, str(word))
    dollar = _DOLLARS.search(text)
    if dollar:
        return _DOLLAR_PREFIXES[dollar.group(1).upper()]
    return next((code for sign, code in _CURRENCY_SIGNS.items() if sign in text), None)


def unit_in(text: str) -> PriceUnit | None:
    """The billing unit that a price text states ("/hr", "per month", "GPU-hour"), or None."""
    for found in _UNIT.finditer(text):
        unit = _UNIT_WORDS.get(found.group(1).casefold())
        if unit:
            return unit
    hyphened = re.search(r"gpu[\s\-/]*(hr|hour|h|min|minute|sec|second|month)\b", text, re.IGNORECASE)
    hyphened = hyphened or re.search(r"\b(hourly|daily|monthly)\b", text, re.IGNORECASE)
    return _UNIT_WORDS[hyphened.group(1).casefold()] if hyphened else None


def hours_in(unit: PriceUnit, commitment_days: int = 0) -> Decimal:
    """How many hours one price unit pays for; a `term` is the whole commitment.

    Raises:
        ValueError: a term price without a commitment.
    """
    if unit == "term":
        if commitment_days <= 0:
            raise ValueError("a price per term needs commitment_days above zero")
        return commitment_days * HOURS_PER_DAY
    return _HOURS_PER_UNIT[unit]


def instance_price_hour(
    price: Decimal, unit: PriceUnit, scope: PriceScope, gpu_count: int, commitment_days: int = 0
) -> Decimal:
    """The price of one whole instance for one hour, in the price's own currency.

    `gpu` scope is the price of one of `gpu_count` units (a whole GPU, or a slice where slices are sold).
    """
    hourly = price / hours_in(unit, commitment_days)
    return hourly * gpu_count if scope == "gpu" else hourly


def gpu_price_hour(instance_hour: Decimal, gpu_count: int, gpu_fraction: Decimal) -> Decimal | None:
    """The price of one whole physical GPU for one hour; None without a GPU."""
    gpus = gpu_count * gpu_fraction
    return instance_hour / gpus if gpus > 0 else None


def gib_from_bytes(value: float | Decimal) -> float:
    """Bytes to GiB (2^30)."""
    return float(value) / BYTES_PER_GIB


def gib_from_mib(value: float | Decimal) -> float:
    """MiB to GiB."""
    return float(value) / MIB_PER_GIB


def gib_from_gb(value: float | Decimal) -> float:
    """Decimal gigabytes (10^9 bytes) to GiB."""
    return float(value) * 1e9 / BYTES_PER_GIB
