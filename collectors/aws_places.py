"""AWS regions as its feeds name them: ids, display labels that get renamed, and the legacy ids of the spot feed."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping
from functools import cache

from collectors.regions import region_by_label, regions

_LEGACY: Mapping[str, str] = {
    "us-east": "us-east-1",
    "us-west": "us-west-1",
    "eu-ireland": "eu-west-1",
    "apac-sin": "ap-southeast-1",
    "apac-syd": "ap-southeast-2",
    "apac-tokyo": "ap-northeast-1",
}
_IN_PARENTHESES = re.compile(r"\(([^)]+)\)\s*$")
# GovCloud, China and the European Sovereign Cloud are separate partitions: listed, but open to few.
_OTHER_PARTITION = re.compile(r"us-gov-|cn-|eusc-")


def region_id(name: str) -> str | None:
    """The region id of a label or id: exact, else by the place in parentheses where only one region has it.

    "EU (Ireland)" and "Europe (Ireland)" are both eu-west-1: the words before the place have been renamed before.
    The place itself is written in several ways ("N. California", "Northern California"; "Osaka-Local").
    """
    text = " ".join(name.split())
    if text in _LEGACY:
        return _LEGACY[text]
    if text in regions("aws"):
        return text
    known = region_by_label("aws").get(text.casefold())
    if known:
        return known.region
    place = _IN_PARENTHESES.search(text)
    found = _by_place().get(_place(place.group(1)), []) if place else []
    return found[0] if len(found) == 1 else None


def is_other_partition(region: str) -> bool:
    """Whether a region needs an account of its own (GovCloud, China, European Sovereign Cloud)."""
    return bool(_OTHER_PARTITION.match(region))


def _place(text: str) -> str:
    """A place as every spelling of it reads: no letter case, no accents, "N." in full, no "-Local"."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).casefold()
    return re.sub(r"[\s-]+local$", "", re.sub(r"\bn\.\s*", "northern ", plain)).strip()


@cache
def _by_place() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for region in regions("aws").values():
        places = {_place(m.group(1)) for label in region.label.split("|") if (m := _IN_PARENTHESES.search(label))}
        for place in places:
            found[place].append(region.region)
    return found
