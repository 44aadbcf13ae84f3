"""Reading documents: JSON with exact numbers, HTML tables as a person sees them, JSON embedded in pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

from bs4 import BeautifulSoup, Tag

from catalog.types import Document
from collectors.errors import Blocked, LayoutChanged

if TYPE_CHECKING:
    from collectors.rows import RowBuilder

_CHALLENGE = re.compile(
    r"just a moment|checking your browser|attention required|too many (?:visitors|requests)|access denied|"
    r"verify you are human|enable javascript and cookies|service unavailable|captcha",
    re.IGNORECASE,
)
# Footnote marks are not part of a figure: 2.99² is 2.99. A price struck through is not the price any more.
_UNSAID_TAGS = frozenset({"sup", "s", "del", "strike", "script", "style"})
_STRUCK = re.compile(r"line-through")
_FOOTNOTE_MARKS = dict.fromkeys(map(ord, "\u00b9\u00b2\u00b3\u2070\u2074\u2075\u2076\u2077\u2078\u2079\u2020\u2021"))


def changed(document: Document, selector: str, detail: str = "") -> NoReturn:
    """Raise `LayoutChanged` for a document, naming what was looked for."""
    raise LayoutChanged(document.provider, selector, detail or f"not found in {document.url}")


def read_json(document: Document) -> Any:
    """The document as JSON, numbers as int or exact Decimal.

    Raises:
        LayoutChanged: empty, truncated or not JSON, or NaN/Infinity where a number belongs.
    """
    if not document.body.strip():
        changed(document, "$", f"empty body from {document.url}")
    try:
        return json.loads(document.body, parse_float=Decimal, parse_constant=_no_constant)
    except (ValueError, RecursionError) as problem:
        text = document.text()[:2000]
        if "<" in text and _CHALLENGE.search(text):
            raise Blocked(f"{document.url} answered with a challenge or busy page", url=document.url) from problem
        changed(document, "$", f"not JSON at {document.url}: {problem}")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def need(document: Document, value: Any, *path: str, kind: type | tuple[type, ...] = object) -> Any:
    """The value under a path of keys, of the given type.

    Raises:
        LayoutChanged: a key is missing or the value has another type; the message names the path.
    """
    for depth, key in enumerate(path):
        if not isinstance(value, Mapping) or key not in value:
            changed(document, "/".join(path[: depth + 1]))
        value = value[key]
    if not isinstance(value, kind):
        wanted = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
        changed(document, "/".join(path), f"is {type(value).__name__}, expected {wanted}, in {document.url}")
    return value


def need_somewhere(document: Document, records: Sequence[Any], *paths: str) -> None:
    """Check that each path ("gpu/count") exists in at least one record: a key missing everywhere was renamed.

    A single record without the key is that record's fault and left to the caller.

    Raises:
        LayoutChanged: no records at all, or a path that none of them has.
    """
    if not records:
        changed(document, "/".join(paths[:1]) or "$", f"an empty list in {document.url}")
    for path in paths:
        if not any(_has(record, path.split("/")) for record in records):
            changed(document, path, f"in none of {len(records)} records of {document.url}")


def _has(value: Any, keys: Sequence[str]) -> bool:
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            return False
        value = value[key]
    return True


def present_somewhere(document: Document, records: Iterable[Any], path: str, *keys: str) -> None:
    """Check that keys are not gone from every record of a list: a renamed key is a changed layout, not a missing value.

    Raises:
        LayoutChanged: no record has one of the keys; the message names it under `path`. An empty list passes.
    """
    objects = [record for record in records if isinstance(record, Mapping)]
    for key in keys:
        if objects and not any(key in record for record in objects):
            changed(document, f"{path}/{key}")


def read_html(document: Document) -> BeautifulSoup:
    """The document as a tree (lxml).

    Raises:
        Blocked: a challenge, busy or error page instead of the content.
        LayoutChanged: an empty body, or a page cut short before its end.
    """
    if not document.body.strip():
        changed(document, "html", f"empty body from {document.url}")
    start, end = document.body[:2000].lower(), document.body[-2000:].lower()
    if b"<html" in start and b"</html" not in end:
        changed(document, "</html>", f"the page at {document.url} is cut short")
    soup = BeautifulSoup(document.body, "lxml")
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    heading = soup.h1.get_text(" ", strip=True) if soup.h1 else ""
    if document.status >= 400 or _CHALLENGE.search(title) or (not soup.find("table") and _CHALLENGE.search(heading)):
        raise Blocked(f"{document.url} answered with a challenge or busy page ({title or document.status})",
                      url=document.url, status=document.status)  # fmt: skip
    return soup


def text_of(node: Tag | None) -> str:
    """A node's visible text on one line, without footnote marks and what is struck through."""
    if node is None:
        return ""
    parts = [
        piece for piece in node.strings if not any(_is_unsaid(parent) for parent in piece.parents if parent is not node)
    ]
    return " ".join(" ".join(parts).translate(_FOOTNOTE_MARKS).split())


def _is_unsaid(node: Tag) -> bool:
    return node.name in _UNSAID_TAGS or any(
        _STRUCK.search(str(node.attrs.get(where, ""))) is not None for where in ("class", "style")
    )


@dataclass(frozen=True, slots=True)
class Table:
    """An HTML table as a grid: spans are expanded, several header rows are joined top to bottom."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    cells: tuple[tuple[Tag, ...], ...]
    node: Tag

    def whole_rows(self, rows: RowBuilder) -> Iterator[tuple[str, ...]]:
        """The rows that reach over the whole table; in a shorter one a cell is missing, and which one is not known.

        Args:
            rows: where the shorter rows are rejected.
        """
        for line in self.rows:
            if len(line) == len(self.headers):
                yield line
            elif line:
                rows.reject("row_unreadable", "table row", " | ".join(line), sample=line[0])

    def column(self, *words: str) -> int | None:
        """The first column whose header holds every word (letter case ignored), or None."""
        for index, header in enumerate(self.headers):
            if all(word.casefold() in header.casefold() for word in words):
                return index
        return None


def read_table(node: Tag) -> Table:
    """Expand a table element into a grid. Malformed spans ("2;") are read as their leading number."""
    grid: list[list[Tag]] = []
    header_count = 0
    waiting: dict[int, tuple[int, Tag]] = {}
    for tr in node.find_all("tr"):
        if tr.find_parent("table") is not node:
            continue
        cells = tr.find_all(["td", "th"], recursive=False)
        line = list(_placed(cells, waiting))
        if not line:
            continue
        grid.append(line)
        is_header = bool(cells) and all(c.name == "th" for c in cells)
        if is_header and header_count == len(grid) - 1:
            header_count += 1
    header_count = header_count or (1 if grid else 0)
    headers = _headers(grid[:header_count], max((len(line) for line in grid), default=0))
    body = grid[header_count:]
    return Table(headers, tuple(tuple(text_of(c) for c in line) for line in body), tuple(tuple(x) for x in body), node)


def _headers(lines: Sequence[Sequence[Tag]], width: int) -> tuple[str, ...]:
    """The words over each column.

    Where a header row does not reach over the whole table, a cell is missing, and which one cannot be known ("Reserved"
    gone before "On-demand" would move every term by a column): no column has a name then. A single short cell above the
    others is a title, not a header.
    """
    named = [line for line in lines if len(line) == width or len(set(map(id, line))) > 1 or line is lines[-1]]
    if not named or any(len(line) != width for line in named):
        return ("",) * width
    return tuple(" ".join(dict.fromkeys(text_of(line[column]) for line in named)).strip() for column in range(width))


def _placed(cells: Sequence[Tag], waiting: dict[int, tuple[int, Tag]]) -> Iterator[Tag]:
    """The cells of one row by column, with spanned cells repeated into every column and row they cover."""
    column = 0
    queue = list(cells)
    while queue or column in waiting:
        if column in waiting:
            left, cell = waiting.pop(column)
            if left > 1:
                waiting[column] = (left - 1, cell)
            yield cell
            column += 1
            continue
        cell = queue.pop(0)
        rows = _span(cell.get("rowspan"))
        for _ in range(_span(cell.get("colspan"))):
            if rows > 1:
                waiting[column] = (rows - 1, cell)
            yield cell
            column += 1


def _span(value: object) -> int:
    found = re.match(r"\s*(\d+)", str(value or "1"))
    return min(max(int(found.group(1)), 1), 100) if found else 1


def tables_with(soup: Tag, *headers: str) -> list[Table]:
    """Every table that has a column for each of the given header words, in page order."""
    read = (read_table(node) for node in soup.find_all("table"))
    return [table for table in read if all(table.column(header) is not None for header in headers)]


def script_texts(soup: Tag) -> list[str]:
    """The text of every script element that carries one."""
    return [node.string for node in soup.find_all("script") if node.string]


_FLIGHT = re.compile(r'self\.__next_f\.push\(\s*(\[\s*1\s*,\s*"(?:[^"\\]|\\.)*"\s*\])\s*\)', re.DOTALL)


def flight_text(soup: Tag) -> str:
    """The streamed payload of a Next.js page: the unescaped chunks of `self.__next_f.push([1, "…"])`, joined."""
    chunks: list[str] = []
    for script in script_texts(soup):
        for found in _FLIGHT.finditer(script):
            try:
                chunks.append(str(json.loads(found.group(1))[1]))
            except ValueError:
                continue
    return "".join(chunks)


def json_after(text: str, start: int) -> Any:
    """The JSON value that begins at or after `start` in a longer text (numbers exact), or None."""
    decoder = json.JSONDecoder(parse_float=Decimal)
    opening = re.compile(r"[\[{]").search(text, start)
    if opening is None:
        return None
    try:
        return decoder.raw_decode(text, opening.start())[0]
    except ValueError:
        return None


def tab_count(soup: Tag, node: Tag) -> int | None:
    """The number in the text of the tab that labels a node's panel (aria-labelledby); None without one.

    "8x", "8× GPUs" and "8 GPUs" are 8.
    """
    panel = node.find_parent(attrs={"role": "tabpanel"})
    tab = soup.find(id=str(panel["aria-labelledby"])) if panel is not None and panel.get("aria-labelledby") else None
    found = re.match(r"\s*(\d+)\s*(?:[x×]|GPUs?)(?![a-z])", text_of(tab) if isinstance(tab, Tag) else "", re.IGNORECASE)
    return int(found.group(1)) if found else None


def structured_data(soup: Tag) -> Iterator[Mapping[str, Any]]:
    """Every object inside the page's `application/ld+json` scripts, outer ones first."""
    for script in soup.find_all("script", type="application/ld+json"):
        try:
            yield from _objects(json.loads(script.string or "", parse_float=Decimal))
        except ValueError:
            continue


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _objects(item)
