"""Bounded inflating: the same bytes as the standard library for any chunking, and little memory for a bomb."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.errors import CapExceeded, FetchError, Retriable
from collectors.http_body import read_body

MIB = 1 << 20


def read(data: bytes, encoding: str, chunk: int = 7, max_decoded: int = 4 * MIB) -> bytes:
    chunks = (data[i : i + chunk] for i in range(0, len(data), chunk))
    return read_body(
        chunks, url="https://x.example/a", encoding=encoding, max_raw_bytes=MIB, max_decoded_bytes=max_decoded
    )


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@settings(max_examples=50, deadline=None)
@given(data=st.binary(max_size=400), repeat=st.integers(1, 900), chunk=st.integers(1, 5000))
def test_every_encoding_and_chunking_gives_the_data_back(data, repeat, chunk):
    whole = data * repeat
    assert read(gzip.compress(whole), "gzip", chunk) == whole
    assert read(gzip.compress(whole), "X-GZIP", chunk) == whole
    assert read(zlib.compress(whole), "deflate", chunk) == whole
    assert read(raw_deflate(whole), "deflate", chunk) == whole
    assert read(gzip.compress(data) + gzip.compress(data), "gzip", chunk) == data * 2


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 131_072, 131_329])
def test_output_that_fills_a_step_exactly(size):
    whole = b"a" * size
    assert read(raw_deflate(whole), "deflate", 10**6) == whole
    assert read(gzip.compress(whole), "gzip", 1) == whole


@settings(max_examples=50, deadline=None)
@given(data=st.binary(min_size=1, max_size=300), cut=st.floats(0, 1, exclude_max=True), chunk=st.integers(1, 50))
def test_a_cut_stream_is_never_a_success(data, cut, chunk):
    packed = gzip.compress(data)
    kept = packed[: 1 + int(cut * (len(packed) - 1))]
    with pytest.raises(Retriable, match=r"truncated|damaged"):
        read(kept, "gzip", chunk)


def test_padding_is_legal_and_garbage_is_not():
    assert read(gzip.compress(b"x") + bytes(50), "gzip") == b"x"
    with pytest.raises(Retriable, match="damaged"):
        read(gzip.compress(b"x") + b"<html>", "gzip")
    with pytest.raises(Retriable, match="damaged"):
        read(b"<html>not gzip</html>", "gzip")


def test_length_header_is_checked_in_raw_bytes():
    packed = gzip.compress(b"x" * 1000)
    limits = {"url": "u", "encoding": "gzip", "max_raw_bytes": MIB, "max_decoded_bytes": MIB}
    assert read_body([packed], expected_bytes=len(packed), **limits) == b"x" * 1000
    with pytest.raises(Retriable, match=f"{len(packed)} of 1000 bytes"):
        read_body([packed], expected_bytes=1000, **limits)


def test_stacked_and_unknown_encodings_are_refused():
    for encoding in ("br", "zstd", "gzip, gzip"):
        with pytest.raises(FetchError, match="was not asked for"):
            read(b"x", encoding)


def test_a_bomb_takes_no_more_memory_than_its_cap():
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    block = bytes(MIB)
    packed = b"".join([packer.compress(block) for _ in range(64)] + [packer.flush()])
    assert len(packed) < MIB
    tracemalloc.start()
    try:
        with pytest.raises(CapExceeded, match="unpacks to more than 2 MiB"):
            read(packed, "gzip", len(packed), max_decoded=2 * MIB)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 8 * MIB
