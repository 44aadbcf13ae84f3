"""What a model repository on the Hugging Face hub says about itself, without loading a single weight.

config.json and the index are small files; of each safetensors or GGUF file only the header is asked for, by byte
ranges, as https://huggingface.co/docs/safetensors/metadata_parsing describes. The rules of which files count are those
of a local folder (`catalog.checkpoint_layout`), so both give the same answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.checkpoint_layout import read_files
from catalog.errors import ConfigurationError
from collectors.errors import Blocked, FetchError, Gone
from collectors.http import Fetcher, FetchLimits, Pace
from collectors.hub_files import HubFiles
from collectors.hub_id import HubId, parse_hub_id

HUB = "huggingface.co"
FILE_HOSTS = frozenset(
    {
        "cas-bridge.xethub.hf.co", "cas-bridge.xethub-eu.hf.co", "us.aws.cdn.hf.co", "us.gcp.cdn.hf.co",
        "cdn-lfs.hf.co", "cdn-lfs-us-1.hf.co", "cdn-lfs-eu-1.hf.co",
        "cdn-lfs.huggingface.co", "cdn-lfs-us-1.huggingface.co", "cdn-lfs-eu-1.huggingface.co",
    }
)  # fmt: skip
"""Where the hub redirects downloads to, old names too: https://github.com/huggingface/hub-docs/pull/2628"""

_LIMITS = FetchLimits(read_s=15, total_s=45)
_WHOLE_READ_S = 300.0
# The hub's anonymous quota is 3,000 file requests in 5 minutes (https://huggingface.co/docs/hub/rate-limits).
_INTERVAL_S = 0.1


class HubUnavailable(FetchError):
    """The hub could not be asked, or answered nothing that can be read; trying again later may help."""

    code = "hub_unavailable"


class HubModelRefused(ConfigurationError):
    """There is no such model, revision or file, or it is closed to this user: the request or the key has to change."""

    code = "hub_model_refused"


@dataclass(frozen=True, slots=True)
class HubAccess:
    """How the hub is reached.

    Attributes:
        token: sent to huggingface.co and nowhere else; '' for none.
        fetch_map: as `collectors.http.fetch_map_from` gives it.
        pace: shared by all connections of one read.
    """

    token: str = field(default="", repr=False)
    fetch_map: Mapping[str, str] = field(default_factory=dict)
    pace: Pace = field(default_factory=lambda: Pace(_INTERVAL_S))

    def fetcher(self, stop: threading.Event | None = None) -> Fetcher:
        """A new client that reaches the hub and the hosts of its files."""
        return Fetcher(
            provider="hub",
            allowed_hosts=FILE_HOSTS | {HUB},
            limits=_LIMITS,
            fetch_map=self.fetch_map,
            pace=self.pace,
            stop=stop,
        )


def read_hub_model(hub_id: HubId | str, access: HubAccess | None = None) -> dict[str, Any]:
    """The model object of a repository: its config.json keys, `weight_bytes` and what a GGUF header adds.

    Args:
        hub_id: `hf:org/name`, with the parts that `parse_hub_id` knows.
        access: key and connection; anonymous by default.

    Raises:
        ConfigurationError: `hub_id` cannot be read.
        HubModelRefused: there is no such model, it is gated or private, or its files are no checkpoint.
        HubUnavailable: no network, a time-out, an answer over the limits.
    """
    wanted = parse_hub_id(hub_id) if isinstance(hub_id, str) else hub_id
    access = access or HubAccess()
    with access.fetcher() as fetcher:
        files = HubFiles(wanted, fetcher, access.fetcher, access.token, time.monotonic() + _WHOLE_READ_S)
        config = _explained(wanted, access, lambda: read_files(files, wanted.file))
    return {**config, "_name_or_path": wanted.repository}


def _explained(wanted: HubId, access: HubAccess, read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The outcome, with errors in terms of the model rather than of the address."""
    try:
        return read()
    except Gone as problem:
        raise HubModelRefused(f"{wanted}: {HUB} has no such model or revision") from problem
    except Blocked as problem:
        if problem.reason == "credentials":
            raise HubModelRefused(_closed(wanted, problem.status, access.token)) from problem
        raise HubUnavailable(f"{wanted} cannot be read: {problem}", problem.url, problem.status) from problem
    except FetchError as problem:
        message = f"{wanted} cannot be read from {HUB}: {problem}"
        raise HubUnavailable(message, problem.url, problem.status) from problem
    except ValueError as problem:
        hint = f"; a GGUF model is named as {wanted.example}" if "GGUF" in str(problem) else ""
        raise HubModelRefused(f"{wanted} cannot be used: {problem}{hint}") from problem


def _closed(wanted: HubId, status: int | None, token: str) -> str:
    """The hub answers 401 for gated, private and absent models alike where it does not know who asks."""
    page = f"https://{HUB}/{wanted.repository}"
    if not token:
        return (
            f"{wanted}: {HUB} refuses it ({status}): it is gated, private or not there. For a gated model accept its "
            f"terms at {page} and set HF_TOKEN to a token that may read it"
        )
    return (
        f"{wanted}: {HUB} refuses it ({status}) with this HF_TOKEN: the token is wrong or lacks read access; for a "
        f"gated model ask for access at {page}"
    )
