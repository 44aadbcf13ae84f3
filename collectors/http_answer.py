"""What a response means: its time, the headers worth keeping, and whether it is an answer, a refusal or a fault."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from html import unescape
from typing import TYPE_CHECKING

from collectors.errors import Blocked, FetchError, Gone, Retriable, scrub

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT_HEADERS = frozenset(
    {"content-type", "content-range", "etag", "last-modified", "date", "retry-after", "x-total-count", "link"}
)  # fmt: skip
KEPT_HEADER_PREFIXES = ("x-ms-ratelimit-",)
REDIRECTS = frozenset({301, 302, 303, 307, 308})

_MAX_SKEW = timedelta(days=1)
_RETRIABLE = frozenset({408, 425, 429})
_REFUSED = frozenset({401, 403, 407, 451})
_SNIFFED_BYTES = 1 << 16
_EXCERPT_CHARACTERS = 160
_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
# Titles of walls between us and the page, whatever the status says.
_CHALLENGE_TITLE = re.compile(
    r"just a moment|checking your browser|attention required|verify(?:ing)? (?:that )?you are (?:a )?human"
    r"|are you a (?:human|robot)|captcha|security check|pardon our interruption|ddos protection",
    re.IGNORECASE,
)
# Titles that come with status 200 although the page was not served.
_BUSY_TITLE = re.compile(
    r"too many (?:visitors|requests)|access denied|request blocked|service (?:temporarily )?unavailable"
    r"|temporarily unavailable|under maintenance|bad gateway|gateway time-?out",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One response, inflated. Header names are lower case; `at` is our clock when it had arrived."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    at: datetime


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that a document keeps, by allow-list, so that no cookie or key can be among them."""
    return {
        name: value for name, value in headers.items() if name in KEPT_HEADERS or name.startswith(KEPT_HEADER_PREFIXES)
    }


def fetched_at(answer: Answer) -> datetime:
    """When the answer was made: the server's Date, which also ages a cached copy, but never later than our clock.

    A Date more than a day off is taken for a broken clock and ignored.
    """
    served = http_date(answer.headers.get("date", ""))
    if served is None or abs(answer.at - served) > _MAX_SKEW:
        return answer.at
    return min(served, answer.at)


def http_date(text: str) -> datetime | None:
    """An HTTP date as aware UTC, or None where it is none."""
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


def retry_after_s(answer: Answer) -> float | None:
    """Seconds that Retry-After asks for, given as a number or as a date on the server's own clock; never negative."""
    text = answer.headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(?:\.\d+)?", text):
        return float(text)
    moment = http_date(text)
    if moment is None:
        return None
    now = http_date(answer.headers.get("date", "")) or answer.at
    return max(0.0, (moment - now).total_seconds())


def check_answer(answer: Answer, url: str, secrets: tuple[str, ...], *, allow_empty: bool = False) -> None:
    """Let a usable answer (2xx with a body, or 304) pass.

    Raises:
        Blocked: 401, 403, 407, 451, or a challenge or busy page with any status.
        Gone: 404, 410.
        Retriable: 408, 425, 429, 5xx.
        FetchError: any other status, or a success without content.
    """
    status = answer.status
    wall = _wall(answer)
    if wall:
        message = f"{url} answers {status} with {wall} instead of the content; it is respected, try again much later"
        raise Blocked(message, url, status, secrets)
    if status in _REFUSED:
        message = f"{url} refuses the request ({status}); check the key, or whether the source still is public"
        raise Blocked(message + _excerpt(answer), url, status, secrets, reason="credentials")
    if status in {404, 410}:
        raise Gone(f"{url} does not exist ({status}); the collector's address needs a correction", url, status, secrets)
    if status in _RETRIABLE or status >= 500:
        wait_s = retry_after_s(answer)
        asked = "" if wait_s is None else f" and asks to wait {wait_s:g} s"
        raise Retriable(f"{url} answers {status}{asked}", url, status, secrets, retry_after_s=wait_s)
    if status != 304 and not 200 <= status < 300:
        raise FetchError(f"{url} answers {status}{_excerpt(answer)}", url, status, secrets)
    # A part of a file may be all blanks.
    if status not in {206, 304} and not allow_empty and not answer.body.strip():
        raise FetchError(f"{url} answers {status} without any content", url, status, secrets)


def _wall(answer: Answer) -> str:
    """What stands in front of the content, in words, or ''."""
    headers = answer.headers
    if headers.get("cf-mitigated") or headers.get("x-amzn-waf-action"):
        return "a challenge"
    start = answer.body[:_SNIFFED_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start.startswith(b"<"):
        return ""
    found = _TITLE.search(start.decode("utf-8", errors="replace"))
    title = " ".join(unescape(found[1]).split()) if found else ""
    if _CHALLENGE_TITLE.search(title) or (answer.status < 400 and _BUSY_TITLE.search(title)):
        return f"the page {title[:80]!r}"
    return ""


def _excerpt(answer: Answer) -> str:
    """The start of an error answer, for the message; nothing for HTML."""
    text = " ".join(answer.body[:_SNIFFED_BYTES].decode("utf-8", errors="replace").split())
    if not text or text.startswith("<"):
        return ""
    return f": {scrub(text)[:_EXCERPT_CHARACTERS]}"
