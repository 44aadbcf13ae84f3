"""Headers of checkpoint files, written here byte by byte as their formats say."""

import json
import struct

import pytest

from planner.checkpoint_files import looks_like_path, read_checkpoint, read_gguf, safetensors_bytes

CONFIG = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100}


def write_safetensors(path, sizes):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, size in sizes.items():
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)


def gguf_text(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def write_gguf(path, pairs, tensors):
    body = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs))
    for key, (kind, value) in pairs.items():
        body += gguf_text(key) + struct.pack("<I", kind) + value
    for name, shape, kind in tensors:
        body += gguf_text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        body += struct.pack("<IQ", kind, 0)
    path.write_bytes(body)


def number(value):
    return 4, struct.pack("<I", value)


def test_safetensors_bytes_come_from_the_header(tmp_path):
    file = tmp_path / "model.safetensors"
    write_safetensors(file, {"a": 1000, "b": 24})
    assert safetensors_bytes(file) == 1024


def test_a_folder_adds_its_shards_to_its_configuration(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    write_safetensors(tmp_path / "model-00001-of-00002.safetensors", {"a": 100})
    write_safetensors(tmp_path / "model-00002-of-00002.safetensors", {"b": 200})
    found = read_checkpoint(tmp_path)
    assert found["weight_bytes"] == 300
    assert found["hidden_size"] == 64


def test_an_index_gives_the_total(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 4321}, "weight_map": {"a": "x.safetensors"}}))
    assert read_checkpoint(index)["weight_bytes"] == 4321


def test_gguf_metadata_types_and_bytes(tmp_path):
    file = tmp_path / "model.gguf"
    pairs = {
        "general.architecture": (8, gguf_text("llama")),
        "llama.block_count": number(2),
        "llama.embedding_length": number(256),
        "llama.attention.head_count": number(4),
        "llama.attention.head_count_kv": number(2),
        "llama.feed_forward_length": number(1024),
        "tokenizer.ggml.tokens": (9, struct.pack("<IQ", 8, 2) + gguf_text("a") + gguf_text("b")),
    }
    tensors = [("token_embd.weight", (256, 1000), 12), ("output.weight", (256, 1000), 14), ("norm", (256,), 0)]
    write_gguf(file, pairs, tensors)
    found = read_gguf(file)
    assert found["num_hidden_layers"] == 2
    assert found["num_key_value_heads"] == 2
    assert found["vocab_size"] == 1000
    assert found["tie_word_embeddings"] is False
    assert found["weight_bytes"] == 256_000 // 256 * 144 + 256_000 // 256 * 210 + 256 * 4
    assert found["gguf_type"] == "Q6_K"


def test_cut_and_foreign_files_say_so(tmp_path):
    short = tmp_path / "short.gguf"
    short.write_bytes(b"GGUF\x03\x00")
    with pytest.raises(ValueError, match="ends inside"):
        read_gguf(short)
    huge = tmp_path / "huge.safetensors"
    huge.write_bytes(struct.pack("<Q", 1 << 60))
    with pytest.raises(ValueError, match="not a safetensors"):
        safetensors_bytes(huge)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ValueError, match="neither"):
        read_checkpoint(empty)


def test_tensors_without_a_shape_need_the_configuration(tmp_path):
    file = tmp_path / "model.safetensors"
    write_safetensors(file, {"a": 10})
    with pytest.raises(ValueError, match=r"config\.json beside"):
        read_checkpoint(file)


@pytest.mark.parametrize(("name", "path"), [("./x", True), ("a/b", False), ("m.gguf", True), ("Qwen/Qwen3-8B", False)])
def test_paths_and_ids(name, path):
    assert looks_like_path(name) is path


def test_a_safetensors_header_of_another_shape(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    file = tmp_path / "model.safetensors"
    text = json.dumps({"a": {"dtype": "F16"}}).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text)
    with pytest.raises(ValueError, match="layout of a checkpoint"):
        read_checkpoint(file)
