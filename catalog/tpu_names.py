"""Google TPU names: what their numeric suffix counts.

The suffix of v2, v3, v4 and v5p types counts TensorCores, two per chip (`v4-8` has 4 chips); the suffix of v5e
(`v5litepod-64`) and v6e counts chips. Machine types end in the chips of one host (`ct5lp-hightpu-4t`).
Source: https://docs.cloud.google.com/tpu/docs/v4, /v5p, /v5e, /v6e and /tpu7x.
"""

from __future__ import annotations

import math
import re

_SLUGS = {
    "v2": "tpu-v2-16gb",
    "v3": "tpu-v3-32gb",
    "v4": "tpu-v4-32gb",
    "v5e": "tpu-v5e-16gb",
    "v5p": "tpu-v5p-95gb",
    "v6e": "tpu-v6e-32gb",
    "7x": "tpu7x-192gb",
    "8t": "tpu-8t-216gb",
    "8i": "tpu-8i-288gb",
}
_NEEDS_TPU = {"v7", "v7x", "7x", "8t", "8i"}
_NEEDS_SIZE = {"v2", "v3", "v4"}
_CORES_PER_CHIP = {"v2": 2, "v3": 2, "v4": 2, "v5p": 2, "7x": 2}
_GENERATION = (
    r"(?P<generation>v2|v3|v4|v5[\s_-]?lite(?:[\s_-]?pod)?|v5e|v5p|v6e|v7x?|7x|8t|8i)(?![a-z0-9])"
    r"(?:[\s_-]*(?:podslice|pod|slice|device)(?![a-z]))?"
)
_SUFFIX = (
    r"(?:[\s_]*-[\s_]*(?P<suffix>\d{1,5})(?![\dx.a-z])|[\s_\-:]+(?P<topology>\d{1,3}x\d{1,3}(?:x\d{1,3})?)(?![\dx]))?"
)
_BARE = re.compile(rf"(?:(?P<times>\d{{1,4}})\s?x\s?)?(?:(?:google|cloud|gcp)[\s_-]+)*{_GENERATION}{_SUFFIX}")
_PREFIXED = re.compile(
    rf"(?:(?<![a-z0-9.])(?P<times>\d{{1,4}})\s?x\s?(?:google\s|cloud\s)*)?(?<![a-z])tpu[\s_\-]*{_GENERATION}{_SUFFIX}"
)
_MACHINE = re.compile(
    r"(?<![a-z0-9])(?:ct(?P<series>4p|5p|5lp|5l|6e)|(?P<seven>tpu7x))-(?:hightpu|standard)-(?P<chips>\d{1,2})t"
)
_MACHINE_SERIES = {"4p": "v4", "5p": "v5p", "5lp": "v5e", "5l": "v5e", "6e": "v6e"}
_NICKNAMES = (("v6e", re.compile(r"(?<![a-z])trillium(?![a-z])")), ("7x", re.compile(r"(?<![a-z])ironwood(?![a-z])")))
_COUNT = re.compile(
    r"(?<![a-z0-9.])(\d{1,5})\s?(?:x(?![a-z0-9])|chips?(?![a-z]))|(?:^:|(?<![a-z0-9.])x)\s?(\d{1,5})(?![\dx])"
)


def resolve_tpu(folded: str) -> tuple[str, int | None] | None:
    """The TPU slug and number of chips of a folded text, or None when it names no TPU."""
    machine = _MACHINE.search(folded)
    if machine:
        generation = "7x" if machine["seven"] else _MACHINE_SERIES[machine["series"]]
        return _SLUGS[generation], int(machine["chips"])
    found = _PREFIXED.search(folded) or _bare(folded)
    if found:
        generation = _generation(found["generation"])
        return _SLUGS[generation], _chips(found, generation, folded)
    for generation, pattern in _NICKNAMES:
        if pattern.search(folded):
            return _SLUGS[generation], _stated_count(folded)
    return None


def _bare(folded: str) -> re.Match[str] | None:
    """A TPU type without the word TPU: `v4-8`, `v6e`. A lone `v2` is anybody's version number."""
    found = _BARE.fullmatch(folded)
    if found is None or found["generation"] in _NEEDS_TPU:
        return None
    if found["generation"] in _NEEDS_SIZE and not (found["suffix"] or found["topology"]):
        return None
    return found


def _generation(written: str) -> str:
    if written.startswith("v5") and "lite" in written:
        return "v5e"
    return "7x" if written in {"v7", "v7x"} else written


def _chips(found: re.Match[str], generation: str, folded: str) -> int | None:
    slices = max(1, int(found["times"])) if found["times"] else 1
    if found["topology"]:
        return slices * math.prod(int(side) for side in found["topology"].split("x"))
    if found["suffix"]:
        size = int(found["suffix"])
        return slices * max(1, size // _CORES_PER_CHIP.get(generation, 1))
    return slices if found["times"] else _stated_count(folded[found.end() :])


def _stated_count(text: str) -> int | None:
    count = _COUNT.search(text)
    return (int(count[1] or count[2]) or None) if count else None
