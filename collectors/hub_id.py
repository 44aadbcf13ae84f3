"""Names of models on the Hugging Face hub: `hf:org/name`, a GGUF file or tag of it, a revision."""

from __future__ import annotations

import re
from dataclasses import dataclass

from catalog.errors import ConfigurationError

PREFIX = "hf:"
_FORM = "hf:org/name, with an optional GGUF file (hf:org/name/file.gguf) or tag (hf:org/name:Q4_K_M) and @revision"
# What the hub accepts: https://huggingface.co/docs/huggingface_hub/package_reference/utilities (validate_repo_id).
_NAME = r"(?!.*(?:--|\.\.))[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_SHAPE = re.compile(
    r"(?P<repository>[^/:@]+(?:/[^/:@]+)?)(?:/(?P<path>[^:@]+\.gguf)|:(?P<tag>[A-Za-z0-9._-]+))?(?:@(?P<revision>.+))?"
)
_REVISION = re.compile(r"(?!.*\.\.)(?!/)[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}")
_PATH = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._+/ -]*\.gguf")


@dataclass(frozen=True, slots=True)
class HubId:
    """A model repository at a revision, and of a GGUF repository one file or quantisation tag ('' where not named)."""

    repository: str
    file: str = ""
    revision: str = "main"

    def __str__(self) -> str:
        """As it is written on the command line."""
        file = f"{'/' if self.file.endswith('.gguf') else ':'}{self.file}" if self.file else ""
        return f"{PREFIX}{self.repository}{file}" + (f"@{self.revision}" if self.revision != "main" else "")

    @property
    def example(self) -> str:
        """How to name one GGUF model of this repository."""
        return f"{PREFIX}{self.repository}:Q4_K_M or {PREFIX}{self.repository}/file.gguf"


def is_hub_id(text: object) -> bool:
    """Whether a model is named by its place on the hub."""
    return isinstance(text, str) and text.strip().startswith(PREFIX)


def parse_hub_id(text: str) -> HubId:
    """Read `hf:org/name`; old repositories have no organisation.

    Raises:
        ConfigurationError: it has another form.
    """
    found = _SHAPE.fullmatch(text.strip().removeprefix(PREFIX))
    if (
        not found
        or not all(re.fullmatch(_NAME, part) for part in found["repository"].split("/"))
        or not _REVISION.fullmatch(found["revision"] or "main")
        or not (found["path"] is None or _PATH.fullmatch(found["path"]))
    ):
        raise ConfigurationError(f"cannot read the model {text!r}: a model on the hub is written {_FORM}")
    return HubId(found["repository"], found["path"] or found["tag"] or "", found["revision"] or "main")
