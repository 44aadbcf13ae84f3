"""Which addresses a collector may reach, and where `GPUBAZAAR_FETCH_MAP` sends them in tests."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit

from catalog.errors import ConfigurationError
from collectors.errors import Blocked, FetchError

if TYPE_CHECKING:
    from collections.abc import Mapping

FETCH_MAP_VARIABLE = "GPUBAZAAR_FETCH_MAP"
_MAP_FORM = f"{FETCH_MAP_VARIABLE} reads https://host=http://127.0.0.1:PORT, several separated by commas"


def fetch_map_from(text: str) -> dict[str, str]:
    """Read `https://host=http://127.0.0.1:PORT,…`: original origin to loopback target; '' gives an empty map.

    Raises:
        ConfigurationError: an entry has another form, or a target is not a loopback address.
    """
    targets: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        origin, separator, target = (part.strip().rstrip("/") for part in entry.partition("="))
        source = _split(origin)
        if not separator or source is None or source.scheme != "https" or not source.hostname or source.path:
            raise ConfigurationError(f"cannot read {entry!r}: {_MAP_FORM}")
        aim = _split(target)
        if aim is None or aim.scheme != "http" or aim.query or aim.fragment or not _is_loopback(aim.hostname or ""):
            raise ConfigurationError(f"{target!r} is not a loopback http address: {_MAP_FORM}")
        if targets.setdefault(_origin(source), target) != target:
            raise ConfigurationError(f"{origin} is mapped twice: {_MAP_FORM}")
    return targets


class Targets:
    """The allow-list and the fetch map of one provider. The allow-list always sees the original host."""

    def __init__(
        self, provider: str, allowed_hosts: frozenset[str], fetch_map: Mapping[str, str] | None = None
    ) -> None:
        """Keep both.

        Args:
            provider: for messages.
            allowed_hosts: host names, or host:port where the port is not 443.
            fetch_map: as `fetch_map_from` gives it.
        """
        self._provider = provider
        self._allowed = frozenset(host.lower() for host in allowed_hosts)
        self._map = dict(fetch_map or {})

    @property
    def loopback_hosts(self) -> frozenset[str]:
        """Host names of the mapped targets."""
        return frozenset(urlsplit(target).hostname or "" for target in self._map.values())

    def host_of(self, url: str, *, came_from: str = "") -> str:
        """The host (with a port other than 443) of an address that may be reached.

        Args:
            url: the original address, before any mapping.
            came_from: the address that redirected here, for the message.

        Raises:
            Blocked: not https, with a user name in it, or a host off the allow-list.
            FetchError: not an address at all.
        """
        parts = _split(url)
        redirected = f"{came_from} redirects to " if came_from else ""
        if parts is None or not parts.scheme or (parts.scheme == "https" and not parts.hostname):
            raise FetchError(f"{self._provider}: {redirected}{url!r}, which is not an address", url)
        if parts.scheme != "https" or parts.username is not None or parts.password is not None:
            raise _off_limits(f"{self._provider}: {redirected}{url}: only plain https addresses are fetched", url)
        host = _origin(parts).removeprefix("https://")
        if host not in self._allowed:
            listed = ", ".join(sorted(self._allowed)) or "none"
            raise _off_limits(
                f"{self._provider}: {redirected}{host}, which is not among its hosts ({listed}); "
                "add it to the collector's sources or extra_hosts if it is right",
                url,
            )
        return host

    def send_to(self, url: str) -> str:
        """The address to connect to: `url` itself, or its place on the mapped loopback server."""
        parts = urlsplit(url)
        target = self._map.get(_origin(parts))
        if target is None:
            return url
        return target + (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def redirected(self, url: str, location: str) -> str:
        """The original address that a Location header means; a mapped server may name itself or the original host."""
        target = self._map.get(_origin(urlsplit(url)))
        if target is not None and (location == target or location.startswith((f"{target}/", f"{target}?"))):
            location = _origin(urlsplit(url)) + location.removeprefix(target)
        try:
            return urljoin(url, location)
        except ValueError:
            raise FetchError(f"{url} redirects to {location!r}, which is not an address", url) from None


def _off_limits(message: str, url: str) -> Blocked:
    return Blocked(message, url, reason="host")


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _origin(parts: SplitResult) -> str:
    host = parts.hostname or ""
    port = "" if parts.port in {None, 443 if parts.scheme == "https" else 80} else f":{parts.port}"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
