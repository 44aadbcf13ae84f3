"""What must hold for every label, written by anyone."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from catalog.accelerators import accelerators, families
from catalog.datafiles import csv_rows
from catalog.names import Resolution, resolve

SLUGS = sorted(accelerators())
ALIASES = csv_rows("catalog", "aliases.csv")
ALONE = {row["alias"] for row in ALIASES if row["mode"] == "alone"}
SPELLINGS = sorted(set(families()) - ALONE) + [row["alias"] for row in ALIASES if row["mode"] == "word"]
PIECES = ["8x", "A100", "80GB", "1/2", "MIG", "1g.10gb", "SXM4", "tpu", "v4-8", "0.5", "PCIe x16", ":", "x", "RTX 4090"]


def answer(found: Resolution) -> tuple[object, ...]:
    return (found.gpu, found.gpu_candidates, found.gpu_count, found.gpu_fraction, found.gpu_memory_gb)


@given(st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join))
@example("½ ² ٣x A100 ١/٢")
@example("0x H100 0/0 0.0 0g.0gb")
@example("0x TPU v4-0")
@example("Trillium x 0")
@settings(max_examples=200, deadline=None)
def test_resolving_never_raises_and_is_coherent(text: str):
    found = resolve(text)
    assert found.text == text
    assert found.gpu_ambiguous == (len(found.gpu_candidates) > 1)
    assert found.gpu_count is None or found.gpu_count > 0
    assert found.gpu_fraction is None or 0 < found.gpu_fraction <= 1
    assert set(found.gpu_candidates) <= set(accelerators())
    if found.gpu is not None:
        assert found.gpu in accelerators() or found.gpu in families()
        assert found.gpu_candidates


@given(st.sampled_from(SLUGS), st.sampled_from(["", "8x ", "2 x "]))
@settings(max_examples=100, deadline=None)
def test_a_slug_resolves_to_itself(slug: str, count: str):
    assert resolve(count + slug).gpu_candidates == (slug,)


@given(
    st.sampled_from(SPELLINGS),
    st.sampled_from(["", "NVIDIA ", "AMD ", "Tesla ", "gpu-", "my_cloud_", "(", "Compute - GPU - "]),
    st.sampled_from([str.lower, str.upper, str.title]),
)
@settings(max_examples=150, deadline=None)
def test_vendor_prefix_and_case_do_not_matter(spelling: str, prefix: str, case):
    assert answer(resolve(prefix + case(spelling))) == answer(resolve(spelling))


@given(st.sampled_from(SPELLINGS), st.sampled_from([" ", "-", "_", "", "."]))
@settings(max_examples=150, deadline=None)
def test_separators_inside_an_alias_do_not_matter(spelling: str, separator: str):
    plain = spelling.replace("-", " ")
    assert answer(resolve(plain.replace(" ", separator))) == answer(resolve(plain))


@given(
    st.sampled_from(SPELLINGS), st.integers(1, 1024), st.sampled_from(["{n}x {name}", "{name} x{n}", "{n} x {name}"])
)
@settings(max_examples=150, deadline=None)
def test_a_count_is_read_and_changes_nothing_else(spelling: str, count: int, pattern: str):
    alone, counted = resolve(spelling), resolve(pattern.format(n=count, name=spelling))
    assert counted.gpu_count == count
    assert counted.gpu_candidates == alone.gpu_candidates
