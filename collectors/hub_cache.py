"""Model objects read from the hub, kept as files so that a repository is asked once a month and not once a command."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from catalog.home import Home
from collectors.hub_id import HubId

KEPT = timedelta(days=30)
_VERSION = 1
"""Raised when the rules of reading change; files of another version are read anew."""


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model object with the time at which the hub was asked for it (aware UTC)."""

    model: dict[str, Any]
    fetched_at: datetime

    def is_fresh(self, now: datetime) -> bool:
        """Whether it may be used without asking again."""
        return timedelta(0) <= now - self.fetched_at <= KEPT


def cache_file(home: Home, hub_id: HubId) -> Path:
    """`<home>/models/<org>--<name>@<revision>.json`, with the GGUF file or tag after the name where one was asked."""
    parts = [hub_id.repository, hub_id.file] if hub_id.file else [hub_id.repository]
    stem = "--".join(part.replace("/", "--") for part in parts)
    return home.path / "models" / f"{stem}@{hub_id.revision.replace('/', '--')}.json"


def kept_model(home: Home, hub_id: HubId) -> HubModel | None:
    """What was kept for this id, however old; None where nothing is, or nothing that can be read."""
    try:
        data = json.loads(cache_file(home, hub_id).read_bytes())
        if data["version"] != _VERSION or data["id"] != str(hub_id) or not isinstance(data["model"], dict):
            return None
        fetched_at = datetime.fromisoformat(data["fetched_at"]).astimezone(UTC)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return HubModel(data["model"], fetched_at)


def keep_model(home: Home, hub_id: HubId, found: HubModel) -> bool:
    """Keep a model object, in one step; False where the folder cannot be written, which costs a later read only."""
    target = cache_file(home, hub_id)
    data = {
        "version": _VERSION, "id": str(hub_id), "fetched_at": found.fetched_at.isoformat(), "model": found.model,
    }  # fmt: skip
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, working = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=".tmp")
    except OSError:
        return False
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file)
        Path(working).replace(target)
    except OSError:
        Path(working).unlink(missing_ok=True)
        return False
    return True
