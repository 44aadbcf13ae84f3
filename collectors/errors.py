"""What can go wrong while fetching and reading, named by what the caller should do. Secrets never enter a message."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from catalog.errors import ConfigurationError, GpuBazaarError

if TYPE_CHECKING:
    from collections.abc import Iterable

REDACTED = "REDACTED"
BlockReason = Literal["credentials", "challenge", "robots", "host"]

_KEY_LIKE = (
    r"key|api[_-]?key|apikey|access[_-]?key|access[_-]?token|auth|auth[_-]?token|client[_-]?secret|password|secret"
    r"|sig|signature|token|x-amz-(?:credential|signature|security-token)|x-goog-(?:credential|signature)"
)
_SECRET_PARAMETER = re.compile(rf"(?i)([?&;](?:{_KEY_LIKE})=)[^&;#\s\"'<>]+")
_SECRET_HEADER = re.compile(
    r"(?i)\b((?:proxy-)?authorization|x-api-key|api-key|x-auth-token|cookie)"
    r"(['\"]?\s*[:=]\s*['\"]?)(?:(?:bearer|basic|token)\s+)?[^\s,'\"]+"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_USER_INFO = re.compile(r"(?i)\b(https?://)[^/@\s]+@")


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without secrets: values of key-like query parameters and headers, user names in addresses, and `secrets`.

    Everything else stays byte for byte, so that a scrubbed address still works for a source that needs no key.
    """
    for secret in secrets:
        if len(secret) >= 6:
            text = text.replace(secret, REDACTED)
    text = _USER_INFO.sub(rf"\g<1>{REDACTED}@", text)
    text = _SECRET_PARAMETER.sub(rf"\g<1>{REDACTED}", text)
    text = _SECRET_HEADER.sub(rf"\g<1>\g<2>{REDACTED}", text)
    return _BEARER.sub(rf"\g<1> {REDACTED}", text)


class FetchError(GpuBazaarError):
    """A document could not be had. Not worth repeating at once; the last good data stays.

    Attributes:
        url: the requested address without secrets.
        status: the HTTP status where the server answered, else None.
    """

    code = "fetch_failed"

    def __init__(self, message: str, url: str = "", status: int | None = None, secrets: Iterable[str] = ()) -> None:
        """Keep a scrubbed message and address; `secrets` are further values to remove, such as header values."""
        known = tuple(secrets)
        self.url = scrub(url, known)
        self.status = status
        super().__init__(scrub(message, known))


class Retriable(FetchError):
    """It still failed after the retries (time-outs, broken connections, 5xx, 429): try again at the next run.

    Attributes:
        retry_after_s: how long the server asked to wait, where it did.
    """

    code = "fetch_failed_retriable"

    def __init__(
        self,
        message: str,
        url: str = "",
        status: int | None = None,
        secrets: Iterable[str] = (),
        *,
        retry_after_s: float | None = None,
    ) -> None:
        """As `FetchError`, with the wait that the server asked for."""
        super().__init__(message, url, status, secrets)
        self.retry_after_s = retry_after_s


class CapExceeded(FetchError):
    """The body, the redirects or the inflated body are larger than this collector may load."""

    code = "fetch_too_large"


class Cancelled(FetchError):
    """The caller's stop event was set while the request was waiting or running."""

    code = "fetch_cancelled"


class Blocked(FetchError):
    """The source does not want this request: 401/403, a challenge page, robots.txt, or a host off the allow-list.

    It is respected, never worked around.

    Attributes:
        reason: credentials (401, 403), challenge (or busy page), robots, or host (off the allow-list).
    """

    code = "fetch_blocked"

    def __init__(
        self,
        message: str,
        url: str = "",
        status: int | None = None,
        secrets: Iterable[str] = (),
        *,
        reason: BlockReason = "challenge",
    ) -> None:
        """As `FetchError`, with the kind of refusal."""
        super().__init__(message, url, status, secrets)
        self.reason = reason


class Gone(FetchError):
    """The address no longer exists (404, 410): the collector's source has to be corrected."""

    code = "fetch_gone"


class LayoutChanged(GpuBazaarError):
    """A document does not have the shape its parser knows.

    Attributes:
        provider: whose document it is.
        selector: CSS selector, JSON pointer or column that was looked for.
        detail: what was found instead, and where.
    """

    code = "layout_changed"

    def __init__(self, provider: str, selector: str, detail: str = "", url: str = "") -> None:
        """Compose the message; `url` names the page where `detail` does not."""
        self.provider = provider
        self.selector = selector
        self.detail = scrub(detail)
        self.url = scrub(url)
        place = f" in {self.url}" if self.url else ""
        super().__init__(
            f"{provider}: the page changed: {selector}: {self.detail or 'not found'}{place}; "
            "the last good data stays until the parser is updated"
        )


class CredentialsMissing(ConfigurationError):
    """A collector needs keys that the environment does not hold; its run is skipped.

    Attributes:
        provider: the collector.
        names: the environment variables that are not set.
    """

    code = "credentials_missing"

    def __init__(self, provider: str, names: Iterable[str]) -> None:
        """Compose the message from the missing variables' names."""
        self.provider = provider
        self.names = tuple(names)
        super().__init__(f"{provider} needs {', '.join(self.names)} in the environment; without it the run is skipped")
