"""Reading the header of a binary file forward, byte by byte, from a disk or over a network."""

from __future__ import annotations

from typing import Protocol

MAX_HEADER_BYTES = 200_000_000
"""No real header comes near: safetensors writers stop at 100 MB (MAX_HEADER_SIZE, safetensors/src/tensor.rs)."""


class Stream(Protocol):
    """Something read forward; fewer bytes than asked for mean that it has ended."""

    def read(self, count: int, /) -> bytes:
        """The next bytes."""


def exactly(stream: Stream, count: int) -> bytes:
    """The next `count` bytes.

    Raises:
        ValueError: the file ends before, or no header has a field of that length.
    """
    if count > MAX_HEADER_BYTES:
        msg = f"a field of {count} bytes: the header is damaged"
        raise ValueError(msg)
    data = stream.read(count)
    if len(data) != count:
        msg = "the file ends inside its header"
        raise ValueError(msg)
    return data
