"""What is known of each snapshot: a small JSON file beside it, written before the pointer moves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.engine import DatabaseError, read_only_connection, scalar
from catalog.errors import StoreError
from catalog.home import Home


@dataclass(frozen=True, slots=True)
class Manifest:
    """A snapshot's own record. `rows` counts every table; `sequence` counts publishes of one lineage.

    A snapshot without a readable record has empty `sha256`, and its other values come from the file itself.
    """

    path: Path
    published_at: str
    byte_count: int
    sha256: str
    sequence: int
    lineage: str
    log_rows: int
    rows: Mapping[str, int]

    @property
    def name(self) -> str:
        """The snapshot's file name without its suffix."""
        return self.path.stem

    def write(self) -> None:
        """Write the record beside the snapshot."""
        record = {
            "snapshot": self.name, "published_at": self.published_at, "bytes": self.byte_count, "sha256": self.sha256,
            "sequence": self.sequence, "lineage": self.lineage, "log_rows": self.log_rows, "rows": dict(self.rows),
        }  # fmt: skip
        file_of(self.path).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def file_of(snapshot: Path) -> Path:
    """Where a snapshot's record lies."""
    return snapshot.with_suffix(".json")


def sha256_of(path: Path) -> str:
    """The hash of a file that no connection of this process has open."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def read_manifest(snapshot: Path) -> Manifest | None:
    """A snapshot's record, or None where it is missing or not whole."""
    try:
        found = json.loads(file_of(snapshot).read_text(encoding="utf-8"))
        return Manifest(
            path=snapshot, published_at=str(found["published_at"]), byte_count=int(found["bytes"]),
            sha256=str(found["sha256"]), sequence=int(found["sequence"]), lineage=str(found["lineage"]),
            log_rows=int(found["log_rows"]), rows={str(k): int(v) for k, v in found["rows"].items()},
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def newest_readable(home: Home) -> Manifest | None:
    """The newest snapshot that opens, with its record (from the file itself where the record is gone); None if none."""
    for path in home.published():
        opened = _from_file(path)
        if opened is not None:
            return read_manifest(path) or opened
    return None


def _from_file(path: Path) -> Manifest | None:
    try:
        connection = read_only_connection(path)
    except StoreError:
        return None
    try:
        scalar(connection, "SELECT count(*) FROM current")
        notes: dict[str, Any] = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    except DatabaseError:
        return None
    finally:
        connection.close()
    return Manifest(
        path=path, published_at=str(notes.get("published_at", "")), byte_count=path.stat().st_size, sha256="",
        sequence=int(notes.get("sequence", 0)), lineage=str(notes.get("lineage", "")), log_rows=0, rows={},
    )  # fmt: skip
