"""Fetch and parse one provider: its documents, from the network or from fixtures, and what they say."""

from __future__ import annotations

import hashlib
import inspect
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from catalog.types import Document, Provenance
from collectors.contract import Collector, Parsed
from collectors.crawl import NOT_MODIFIED, fetch_all
from collectors.errors import CredentialsMissing
from collectors.fixtures import fixture_documents
from collectors.http import Fetcher, FetchLimits, Pace, Validator, fetch_map_from


@dataclass(frozen=True, slots=True)
class Collected:
    """One provider's documents and rows. `parsed` is None where the documents are those of the last run."""

    documents: tuple[Document, ...]
    parsed: Parsed | None
    document_hash: str
    observed_at: datetime
    provenance: Provenance
    complete: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownDocuments:
    """What is kept of the last complete run's documents: their joint hash and a validator per address."""

    document_hash: str | None = None
    validators: Mapping[str, Validator] = field(default_factory=dict)


def keys_from_environment(collector: Collector, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The values of a collector's key variables that are set.

    Raises:
        CredentialsMissing: one that it cannot do without is not.
    """
    values = os.environ if environment is None else environment
    missing = [name for name in collector.key_env if not values.get(name)]
    if missing:
        raise CredentialsMissing(collector.provider, missing)
    wanted = (*collector.key_env, *collector.optional_key_env)
    return {name: values[name] for name in wanted if values.get(name)}


def collect_live(
    collector: Collector,
    *,
    known: KnownDocuments,
    deadline: float,
    pace: Pace | None = None,
    stop: threading.Event | None = None,
) -> Collected:
    """Fetch a provider's documents and parse them.

    Args:
        collector: the provider.
        known: what the last complete run knew: the same documents are neither sent nor parsed again.
        deadline: on the clock of `time.monotonic`.
        pace: keeps the interval between requests to one host, over all providers that share it.
        stop: ends every fetch soon after it is set.

    Raises:
        FetchError, LayoutChanged, CredentialsMissing: as the source's state demands.
    """
    keys = keys_from_environment(collector)
    documents, complete, notes = _fetch(collector, keys, known.validators, deadline, pace, stop)
    unseen = document_hash(collector, documents) != known.document_hash
    if unseen and any(d.status == NOT_MODIFIED for d in documents):
        # The servers vouch for the old bodies, but a newer parser must read them: ask for them in full.
        documents, complete, notes = _fetch(collector, keys, {}, deadline, pace, stop)
    return _collected(collector, documents, known.document_hash, complete=complete, notes=notes)


def _fetch(
    collector: Collector,
    keys: Mapping[str, str],
    validators: Mapping[str, Validator],
    deadline: float,
    pace: Pace | None,
    stop: threading.Event | None,
) -> tuple[tuple[Document, ...], bool, tuple[str, ...]]:
    follows = type(collector).follow is not Collector.follow
    with Fetcher(
        provider=collector.provider,
        allowed_hosts=collector.allowed_hosts(),
        # A price page is a page to robots; an API is offered to programs.
        limits=FetchLimits(respect_robots=collector.kind == "page", total_s=max(1.0, deadline - time.monotonic())),
        validators=validators,
        fetch_map=fetch_map_from(os.environ.get("GPUBAZAAR_FETCH_MAP", "")),
        pace=pace,
        stop=stop,
    ) as fetcher:
        fetched = fetch_all(
            fetcher,
            collector.requests(keys),
            collector.follow if follows else None,
            max_documents=collector.max_documents,
            deadline=deadline,
        )
    return fetched.documents, fetched.complete, fetched.notes


def collect_recorded(collector: Collector, *, known_hash: str | None) -> Collected:
    """Parse a provider's fixtures.

    Raises:
        LayoutChanged: there are none, or they do not parse.
    """
    return _collected(collector, fixture_documents(collector.provider), known_hash, complete=True, notes=())


def _collected(
    collector: Collector, documents: Sequence[Document], known_hash: str | None, *, complete: bool,
    notes: tuple[str, ...],
) -> Collected:  # fmt: skip
    digest = document_hash(collector, documents)
    observed_at = min((d.fetched_at for d in documents), default=datetime.now(UTC))
    provenance: Provenance = "live"
    if documents and all(d.provenance != "live" for d in documents):
        provenance = "reconstructed" if any(d.provenance == "reconstructed" for d in documents) else "recorded"
    if complete and known_hash == digest:
        return Collected(tuple(documents), None, digest, observed_at, provenance, complete, notes)
    parsed = collector.read(documents)
    whole = complete and parsed.complete
    return Collected(tuple(documents), parsed, digest, observed_at, provenance, whole, (*notes, *parsed.notes))


def document_hash(collector: Collector, documents: Sequence[Document]) -> str:
    """What the documents say and who reads them: changes with any body, and with a new parser version."""
    lines = sorted(f"{d.method} {d.url} {d.request_body} {d.sha256}" for d in documents)
    text = "\n".join([collector.provider, collector.version, _parser_hash(type(collector)), *lines])
    return hashlib.sha256(text.encode()).hexdigest()


def _parser_hash(kind: type[Collector]) -> str:
    """A hash of the parser's own source file: a changed parser reads unchanged documents again."""
    source = inspect.getsourcefile(kind)
    return hashlib.sha256(Path(source).read_bytes()).hexdigest() if source else ""
