"""`gpubazaar refresh`: fetch current prices, or load the recorded ones."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from interfaces import exits
from interfaces.options import Seconds, format_option, home_of
from interfaces.progress import Progress
from interfaces.render import note, print_rows

if TYPE_CHECKING:
    from jobs.refresh import Report

COLUMNS = ("provider", "outcome", "row_count", "changed_count", "rejected_count", "unmapped_count", "note")


@click.command("refresh")
@click.argument("providers", nargs=-1, metavar="[PROVIDER]...")
@click.option("--from-fixtures", is_flag=True, help="Load the recorded documents instead of the network.")
@click.option("--replace-live", is_flag=True, help="With --from-fixtures: replace a home that holds live data.")
@click.option("--replace-recorded", is_flag=True, help="Replace a home that holds recorded data with live data.")
@click.option("--refresh-timeout", "--timeout", "timeout_s", type=Seconds(1, 86_400), default=60.0,
              show_default=True, help="Seconds for fetching all of them.")  # fmt: skip
@click.option("--accept", "run_id", metavar="RUN_ID",
              help="Publish the rows of PROVIDER's held run after a look at them (`status PROVIDER`).")  # fmt: skip
@format_option()
@click.pass_context
def command(
    ctx: click.Context,
    providers: tuple[str, ...],
    from_fixtures: bool,
    replace_live: bool,
    replace_recorded: bool,
    timeout_s: float,
    run_id: str | None,
    form: str,
) -> int:
    """Fetch PROVIDERs (all by default), check what came, and publish a new catalog.

    A provider that fails, or whose data looks wrong, keeps its last good rows. Exit 5 then, 6 when another refresh
    is writing and does not finish.
    """
    from jobs.refresh import accept_held, refresh

    if run_id and (len(providers) != 1 or from_fixtures):
        raise click.UsageError("--accept takes one provider, and nothing is fetched with it")
    if run_id:
        report = accept_held(home_of(ctx), providers[0], run_id, timeout_s=timeout_s)
        _print(report, form)
        return exits.OK
    if replace_live and not from_fixtures:
        raise click.UsageError("--replace-live goes with --from-fixtures")
    if replace_recorded and from_fixtures:
        raise click.UsageError("--replace-recorded goes with a live refresh")
    with Progress() as progress:
        report = refresh(
            home_of(ctx),
            providers,
            source="recorded" if from_fixtures else "live",
            timeout_s=timeout_s,
            replace_mode=replace_live or replace_recorded,
            announce=progress.announce,
        )
    _print(report, form)
    if report.troubled:
        bad = [r.provider for r in report.results if r.outcome in {"failed", "held"}]
        note(f"note: {', '.join(bad)} kept the last good rows; see `gpubazaar status {bad[0]}`")
        return exits.SOME_FAILED
    return exits.OK


def _print(report: Report, form: str) -> None:
    rows = [asdict(result) for result in report.results]
    print_rows(rows, COLUMNS, form, envelope={"as_of": report.as_of, "rows": [], "providers": [], "warnings": []})
