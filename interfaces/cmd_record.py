"""`gpubazaar record`: replace a provider's recorded documents with what the source says now."""

from __future__ import annotations

import time
from pathlib import Path

import click

from catalog.errors import ConfigurationError
from interfaces.options import Seconds
from interfaces.render import note


@click.command("record")
@click.argument("provider")
@click.option("--to", "target", type=click.Path(path_type=Path, file_okay=False),
              help="Folder to write to (default: the checkout's fixtures/PROVIDER).")  # fmt: skip
@click.option("--timeout", "timeout_s", type=Seconds(1, 3600), default=120.0, show_default=True)
def command(provider: str, target: Path | None, timeout_s: float) -> None:
    """Fetch PROVIDER's documents and write each with a sidecar, headers by allow-list and secrets scrubbed."""
    from collectors.fixtures import fixture_root
    from collectors.recording import write_document
    from collectors.registry import collector
    from jobs.collect import KnownDocuments, collect_live, keys_from_environment

    chosen = collector(provider)
    folder = target or _checkout_folder(fixture_root(), provider)
    collected = collect_live(chosen, known=KnownDocuments(), deadline=time.monotonic() + timeout_s)
    secrets = tuple(keys_from_environment(chosen).values())
    for document in collected.documents:
        click.echo(str(write_document(folder, document, secrets=secrets)))
    rows = collected.parsed.rows if collected.parsed else ()
    note(f"{len(collected.documents)} documents, {len(rows)} offers" + ("" if collected.complete else ", not complete"))
    for text in collected.notes:
        note(f"note: {text}")


def _checkout_folder(root: Path, provider: str) -> Path:
    if root.name == "_fixtures":
        raise ConfigurationError("this gpubazaar is installed, not a checkout: name a folder with --to")
    return root / provider
