"""Defaults from `config.toml` and the environment: a table per verb, a key per flag, checked against the flags.

home = "/srv/gpubazaar"          # flags of gpubazaar itself
[offers]                         # GPUBAZAAR_OFFERS_…
country = ["IN", "SG"]
format = "json"
[collector.check]                # GPUBAZAAR_COLLECTOR_CHECK_…
timeout = 30
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import click
import platformdirs

from catalog.errors import ConfigurationError, nearest

ENVIRONMENT = "GPUBAZAAR"


def config_file() -> Path:
    """Where defaults are read from."""
    return Path(platformdirs.user_config_dir("gpubazaar", appauthor=False)) / "config.toml"


def read_config(verbs: Iterable[str], own_flags: Iterable[str]) -> dict[str, Any]:
    """The content of `config.toml`: tables named as verbs and flags of the program itself; {} without the file.

    Raises:
        ConfigurationError: it cannot be read, or holds what is neither.
    """
    path = config_file()
    if not path.exists():
        return {}
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise ConfigurationError(f"cannot read {path}: {problem}") from problem
    known, flags = set(verbs), set(own_flags)
    for key, value in config.items():
        if key in known and not isinstance(value, dict):
            raise ConfigurationError(f"{path}: {key} must be a table, [{key}], got {value!r}")
        if key not in known and key not in flags:
            raise ConfigurationError(f"{path}: there is no verb {key!r}{_hint(key, known | flags)}")
        if key not in known and not isinstance(value, str | bool):
            raise ConfigurationError(f"{path}: {key} must be text, got {value!r}")
    return config


def apply_settings(command: click.Command, words: tuple[str, ...], defaults: MutableMapping[str, Any] | None) -> None:
    """Give a command's flags their environment names, and put its table of `defaults` under the names click uses.

    Args:
        command: the verb, or a group of them.
        words: how it is called, such as ("collector", "check").
        defaults: what holds the table of the last word; changed in place.

    Raises:
        ConfigurationError: the table names a flag that the command does not have, or a value of the wrong kind.
    """
    table = (defaults or {}).get(words[-1])
    if isinstance(command, click.Group):
        inner = table if isinstance(table, dict) else None
        for key in inner or {}:
            if key not in command.commands:
                raise ConfigurationError(f"{config_file()}: there is no verb {' '.join((*words, key))!r}")
        for name, sub in command.commands.items():
            apply_settings(sub, (*words, name), inner)
        return
    flags = {_flag(option): option for option in command.params if isinstance(option, click.Option)}
    for flag, option in flags.items():
        option.envvar = "_".join((ENVIRONMENT, *words, flag)).upper().replace("-", "_")
    if table is None:
        return
    if not isinstance(table, dict) or defaults is None:
        raise ConfigurationError(f"{config_file()}: {'.'.join(words)} must be a table, got {table!r}")
    defaults[words[-1]] = _values(table, flags, ".".join(words))


def _values(table: Mapping[str, Any], flags: Mapping[str, click.Option], where: str) -> dict[str, Any]:
    names = {option.name: option for option in flags.values()}  # a table that went through here before
    values: dict[str, Any] = {}
    for key, value in table.items():
        option = flags.get(key.replace("_", "-")) or names.get(key)
        if option is None or option.name is None:
            raise ConfigurationError(f"{config_file()}: [{where}] has no flag {key!r}{_hint(key, flags)}")
        listed = value if isinstance(value, list) else [value]
        if (not option.multiple and isinstance(value, list)) or not all(_fits(item, option) for item in listed):
            raise ConfigurationError(f"{config_file()}: [{where}] {key} cannot be {value!r}")
        values[option.name] = listed if option.multiple else value
    return values


def _fits(value: object, option: click.Option) -> bool:
    if option.is_flag:
        return isinstance(value, bool)
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _flag(option: click.Option) -> str:
    """A flag's longest spelling without its dashes: what a person calls it."""
    return max((spelling.lstrip("-") for spelling in option.opts), key=len)


def _hint(key: str, allowed: Iterable[str]) -> str:
    close = nearest(key, allowed)
    return f"; did you mean {' or '.join(repr(name) for name in close)}?" if close else "."
