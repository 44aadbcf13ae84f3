"""`gpubazaar resolve`: what a GPU label means."""

from __future__ import annotations

from dataclasses import asdict

import click

from catalog.names import resolve
from interfaces.options import format_option
from interfaces.render import print_rows

COLUMNS = ("text", "gpu", "gpu_candidates", "gpu_ambiguous", "gpu_count", "gpu_fraction", "gpu_memory_gb")


@click.command("resolve")
@click.argument("texts", nargs=-1, required=True, metavar="TEXT...")
@format_option()
def command(texts: tuple[str, ...], form: str) -> None:
    """Show which accelerator each TEXT names, how many, and with how much memory each.

    \b
    gpubazaar resolve "8x H100 80GB SXM5" "RTX PRO 6000"
    """
    rows = [{name: value for name, value in asdict(resolve(text)).items() if name in COLUMNS} for text in texts]
    print_rows(rows, COLUMNS, form, envelope={})
