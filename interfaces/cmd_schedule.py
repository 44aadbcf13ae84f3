"""`gpubazaar schedule`: keep prices current until stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import click

from interfaces import exits
from interfaces.cmd_refresh import COLUMNS
from interfaces.options import format_option, home_of
from interfaces.render import note, print_rows


@click.command("schedule")
@click.argument("providers", nargs=-1, metavar="[PROVIDER]...")
@click.option("--once", is_flag=True, help="Refresh every provider now, bulk sources included, and leave.")
@click.option("--metrics-file", type=click.Path(dir_okay=False, path_type=Path),
              help="Keep Prometheus metrics in this file (for node_exporter's textfile collector).")  # fmt: skip
@click.option("--metrics-port", type=click.IntRange(0, 65535),
              help="Serve Prometheus metrics on 127.0.0.1 at this port (0: a free one).")  # fmt: skip
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Form of the log lines on standard error.")  # fmt: skip
@format_option()
@click.pass_context
def command(
    ctx: click.Context, providers: tuple[str, ...], once: bool, metrics_file: Path | None, metrics_port: int | None,
    log_format: str, form: str,
) -> int:  # fmt: skip
    """Refresh PROVIDERS (all by default), each at its own cadence, until SIGTERM or Ctrl-C.

    Overdue providers start at once. One scheduler per data folder. After a stop signal every fetch ends within 25
    seconds, what has arrived is stored, and after 28 seconds the process leaves in any case.
    """
    from jobs.journal import open_journal
    from jobs.metrics import served
    from jobs.schedule import Scheduler, chosen, run_once

    open_journal(sys.stderr, "json" if log_format == "json" else "text")
    home = home_of(ctx)
    if once:
        stop = threading.Event()
        _on_stop_signals(stop)
        reports = run_once(home, providers, stop=stop)
        rows = [asdict(result) for report in reports for result in report.results]
        as_of = reports[-1].as_of if reports else None
        print_rows(rows, COLUMNS, form, envelope={"as_of": as_of, "rows": [], "providers": [], "warnings": []})
        return exits.OK
    scheduler = Scheduler(home, chosen(providers), metrics_file=metrics_file)
    _on_stop_signals(scheduler.stop)
    serving = served(metrics_port, scheduler.metrics_text) if metrics_port is not None else contextlib.nullcontext(0)
    with serving as port:
        if port:
            note(f"metrics on http://127.0.0.1:{port}/metrics")
        ended = scheduler.run()
    if not ended:
        _leave_now()
    return exits.OK


def _on_stop_signals(stop: threading.Event) -> None:
    """SIGTERM and Ctrl-C ask for a clean end; a second one, or 28 seconds, end the process as it is."""
    from jobs.schedule import LEAVE_SECONDS

    def handle(signum: int, frame: object) -> None:
        del signum, frame
        if stop.is_set():
            _leave_now()
        stop.set()
        _after(LEAVE_SECONDS, _leave_now)

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)


def _after(seconds: float, action: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, action)
    timer.daemon = True
    timer.start()


def _leave_now() -> None:
    """Leave without waiting for any thread. What is committed stays; what is not never was."""
    sys.stderr.flush()
    os._exit(exits.UNEXPECTED)
