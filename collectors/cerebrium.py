"""Cerebrium: the per-second prices of the public price page (serverless).

Documentation: https://www.cerebrium.ai/pricing, https://cerebrium.ai/docs/calculating-cost
Fields: lines of a GPU and USD per second, processor per vCPU-second, memory per GB-second, storage per GB-month.

Traps: processor and memory are billed beside the GPU; the plans' monthly fees (Standard 100 USD) are no GPU prices;
server start is free while model initialisation is billed. The page has been seen rendered in the browser only: without
its list in the markup the page is refused.
"""

from __future__ import annotations

from collectors.contract import Expect
from collectors.serverless import ServerlessPage


class Cerebrium(ServerlessPage):
    """Cerebrium: serverless GPUs in USD, billed per second."""

    provider = "cerebrium"
    title = "Cerebrium"
    home_page = "https://www.cerebrium.ai/pricing"
    page = "https://www.cerebrium.ai/pricing"
    sources = ("https://www.cerebrium.ai/pricing",)
    extra_hosts = ("cerebrium.ai",)
    terms_note = "Plan fees come on top (Standard 100 USD a month)."
    expect = Expect(min_rows=5, gpus=frozenset({"t4-16gb", "l4-24gb"}))
