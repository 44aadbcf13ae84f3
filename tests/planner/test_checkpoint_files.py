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


def shard_folder(tmp_path, index=None):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    write_safetensors(tmp_path / "model-00001-of-00002.safetensors", {"a": 100})
    write_safetensors(tmp_path / "model-00002-of-00002.safetensors", {"b": 200})
    if index is not None:
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    return tmp_path


INDEX = {
    "metadata": {"total_size": 999},
    "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"},
}


def test_other_copies_beside_the_indexed_shards_do_not_count(tmp_path):
    folder = shard_folder(tmp_path, INDEX)
    write_safetensors(folder / "consolidated.safetensors", {"a": 100, "b": 200})
    assert read_checkpoint(folder)["weight_bytes"] == 300


def test_a_half_loaded_folder_takes_the_total_of_its_index(tmp_path):
    folder = shard_folder(tmp_path, INDEX)
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert read_checkpoint(folder)["weight_bytes"] == 999


def test_an_index_without_total_needs_its_shards(tmp_path):
    folder = shard_folder(tmp_path, {"weight_map": INDEX["weight_map"]})
    (folder / "model-00001-of-00002.safetensors").unlink()
    with pytest.raises(ValueError, match="no total_size"):
        read_checkpoint(folder)


PAIRS = {
    "general.architecture": (8, gguf_text("llama")),
    "llama.block_count": number(2),
    "llama.embedding_length": number(256),
    "llama.attention.head_count": number(4),
}


def test_the_parts_of_a_split_file_are_one_model(tmp_path):
    """As gguf-split writes it, the first part may hold the metadata and no tensor."""
    write_gguf(tmp_path / "m-Q4_K_M-00001-of-00003.gguf", PAIRS, [])
    write_gguf(tmp_path / "m-Q4_K_M-00002-of-00003.gguf", {}, [("token_embd.weight", (256, 1000), 12)])
    write_gguf(tmp_path / "m-Q4_K_M-00003-of-00003.gguf", {}, [("output.weight", (256, 1000), 14)])
    write_gguf(tmp_path / "mmproj-m.gguf", PAIRS, [("v", (256, 1000), 0)])
    found = read_checkpoint(tmp_path)
    assert found["weight_bytes"] == 1000 * 144 + 1000 * 210
    assert found["vocab_size"] == 1000
    assert found["tie_word_embeddings"] is False
    assert found["params_b"] == 512_000 / 1e9
    assert read_checkpoint(tmp_path / "m-Q4_K_M-00001-of-00003.gguf") == found
    (tmp_path / "m-Q4_K_M-00002-of-00003.gguf").unlink()
    with pytest.raises(ValueError, match="2 of the 3 parts"):
        read_checkpoint(tmp_path)


def test_several_gguf_models_in_a_folder_are_not_added_up(tmp_path):
    for kind, name in ((12, "Q4_K_M"), (8, "Q8_0")):
        write_gguf(tmp_path / f"m-{name}.gguf", PAIRS, [("token_embd.weight", (256, 1000), kind)])
    with pytest.raises(ValueError, match=r"2 GGUF models; name one of: m-Q4_K_M, m-Q8_0"):
        read_checkpoint(tmp_path)
    assert read_checkpoint(tmp_path / "m-Q8_0.gguf")["gguf_type"] == "Q8_0"


def test_a_gguf_file_beside_a_configuration_gives_the_bytes(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "sliding_window": 512}))
    write_gguf(tmp_path / "m-Q8_0.gguf", PAIRS, [("token_embd.weight", (256, 1000), 8)])
    found = read_checkpoint(tmp_path)
    assert found["weight_bytes"] == 256_000 // 32 * 34
    assert found["native_format"] == "gguf:Q8_0"
    assert found["hidden_size"] == 64
    assert found["sliding_window"] == 512


def test_a_gguf_file_that_is_not_there(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        read_checkpoint(tmp_path / "m.gguf")
