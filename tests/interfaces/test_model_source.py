"""`--model hf:org/name` at the command line: the same answer as from a folder, kept for a while, honest without net."""

import json
import shutil
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from catalog.errors import ConfigurationError
from catalog.home import Home
from collectors.errors import FetchError
from collectors.hub_cache import HubModel, cache_file, keep_model, kept_model
from collectors.hub_id import parse_hub_id
from interfaces.model_source import HubModels

CONFIG = {
    "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 36, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288,
    "vocab_size": 151936, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "max_position_embeddings": 40960,
}  # fmt: skip
REQUEST = {"workload": "serve", "model": "hf:org/model", "gpu": "l40s-48gb"}
SHARDS = {"model-00001-of-00002.safetensors": 9_000_000_000, "model-00002-of-00002.safetensors": 7_381_470_720}


def header(size):
    text = json.dumps({"t": {"dtype": "BF16", "shape": [size // 2], "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(text)) + text


def contents():
    index = {"metadata": {"total_size": 0}, "weight_map": {name: name for name in SHARDS}}
    small = {"config.json": CONFIG, "model.safetensors.index.json": index}
    return {
        **{name: json.dumps(value).encode() for name, value in small.items()},
        **{name: header(size) for name, size in SHARDS.items()},
    }


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "model"
    place.mkdir()
    for name, body in contents().items():
        (place / name).write_bytes(body)
    return place


@pytest.fixture
def served(local_server, monkeypatch):
    for name, body in contents().items():
        local_server.text(f"/org/model/resolve/main/{name}", body)
    monkeypatch.setenv("GPUBAZAAR_FETCH_MAP", f"https://huggingface.co={local_server.url}")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    return local_server


@pytest.fixture
def cut_off(monkeypatch):
    """No hub: its address is a closed port."""
    monkeypatch.setenv("GPUBAZAAR_FETCH_MAP", "https://huggingface.co=http://127.0.0.1:9")


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


def age(home, days):
    hub_id = parse_hub_id("hf:org/model")
    found = kept_model(home, hub_id)
    assert keep_model(home, hub_id, HubModel(found.model, datetime.now(UTC) - timedelta(days=days)))


def without_name(text):
    return {key: value for key, value in json.loads(text).items() if key != "model"}


@pytest.mark.parametrize("keys", [(), ("--weights", "fp8", "--tp", "2"), ("--context", "32768", "--concurrency", "16")])
def test_hub_and_folder_give_the_same_estimate(served, folder, run_cli, keys):
    common = ("estimate", "serve", "--gpu", "l40s-48gb", *keys, "--format", "json", "--model")
    local, remote = run_cli(*common, str(folder)), run_cli(*common, "hf:org/model")
    assert remote.returncode == local.returncode == 0, remote.stderr
    assert without_name(remote.stdout) == without_name(local.stdout)
    assert json.loads(remote.stdout)["model"] == "org/model"
    assert "hf:org/model: 16.38 GB of weights as read from huggingface.co on 2" in remote.stderr


def test_training_takes_hub_models_too(served, folder, run_cli):
    common = ("estimate", "lora", "--gpu", "h100-sxm-80gb", "--format", "json", "--model")
    local, remote = run_cli(*common, str(folder)), run_cli(*common, "hf:org/model")
    assert remote.returncode == 0, remote.stderr
    assert without_name(remote.stdout) == without_name(local.stdout)


def test_lines_of_requests(served, run_cli, tmp_path):
    lines = [{**REQUEST, "id": number} for number in range(3)]
    lines += [{**REQUEST, "id": "bad", "model": "hf:no/such"}, {**REQUEST, "id": "form", "model": "hf:"}]
    file = tmp_path / "requests.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines))
    ran = run_cli("estimate", "--requests", str(file), "--format", "jsonl")
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [0, 1, 2, "bad", "form"]
    assert answers[0]["weights_gib_per_gpu"] == answers[2]["weights_gib_per_gpu"] > 15
    assert [answer["error"]["code"] for answer in answers[3:]] == ["hub_model_refused", "configuration"]
    assert ran.returncode == 1
    assert served.paths().count("/org/model/resolve/main/config.json") == 1


def test_a_plan_takes_hub_models(served, recorded_home, tmp_path, run_cli, folder):
    home = Path(shutil.copytree(recorded_home, tmp_path / "home", symlinks=True))
    common = ("plan", "serve", "--gpu", "l40s-48gb", "--refresh", "never", "--allow-stale", "--format", "json")
    local, remote = (run_cli(*common, "--model", name, home=home) for name in (str(folder), "hf:org/model"))
    assert remote.returncode == local.returncode == 0, remote.stderr
    rows, local_rows = (json.loads(ran.stdout)["rows"] for ran in (remote, local))
    assert rows
    assert [(row["instance_type"], row["cost_total_usd"]) for row in rows] == [
        (row["instance_type"], row["cost_total_usd"]) for row in local_rows
    ]


def test_without_a_network_the_alternatives_are_named(cut_off, run_cli):
    ran = run_cli("estimate", "serve", "--model", "hf:org/model", "--gpu", "l40s-48gb")
    assert ran.returncode == 1
    assert "cannot be reached" in ran.stderr
    assert "a local folder or file" in ran.stderr
    assert "a model object" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_wrong_names_are_usage_errors(run_cli):
    ran = run_cli("estimate", "serve", "--model", "hf:a/b/c/d", "--gpu", "l40s-48gb")
    assert ran.returncode == 2
    assert "hf:org/name" in ran.stderr


def test_mistakes_elsewhere_come_first(served, home):
    with pytest.raises(ConfigurationError, match="contxt"):
        HubModels(home).fill({**REQUEST, "contxt": 1})
    assert not served.received


def test_other_models_stay_as_they_are(home):
    for model in ("Qwen/Qwen3-8B", "./hf:folder", {"hidden_size": 1}, None):
        assert HubModels(home).fill({**REQUEST, "model": model}) == {**REQUEST, "model": model}
    assert not home.path.exists()


def test_kept_for_thirty_days(served, home):
    first = HubModels(home).fill(REQUEST)
    asked = len(served.received)
    assert cache_file(home, parse_hub_id("hf:org/model")).name == "org--model@main.json"
    age(home, 29)
    assert HubModels(home).fill(REQUEST) == first
    assert len(served.received) == asked
    age(home, 31)
    assert HubModels(home).fill(REQUEST) == first
    assert len(served.received) == 2 * asked


def test_an_old_answer_is_better_than_none_and_says_so(served, home, monkeypatch, capsys):
    first = HubModels(home).fill(REQUEST)
    age(home, 100)
    monkeypatch.setenv("GPUBAZAAR_FETCH_MAP", "https://huggingface.co=http://127.0.0.1:9")
    assert HubModels(home).fill(REQUEST) == first
    said = capsys.readouterr().err
    assert "using what was read before" in said
    assert f"{datetime.now(UTC) - timedelta(days=100):%Y-%m-%d}" in said


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"version": 1}', '{"version": 1, "id": "hf:other/model"}'])
def test_damaged_files_are_read_anew(served, home, damage):
    first = HubModels(home).fill(REQUEST)
    cache_file(home, parse_hub_id("hf:org/model")).write_text(damage)
    assert HubModels(home).fill(REQUEST) == first


def test_a_home_that_cannot_be_written(served, tmp_path):
    (tmp_path / "home").write_text("a file")
    found = HubModels(Home(tmp_path / "home")).fill(REQUEST)
    assert found["model"]["weight_bytes"] == sum(SHARDS.values())


def test_the_token_is_neither_kept_nor_said(served, home, monkeypatch, capsys):
    secret = "hf_TopSecretTopSecret"
    monkeypatch.setenv("HF_TOKEN", secret)
    HubModels(home).fill(REQUEST)
    assert served.received[0].headers["authorization"] == f"Bearer {secret}"
    served.text("/org/gone/resolve/main/config.json", f"no: Bearer {secret}", 403)
    with pytest.raises(ConfigurationError) as caught:
        HubModels(home).fill({**REQUEST, "model": "hf:org/gone"})
    kept = "".join(file.read_text() for file in (home.path / "models").iterdir())
    assert secret not in f"{caught.value} {kept} {capsys.readouterr()}"


def test_a_failure_is_not_repeated_in_one_run(cut_off, home):
    models = HubModels(home)
    for _ in range(2):
        with pytest.raises(FetchError, match="cannot be reached"):
            models.fill(REQUEST)
