"""Baseten: instance prices per minute of dedicated deployments (serverless).

Documentation: https://www.baseten.co/pricing/, https://docs.baseten.co/deployment/resources (sizes)
Fields: lines of an instance and USD per minute, "H100 80 GiB VRAM … $0.10833", with processor and memory inside.

Traps: token prices of model APIs come first; the unit stands in the table's header only; "H100 MIG" is three sevenths
of the compute and half the memory of an H100, not a whole one; processor-only instances share the list.
"""

from __future__ import annotations

from collectors.contract import MINUTE_S, Expect
from collectors.meters import STORAGE
from collectors.serverless import ServerlessPage


class Baseten(ServerlessPage):
    """Baseten: serverless GPU instances in USD, billed per minute."""

    provider = "baseten"
    title = "Baseten"
    home_page = "https://www.baseten.co/pricing/"
    page = "https://www.baseten.co/pricing/"
    sources = ("https://www.baseten.co/pricing/",)
    extra_hosts = ("baseten.co",)
    billing_increment_s = MINUTE_S
    minimum_charge_s = MINUTE_S
    scope = "instance"
    meters = STORAGE
    page_unit = "minute"
    terms_note = "Partial minutes round up; a replica without traffic is billed until it is scaled down."
    expect = Expect(min_rows=5, gpus=frozenset({"t4-16gb", "l4-24gb"}))
