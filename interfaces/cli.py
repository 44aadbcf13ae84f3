"""The command line: one file per verb (`cmd_<verb>.py`), found by walking this package and loaded when called."""

from __future__ import annotations

import importlib
import logging
import os
import pkgutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import platformdirs

import interfaces
from catalog.errors import ConfigurationError, GpuBazaarError, nearest
from interfaces import exits

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
        "auto_envvar_prefix": "GPUBAZAAR",
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
    logging.basicConfig(level=logging.INFO if verbose else logging.ERROR, stream=sys.stderr, format="%(message)s")


def config_file() -> Path:
    """Where defaults are read from."""
    return Path(platformdirs.user_config_dir("gpubazaar", appauthor=False)) / "config.toml"


def _defaults() -> dict[str, Any]:
    path = config_file()
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise ConfigurationError(f"cannot read {path}: {problem}") from problem


def main() -> None:
    """Entry point of the `gpubazaar` command."""
    verb = next((a for a in sys.argv[1:] if not a.startswith("-")), "")
    try:
        status = cli.main(prog_name="gpubazaar", standalone_mode=False, default_map=_defaults())
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
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(exits.OK)
