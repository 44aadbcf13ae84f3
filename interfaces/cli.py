"""The command line: one file per verb (`cmd_<verb>.py`), found by walking this package and loaded when called."""

from __future__ import annotations

import errno
import importlib
import io
import logging
import os
import pkgutil
import sys
from pathlib import Path
from typing import Any

import click

import interfaces
from catalog.errors import GpuBazaarError, nearest
from interfaces import exits
from interfaces.settings import ENVIRONMENT, apply_settings, read_config

_PREFIX = "cmd_"


class Verbs(click.Group):
    """Loads a verb's module only when it is named, so that each verb starts with what it needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every verb, in alphabetical order."""
        del ctx
        names = (m.name for m in pkgutil.iter_modules(interfaces.__path__) if m.name.startswith(_PREFIX))
        return sorted(name.removeprefix(_PREFIX) for name in names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, or None."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(f"interfaces.{_PREFIX}{cmd_name}").command
        assert isinstance(command, click.Command)
        apply_settings(command, (cmd_name,), ctx.default_map)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb named first in `args`; an unknown one is an error with the nearest guess."""
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            close = nearest(args[0], self.list_commands(ctx))
            hint = f" Did you mean {' or '.join(close)}?" if close else ""
            raise click.UsageError(f"no verb {args[0]!r}.{hint} See gpubazaar --help.")
        return super().resolve_command(ctx, args)


@click.command(
    cls=Verbs,
    context_settings={
        "auto_envvar_prefix": ENVIRONMENT,
        "help_option_names": ["-h", "--help"],
        "max_content_width": 110,
    },
    epilog="Data and config folders: GPUBAZAAR_HOME moves all data; config.toml sets defaults per verb.",
)
@click.option("--home", type=click.Path(path_type=Path), help="Data folder (default: the platform's; GPUBAZAAR_HOME).")
@click.option("-v", "--verbose", is_flag=True, help="Log what happens, on standard error.")
@click.version_option(package_name="gpubazaar")
@click.pass_context
def cli(ctx: click.Context, home: Path | None, verbose: bool) -> None:
    """A live catalog of rentable cloud GPUs, and a planner on top of it.

    \b
    gpubazaar demo                                          try it, offline, in seconds
    gpubazaar refresh                                       fetch current prices
    gpubazaar offers --gpu h100 --country IN                what can be rented
    gpubazaar plan serve --model meta-llama/Llama-3.1-70B-Instruct --weights fp8 --concurrency 32
    """
    ctx.ensure_object(dict)
    ctx.obj["home"] = home
    if os.environ.get("GPUBAZAAR_FETCH_MAP"):
        from collectors.http_targets import fetch_map_from

        fetch_map_from(os.environ["GPUBAZAAR_FETCH_MAP"])  # a slip there is a usage error, not a failed provider
    logging.basicConfig(level=logging.INFO if verbose else logging.ERROR, stream=sys.stderr, format="%(message)s")


def main() -> None:
    """Entry point of the `gpubazaar` command."""
    verb = next((a for a in sys.argv[1:] if not a.startswith("-")), "")
    _usable_streams()
    try:
        defaults = read_config(cli.list_commands(click.Context(cli)), [p.name for p in cli.params if p.name])
        status = _run(defaults)
        sys.stdout.flush()
        sys.exit(status if isinstance(status, int) else exits.OK)
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except click.Abort:
        click.echo("stopped", err=True)
        sys.exit(exits.UNEXPECTED)
    except click.ClickException as problem:
        problem.show()
        sys.exit(exits.USAGE)
    except GpuBazaarError as problem:
        click.echo(f"gpubazaar: {problem}", err=True)
        sys.exit(exits.code_of(problem, verb))
    except BrokenPipeError:
        # The reader (head, less) has gone: nothing is wrong, and nothing more can be said on stdout.
        _to_nowhere()
        sys.exit(exits.OK)
    except OSError as problem:
        if problem.errno != errno.ENOSPC:
            raise
        _to_nowhere()
        click.echo("gpubazaar: no space left on the device that holds the output or the catalog", err=True)
        sys.exit(exits.UNEXPECTED)


def _run(defaults: dict[str, Any]) -> object:
    """Run the verb named on the command line.

    Not by `cli.main`, which ends with 1 when the reader of the output has gone (`| head`): that is no error here. It
    still answers a shell that asks for completions.
    """
    if "_GPUBAZAAR_COMPLETE" in os.environ:
        return cli.main(prog_name="gpubazaar")
    with cli.make_context("gpubazaar", sys.argv[1:], default_map=defaults) as context:
        return cli.invoke(context)


def _usable_streams() -> None:
    """Output that is closed goes nowhere, and one whose encoding lacks a character shows that it does."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _to_nowhere() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
