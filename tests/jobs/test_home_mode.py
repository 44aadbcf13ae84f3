"""A home is live or recorded: decided by what arrived, and never emptied for what did not."""

import pytest

from catalog.errors import ConfigurationError
from catalog.home import Home
from catalog.queries import offers
from catalog.reader import reading
from jobs.refresh import refresh

NOWHERE = "https://api.scaleway.com=http://127.0.0.1:1"


def count(home):
    with reading(home) as catalog:
        return catalog.mode(), len(offers(catalog))


def test_a_failed_live_refresh_does_not_claim_an_empty_home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUBAZAAR_FETCH_MAP", NOWHERE)
    home = Home(tmp_path)
    assert refresh(home, ["scaleway"], timeout_s=5).results[0].outcome == "failed"
    assert count(home) == (None, 0)
    refresh(home, ["scaleway"], source="recorded")
    assert count(home)[0] == "recorded"


def test_replacing_recorded_data_needs_something_to_put_in_its_place(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUBAZAAR_FETCH_MAP", NOWHERE)
    home = Home(tmp_path)
    refresh(home, ["scaleway"], source="recorded")
    before = count(home)
    with pytest.raises(ConfigurationError, match="--replace-recorded"):
        refresh(home, ["scaleway"], timeout_s=5)
    report = refresh(home, ["scaleway"], timeout_s=5, replace_mode=True)
    assert report.troubled
    assert count(home) == before
