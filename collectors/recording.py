"""Writes recorded documents: the body as it came and a sidecar beside it, headers by allow-list, secrets scrubbed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from catalog.errors import ConfigurationError
from catalog.types import Document

KEPT_HEADERS = ("content-type", "date", "etag", "last-modified", "link", "x-total-count")
_SECRET_QUERY = re.compile(r"(?:api[_-]?key|^key$|token|secret|signature|password)", re.IGNORECASE)
_SUFFIX = {"markdown": ".md", "json": ".json", "xml": ".xml", "html": ".html", "csv": ".csv", "zip": ".zip"}


def write_document(
    folder: Path, document: Document, figures: Sequence[Mapping[str, str]] = (), secrets: Sequence[str] = ()
) -> Path:
    """Write one document as a fixture.

    Args:
        folder: `fixtures/<provider>`; made if it is not there.
        document: its `name` becomes the file name.
        figures: for a reconstructed document, the source of its figures: objects with source_url, date and note.
        secrets: values that must not stand in the body; the write is refused where one does.

    Returns:
        The path of the body.

    Raises:
        ConfigurationError: no name, or a secret stands in the body.
    """
    if not document.name:
        raise ConfigurationError(f"the document from {document.url} has no name to record it under")
    if any(secret and secret.encode() in document.body for secret in secrets):
        raise ConfigurationError(f"the answer from {document.url} repeats a secret; it is not recorded")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (document.name + suffix_of(document))
    path.write_bytes(document.body)
    meta = {
        "url": without_secrets(document.url),
        "method": document.method,
        "status": document.status,
        "headers": {k: v for k, v in sorted(document.headers.items()) if k in KEPT_HEADERS},
        "fetched_at": document.fetched_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "sha256": hashlib.sha256(document.body).hexdigest(),
        "provenance": "recorded" if document.provenance == "live" else document.provenance,
        **({"request_body": document.request_body} if document.request_body else {}),
        **({"figures": [dict(f) for f in figures]} if figures else {}),
    }
    path.with_name(path.stem + ".meta.json").write_text(json.dumps(meta, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return path


def suffix_of(document: Document) -> str:
    """The file ending that fits a document's content type, or its first byte where none is stated."""
    stated = document.headers.get("content-type", "")
    for word, suffix in _SUFFIX.items():
        if word in stated:
            return suffix
    start = document.body.lstrip()[:5]
    if start[:1] in (b"{", b"["):
        return ".json"
    return ".xml" if start == b"<?xml" else ".html" if start[:1] == b"<" else ".csv"


def without_secrets(url: str) -> str:
    """The address with the values of secret-looking query parameters replaced by REDACTED."""
    parts = urlsplit(url)
    query = [
        (k, "REDACTED" if _SECRET_QUERY.search(k) else v) for k, v in parse_qsl(parts.query, keep_blank_values=True)
    ]
    redacted = any(v == "REDACTED" for _, v in query)
    return urlunsplit(parts._replace(query=urlencode(query))) if redacted else url
