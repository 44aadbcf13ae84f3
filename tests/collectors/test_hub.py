"""A model repository on a local server: what is asked of it, what comes of it, and what it must not get."""

import json
import struct
from urllib.parse import unquote

import pytest

from catalog.errors import ConfigurationError
from collectors.http import FetchLimits, Pace
from collectors.hub import FILE_HOSTS, HubAccess, HubModelRefused, HubUnavailable, read_hub_model
from collectors.hub_files import MAX_FILES
from collectors.hub_id import HubId, parse_hub_id

CONFIG = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100, "torch_dtype": "bfloat16",
}  # fmt: skip
CDN = "us.aws.cdn.hf.co"
TOKEN = "hf_SecretSecretSecret"


def safetensors(sizes, padding=0):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, size in sizes.items():
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode() + b" " * padding
    return struct.pack("<Q", len(text)) + text


def gguf(kind, *, words=0):
    def text(value):
        raw = value.encode()
        return struct.pack("<Q", len(raw)) + raw

    numbers = {"block_count": 2, "embedding_length": 256, "attention.head_count": 4, "feed_forward_length": 512}
    body = b"GGUF" + struct.pack("<IQQ", 3, 1, len(numbers) + 2)
    body += text("general.architecture") + struct.pack("<I", 8) + text("llama")
    for key, value in numbers.items():
        body += text(f"llama.{key}") + struct.pack("<II", 4, value)
    body += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, words) + text("word") * words
    return body + text("token_embd.weight") + struct.pack("<IQQIQ", 2, 256, 1000, kind, 0)


class FakeHub:
    """Serves one repository as the hub does: small files itself, weights by a redirect to its CDN."""

    def __init__(self, server, *, repository="org/model", revision="main", cdn=CDN):
        self.server = server
        self.base = f"/{repository}/resolve/{revision}"
        self.api = f"/api/models/{repository}/revision/{revision}"
        self.cdn = cdn
        self.listed = []

    def small(self, name, content):
        self.server.text(f"{self.base}/{name}", content if isinstance(content, str) else json.dumps(content))
        self.listed.append(name)

    def weights(self, name, body, *, size=10_000_000, ranges=True):
        """`size` is what the file would have with its tensors, of which only the first bytes exist here."""
        whole = body + b"\x01" * max(0, min(size, 1 << 20) - len(body))

        def answer(request):
            found = request.headers.get("range", "")
            if not ranges or not found:
                return self.server.answer(whole)
            first, last = (int(part) for part in found.removeprefix("bytes=").split("-"))
            total = max(size, len(whole))
            if first >= total:
                return self.server.answer(b"", 416)
            piece = whole[first : last + 1]
            return self.server.answer(piece, 206, content_range=f"bytes {first}-{first + len(piece) - 1}/{total}")

        self.server.route(f"{self.base}/{name}", self.server.redirect(f"https://{self.cdn}/blob/{name}?Signature=abc"))
        self.server.route(f"/blob/{name}?Signature=abc", answer)
        self.listed.append(name)

    def list_files(self):
        self.server.text(self.api, json.dumps({"siblings": [{"rfilename": name} for name in self.listed]}))


@pytest.fixture
def hub(local_server):
    return FakeHub(local_server)


@pytest.fixture
def read(local_server, monkeypatch):
    quick = FetchLimits(connect_s=2, read_s=2, total_s=5, retry_wait_s=0.01)
    monkeypatch.setattr("collectors.hub._LIMITS", quick)

    def run(name="hf:org/model", *, token="", hosts=("huggingface.co", CDN)):
        access = HubAccess(token, local_server.fetch_map(*hosts), Pace(0.0))
        return read_hub_model(name, access)

    return run


def sharded(hub, count=2, size=1000):
    names = [f"model-{number:05}-of-{count:05}.safetensors" for number in range(1, count + 1)]
    hub.small("config.json", CONFIG)
    hub.small(
        "model.safetensors.index.json",
        {"metadata": {"total_size": 1}, "weight_map": {f"t{number}": name for number, name in enumerate(names)}},
    )
    for name in names:
        hub.weights(name, safetensors({"t": size}))
    return names


def test_shards_by_their_headers(hub, read):
    sharded(hub, count=11)
    found = read()
    assert found["weight_bytes"] == 11_000
    assert found["hidden_size"] == 64
    assert found["_name_or_path"] == "org/model"


def test_only_headers_are_asked_for(hub, read, local_server):
    sharded(hub)
    read()
    ranges = [r.headers["range"] for r in local_server.received if r.path.startswith("/blob/")]
    assert ranges == ["bytes=0-131071"] * 2
    assert all(r.headers["accept-encoding"] == "identity" for r in local_server.received if "range" in r.headers)


def test_one_file_without_index(hub, read):
    hub.small("config.json", CONFIG)
    hub.weights("model.safetensors", safetensors({"a": 5000, "b": 24}))
    assert read()["weight_bytes"] == 5024


def test_a_header_longer_than_the_first_block(hub, read):
    hub.small("config.json", CONFIG)
    hub.weights("model.safetensors", safetensors({f"layer.{n}.weight": 10 for n in range(3000)}))
    assert read()["weight_bytes"] == 30_000


def test_a_header_that_ends_in_blanks_after_the_first_block(hub, read):
    short = len(safetensors({"a": 7}))
    hub.small("config.json", CONFIG)
    hub.weights("model.safetensors", safetensors({"a": 7}, padding=131072 - short + 3), size=0)
    assert read()["weight_bytes"] == 7


def test_files_of_other_names_come_from_the_listing(hub, read):
    hub.small("config.json", CONFIG)
    hub.weights("part-a.safetensors", safetensors({"a": 11}))
    hub.weights("part-b.safetensors", safetensors({"b": 22}))
    hub.listed.append("extra/other.safetensors")
    hub.list_files()
    assert read()["weight_bytes"] == 33


def test_a_configuration_without_weights(hub, read):
    hub.small("config.json", CONFIG)
    hub.list_files()
    assert "weight_bytes" not in read()


def test_a_mirror_without_a_listing(hub, read):
    hub.small("config.json", CONFIG)
    assert "weight_bytes" not in read()


def test_missing_shards_leave_the_total_of_the_index(hub, read):
    names = sharded(hub)
    hub.server.text(f"{hub.base}/{names[1]}", "no", 404)
    assert read()["weight_bytes"] == 1


def test_modelopt_quantisation_beside_the_configuration(hub, read):
    sharded(hub)
    hub.small("hf_quant_config.json", {"quantization": {"quant_algo": "NVFP4"}})
    assert read()["quantization_config"] == {"quant_method": "modelopt", "quant_algo": "NVFP4"}


def test_a_gguf_file(hub, read):
    hub.weights("m-Q4_K_M.gguf", gguf(12, words=300_000))
    hub.list_files()
    found = read()
    assert found["weight_bytes"] == 1000 * 144
    assert found["native_format"] == "gguf:Q4_K"
    assert found["num_hidden_layers"] == 2


@pytest.mark.parametrize("name", ["hf:org/model:q8_0", "hf:org/model/m-Q8_0.gguf"])
def test_one_of_several_gguf_files(hub, read, name):
    hub.weights("m-Q4_K_M.gguf", gguf(12))
    hub.weights("m-Q8_0.gguf", gguf(8))
    hub.list_files()
    assert read(name)["gguf_type"] == "Q8_0"
    with pytest.raises(HubModelRefused, match=r"name one of: m-Q4_K_M, m-Q8_0; a GGUF model is named as hf:org/model:"):
        read()


def test_a_revision_is_part_of_every_address(local_server, read):
    hub = FakeHub(local_server, revision="refs%2Fpr%2F1")
    sharded(hub)
    assert read("hf:org/model@refs/pr/1")["weight_bytes"] == 2000
    asked = [unquote(path) for path in local_server.paths() if not path.startswith("/blob/")]
    assert all(path.startswith("/org/model/resolve/refs/pr/1/") for path in asked)


def test_a_server_without_ranges_is_cut_off(hub, read, local_server):
    hub.small("config.json", CONFIG)
    hub.weights("model.safetensors", safetensors({"a": 1}), ranges=False)
    with pytest.raises(HubUnavailable, match="sends the whole file where its first 131072 bytes"):
        read()
    assert len([p for p in local_server.paths() if p.startswith("/blob/")]) == 1


def test_a_small_file_whole_is_as_good_as_a_range(hub, read):
    hub.small("config.json", CONFIG)
    hub.weights("model.safetensors", safetensors({"a": 9}), ranges=False, size=0)
    assert read()["weight_bytes"] == 9


@pytest.mark.parametrize("host", sorted(FILE_HOSTS))
def test_file_hosts_of_the_hub(local_server, read, host):
    hub = FakeHub(local_server, cdn=host)
    hub.small("config.json", CONFIG)
    hub.weights("model.safetensors", safetensors({"a": 3}))
    assert read(hosts=("huggingface.co", host))["weight_bytes"] == 3


def test_other_hosts_are_not_followed(local_server, read):
    hub = FakeHub(local_server, cdn="files.example.com")
    hub.small("config.json", CONFIG)
    hub.weights("model.safetensors", safetensors({"a": 3}))
    with pytest.raises(HubUnavailable, match=r"files\.example\.com, which is not among its hosts") as caught:
        read(hosts=("huggingface.co", "files.example.com"), token=TOKEN)
    assert TOKEN not in str(caught.value)
    assert not [p for p in local_server.paths() if p.startswith("/blob/")]


def test_the_token_goes_to_the_hub_alone(hub, read, local_server):
    sharded(hub, count=6)
    read(token=TOKEN)
    at_cdn = [r for r in local_server.received if r.headers["host"] == CDN]
    at_hub = [r for r in local_server.received if r.headers["host"] == "huggingface.co"]
    assert len(at_cdn) == 6
    assert all("authorization" not in r.headers and TOKEN not in r.path for r in at_cdn)
    assert all(r.headers["authorization"] == f"Bearer {TOKEN}" for r in at_hub)
    assert TOKEN not in repr(HubAccess(TOKEN))


@pytest.mark.parametrize(
    ("status", "token", "says"),
    [
        (
            401,
            "",
            r"gated, private or not there.*terms at https://huggingface.co/org/model and set HF_TOKEN",
        ),
        (403, "", "set HF_TOKEN"),
        (401, TOKEN, "the token is wrong or lacks read access"),
        (403, TOKEN, r"ask for access at https://huggingface.co/org/model"),
    ],
)
def test_gated_models(hub, read, status, token, says):
    hub.server.text(f"{hub.base}/config.json", f"Access to model org/model is restricted, Bearer {TOKEN}", status)
    with pytest.raises(HubModelRefused, match=says) as caught:
        read(token=token)
    assert TOKEN not in str(caught.value)
    assert isinstance(caught.value, ConfigurationError)


def test_weights_can_be_gated_where_the_configuration_is_not(hub, read):
    hub.small("config.json", CONFIG)
    hub.server.text(f"{hub.base}/model.safetensors", "restricted", 403)
    with pytest.raises(HubModelRefused, match="HF_TOKEN"):
        read()


def test_no_such_model(read):
    with pytest.raises(HubModelRefused, match="no such model or revision"):
        read()


def test_a_repository_without_configuration(hub, read):
    hub.listed.append("README.md")
    hub.list_files()
    with pytest.raises(HubModelRefused, match=r"holds neither config\.json nor a \.gguf file"):
        read()


def whole(body):
    return {"body": body, "size": 0}


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (whole(safetensors({"a": 1})[:-5]), "ends inside its header"),
        (whole(b"\x01\x02"), "ends inside its header"),
        ({"body": struct.pack("<Q", 1 << 60), "size": 100}, "not a safetensors file: a header of"),
        (whole(struct.pack("<Q", 10_000) + b"{}"), "ends inside its header"),
        (whole(struct.pack("<Q", 3) + b'{"a": 1}'), "cannot be used"),
        (whole(struct.pack("<Q", 2) + b"[]"), "not a JSON object"),
        (whole(struct.pack("<Q", 8) + b'{"a": 1}'), "layout of a checkpoint"),
        (whole(struct.pack("<Q", 2) + b"\xff\xfe"), "cannot be used"),
    ],
)
def test_damaged_headers(hub, read, file, says):
    hub.small("config.json", CONFIG)
    hub.weights("model.safetensors", **file)
    with pytest.raises(HubModelRefused, match=says):
        read()


def test_a_gguf_header_that_never_ends_is_given_up(hub, read, monkeypatch):
    monkeypatch.setattr("collectors.hub_ranges.MAX_HEADER_BYTES", 3 << 20)
    hub.weights("m.gguf", gguf(12, words=500_000), size=100_000_000)
    hub.list_files()
    with pytest.raises(HubUnavailable, match="larger than 3 MiB"):
        read()


@pytest.mark.parametrize("content_range", ["bytes 5-20/100", "bytes 0-3/100", "", "elephants"])
def test_a_range_that_was_not_asked_for(hub, read, content_range):
    hub.small("config.json", CONFIG)
    answer = hub.server.answer(
        safetensors({"a": 1}), 206, **({"content_range": content_range} if content_range else {})
    )
    hub.server.route(f"{hub.base}/model.safetensors", answer)
    with pytest.raises(HubUnavailable, match="is asked for"):
        read()


@pytest.mark.parametrize("text", ["[]", "{", "\ufeff"])
def test_a_configuration_that_is_none(hub, read, text):
    hub.server.text(f"{hub.base}/config.json", text.encode())
    with pytest.raises(HubModelRefused, match="cannot be used"):
        read()


def test_more_shards_than_any_model_has(hub, read):
    hub.small("config.json", CONFIG)
    shards = {f"t{n}": f"s{n}.safetensors" for n in range(MAX_FILES + 1)}
    hub.small("model.safetensors.index.json", {"metadata": {}, "weight_map": shards})
    with pytest.raises(HubUnavailable, match="more than the 300"):
        read()


def test_shards_outside_of_the_repository(hub, read, local_server):
    hub.small("config.json", CONFIG)
    hub.small("model.safetensors.index.json", {"weight_map": {"a": "../../../other/secret.safetensors"}})
    with pytest.raises(HubModelRefused, match="outside of the repository"):
        read()
    assert not [path for path in local_server.paths() if "secret" in path]


def test_a_failing_shard_ends_the_others(hub, read, local_server):
    names = sharded(hub, count=30)
    hub.server.text(f"{hub.base}/{names[1]}", "restricted", 403)
    with pytest.raises(HubModelRefused, match="HF_TOKEN"):
        read()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hf:Qwen/Qwen3-8B", HubId("Qwen/Qwen3-8B")),
        (" hf:gpt2 ", HubId("gpt2")),
        ("hf:a/b@v1.0", HubId("a/b", revision="v1.0")),
        ("hf:a/b:Q4_K_M@main", HubId("a/b", "Q4_K_M")),
        ("hf:a/b/Q4/m-00001-of-00002.gguf@0a1b", HubId("a/b", "Q4/m-00001-of-00002.gguf", "0a1b")),
    ],
)
def test_ids(text, expected):
    assert parse_hub_id(text) == expected
    assert parse_hub_id(str(expected)) == expected


@pytest.mark.parametrize(
    "text",
    ["hf:", "hf:/", "hf:a/", "hf:a/b/c", "hf:../b", "hf:a/..", "hf:a/b@", "hf:a/b@../c", "hf:a/b@/c", "hf:a--b/c",
     "hf:a/b?x=1", "hf:a b/c", "hf:https://huggingface.co/a/b", "hf:a/b/../c.gguf", "hf:a/b:", "hf:a/b#c", "hf:.a/b",
     "hf:a/b\n", "hf:a/" + "b" * 97],
)  # fmt: skip
def test_what_is_no_id(text):
    if text.endswith("\n"):
        assert parse_hub_id(text) == HubId("a/b")
        return
    with pytest.raises(ConfigurationError, match="hf:org/name"):
        parse_hub_id(text)
