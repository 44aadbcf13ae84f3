"""robots.txt by RFC 9309: product groups, wildcards, the longest match.

`urllib.robotparser` takes the first matching line and reads `*` literally, so it allows `/pricing/tables` under
"Allow: /, Disallow: /pricing/tables" and `/b?x` under "Disallow: /*?x"; the standard closes both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from collectors.errors import Blocked, Cancelled, FetchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from collectors.http_limits import Pace

_UNRESERVED_HERE = "/?&=:;,+@!$'()*~%[]"


@dataclass(slots=True)
class RobotsRules:
    """What one robots.txt says to one product: patterns with True for allow, and Crawl-delay in seconds."""

    patterns: list[tuple[str, bool]] = field(default_factory=list)
    crawl_delay_s: float = 0.0

    def allows(self, url: str) -> bool:
        """The longest matching pattern decides, allow before disallow; without one everything is allowed."""
        parts = urlsplit(url)
        path = _normal(parts.path or "/") + (f"?{_normal(parts.query)}" if parts.query else "")
        matching = ((len(pattern), allow) for pattern, allow in self.patterns if _matches(pattern, path))
        return max(matching, default=(0, True))[1]


CLOSED = RobotsRules([("/", False)])
OPEN = RobotsRules()


def parse_robots(text: str, product: str) -> RobotsRules:
    """The rules for `product`: of all groups that name it, else of all groups for `*`."""
    by_agent: dict[str, RobotsRules] = {}
    current: list[RobotsRules] = []
    in_header = False
    for line in text.splitlines():
        name, separator, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        if not separator:
            continue
        if name.lower() == "user-agent":
            current = current if in_header else []
            current.append(by_agent.setdefault(value.partition("/")[0].lower(), RobotsRules()))
            in_header = True
            continue
        in_header = in_header and name.lower() not in {"allow", "disallow", "crawl-delay"}
        for rules in current:
            _add(rules, name.lower(), value)
    return by_agent.get(product.lower()) or by_agent.get("*") or OPEN


def _add(rules: RobotsRules, name: str, value: str) -> None:
    if name in {"allow", "disallow"} and value:
        rules.patterns.append((_normal(value), name == "allow"))
    elif name == "crawl-delay" and re.fullmatch(r"\d{1,6}(?:\.\d+)?", value):
        rules.crawl_delay_s = max(rules.crawl_delay_s, float(value))


def _normal(text: str) -> str:
    """Percent-encoded where it must be, in upper case, so that both sides of a comparison look alike."""
    return re.sub(r"%[0-9a-fA-F]{2}", lambda found: found[0].upper(), quote(text, safe=_UNRESERVED_HERE))


def _matches(pattern: str, path: str) -> bool:
    """`*` stands for any characters, a final `$` for the end; linear in the length of the path for each `*`."""
    anchored = pattern.endswith("$")
    first, *rest = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    if not rest:
        return not anchored or path == first
    at = len(first)
    for part in rest[:-1]:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    last = rest[-1]
    return path.endswith(last) and len(path) - len(last) >= at if anchored else path.find(last, at) >= 0


class Robots:
    """robots.txt of every host met, read once each. Unreachable or absent means open; 401 and 403 mean closed."""

    def __init__(self, agent: str, pace: Pace) -> None:
        """Keep the product name that rules may address and the pace that Crawl-delay slows."""
        self._product = agent.partition("/")[0]
        self._pace = pace
        self._rules: dict[str, RobotsRules] = {}

    def check(self, url: str, host: str, read: Callable[[str], bytes]) -> None:
        """Refuse an address that its host's robots.txt closes to us.

        Args:
            url: the original address.
            host: its host as the allow-list names it.
            read: gives the body of robots.txt at an address, or raises FetchError.

        Raises:
            Blocked: robots.txt disallows it.
            Cancelled: from `read`.
        """
        rules = self._rules.get(host)
        if rules is None:
            rules = self._rules[host] = self._load(f"https://{host}/robots.txt", read)
            self._pace.slow_down(host, rules.crawl_delay_s)
        if not rules.allows(url):
            path = urlsplit(url).path or "/"
            message = f"https://{host}/robots.txt closes {path} to {self._product}; not fetched"
            raise Blocked(message, url, reason="robots")

    def _load(self, address: str, read: Callable[[str], bytes]) -> RobotsRules:
        try:
            text = read(address).decode("utf-8", errors="replace").removeprefix("\ufeff")
        except Cancelled:
            raise
        except Blocked as problem:
            # A redirect off the allow-list only means that this host publishes no rules we may read.
            return OPEN if problem.reason == "host" else CLOSED
        except FetchError:
            return OPEN
        return parse_robots(text, self._product)
