"""Every provider against the collector contract: metadata, fixtures, purity, evidence, validation."""

import dataclasses
import hashlib
import json
import socket
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from catalog.units import instance_price_hour
from catalog.validate import check_rows
from collectors.evidence import amount_of, holds, native_price_hour
from collectors.fixtures import fixture_documents, fixture_root, read_sidecar, recorded_providers, sidecar_of
from collectors.registry import collectors_by_provider

COLLECTORS = collectors_by_provider()
RECORDED = [p for p in recorded_providers() if p in COLLECTORS]
PRICED = [p for p in RECORDED if COLLECTORS[p].kind != "rates"]


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("parse touched the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def parsed(provider):
    return COLLECTORS[provider].parse(fixture_documents(provider))


@pytest.mark.parametrize("provider", sorted(COLLECTORS))
def test_metadata_is_whole(provider):
    c = COLLECTORS[provider]
    assert c.title
    assert c.home_page.startswith("https://")
    assert c.sources
    assert all(s.startswith("https://") for s in c.sources)
    assert c.kind in {"api", "page", "feed", "bulk", "rates"}
    assert 60 <= c.cadence_s <= c.max_age_s * 2
    assert len(c.currency) == 3
    for request in c.requests(dict.fromkeys((*c.key_env, *c.optional_key_env), "secret")):
        assert any(host in request.url for host in c.allowed_hosts()), request.url
        assert request.name, "a request names its fixture"


@pytest.mark.parametrize("provider", sorted(COLLECTORS))
def test_has_fixtures(provider):
    assert provider in RECORDED, f"fixtures/{provider} is missing"


@pytest.mark.parametrize("provider", RECORDED)
def test_sidecars_tell_the_truth(provider):
    folder = fixture_root() / provider
    documents = fixture_documents(provider)
    assert documents
    for document in documents:
        path = next(p for p in folder.iterdir() if p.stem == document.name and not p.name.endswith(".meta.json"))
        meta = read_sidecar(sidecar_of(path))
        assert meta["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest(), f"{path.name} changed after its sidecar"
        assert meta["provenance"] in {"recorded", "reconstructed"}
        assert meta["url"].startswith("https://")
        assert document.fetched_at < datetime.now(UTC)
        if meta["provenance"] == "reconstructed":
            assert meta["figures"], f"{path.name}: a reconstructed document names the source of each figure"
            assert all(f["source_url"].startswith("http") and f["date"] for f in meta["figures"])


@pytest.mark.parametrize("provider", PRICED)
def test_parse_is_pure_and_deterministic(provider, no_network):
    documents = fixture_documents(provider)
    first = COLLECTORS[provider].parse(documents)
    second = COLLECTORS[provider].parse([dataclasses.replace(d) for d in documents])
    assert first == second


@pytest.mark.parametrize("provider", PRICED)
def test_rows_are_whole_and_valid(provider):
    result = parsed(provider)
    collector = COLLECTORS[provider]
    assert result.complete, result.notes
    assert len(result.rows) >= collector.expect.min_rows
    checked = check_rows(result.rows)
    assert not checked.rejections, checked.rejections
    assert len({r.offer.offer_id for r in checked.rows}) == len(checked.rows)
    seen = {r.offer.gpu for r in checked.rows} | {c for r in checked.rows for c in r.offer.gpu_candidates}
    assert collector.expect.gpus <= seen, collector.expect.gpus - seen
    for row in checked.rows:
        assert (collector.part_of or provider) in {row.offer.provider, row.offer.via}
        assert row.quote.offer_id == row.offer.offer_id
        assert row.offer.gpu_count >= 1
        assert row.offer.gpu or "gpu_unmapped" in row.quote.flags
        assert row.quote.price is None or row.quote.price > 0
        assert row.quote.source_url.startswith("https://")


def expected_rows(provider):
    path = fixture_root() / provider / "expected.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


@pytest.mark.parametrize("provider", PRICED)
def test_expected_rows_hold_with_evidence(provider):
    rows = [{**_flat(r.offer), **_flat(r.quote)} for r in parsed(provider).rows]
    documents = {d.name: d for d in fixture_documents(provider)}
    wanted = expected_rows(provider)
    assert len(wanted) >= min(5, len(rows))
    for line in wanted:
        found = [r for r in rows if all(_equal(r[k], v) for k, v in line["match"].items())]
        assert len(found) == 1, f"{line['match']} matches {len(found)} rows"
        row = found[0]
        for field, value in line["expect"].items():
            assert _equal(row[field], value), f"{line['match']}: {field} is {row[field]!r}, expected {value!r}"
        assert any(e["is"] == "price" for e in line["evidence"]), f"{line['match']} has no evidence of its price"
        for evidence in line["evidence"]:
            assert holds(documents[evidence["document"]], evidence), f"{line['match']}: {evidence}"
            _check_claim(row, evidence)
        recomputed = native_price_hour(line["evidence"], row["gpu_count"])
        own = instance_price_hour(
            row["price"], row["price_unit"], row["price_scope"], row["gpu_count"], row["commitment_days"]
        )
        assert abs(recomputed - own) <= Decimal("0.000001") * own, f"{line['match']}: {recomputed} against {own}"


def _check_claim(row, evidence):
    what = evidence["is"]
    if what == "price":
        assert row["currency"] == evidence.get("currency", "USD")
    elif what in {"gpu_count", "gpu_memory_gb", "commitment_days", "vcpu_count", "memory_gib"}:
        assert abs(float(amount_of(evidence)) - float(row[what])) <= 0.01 * float(row[what])
    elif what != "context":
        assert str(evidence["raw"]) in str(row[what])


def _flat(item):
    return {f.name: getattr(item, f.name) for f in dataclasses.fields(item)}


def _equal(have, want):
    if isinstance(have, Decimal) or (isinstance(want, (int, float)) and isinstance(have, (int, float))):
        return want is not None and abs(float(have) - float(want)) <= 1e-6 * max(1.0, abs(float(want)))
    if isinstance(want, list):
        return sorted(have) == sorted(want)
    return have == want
