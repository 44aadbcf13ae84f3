"""The parts of a GPU label and how each is recognised: product name, memory, form factor, count, slice.

Every function takes text that went through `fold`. Names come from data: the slugs and families of the accelerator
table and `data/aliases.csv`. A space in an alias stands for any separator or none (`rtx 4090` finds RTX-4090 and
RTX4090); elsewhere names match on token boundaries only, so A40 is not found in A4000 nor A100 in A100X.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from catalog.accelerators import accelerators, families
from catalog.datafiles import csv_rows

_SEPARATOR = r"[\s\-_/.(),:|]"
_JOINT = r"[\s\-_/.()]{0,3}"  # between the words of one name
_LEFT = (
    r"(?:(?<![a-z0-9])|(?<=\dx)|(?<=nvidia)|(?<=tesla)|(?<=geforce)|(?<=amd)|(?<=gpu)"
    r"|(?<![a-z0-9.])(?P<count>\d{1,2}))"
)
# A name ends at a token boundary, or runs on into a word that qualifies it: A100SXM4, H100PCIe, RTX4090x2, PRO6000MQ.
_RIGHT = (
    r"(?![a-z0-9])|(?=sxm\d|(?:sxm|pcie?|nvl|nvlink|hgx|oam|mig|gpus?|mq|maxq|server|se|ws|we|wk"
    r"|x\d{1,4}(?:x\d+)*)(?![a-z]))"
)
_BLOCKING_WORD = re.compile(
    rf"{_SEPARATOR}*(?:ti|super|ultra|cpx|ada|sff|d|s|m|laptop|mobile|notebook|max[\s_-]?q|mq)(?![a-z0-9])"
)
_NEXT_GENERATION = re.compile(r"[\s_-]?[2-9](?![a-z0-9])(?!\s*(?:gpus?|chips?)\b)")
_SKIPPED_BEFORE_EDITION = re.compile(rf"(?:{_SEPARATOR}|blackwell|generation|edition|pcie|\d+\s?gb)*")
_EDITIONS = (
    ("max-q", re.compile(r"(?:max[\s_-]?q|mq)(?![a-z0-9])"), re.compile(r"max[\s_-]?q(?![a-z0-9])")),
    ("server", re.compile(r"(?:server|se|s)(?![a-z0-9])"), re.compile(r"server[\s_-]?edition")),
    ("ws", re.compile(r"(?:workstation|ws|wk|we)(?![a-z0-9])"), re.compile(r"workstation[\s_-]?edition")),
)
# A footnote's figure is no part of the name: H100² is an H100.
_MARKS = dict.fromkeys(map(ord, "™®©\u00b9\u00b2\u00b3\u2070\u2074\u2075\u2076\u2077\u2078\u2079\u2020\u2021"))
_GENERATION_NAMES = ("gaudi", "trainium", "inferentia")
_MAX_Q = re.compile(r"(?<![a-z])max[\s_-]?q(?![a-z0-9])")
_PORTABLE = re.compile(r"(?<![a-z])(?:laptop|notebook|mobile)(?![a-z])")


@dataclass(frozen=True, slots=True)
class NameMatch:
    """One product name found in a label: where it stands, which slugs it can mean, the digits glued before it."""

    start: int
    end: int
    gpus: tuple[str, ...]
    glued_count: int | None
    stands_alone: bool


def fold(text: str) -> str:
    """Lower case, compatibility forms unified, trade and footnote marks dropped, so that one spelling is enough."""
    folded = unicodedata.normalize("NFKC", text.translate(_MARKS)).lower()
    folded = folded.replace("×", "x").replace("✕", "x").replace("⁄", "/")
    return re.sub(r"[\s\u2010-\u2015]+", lambda run: "-" if run[0].strip() else " ", folded).strip()


@cache
def _names() -> dict[str, tuple[tuple[str, ...], str]]:
    """Spelling without separators -> (slugs, mode). Aliases override what the table derives."""
    names: dict[str, tuple[tuple[str, ...], str]] = {}
    for family, gpus in families().items():
        names[_key(family)] = (gpus, "word")
    for gpu in accelerators():
        names[_key(gpu)] = ((gpu,), "word")
    for row in csv_rows("catalog", "aliases.csv"):
        target = row["target"]
        gpus = (target,) if target in accelerators() else families().get(target, ())
        names[_key(row["alias"])] = (gpus, row["mode"])
    return names


@cache
def _name_pattern() -> re.Pattern[str]:
    spellings = {family.replace("-", " ") for family in families()} | {
        row["alias"] for row in csv_rows("catalog", "aliases.csv")
    }
    # Longest first, so that RTX 6000 Ada is tried before RTX 6000.
    ordered = sorted(spellings, key=lambda spelling: (-len(_key(spelling)), spelling))
    body = "|".join(_JOINT.join(map(re.escape, spelling.split())) for spelling in ordered)
    return re.compile(f"{_LEFT}(?P<name>{body})(?:{_RIGHT})")


def _key(spelling: str) -> str:
    return re.sub(_SEPARATOR, "", spelling)


def exact_slug(folded: str) -> str | None:
    """The slug that the whole text is, written exactly."""
    return folded if folded in accelerators() else None


def names_in(folded: str) -> Iterator[NameMatch]:
    """Product names in the text, left to right, without those that a following word turns into another product."""
    for found in _name_pattern().finditer(folded):
        gpus, mode = _names()[_key(found["name"])]
        rest = folded[found.end() :]
        if mode == "never" or _is_another_product(found["name"], rest, gpus):
            continue
        count = int(found["count"]) if found["count"] else None
        yield NameMatch(found.start(), found.end(), gpus, count, mode == "alone")


def _is_another_product(name: str, rest: str, gpus: tuple[str, ...]) -> bool:
    """RTX 3060 before "Ti", any card before "Laptop", Trainium before a generation number outside the table."""
    blocked = _BLOCKING_WORD.match(rest)
    if edition(rest, gpus) is None and blocked and not _names_own_architecture(blocked[0], gpus):
        return True
    if _PORTABLE.search(rest) or (_MAX_Q.search(rest) and edition(rest, gpus) != "max-q"):
        return True
    return name in _GENERATION_NAMES and _NEXT_GENERATION.match(rest) is not None


def _names_own_architecture(word: str, gpus: tuple[str, ...]) -> bool:
    """The word Ada makes an RTX 6000 another card, but behind an L4 or a 4090 it only says what they are.

    Ultra makes Rubin another, and says what a B300 is.
    """
    own = "Ada" if word.endswith("ada") else "Ultra" if word.endswith("ultra") else None
    return own is not None and all(own in accelerators()[gpu].architecture for gpu in gpus)


def edition(rest: str, gpus: tuple[str, ...]) -> str | None:
    """The edition (`server`, `ws`, `max-q`) that the text after a name states, if its candidates differ by edition."""
    known = {mark for mark, _, _ in _EDITIONS if any(f"-{mark}-" in gpu for gpu in gpus)}
    if not known:
        return None
    skipped = _SKIPPED_BEFORE_EDITION.match(rest)
    start = skipped.end() if skipped else 0
    for mark, directly, anywhere in _EDITIONS:
        if mark in known and (directly.match(rest, start) or anywhere.search(rest)):
            return mark
    return None
