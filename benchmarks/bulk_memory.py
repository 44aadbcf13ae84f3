"""How much memory a full-size AWS price list file takes: `python benchmarks/bulk_memory.py [MIB]` (default 500).

Serves a synthetic EC2 price list CSV in the documented shape from loopback (a made-up price in every row; one row in
two hundred is a reservation of a GPU type), fetches and parses it with the `aws_bulk` collector in a child process, and
prints the size, the time and the child's peak memory. Runnable anywhere; not a test, because it takes a while.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COLUMNS = (
    "SKU", "OfferTermCode", "RateCode", "TermType", "PriceDescription", "EffectiveDate", "Unit", "PricePerUnit",
    "Currency", "LeaseContractLength", "PurchaseOption", "OfferingClass", "Instance Type", "Operating System",
    "Tenancy", "Pre Installed S/W", "usageType", "Region Code", "Padding",
)  # fmt: skip
PADDING = "x" * 450  # a row of the real file has some 90 columns and about 700 bytes
TYPES = ("g4dn.xlarge", "g5.12xlarge", "g6e.48xlarge", "p4d.24xlarge", "p5.48xlarge", "p5en.48xlarge")


def lines(mib: int) -> Iterator[bytes]:
    """The file in pieces of about 100 KiB."""
    head = ["FormatVersion", "Disclaimer", "Publication Date", "Version", "OfferCode"]
    yield ("".join(f'"{name}","x"\n' for name in head) + ",".join(f'"{c}"' for c in COLUMNS) + "\n").encode()
    sent, number = 0, 0
    while sent < mib << 20:
        block = []
        for _ in range(150):
            number += 1
            gpu = number % 200 == 0
            kind = TYPES[number // 200 % len(TYPES)] if gpu else "m5.large"
            cells = (
                f"SKU{number:09d}", f"T{number}", "r", "Reserved" if gpu else "OnDemand", "price", "2026-11-01", "Hrs",
                "1.2340000000", "USD", "1yr", "No Upfront", "standard", kind, "Linux", "Shared", "NA",
                f"BoxUsage:{kind}", f"us-east-{number // 1200}", PADDING,
            )  # fmt: skip
            block.append(",".join(f'"{cell}"' for cell in cells))
        piece = ("\n".join(block) + "\n").encode()
        sent += len(piece)
        yield piece


class Handler(BaseHTTPRequestHandler):
    """Streams the file, whatever is asked for."""

    mib = 500

    def do_GET(self) -> None:
        """Answer without a length; the connection's end is the file's."""
        self.send_response(200)
        self.send_header("content-type", "text/csv")
        self.end_headers()
        for piece in lines(self.mib):
            self.wfile.write(piece)

    def log_message(self, *args: object) -> None:
        """Print nothing per request."""


def child(port: int) -> None:
    """Fetch and parse, then report this process's own peak memory."""
    from collectors.aws_bulk import HOST, AwsBulk
    from collectors.http import Fetcher, FetchLimits

    collector = AwsBulk()
    request = next(r for r in collector.requests({}) if r.name == "ec2-us-east-1")
    began = time.monotonic()
    with Fetcher(
        provider=collector.provider,
        allowed_hosts=collector.allowed_hosts(),
        limits=FetchLimits(total_s=900),
        fetch_map={HOST: f"http://127.0.0.1:{port}"},
    ) as fetcher:
        document = fetcher.fetch(request)
    parsed = collector.parse([document])
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"kept {document.byte_count / 2**20:.1f} MiB, {len(parsed.rows)} offers, "
        f"{time.monotonic() - began:.1f} s, peak {peak_mib:.0f} MiB"
    )


def main() -> None:
    """Serve in this process, measure in a child."""
    Handler.mib = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"{Handler.mib} MiB file:", flush=True)
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    subprocess.run([sys.executable, __file__, "--child", str(server.server_address[1])], check=True, env=environment)
    server.shutdown()


if __name__ == "__main__":
    if "--child" in sys.argv:
        child(int(sys.argv[-1]))
    else:
        main()
