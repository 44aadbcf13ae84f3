"""Fixtures state facts in our own writing: no stretch of a recording stands in the repository.

Recordings are other people's observations, to be read and never copied. Facts (a price, a name, a documented key) are
anyone's, so short stretches in common are expected; a long one means a passage was taken over. White space and letter
case are ignored, so neither re-indenting nor re-casing hides one.
"""

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = ROOT.parent / "shared" / "recordings"
LONGEST_RUN = 80  # characters in common in one stretch
RUN = 50  # stretches this long count towards the share
HIGHEST_SHARE = 1 / 4
SHORTEST_FIXTURE = 600  # below this, documented keys alone make up the share
FIXTURES = sorted(
    path
    for path in (ROOT / "fixtures").rglob("*")
    if path.is_file() and not path.name.endswith((".meta.json", ".zip", "expected.jsonl"))
)
TEXTS = sorted(
    path
    for folder in ("benchmarks", "catalog", "collectors", "fixtures", "interfaces", "jobs", "planner", "tests")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".json", ".jsonl", ".csv", ".md", ".html"} and path not in FIXTURES
)


def plain(text):
    return re.sub(r"\s+", "", text).casefold()


def shared_runs(text, other, length):
    """The stretches of `text`, each at least `length` characters, that stand in `other`: (start, end) pairs."""
    known = pieces(other, length)
    runs = []
    for start in range(len(text) - length + 1):
        if text[start : start + length] in known:
            if runs and start <= runs[-1][1] - length + 1:
                runs[-1] = (runs[-1][0], start + length)
            else:
                runs.append((start, start + length))
    return runs


@functools.cache
def pieces(text, length):
    """Every stretch of that length."""
    return {text[i : i + length] for i in range(len(text) - length + 1)}


def share(text, other, length):
    """The share of `text` that stands in `other` in stretches of `length` characters or more."""
    if pieces(text, length).isdisjoint(pieces(other, length)):
        return 0.0
    covered, end = 0, 0
    for start, stop in shared_runs(text, other, length):
        covered += stop - max(start, end)
        end = stop
    return covered / max(1, len(text))


@functools.cache
def recordings():
    """Every recording, without white space, by its path under the folder."""
    return {
        path.relative_to(RECORDINGS).as_posix(): plain(path.read_text("utf-8"))
        for path in sorted(RECORDINGS.rglob("*"))
        if path.is_file() and len(path.relative_to(RECORDINGS).parts) > 1
    }


@functools.cache
def stretches():
    """Where each stretch of LONGEST_RUN characters of any recording comes from."""
    return {
        text[i : i + LONGEST_RUN]: name
        for name, text in recordings().items()
        for i in range(len(text) - LONGEST_RUN + 1)
    }


def copied(text):
    """The first stretch of a recording that stands in the text, with the recording's name."""
    known = stretches()
    return next(
        (
            (known[piece], piece)
            for piece in (text[i : i + LONGEST_RUN] for i in range(len(text) - LONGEST_RUN + 1))
            if piece in known
        ),
        None,
    )


@pytest.fixture
def _recorded():
    if not RECORDINGS.is_dir():
        pytest.skip("no ../shared/recordings here")


def test_a_copy_is_seen_through_new_white_space_and_case():
    recorded = '{"plan": "a", "price": 1.5, "regions": ["x", "y"], "note": "as the source says it"}'
    pasted = f"[\n  {recorded.upper()}\n]"
    assert share(plain(recorded), plain(pasted), 20) == 1
    rewritten = '{"regions": ["x", "y"], "plan": "a", "note": "ours", "price": 1.5}'
    assert share(plain(recorded), plain(rewritten), 20) < 0.4
    assert shared_runs("abcdeXabcde", "abcde", 5) == [(0, 5), (6, 11)]


@pytest.mark.needs_recordings
@pytest.mark.usefixtures("_recorded")
@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.relative_to(ROOT / "fixtures").as_posix())
def test_no_passage_of_a_recording_stands_in_a_fixture(path):
    text = plain(path.read_text("utf-8"))
    found = copied(text)
    assert found is None, f"{path} repeats {found[0]}: {found[1]}"
    for name, recorded in recordings().items():
        taken = share(recorded, text, RUN)
        assert taken <= HIGHEST_SHARE, f"{taken:.0%} of {name} stands in {path}"
        if len(text) >= SHORTEST_FIXTURE:
            given = share(text, recorded, RUN)
            assert given <= HIGHEST_SHARE, f"{given:.0%} of {path} stands in {name}"


@pytest.mark.needs_recordings
@pytest.mark.usefixtures("_recorded")
def test_no_passage_of_a_recording_stands_in_code_tests_or_data():
    found = {path.relative_to(ROOT).as_posix(): copied(plain(path.read_text("utf-8"))) for path in TEXTS}
    assert {path: what for path, what in found.items() if what} == {}
