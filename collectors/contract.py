"""What a collector is: declared metadata, the requests it makes, and a pure parser. Fetching is shared.

A provider is one file in this folder with one subclass of `Collector` whose `provider` is the file's name. `requests`
names the first documents, `follow` the ones a document leads to (pages, detail lists), `parse` turns all of them into
rows. None of the three touches the clock, the network or the environment.
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from catalog.types import Document, ExchangeRate, OfferRow, Rejection, Surcharge
from collectors.errors import LayoutChanged
from collectors.line_sieve import KeepLines

Kind = Literal["api", "page", "feed", "bulk", "rates"]

MINUTE_S = 60
HOUR_S = 3600
DAY_S = 86_400
_SURPRISES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. `name` is the document's short name: its fixture's file name, unique within a provider.

    `keep` makes a bulk file small while it arrives: the document holds only the lines that it names. An `optional`
    document adds what the list of offers is whole without (surcharges, interruption rates): its failure is noted and
    does not make the run partial.
    """

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    name: str = ""
    keep: KeepLines | None = None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Expect:
    """What a healthy run holds at least: rows, and GPUs (slugs or families) that the provider certainly sells."""

    min_rows: int
    gpus: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Parsed:
    """Everything one provider's documents say.

    `complete` is False when the documents are known not to be the whole list (a next link not followed, a row cap
    hit); `notes` say why in plain words. `unmapped` are GPU names outside the table; their rows are kept with gpu None.
    """

    rows: tuple[OfferRow, ...] = ()
    surcharges: tuple[Surcharge, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    unmapped: tuple[str, ...] = ()
    rates: tuple[ExchangeRate, ...] = ()
    complete: bool = True
    notes: tuple[str, ...] = ()


class Collector(ABC):
    """Base of every provider. Subclasses set the class attributes and override the three methods."""

    provider: ClassVar[str]
    title: ClassVar[str]
    home_page: ClassVar[str]
    sources: ClassVar[tuple[str, ...]]
    """Public addresses of the price sources, as a person would open them; their hosts form the allow-list."""
    extra_hosts: ClassVar[tuple[str, ...]] = ()
    kind: ClassVar[Kind]
    cadence_s: ClassVar[int] = 6 * HOUR_S
    max_age_s: ClassVar[int] = DAY_S
    on_demand: ClassVar[bool] = True
    """May `plan` refresh it while a person waits? False for bulk sources."""
    currency: ClassVar[str] = "USD"
    billing_increment_s: ClassVar[int | None] = None
    minimum_charge_s: ClassVar[int | None] = None
    terms_note: ClassVar[str] = ""
    key_env: ClassVar[tuple[str, ...]] = ()
    """Environment variables that must all be set; without them the run is skipped with that note."""
    optional_key_env: ClassVar[tuple[str, ...]] = ()
    """Environment variables that widen the answer where set."""
    expect: ClassVar[Expect] = Expect(min_rows=1)
    part_of: ClassVar[str] = ""
    """The provider whose own offers it carries, where that provider's quick source is another collector."""
    counted: ClassVar[bool] = True
    """False for second sources and exchange rates, which are not providers of their own."""
    max_documents: ClassVar[int] = 200
    host_interval_s: ClassVar[float] = 0.2
    """Least time between two requests to one host, where the provider publishes a limit."""
    version: ClassVar[str] = "1"

    @abstractmethod
    def requests(self, keys: Mapping[str, str]) -> Iterable[Request]:
        """The first requests, given the values of `key_env` and `optional_key_env` that are set."""

    def follow(self, document: Document) -> Iterable[Request]:
        """The requests that a fetched document leads to; none by default."""
        del document
        return ()

    @abstractmethod
    def parse(self, documents: Sequence[Document]) -> Parsed:
        """Rows out of documents, in the order of the source.

        Raises:
            LayoutChanged: a document does not have the shape this parser knows; never an empty success.
        """

    def read(self, documents: Sequence[Document]) -> Parsed:
        """`parse`, where a value of a kind that the parser never met is a changed layout too, not a crash.

        Raises:
            LayoutChanged: as `parse`.
        """
        try:
            return self.parse(documents)
        except _SURPRISES as problem:
            where = traceback.extract_tb(problem.__traceback__)[-1]
            selector = f"{Path(where.filename).name}:{where.lineno}"
            what = f"{type(problem).__name__}: {problem} at {where.line!r}"
            url = ", ".join(sorted({d.url for d in documents})[:3])
            raise LayoutChanged(self.provider, selector, what, url) from problem

    @classmethod
    def allowed_hosts(cls) -> frozenset[str]:
        """Hosts that requests and redirects of this collector may reach."""
        named = (urlsplit(url).hostname for url in cls.sources)
        return frozenset({host for host in named if host} | set(cls.extra_hosts))
