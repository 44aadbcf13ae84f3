"""A file of requests: one answer a line in order, whatever a line holds."""

from __future__ import annotations

import json

import pytest

GOOD = {"workload": "serve", "model": "Qwen/Qwen2.5-7B-Instruct", "gpu": "l4", "id": "a\u2028b"}


def answers(run_cli, path):
    result = run_cli("estimate", "--requests", str(path), "--format", "jsonl")
    return result.returncode, [json.loads(line) for line in result.stdout.split("\n") if line.strip()]


def test_line_ends_marks_and_blank_lines(run_cli, tmp_path):
    line = json.dumps(GOOD, ensure_ascii=False).encode()
    path = tmp_path / "requests.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + line + b"\r\n\r\n   \n" + line)
    code, found = answers(run_cli, path)
    assert code == 0
    assert [a["id"] for a in found] == ["a\u2028b"] * 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"\xff\xfe\x00", "not UTF-8"),
        (b'{"a":', "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"workload": "serve", "params_b": NaN}', "NaN is not a JSON value"),
        (b"[1]", "not a JSON object"),
        (b'{"workload": "serve", "params_b": 1e30}', "params_b is at most"),
        (b'{"workload": "serve", "params_b": 7, "layers": 1000000000}', "layers is at most"),
        (b'{"workload": "full", "params_b": 7, "gpus": 8, "nodes": 3}', "do not spread evenly"),
    ],
)
def test_a_bad_line_is_answered_in_its_place(run_cli, tmp_path, line, words):
    good = json.dumps(GOOD).encode()
    path = tmp_path / "requests.jsonl"
    path.write_bytes(good + b"\n" + line + b"\n" + good + b"\n")
    code, found = answers(run_cli, path)
    assert code == 1
    assert [("error" in a) for a in found] == [False, True, False]
    assert words in found[1]["error"]["message"]
    assert set(found[1]["error"]) == {"code", "message", "suggestions"}
