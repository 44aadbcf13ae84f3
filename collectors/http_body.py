"""Reading a response body within bounds: raw bytes counted as they come, inflated step by step, never all at once.

httpx 0.28.1 inflates each network chunk whole, so a small answer can take hundreds of MB (CVE-2026-84382, reported
against httpx2, same decoder). Here zlib gets an output limit for each step and the sum is capped.
"""

from __future__ import annotations

import io
import zlib
from typing import TYPE_CHECKING

from collectors.errors import CapExceeded, FetchError, Retriable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collectors.line_sieve import LineSieve

_STEP_BYTES = 1 << 16
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
MIB = 1 << 20


class _Inflater:
    """One compressed stream: gzip (also of several members) or deflate, with or without its zlib header."""

    def __init__(self, encoding: str) -> None:
        self._gzip = encoding == "gzip"
        self._stream: zlib._Decompress | None = None
        self._held = b""
        self._ended = False

    def feed(self, data: bytes) -> Iterable[bytes]:
        """Inflated pieces of at most 64 KiB each; raises zlib.error for bytes that are not of the stream."""
        more_output = False
        while data or more_output:
            if self._stream is None:
                data = self._open(data)
                if self._stream is None:
                    return
            piece = self._stream.decompress(data, _STEP_BYTES)
            yield piece
            if self._stream.eof:
                data, self._stream, more_output, self._ended = self._stream.unused_data, None, False, True
            else:
                # A full piece can leave output behind inside zlib with no input left to trigger it.
                data, more_output = self._stream.unconsumed_tail, len(piece) == _STEP_BYTES

    @property
    def mid_stream(self) -> bool:
        """True where a stream began and its end has not been seen."""
        return self._stream is not None or bool(self._held)

    def _open(self, data: bytes) -> bytes:
        """Begin a stream with `data`, or return b"" and begin none: padding, trailing bytes, or too few to tell."""
        if self._gzip:
            # Zero padding after a gzip member is legal; anything else must be a further member.
            data = data.lstrip(b"\0") if self._ended else data
            if data:
                self._stream = zlib.decompressobj(_GZIP_WINDOW)
            return data
        if self._ended:
            return b""
        data, self._held = self._held + data, b""
        if len(data) < 2:
            self._held = data
            return b""
        # RFC 9110 "deflate" is a zlib stream; some servers send raw deflate. A zlib header is divisible by 31.
        has_header = data[0] & 0x0F == zlib.DEFLATED and int.from_bytes(data[:2], "big") % 31 == 0
        self._stream = zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)
        return data


def read_body(
    chunks: Iterable[bytes],
    *,
    url: str,
    encoding: str = "",
    expected_bytes: int | None = None,
    max_raw_bytes: int,
    max_decoded_bytes: int,
    sieve: LineSieve | None = None,
) -> bytes:
    """The decoded body of a streamed response.

    Args:
        chunks: bytes as they arrive, still compressed.
        url: for messages.
        encoding: the Content-Encoding header; only gzip, deflate and identity are known.
        expected_bytes: the Content-Length header, in raw bytes.
        max_raw_bytes: cap on what may arrive.
        max_decoded_bytes: cap on what is kept of the inflated body; peak memory stays near twice this figure.
        sieve: drops lines as they arrive; what it keeps is the body.

    Raises:
        CapExceeded: one of the caps is passed.
        Retriable: the body ends early or is damaged.
        FetchError: the encoding is unknown.
    """
    inflater = _inflater(encoding, url)
    decoded = io.BytesIO()
    raw_bytes = 0
    try:
        for chunk in chunks:
            raw_bytes += len(chunk)
            if raw_bytes > max_raw_bytes:
                raise CapExceeded(f"{url} sends more than {_size(max_raw_bytes)}; not loaded", url)
            for piece in (chunk,) if inflater is None else inflater.feed(chunk):
                kept = piece if sieve is None else sieve.feed(piece)
                if decoded.tell() + len(kept) > max_decoded_bytes:
                    raise CapExceeded(f"{url} unpacks to more than {_size(max_decoded_bytes)}; not loaded", url)
                decoded.write(kept)
    except zlib.error as problem:
        raise Retriable(f"{url} sends damaged {encoding} data after {raw_bytes} bytes ({problem})", url) from problem
    if expected_bytes is not None and raw_bytes != expected_bytes:
        raise Retriable(f"{url} ends after {raw_bytes} of {expected_bytes} bytes", url)
    if inflater is not None and inflater.mid_stream:
        raise Retriable(f"{url} sends a truncated {encoding} body ({raw_bytes} bytes)", url)
    if sieve is not None:
        decoded.write(sieve.finish())
    return decoded.getvalue()


def _inflater(encoding: str, url: str) -> _Inflater | None:
    name = encoding.strip().lower().removeprefix("x-")
    if name in {"", "identity"}:
        return None
    if name not in {"gzip", "deflate"}:
        raise FetchError(f"{url} answers with content encoding {encoding!r}, which was not asked for", url)
    return _Inflater(name)


def _size(byte_count: int) -> str:
    return f"{byte_count / MIB:g} MiB" if byte_count >= MIB else f"{byte_count} bytes"
