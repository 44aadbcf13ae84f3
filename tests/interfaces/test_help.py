"""The help of every verb reads as it was written."""

from __future__ import annotations

import click
import pytest

from interfaces.cli import cli


def commands():
    context = click.Context(cli)
    for verb in cli.list_commands(context):
        command = cli.get_command(context, verb)
        assert command is not None
        yield verb, command
        if isinstance(command, click.Group):
            yield from ((f"{verb} {name}", inner) for name, inner in command.commands.items())


@pytest.mark.parametrize(("name", "command"), list(commands()))
def test_help_has_a_text_and_no_formatting_marks(name, command):
    text = command.get_help(click.Context(command, info_name=name, max_content_width=110))
    assert "\\b" not in text
    assert "\b" not in text
    assert command.help or command.short_help
    for option in command.params:
        assert not isinstance(option, click.Option) or option.name
