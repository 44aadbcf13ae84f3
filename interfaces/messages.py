"""Reasons and warnings arrive as codes with values; this turns them into sentences in the reader's language.

Templates are the English text, keyed by code; translations of the templates live in `locale/<lang>/gpubazaar.po`.
A code without a template is shown as it is, so that nothing is hidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interfaces.words import say

TEMPLATES: Mapping[str, str] = {}


def sentence(reason: Mapping[str, Any] | str, lang: str) -> str:
    """One reason in words."""
    if isinstance(reason, str):
        return say(reason, lang)
    code, values = str(reason.get("code")), dict(reason.get("values") or {})
    template = TEMPLATES.get(code)
    if template is None:
        figures = ", ".join(f"{k} {_short(v)}" for k, v in values.items())
        return f"{code.replace('_', ' ')}" + (f" ({figures})" if figures else "")
    return say(template, lang).format_map({k: _short(v) for k, v in values.items()})


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}".rstrip("0").rstrip(".")
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)
