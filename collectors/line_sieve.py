"""Keeps the lines of a bulk file that matter, while it arrives.

The price list of one large AWS region is a CSV of hundreds of megabytes of which a fraction of a percent is about
GPUs. Held whole it would take a gigabyte to parse; sieved line by line it takes one line and what is kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from collectors.errors import CapExceeded

_LONGEST_LINE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class KeepLines:
    """Which lines of a line-based file are kept: the first `head` (header and what precedes it) and those that match.

    `needles` are bytes that must all stand in a line, looked for before the slower `pattern`; one entry of `rules` is
    enough. Each rule is (needles, pattern); an empty pattern matches every line.
    """

    head: int
    rules: tuple[tuple[tuple[bytes, ...], bytes], ...]


class LineSieve:
    """One file's sieve. Feed it the pieces as they come; what it returns is the kept part of the file, in order."""

    def __init__(self, keep: KeepLines) -> None:
        """Compile the rules."""
        self._head_left = keep.head
        self._rules = [(needles, re.compile(pattern)) for needles, pattern in keep.rules]
        self._tail = b""

    def feed(self, piece: bytes) -> bytes:
        """The kept lines among those that this piece completes.

        Raises:
            CapExceeded: no line break within 1 MiB; it is not the file that the rules were made for.
        """
        data = self._tail + piece
        end = data.rfind(b"\n") + 1
        self._tail = data[end:]
        if len(self._tail) > _LONGEST_LINE_BYTES:
            raise CapExceeded(f"a line of more than {_LONGEST_LINE_BYTES >> 20} MiB in a file that is read by lines")
        return b"".join(line for line in data[:end].splitlines(keepends=True) if self._keeps(line))

    def finish(self) -> bytes:
        """The last line, where the file does not end with a line break and it is kept."""
        line, self._tail = self._tail, b""
        return line if line and self._keeps(line) else b""

    def _keeps(self, line: bytes) -> bool:
        if self._head_left:
            self._head_left -= 1
            return True
        return any(
            all(needle in line for needle in needles) and pattern.search(line) for needles, pattern in self._rules
        )
