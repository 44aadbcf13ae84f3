"""The sieve of bulk files: the same lines whatever the pieces, and memory that does not grow with the file."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.contract import Request
from collectors.errors import CapExceeded
from collectors.line_sieve import KeepLines, LineSieve

KEEP = KeepLines(head=2, rules=(((b"Reserved", b"Linux"), rb'"p\d\w*\.\d+xlarge"'), ((b"gp3",), b"")))
TEXT = (
    b'"FormatVersion","v1"\n"SKU","TermType"\n"a","Reserved","p5.48xlarge","Linux"\n"b","Reserved","m5.large","Linux"\n'
    b'"c","OnDemand","p5.48xlarge","Linux"\r\n"d","EBS:VolumeUsage.gp3"\n"e","Reserved","p4d.24xlarge","Linux"'
)
KEPT = (
    b'"FormatVersion","v1"\n"SKU","TermType"\n"a","Reserved","p5.48xlarge","Linux"\n"d","EBS:VolumeUsage.gp3"\n'
    b'"e","Reserved","p4d.24xlarge","Linux"'
)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(min_value=0, max_value=len(TEXT)), max_size=12))
def test_the_same_lines_are_kept_however_the_file_is_cut(cuts):
    edges = [0, *sorted(cuts), len(TEXT)]
    sieve = LineSieve(KEEP)
    kept = b"".join(sieve.feed(TEXT[a:b]) for a, b in pairwise(edges)) + sieve.finish()
    assert kept == KEPT


def test_memory_does_not_grow_with_the_file():
    block = b'"x","OnDemand","m5.large","Linux","0.096"\n' * 1500
    sieve = LineSieve(KEEP)
    sieve.feed(TEXT[:40])
    tracemalloc.start()
    for _ in range(60):
        sieve.feed(block)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * 2**20


def test_a_file_without_lines_is_refused():
    sieve = LineSieve(KEEP)
    with pytest.raises(CapExceeded, match="line of more than"):
        sieve.feed(bytes(1 << 21))


def test_the_fetcher_keeps_lines_beyond_its_usual_cap(local_server, local_fetcher):
    filler = b'"x","OnDemand","m5.large","Linux","0.096"\n' * 20_000
    local_server.route("/big.csv", local_server.gzipped(TEXT + b"\n" + filler))
    request = Request("https://prices.example/big.csv", keep=KEEP)
    assert local_fetcher(max_decoded_bytes=1 << 16).fetch(request).body == KEPT + b"\n"
    with pytest.raises(CapExceeded):
        local_fetcher(max_decoded_bytes=1 << 16).fetch(Request("https://prices.example/big.csv"))


def test_a_sieved_file_has_a_cap_of_its_own_on_what_arrives(local_server, local_fetcher):
    filler = b'"x","OnDemand","m5.large","Linux","0.096"\n' * 20_000
    local_server.text("/big.csv", TEXT + b"\n" + filler)
    request = Request("https://prices.example/big.csv", keep=KEEP)
    assert local_fetcher(max_raw_bytes=1 << 16).fetch(request).body == KEPT + b"\n"
    with pytest.raises(CapExceeded, match="sends more than"):
        local_fetcher(max_raw_bytes=1 << 16).fetch(Request("https://prices.example/big.csv"))
    with pytest.raises(CapExceeded, match="sends more than"):
        local_fetcher(max_raw_bytes=1 << 30, max_sieved_bytes=1 << 16).fetch(request)
