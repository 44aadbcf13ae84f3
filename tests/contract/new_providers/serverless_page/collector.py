"""Acme, a pretend serverless platform: lines of a GPU and a price per second (USD per GPU)."""

from __future__ import annotations

from collectors.contract import Expect
from collectors.serverless import ServerlessPage


class AcmeServerless(ServerlessPage):
    """Acme: serverless GPUs in USD."""

    provider = "acme_serverless_page"
    title = "Acme"
    home_page = page = "https://acme.invalid/pricing"
    sources = (page,)
    expect = Expect(min_rows=4, gpus=frozenset({"h100-sxm-80gb"}))
