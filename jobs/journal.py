"""Structured logs of the scheduler: one line per event, as JSON or as key=value, on standard error."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

LogFormat = Literal["text", "json"]
_ROOT = "gpubazaar"
_log = logging.getLogger(f"{_ROOT}.scheduler")


def event(name: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event by its name and its values."""
    _log.log(level, name, extra={"fields": fields})


class _Lines(logging.Formatter):
    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        if self._form == "json":
            return json.dumps(entry, ensure_ascii=False, default=str)
        head = f"{entry.pop('at')} {entry.pop('level')} {entry.pop('event')}"
        return " ".join([head, *(f"{k}={_word(v)}" for k, v in entry.items() if v not in (None, ""))])


def _word(value: Any) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if any(c.isspace() or c == '"' for c in text) else text


def open_journal(stream: TextIO, form: LogFormat) -> None:
    """Send this product's log lines, from INFO on, to a stream in that form."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Lines(form))
    root = logging.getLogger(_ROOT)
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    root.propagate = False
