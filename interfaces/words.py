"""Words of tables in English and Hindi. Columns keep their SQL names in English, so that a table teaches the views."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def translations(lang: str) -> Mapping[str, str]:
    """English text to its translation; empty for English."""
    if lang == "en":
        return {}
    from babel.messages.pofile import read_po

    source = files("interfaces").joinpath("locale", lang, "gpubazaar.po")
    with source.open("rb") as lines:
        return {str(m.id): str(m.string) for m in read_po(lines, locale=lang) if m.id and m.string}


def say(text: str, lang: str) -> str:
    """The text in the language asked for, or as it is where no translation exists."""
    return translations(lang).get(text, text)


def headers(lang: str) -> Mapping[str, str]:
    """Column name to table header."""
    return translations(lang)
