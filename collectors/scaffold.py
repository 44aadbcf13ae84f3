"""`collector new`: the file, the test and the folder of a provider that does not exist yet."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

from catalog.errors import ConfigurationError

_NAME = re.compile(r"^[a-z][a-z0-9_]{1,30}$")


def scaffold(root: Path, name: str, url: str) -> list[Path]:
    """Write `collectors/<name>.py` and `tests/collectors/test_<name>.py` from their templates.

    Args:
        root: the checkout.
        name: the provider's slug; it becomes the file's and the fixture folder's name.
        url: its price source.

    Returns:
        The files written.

    Raises:
        ConfigurationError: a name that is no slug, an address that is not https, or a file that is already there.
    """
    if not _NAME.match(name):
        raise ConfigurationError(
            f"provider name {name!r} must be lower-case letters, digits and _ (such as lambda_cloud)"
        )
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise ConfigurationError(f"--url {url!r} must be an https address")
    if not (root / "collectors" / "contract.py").is_file():
        raise ConfigurationError(f"{root} is not a checkout of gpubazaar; run this inside one")
    title = name.replace("_", " ").title()
    values = {"NAME": name, "CLASS": title.replace(" ", ""), "TITLE": title, "URL": url, "HOST": parts.hostname}
    written = []
    for template, target in (
        ("new_collector.py.txt", root / "collectors" / f"{name}.py"),
        ("new_test.py.txt", root / "tests" / "collectors" / f"test_{name}.py"),
    ):
        if target.exists():
            raise ConfigurationError(f"{target} is already there; nothing was written over it")
        text = files("collectors").joinpath("data", template).read_text(encoding="utf-8")
        for key, value in values.items():
            text = text.replace(f"@{key}@", value)
        target.write_text(text, encoding="utf-8")
        written.append(target)
    (root / "fixtures" / name).mkdir(parents=True, exist_ok=True)
    return written
