"""Providers whose prices stand on one public page, some with a documented API beside it that a key opens.

A provider of this family declares its page and reads one document at a time; see fal.py for a page, seeweb.py for a
page with an API, serverless.py for pages of serverless platforms.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar
from urllib.parse import urlsplit

from bs4 import BeautifulSoup

from catalog.types import Document
from collectors.contract import DAY_S, HOUR_S, Collector, Parsed, Request
from collectors.errors import LayoutChanged
from collectors.readers import read_html
from collectors.rows import RowBuilder


class PricePage(Collector):
    """Base of the family: the requests, the order of reading, and no empty success."""

    page: ClassVar[str]
    page_name: ClassVar[str] = "pricing"
    rows_at: ClassVar[str] = ""
    """Where on the page the rows stand, for the error where nothing was read; '' where no rows may be the truth, such
    as a page whose every row was rejected."""
    api: ClassVar[str] = ""
    """The address asked as well where the variable of `optional_key_env` is set."""
    api_name: ClassVar[str] = ""
    kind = "page"
    cadence_s: ClassVar[int] = 12 * HOUR_S
    max_age_s: ClassVar[int] = 2 * DAY_S

    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The price page, and the API where there is a key."""
        yield Request(self.page, name=self.page_name)
        key = next((keys[name] for name in self.optional_key_env if keys.get(name)), None)
        if self.api and key:
            yield Request(self.api, headers=self.key_headers(key), name=self.api_name)

    def key_headers(self, key: str) -> Mapping[str, str]:
        """The headers that carry the API's key."""
        return {"Authorization": f"Bearer {key}"}

    def parse(self, documents: Sequence[Document]) -> Parsed:
        """What the API lists, then what the page shows."""
        rows = RowBuilder(self)
        for document in sorted(documents, key=lambda d: not self.is_api(d)):
            if self.is_api(document):
                self.add_api(rows, document)
            else:
                self.add_page(rows, document, read_html(document))
        if self.rows_at and not rows.row_count:
            raise LayoutChanged(self.provider, self.rows_at, f"no GPU with a price in {self.page}")
        return rows.finish()

    def is_api(self, document: Document) -> bool:
        """Whether a document is the API's answer: by its address, or by its first character where it has another."""
        return bool(self.api) and (urlsplit(self.api).path in document.url or document.body.lstrip().startswith(b"{"))

    @abstractmethod
    def add_page(self, rows: RowBuilder, document: Document, soup: BeautifulSoup) -> None:
        """Add the offers of the page, without those in `rows.covered`."""

    def add_api(self, rows: RowBuilder, document: Document) -> None:
        """Add the offers of the API's answer, and to `rows.covered` what they are; for providers that declare `api`."""
        del rows
        raise LayoutChanged(self.provider, "page", f"{document.url} is an API's answer, and this provider has none")
