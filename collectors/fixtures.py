"""Recorded documents: `fixtures/<provider>/<name>.<json|html|xml|csv>` with a `<name>.meta.json` beside each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from catalog.errors import ConfigurationError
from catalog.types import PROVENANCES, Document, Provenance

BODY_SUFFIXES = (".json", ".html", ".xml", ".csv", ".txt", ".md", ".zip")


@cache
def fixture_root() -> Path:
    """The fixtures folder: in an installed wheel inside this package, in a checkout beside it.

    Raises:
        ConfigurationError: neither is there.
    """
    package = Path(str(files("collectors")))
    for folder in (package / "_fixtures", package.parent / "fixtures"):
        if folder.is_dir():
            return folder
    raise ConfigurationError(f"no fixtures folder in {package} or beside it; reinstall gpubazaar")


def recorded_providers() -> tuple[str, ...]:
    """Providers that have recorded documents, in alphabetical order."""
    return tuple(sorted(p.name for p in fixture_root().iterdir() if p.is_dir() and any(p.glob("*.meta.json"))))


def fixture_documents(provider: str, root: Path | None = None) -> list[Document]:
    """Every recorded document of a provider, in name order; empty where there are none."""
    folder = (root or fixture_root()) / provider
    return [read_recorded(path, provider) for path in _bodies(folder)] if folder.is_dir() else []


def _bodies(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.suffix in BODY_SUFFIXES and not p.name.endswith(".meta.json"))


def read_recorded(path: Path, provider: str) -> Document:
    """One body file with its sidecar; without a sidecar the file's own name and time stand in.

    Raises:
        ConfigurationError: the file or its sidecar cannot be read.
    """
    try:
        body = path.read_bytes()
    except OSError as problem:
        raise ConfigurationError(f"cannot read {path}: {problem.strerror}") from problem
    meta = read_sidecar(sidecar_of(path))
    return Document(
        provider=provider,
        url=str(meta.get("url") or path.resolve().as_uri()),
        body=body,
        fetched_at=_instant(meta.get("fetched_at"), path),
        method=str(meta.get("method") or "GET"),
        status=_status(meta.get("status"), path),
        headers={str(k).lower(): str(v) for k, v in _headers(meta.get("headers"), path).items()},
        sha256=hashlib.sha256(body).hexdigest(),
        byte_count=len(body),
        name=path.stem,
        provenance=_provenance(meta.get("provenance"), path),
        request_body=str(meta.get("request_body") or ""),
    )


def sidecar_of(path: Path) -> Path:
    """Where a body's metadata lies: `<name>.meta.json`, or `<file name>.meta.json` where that exists."""
    full = path.with_name(path.name + ".meta.json")
    return full if full.is_file() else path.with_name(path.stem + ".meta.json")


def read_sidecar(path: Path) -> Mapping[str, Any]:
    """A sidecar's content, or an empty mapping where there is none."""
    if not path.is_file():
        return {}
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise ConfigurationError(f"{path} is not JSON: {problem}") from problem
    if not isinstance(meta, dict):
        raise ConfigurationError(f"{path} must hold a JSON object")
    return meta


def _status(value: object, path: Path) -> int:
    if value is None:
        return 200
    text = str(value)
    if not text.isdecimal() or not 100 <= int(text) <= 599:
        raise ConfigurationError(f"status of {path} is not an HTTP status: {value!r}")
    return int(text)


def _headers(value: object, path: Path) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigurationError(f"headers of {path} must be a JSON object, got {value!r}")
    return value


def _provenance(value: object, path: Path) -> Provenance:
    if value is None:
        return "recorded"
    found = next((known for known in PROVENANCES if known == value), None)
    if found is None:
        raise ConfigurationError(f"provenance of {path} is one of {', '.join(PROVENANCES)}, got {value!r}")
    return found


def _instant(value: object, path: Path) -> datetime:
    if not value:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    try:
        instant = datetime.fromisoformat(str(value))
    except ValueError as problem:
        raise ConfigurationError(f"fetched_at of {path} is not an ISO 8601 time: {value!r}") from problem
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
