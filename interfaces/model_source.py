"""Models named by their place on a hub (`hf:org/name`): the request gets the model object in place of the name.

The planner never fetches. What stands here looks the model up before a request is read, and loads nothing unless one
names a hub.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from catalog.errors import GpuBazaarError
from interfaces.render import note
from planner.request import parse_request

if TYPE_CHECKING:
    from catalog.home import Home
    from collectors.hub_id import HubId

HUB_PREFIX = "hf:"
_OTHERWISE = (
    "Without the hub, --model takes a known id, a local folder or file (config.json with its safetensors, a GGUF "
    "file), or a model object with the keys of config.json and weight_bytes."
)


@dataclass(slots=True)
class HubModels:
    """Looks models up, each once; what it has found is kept in the home for 30 days."""

    home: Home
    _answers: dict[str, dict[str, Any] | GpuBazaarError] = field(default_factory=dict)

    def fill(self, keys: Mapping[str, Any]) -> dict[str, Any]:
        """The keys of a request, with a model object where the model is `hf:…`; others as they are.

        Raises:
            ConfigurationError: a key or the name cannot be read, or the hub has no such model for this user.
            FetchError: the hub cannot be reached, and nothing is kept from an earlier read.
        """
        name = keys.get("model")
        if not isinstance(name, str) or not name.strip().startswith(HUB_PREFIX):
            return dict(keys)
        parse_request(keys)  # a mistake elsewhere in the request is said before anything is fetched
        if name not in self._answers:
            self._answers[name] = self._answer(name)
        answer = self._answers[name]
        if isinstance(answer, GpuBazaarError):
            raise answer
        return {**keys, "model": answer}

    def _answer(self, name: str) -> dict[str, Any] | GpuBazaarError:
        from collectors.hub_id import parse_hub_id

        try:
            return self._model(parse_hub_id(name))
        except GpuBazaarError as error:
            return error

    def _model(self, hub_id: HubId) -> dict[str, Any]:
        from collectors.hub import HubUnavailable, read_hub_model
        from collectors.hub_cache import HubModel, keep_model, kept_model

        now = datetime.now(UTC)
        kept = kept_model(self.home, hub_id)
        if kept is None or not kept.is_fresh(now):
            try:
                kept = HubModel(read_hub_model(hub_id, _access()), now)
            except HubUnavailable as problem:
                if kept is None:
                    raise HubUnavailable(f"{problem}. {_OTHERWISE}", problem.url, problem.status) from problem
                note(f"note: {problem}; using what was read before")
            else:
                keep_model(self.home, hub_id, kept)
        note(f"note: {hub_id}: {_size(kept.model)} as read from huggingface.co on {kept.fetched_at:%Y-%m-%d}")
        return kept.model


def _access() -> Any:
    from collectors.http import fetch_map_from
    from collectors.hub import HubAccess

    return HubAccess(
        token=os.environ.get("HF_TOKEN", "").strip(),
        fetch_map=fetch_map_from(os.environ.get("GPUBAZAAR_FETCH_MAP", "")),
    )


def _size(model: Mapping[str, Any]) -> str:
    size = model.get("weight_bytes")
    return f"{size / 1e9:.2f} GB of weights" if size else "config.json, no safetensors or GGUF weights,"
