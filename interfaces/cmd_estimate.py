"""`gpubazaar estimate`: the fit model alone, without a catalog."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import click

from catalog.errors import ConfigurationError, GpuBazaarError
from interfaces import exits
from interfaces.estimates import print_estimate
from interfaces.model_source import HubModels
from interfaces.options import home_of, language_options
from interfaces.render import dumps
from interfaces.workloads import given_keys, workload_options
from planner.request import WORKLOADS


@click.command("estimate")
@click.argument("workload", required=False, type=str, metavar="[WORKLOAD]")
@workload_options()
@click.option("--requests", "requests_file", type=click.Path(path_type=Path, allow_dash=True),
              help="JSON lines file, one request a line; - is standard input.")  # fmt: skip
@click.option("--explain", is_flag=True, help="Print the arithmetic line by line, with its rules and sources.")
@click.option("--format", "form", type=click.Choice(["table", "json", "jsonl"]), default="table", show_default=True)
@language_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    workload: str | None,
    requests_file: Path | None,
    explain: bool,
    form: str,
    lang: str,
    currency: str,
    **keys: Any,
) -> int:
    """Say whether WORKLOAD fits a GPU, with how much room, and how fast it runs.

    WORKLOAD: serve, batch, lora, qlora, full, pretrain, image, video, audio.

    \b
    gpubazaar estimate serve --model meta-llama/Llama-3.1-8B-Instruct --gpu l4-24gb --context 8192
    gpubazaar estimate qlora --model meta-llama/Llama-3.1-70B-Instruct --gpu rtx-a6000-48gb
    gpubazaar estimate --requests requests.jsonl --format jsonl
    """
    del currency
    if requests_file is not None:
        if workload or given_keys(keys):
            raise click.UsageError("--requests takes everything from the file; give no workload or keys beside it")
        return _answer_all(requests_file, HubModels(home_of(ctx)))
    if workload is None:
        raise click.UsageError(f"name a workload: {', '.join(WORKLOADS)}; or give --requests FILE")
    from planner.estimate import estimate
    from planner.request import parse_request

    request = parse_request(HubModels(home_of(ctx)).fill({"workload": workload, **given_keys(keys)}))
    answer = estimate(request)
    if form in {"json", "jsonl"}:
        click.echo(dumps(answer, indent=2 if form == "json" else None))
    else:
        print_estimate(answer, lang)
    if explain:
        from planner.explain import explain_lines

        for line in explain_lines(request):
            click.echo(line, err=form != "table")
    return exits.OK


def _answer_all(path: Path, models: HubModels) -> int:
    failed = False
    for raw in _lines(path):
        answer = raw if "error" in raw else _answer(raw["request"], models)
        failed = failed or "error" in answer
        click.echo(dumps(answer, indent=None))
    return exits.UNEXPECTED if failed else exits.OK


def _answer(request: dict[str, Any], models: HubModels) -> dict[str, Any]:
    from planner.estimate import error_line, estimate_line

    try:
        filled = models.fill(request)
    except GpuBazaarError as problem:
        return error_line(request, problem)
    return estimate_line(filled)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Each line as {"request": …}, or as the error object that answers it."""
    try:
        body = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as problem:
        raise ConfigurationError(f"cannot read {path}: {problem.strerror}") from problem
    # Lines end at a line feed only: JSON texts may hold other separators. A byte order mark is no part of the first.
    for number, line in enumerate(body.removeprefix(codecs.BOM_UTF8).split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            request = json.loads(line.decode(), parse_constant=_no_constant)
        except UnicodeDecodeError:
            yield _error("bad_json", f"line {number} is not UTF-8 text")
        except RecursionError:
            yield _error("bad_json", f"line {number} is nested too deeply")
        except ValueError as problem:
            yield _error("bad_json", f"line {number} is not JSON: {problem}")
        else:
            yield (
                {"request": request}
                if isinstance(request, dict)
                else _error("bad_json", f"line {number} is not a JSON object")
            )


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _error(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "suggestions": []}}
