"""The header of a safetensors file: eight bytes of length, then JSON with a place in the file for each tensor.

Format: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import struct

from catalog.header_bytes import MAX_HEADER_BYTES, Stream, exactly


def tensor_bytes(stream: Stream, name: str, *, max_header_bytes: int = MAX_HEADER_BYTES) -> int:
    """Sum of the tensor sizes that the header at the start of `stream` lists.

    Raises:
        ValueError: it is no such header, or it is cut short; `name` is the file's, for the message.
    """
    (length,) = struct.unpack("<Q", exactly(stream, 8))
    if length > max_header_bytes:
        msg = f"{name} is not a safetensors file: a header of {length} bytes"
        raise ValueError(msg)
    header = json.loads(exactly(stream, length))
    if not isinstance(header, dict):
        msg = f"{name} is not a safetensors file: its header is not a JSON object"
        raise ValueError(msg)  # noqa: TRY004 - the content of a file, not an argument
    spans = [entry["data_offsets"] for key, entry in header.items() if key != "__metadata__"]
    return sum(int(end) - int(start) for start, end in spans)
