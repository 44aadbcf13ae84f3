"""The beginning of a remote file, read forward by byte ranges and never further than its header needs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from collectors.contract import Request
from collectors.errors import CapExceeded, FetchError
from collectors.http_body import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collectors.http import Fetcher

MAX_HEADER_BYTES = 64 * MIB
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


class RangeReader:
    """A remote file as `catalog.header_bytes.Stream`; it fetches in blocks, as far as it is read."""

    def __init__(
        self, fetcher: Fetcher, url: str, headers: Mapping[str, str], *, block_bytes: int, until: float | None = None
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            fetcher: sends the requests.
            url: of the file.
            headers: of each request, such as its key.
            block_bytes: fetched at once, or more where more is read at once.
            until: deadline on the clock of `time.monotonic`.
        """
        self._fetcher = fetcher
        self._url = url
        self._headers = headers
        self._block_bytes = block_bytes
        self._until = until
        self._data = b""
        self._at = 0
        self._fetched = 0
        self._ended = False

    def read(self, count: int, /) -> bytes:
        """The next `count` bytes, fewer at the end of the file.

        Raises:
            CapExceeded: more than 64 MiB would be fetched, or the server sends whole files.
            FetchError: as `Fetcher.fetch`.
        """
        while not self._ended and len(self._data) - self._at < count:
            self._more(count - (len(self._data) - self._at))
        piece = self._data[self._at : self._at + count]
        self._at += len(piece)
        return piece

    def _more(self, missing: int) -> None:
        size = min(max(missing, self._block_bytes), MAX_HEADER_BYTES - self._fetched)
        if size < missing:
            message = f"{self._url}: its header is larger than {MAX_HEADER_BYTES // MIB} MiB; not loaded"
            raise CapExceeded(message, self._url)
        block = self._block(self._fetched, size)
        self._data = self._data[self._at :] + block
        self._at = 0
        self._fetched += len(block)
        self._ended = self._ended or not block

    def _block(self, start: int, size: int) -> bytes:
        headers = {**self._headers, "range": f"bytes={start}-{start + size - 1}"}
        try:
            document = self._fetcher.fetch(Request(self._url, headers=headers), until=self._until)
        except CapExceeded as problem:
            message = f"{self._url}: the server sends the whole file where its first {start + size} bytes are asked for"
            raise CapExceeded(message, self._url, problem.status) from problem
        except FetchError as problem:
            if problem.status != 416:
                raise
            self._ended = True  # nothing from `start` on
            return b""
        if document.status != 206:
            # No range support, but the file is no longer than what was asked for: this is all of it.
            self._ended = True
            return document.body[start:]
        stated = _CONTENT_RANGE.fullmatch(document.headers.get("content-range", "").strip())
        if stated is None or int(stated[1]) != start or int(stated[2]) - start + 1 != len(document.body):
            found = document.headers.get("content-range", "no Content-Range")
            message = (
                f"{self._url} answers {len(document.body)} bytes as {found!r} where {headers['range']} is asked for"
            )
            raise FetchError(message, self._url, 206)
        self._ended = stated[3] != "*" and start + len(document.body) >= int(stated[3])
        return document.body
