"""Walking from first requests to the documents they lead to, without loops, and knowing whether anything is missing."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from collectors.errors import Cancelled, FetchError, Retriable, scrub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from catalog.types import Document
    from collectors.contract import Request
    from collectors.http import Fetcher

NOT_MODIFIED = 304
_Key = tuple[str, str, bytes | None]


@dataclass(frozen=True, slots=True)
class FetchedSet:
    """What a walk brought home.

    Attributes:
        documents: in the order of fetching; all with status 304 where nothing changed since the last run.
        complete: False where a page is known to be missing.
        notes: why it is not complete, and what optional part is missing, in plain words.
    """

    documents: tuple[Document, ...]
    complete: bool
    notes: tuple[str, ...] = ()

    @property
    def unchanged(self) -> bool:
        """True where the servers vouch for every document of the last run."""
        return bool(self.documents) and all(document.status == NOT_MODIFIED for document in self.documents)


@dataclass(frozen=True, slots=True)
class _Step:
    """A request with the requests and the bodies on the way to it."""

    request: Request
    trail: frozenset[_Key] = frozenset()
    bodies: frozenset[str] = frozenset()

    @property
    def key(self) -> _Key:
        return self.request.method.upper(), self.request.url, self.request.body


@dataclass(slots=True)
class _Walk:
    fetcher: Fetcher
    conditional: bool
    deadline: float | None
    documents: dict[_Key, tuple[Request, Document]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    errors: list[FetchError] = field(default_factory=list)
    ended: bool = False

    def fetch(self, step: _Step) -> Document | None:
        """The document of a step, kept; None with a note where it fails or repeats a page of its trail."""
        document = self._get(step.request, conditional=self.conditional)
        if document is None:
            return None
        if document.status != NOT_MODIFIED and document.sha256 in step.bodies:
            self.notes.append(f"{document.url} repeats the content of a page before it; pages after it are missing")
            return None
        self.documents[step.key] = step.request, document
        return document

    def in_full(self) -> tuple[Document, ...]:
        """All documents; unless the whole set is unchanged, those known to be unchanged are fetched again in full."""
        documents = [document for _, document in self.documents.values()]
        if documents and not self.notes and all(document.status == NOT_MODIFIED for document in documents):
            return tuple(documents)
        full = (
            self._get(request, conditional=False) if document.status == NOT_MODIFIED else document
            for request, document in self.documents.values()
        )
        return tuple(document for document in full if document is not None)

    def failure(self) -> FetchError:
        """The error to raise where there is no document at all."""
        if self.errors:
            return self.errors[0]
        return Retriable(self.notes[0]) if self.notes else FetchError("the collector made no request")

    def _get(self, request: Request, *, conditional: bool) -> Document | None:
        if self.deadline is not None and time.monotonic() >= self.deadline:
            self.ended = True
            self.notes.append(f"the time was up before {scrub(request.url)}")
            return None
        try:
            return self.fetcher.fetch(request, conditional=conditional, until=self.deadline)
        except FetchError as problem:
            self.ended = isinstance(problem, Cancelled)
            self.errors.append(problem)
            (self.remarks if request.optional and not self.ended else self.notes).append(str(problem))
            return None


def fetch_all(
    fetcher: Fetcher,
    first: Iterable[Request],
    follow: Callable[[Document], Iterable[Request]] | None = None,
    *,
    max_documents: int,
    deadline: float | None = None,
) -> FetchedSet:
    """Fetch `first` and everything `follow` leads to, breadth first, each request once.

    A link that leads back to its own trail, or to a page with the content of one on its trail, ends that trail and
    makes the set incomplete: what comes after it cannot be known. The last run's validators are used only without
    `follow`, because an unchanged first page says nothing about the pages behind it; documents that come back
    unchanged beside changed ones are fetched again in full, because a parser needs all of them.

    Args:
        fetcher: of one provider.
        first: the collector's own requests.
        follow: the requests that a document leads to; one with an empty address is no request.
        max_documents: cap on documents.
        deadline: of the whole walk, on the clock of `time.monotonic`.

    Raises:
        FetchError: not one document could be fetched; the first error is raised.
        LayoutChanged: from `follow`.
        ConfigurationError: the environment's proxy settings cannot be used.
    """
    walk = _Walk(fetcher, conditional=follow is None, deadline=deadline)
    waiting = deque(_Step(request) for request in first)
    seen: set[_Key] = set()
    while waiting and not walk.ended:
        step = waiting.popleft()
        if step.key in seen:
            if step.key in step.trail:
                walk.notes.append(f"{scrub(step.request.url)} links back to itself; pages after it are missing")
            continue
        if len(walk.documents) >= max_documents:
            walk.notes.append(f"stopped after {max_documents} documents with more to fetch")
            break
        seen.add(step.key)
        document = walk.fetch(step)
        if document is not None and follow is not None:
            trail, bodies = step.trail | {step.key}, step.bodies | {document.sha256}
            led_to = [_with_headers_of(step.request, request) for request in follow(document) if request.url]
            waiting.extend(_Step(request, trail, bodies) for request in led_to)
    documents = walk.in_full()
    if not documents:
        raise walk.failure()
    return FetchedSet(documents, complete=not walk.notes, notes=(*walk.notes, *walk.remarks))


def _with_headers_of(origin: Request, request: Request) -> Request:
    """A request that states no headers, with those of the one that led to it: `follow` is given no keys.

    Only for the same scheme and host: a key is never carried to another server.
    """
    here, there = urlsplit(origin.url), urlsplit(request.url)
    if request.headers or (here.scheme, here.netloc) != (there.scheme, there.netloc):
        return request
    return replace(request, headers=origin.headers)
