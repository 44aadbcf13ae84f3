"""Clouds as resellers name them, to the provider slugs of this catalog."""

from __future__ import annotations

import re

_SLUGS = {
    "lambda": "lambda_cloud",
    "lambdalabs": "lambda_cloud",
    "datacrunch": "verda",
    "crusoecloud": "crusoe",
    "digital_ocean": "digitalocean",
    "hot_aisle": "hotaisle",
    "massed_compute": "massedcompute",
    "tensor_dock": "tensordock",
    "voltage_park": "voltagepark",
    "latitudesh": "latitude",
    "ovhcloud": "ovh",
    "amazon": "aws",
    "google": "gcp",
}


def cloud_slug(name: str) -> str:
    """The catalog's slug of a cloud; a cloud without a collector of its own keeps its name in slug form."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.casefold()).strip("_")
    return _SLUGS.get(plain, plain)
