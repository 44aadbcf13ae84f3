"""`collector new`, `collector check` and `record` against a local server, as a contributor runs them."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from collectors.fixtures import fixture_documents, fixture_root, recorded_providers
from collectors.registry import collector, collectors_by_provider
from jobs import check

ROOT = Path(__file__).parents[2]


def serve_fixtures(server, provider, *, edit=lambda document: document.body):
    """Serve a provider's fixtures at the paths of their own addresses; returns the fetch map for its hosts."""
    from urllib.parse import urlsplit

    hosts = set()
    for document in fixture_documents(provider):
        parts = urlsplit(document.url)
        hosts.add(f"{parts.scheme}://{parts.hostname}")
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        server.text(target, edit(document), content_type="text/xml")
    return ",".join(f"{host}={server.url}" for host in hosts)


@pytest.fixture
def checkout(tmp_path):
    """A small checkout to scaffold into."""
    root = tmp_path / "checkout"
    (root / "tests" / "collectors").mkdir(parents=True)
    (root / "collectors").mkdir()
    shutil.copy(ROOT / "collectors" / "contract.py", root / "collectors" / "contract.py")
    return root


def test_new_writes_a_collector_that_compiles_and_says_what_is_next(run_cli, checkout):
    done = run_cli("collector", "new", "acme_gpu", "--url", "https://acme.invalid/prices", "--to", str(checkout))
    assert done.returncode == 0, done.stderr
    written = (checkout / "collectors" / "acme_gpu.py").read_text()
    compile(written, "acme_gpu.py", "exec")
    assert 'provider = "acme_gpu"' in written
    assert "@" not in written.replace("@dataclass", "")
    assert "record acme_gpu" in done.stderr


@pytest.mark.parametrize(
    ("name", "url", "word"),
    [
        ("Acme", "https://a.example/x", "Acme"),
        ("acme", "http://a.example/x", "https"),
        ("scaleway", "https://a.b/c", ""),
    ],
)
def test_new_refuses_bad_names_and_addresses(run_cli, checkout, name, url, word):
    if name == "scaleway":
        (checkout / "collectors" / "scaleway.py").write_text("# there already\n")
    done = run_cli("collector", "new", name, "--url", url, "--to", str(checkout))
    assert done.returncode == 2
    assert word in done.stderr
    if name == "scaleway":
        assert (checkout / "collectors" / "scaleway.py").read_text() == "# there already\n"


def test_check_says_as_expected_for_the_documents_it_knows(run_cli, local_server):
    mapped = serve_fixtures(local_server, "ecb")
    done = run_cli("collector", "check", "ecb", "--format", "json", GPUBAZAAR_FETCH_MAP=mapped)
    row = json.loads(done.stdout)["rows"][0]
    assert (row["verdict"], row["reachable"]) == ("as expected", True), done.stderr
    assert done.returncode == 0


def test_check_says_broken_where_the_source_is_gone(run_cli, local_server):
    done = run_cli("collector", "check", "ecb", "--format", "json",
                   GPUBAZAAR_FETCH_MAP=f"https://www.ecb.europa.eu={local_server.url}")  # fmt: skip
    row = json.loads(done.stdout)["rows"][0]
    assert row["verdict"] == "broken"
    assert done.returncode == 5


# Their fixtures hold some of the regions that are asked for; the others answer 404 here.
FEWER_REGIONS = {"aws"}


def test_every_provider_is_as_expected_where_it_serves_what_its_fixtures_hold(run_cli, mirrored):
    providers = {p: c for p, c in collectors_by_provider().items() if c.on_demand and p in recorded_providers()}
    mapped = mirrored(d for p in providers for d in fixture_documents(p))
    # Without optional keys: what lies behind them is not fetched, and has not vanished.
    needed = dict.fromkeys([name for c in providers.values() for name in c.key_env], "example")
    done = run_cli("collector", "check", "--all", "--format", "json", GPUBAZAAR_FETCH_MAP=mapped, **needed)
    rows = {row["provider"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows.keys() >= providers.keys()
    odd = {p: (row["verdict"], row["note"]) for p, row in rows.items() if row["verdict"] != "as expected"}
    assert odd.keys() == FEWER_REGIONS, odd
    assert all(rows[p]["median_price_ratio"] in (None, 1.0) for p in rows)
    assert not any(rows[p]["appeared_count"] or rows[p]["vanished_count"] for p in rows)
    assert "Warning" not in done.stderr


def renamed_key(entry):
    entry["kind_of_deployment"] = entry.pop("deployment_type")


def new_gpu(entry):
    if entry["configuration"]["gpu_type"] == "A4000":
        entry["configuration"]["gpu_type"] = "Feynman"


def dearer(entry):
    entry["hourly_price"] *= 2


@pytest.mark.parametrize(
    ("change", "column", "value"),
    [
        (lambda entry: None, "verdict", "as expected"),
        (renamed_key, "vanished_count", 1),
        (new_gpu, "unmapped", ["Feynman"]),
        (dearer, "median_price_ratio", 2.0),
    ],
)
def test_lost_keys_new_names_and_moved_prices_are_drift(run_cli, mirrored, change, column, value):
    [document] = fixture_documents("shadeform")
    data = json.loads(document.body)
    for entry in data["instance_types"]:
        change(entry)
    mapped = mirrored([dataclasses.replace(document, body=json.dumps(data).encode())])
    done = run_cli("collector", "check", "shadeform", "--format", "json", GPUBAZAAR_FETCH_MAP=mapped)
    [row] = json.loads(done.stdout)["rows"]
    assert row["verdict"] == ("as expected" if column == "verdict" else "drifted")
    assert row[column] == value


def test_fixtures_that_cannot_be_read_are_said_and_compared_with_nothing(mirrored, monkeypatch):
    documents = fixture_documents("shadeform")
    monkeypatch.setenv("GPUBAZAAR_FETCH_MAP", mirrored(documents))
    monkeypatch.setattr(check, "fixture_documents", lambda provider: [dataclasses.replace(documents[0], body=b"{}")])
    found = check.check(collector("shadeform"), timeout_s=20)
    assert found.row_count == len(check.check_rows(collector("shadeform").parse(documents).rows).rows)
    assert "the fixtures cannot be read" in found.note


def test_record_writes_the_body_and_a_sidecar(run_cli, local_server, tmp_path):
    mapped = serve_fixtures(local_server, "ecb")
    target = tmp_path / "recorded"
    done = run_cli("record", "ecb", "--to", str(target), GPUBAZAAR_FETCH_MAP=mapped)
    assert done.returncode == 0, done.stderr
    meta = json.loads((target / "eurofxref-daily.meta.json").read_text())
    assert meta["provenance"] == "recorded"
    assert meta["url"].startswith("https://www.ecb.europa.eu/")
    body = (target / "eurofxref-daily.xml").read_bytes()
    assert body == (fixture_root() / "ecb" / "eurofxref-daily.xml").read_bytes()


@pytest.mark.parametrize(
    ("sidecar", "word"),
    [
        ("not json", "not JSON"),
        ("[]", "JSON object"),
        ('{"status": "abc"}', "'abc'"),
        ('{"status": 99999}', "99999"),
        ('{"headers": [1]}', "headers"),
        ('{"fetched_at": "yesterday"}', "'yesterday'"),
        ('{"provenance": "magic"}', "'magic'"),
    ],
)
def test_parse_names_what_is_wrong_in_a_sidecar(run_cli, tmp_path, sidecar, word):
    body = tmp_path / "a.json"
    body.write_text("[]", encoding="utf-8")
    body.with_name("a.meta.json").write_text(sidecar, encoding="utf-8")
    result = run_cli("collector", "parse", "vast", str(body), "--format", "json")
    assert result.returncode == 2
    assert word in result.stderr
    assert "Traceback" not in result.stderr
