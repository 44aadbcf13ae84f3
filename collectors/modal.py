"""Modal: the per-second prices of the public price page (serverless).

Documentation: https://modal.com/pricing (prices), https://modal.com/docs/guide/gpu (GPUs per container)
Fields: lines of a name and a price, "Nvidia H100 $0.001097 / sec" (USD per GPU-second), "Physical core … / core / sec",
"Memory … / GiB / sec", volumes per GiB-month.

Traps: the page switches to prices per hour in the browser, so each price's own unit is read; processor and memory are
billed beside the GPU (at least 0.125 core per container); choosing a region multiplies all meters by 1.5 to 1.75
(https://modal.com/docs/guide/region-selection), which the listed prices do not show.
"""

from __future__ import annotations

from collectors.contract import Expect
from collectors.serverless import ServerlessPage


class Modal(ServerlessPage):
    """Modal: serverless GPUs in USD, billed per second."""

    provider = "modal"
    title = "Modal"
    home_page = "https://modal.com/pricing"
    page = "https://modal.com/pricing"
    sources = ("https://modal.com/pricing",)
    terms_note = "Base prices; a chosen region or a non-preemptible container costs more."
    expect = Expect(min_rows=8, gpus=frozenset({"t4-16gb", "l4-24gb", "l40s-48gb"}))
