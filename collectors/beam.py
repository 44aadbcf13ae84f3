"""Beam: serverless prices per second and dedicated GPUs "from" a price per hour, on one public page.

Documentation: https://www.beam.cloud/pricing
Fields: serverless lines "H100 PCIE 80 GB VRAM $0.000986 /sec" (USD per GPU-second), CPU per core-second, RAM per
GB-second; under the heading of the on-demand GPUs "from" prices per GPU-hour.

Traps: the same chip stands in both lists at different prices and terms; "from" is a lower bound; processor and memory
are billed beside a serverless GPU and are included with a dedicated one.
"""

from __future__ import annotations

from collectors.contract import Expect
from collectors.serverless import ServerlessPage


class Beam(ServerlessPage):
    """Beam: serverless GPUs billed per second, dedicated ones per hour, in USD."""

    provider = "beam"
    title = "Beam"
    home_page = "https://www.beam.cloud/pricing"
    page = "https://www.beam.cloud/pricing"
    sources = ("https://www.beam.cloud/pricing",)
    extra_hosts = ("beam.cloud",)
    dedicated_heading = r"on[\s-]*demand|dedicated"
    terms_note = "Plan fees come on top (Team 89 USD a month)."
    expect = Expect(min_rows=3, gpus=frozenset({"rtx-4090-24gb"}))
