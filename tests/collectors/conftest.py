"""What the tests of a provider share: its recorded documents, changed at will, and what its collector reads in them.

The provider is the one that the test file is named after, unless a test is parametrized over `provider`.
"""

import dataclasses
import json
from pathlib import Path

import pytest

from collectors.fixtures import fixture_documents, read_recorded
from collectors.registry import collector

RECORDINGS = Path(__file__).resolve().parents[2].parent / "shared" / "recordings"
RECORDED_AS = {"lambda_cloud": "lambda"}


@pytest.fixture
def provider(request):
    return request.path.stem.removeprefix("test_")


@pytest.fixture
def documents(provider):
    """The provider's fixtures by name."""
    return {d.name: d for d in fixture_documents(provider)}


@pytest.fixture
def parse(provider):
    """`parse(document, …)`: what the provider's collector reads."""
    return lambda *documents: collector(provider).parse(documents)


@pytest.fixture
def changed_page():
    """`changed_page(provider, (old, new), …)`: the only page among a provider's fixtures with texts replaced."""

    def change(provider, *changes):
        [page] = [d for d in fixture_documents(provider) if d.body.lstrip().startswith(b"<")]
        text = page.text()
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        return dataclasses.replace(page, body=text.encode())

    return change


@pytest.fixture
def page_with(provider, changed_page):
    """`page_with((old, new), …)`: the provider's page with texts replaced."""
    return lambda *changes: changed_page(provider, *changes)


@pytest.fixture
def parse_page(parse, page_with):
    """`parse_page((old, new), …)`: what is read in the page with texts replaced."""
    return lambda *changes: parse(page_with(*changes))


@pytest.fixture
def api_with(documents):
    """`api_with(change)`: the only JSON document after `change(data)` was applied to its content."""

    def apply(change):
        [api] = [d for d in documents.values() if d.body.lstrip().startswith(b"{")]
        data = json.loads(api.body)
        change(data)
        return dataclasses.replace(api, body=json.dumps(data).encode())

    return apply


@pytest.fixture
def recordings(provider):
    """The folder of what was recorded from the provider's live source; skips where recordings are not here."""
    folder = RECORDINGS / RECORDED_AS.get(provider, provider)
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here")
    return folder


@pytest.fixture
def recording(provider, recordings):
    """`recording(file)`: one document as it was recorded from the live source."""
    return lambda file_name: read_recorded(recordings / file_name, provider)
