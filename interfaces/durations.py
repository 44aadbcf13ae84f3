"""Spans of time as people write them on a command line: 90m, 24h, 2d."""

from __future__ import annotations

import re

import click

_UNITS_S = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_FORM = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$")


def duration_s(text: str) -> float:
    """Seconds of a text such as 24h; a type for options.

    Raises:
        click.BadParameter: it is no such text, or zero.
    """
    found = _FORM.match(text.casefold())
    if found is None or found.group(2) not in _UNITS_S or float(found.group(1)) <= 0:
        raise click.BadParameter(f"{text!r} is not a span of time such as 90m, 24h or 2d")
    return float(found.group(1)) * _UNITS_S[found.group(2)]
