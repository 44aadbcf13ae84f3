"""`gpubazaar doctor`: is the data folder whole, and if not, start again from the last good snapshot."""

from __future__ import annotations

from dataclasses import asdict

import click

from catalog.doctor import examine
from catalog.doctor_restore import restore
from interfaces import exits
from interfaces.options import format_option, home_of
from interfaces.render import note, print_rows

COLUMNS = ("item", "state", "detail", "advice")


@click.command("doctor")
@click.option("--restore", "restoring", is_flag=True,
              help="Make the newest good snapshot the current one; damaged files are only put aside.")  # fmt: skip
@click.option("--snapshot", help="With --restore: go back to this snapshot instead.")
@format_option()
@click.pass_context
def command(ctx: click.Context, restoring: bool, snapshot: str | None, form: str) -> int:
    """Check folder, free space, pointer, snapshots, live file and closed months; change nothing.

    Exit 1 where something is damaged. Every block of every file is read, and compared with what was written.
    """
    if snapshot and not restoring:
        raise click.UsageError("--snapshot goes with --restore")
    home = home_of(ctx)
    if restoring:
        done = restore(home, snapshot)
        note(f"restored from {done.snapshot}, published {done.published_at}; run `gpubazaar refresh` to catch up")
        for path in done.put_aside:
            note(f"put aside: {path}")
    found = examine(home)
    print_rows([asdict(f) for f in found], COLUMNS, form, envelope={"rows": [], "warnings": []})
    return exits.UNEXPECTED if any(f.state == "error" for f in found) else exits.OK
