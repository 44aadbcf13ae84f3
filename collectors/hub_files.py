"""A repository of the Hugging Face hub as a folder of files, of which only small ones and headers are fetched."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any
from urllib.parse import quote

from catalog.gguf_header import read_gguf_parts
from catalog.safetensors_header import tensor_bytes
from collectors.contract import Request
from collectors.errors import CapExceeded, Gone
from collectors.http import Fetcher
from collectors.http_body import MIB
from collectors.hub_id import HubId
from collectors.hub_ranges import MAX_HEADER_BYTES, RangeReader

MAX_FILES = 300
# Most safetensors headers are below 100 KB; a GGUF header carries the tokenizer's words and merges, megabytes of them.
_SAFETENSORS_BLOCK = MIB // 8
_GGUF_BLOCK = 2 * MIB
_CONNECTIONS = 4

Connect = Callable[[threading.Event], Fetcher]


class HubFiles:
    """`catalog.checkpoint_layout.CheckpointFiles` of one repository at one revision.

    Its methods raise FetchError where the hub does not answer: an absent file is None, an absent repository is Gone.
    """

    def __init__(self, hub_id: HubId, fetcher: Fetcher, connect: Connect, token: str, until: float) -> None:
        """Prepare; nothing is sent yet.

        Args:
            hub_id: the repository.
            fetcher: for one request after the other.
            connect: makes further fetchers, to read the headers of many shards side by side.
            token: a key of the hub, or ''.
            until: deadline of everything, on the clock of `time.monotonic`.
        """
        self._id = hub_id
        self._fetcher = fetcher
        self._connect = connect
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._until = until
        self._found_any = False

    @property
    def place(self) -> str:
        """The repository's name."""
        return self._id.repository

    def names(self) -> list[str]:
        """All files of the repository: https://huggingface.co/docs/hub/api, `/api/models/{repo_id}/revision/{rev}`."""
        address = f"https://huggingface.co/api/models/{self._id.repository}/revision/{self._revision}"
        try:
            body = self._fetch(address)
        except Gone:
            if self._found_any:
                return []  # a mirror that has the files and no API
            raise
        siblings = json.loads(body)["siblings"]
        return sorted(entry["rfilename"] for entry in siblings)

    def text(self, name: str) -> str | None:
        """A small file, or None."""
        try:
            body = self._fetch(self._address(name))
        except Gone:
            return None
        self._found_any = True
        return body.decode("utf-8")

    def safetensors_bytes(self, names: Sequence[str]) -> int | None:
        """Tensor bytes by the headers of these files, or None where one is absent."""
        _check_count(names)
        try:
            # The first tells whether there is anything, before more connections are opened.
            first = self._tensor_bytes(self._fetcher, names[0])
            return first + self._side_by_side(names[1:])
        except Gone:
            return None

    def gguf(self, names: Sequence[str]) -> dict[str, Any]:
        """What the headers of the parts of a GGUF file say."""
        _check_count(names)
        return read_gguf_parts(self._opened(names))

    def _opened(self, names: Sequence[str]) -> Iterator[tuple[str, RangeReader]]:
        for name in names:
            yield name, self._reader(self._fetcher, name, _GGUF_BLOCK)

    def _side_by_side(self, names: Sequence[str]) -> int:
        groups = [group for start in range(_CONNECTIONS) if (group := names[start::_CONNECTIONS])]
        stop = threading.Event()

        def group_bytes(group: Sequence[str]) -> int:
            with self._connect(stop) as fetcher:
                return sum(self._tensor_bytes(fetcher, name) for name in group)

        if not groups:
            return 0
        with ThreadPoolExecutor(len(groups), "hub") as pool:
            try:
                running = [pool.submit(group_bytes, group) for group in groups]
                done, unfinished = wait(running, return_when=FIRST_EXCEPTION)
            finally:
                stop.set()  # one has failed, or the caller was interrupted: the others need not go on
            failed = [future for future in done if future.exception() is not None]
            return sum(future.result() for future in [*failed, *done, *unfinished])

    def _tensor_bytes(self, fetcher: Fetcher, name: str) -> int:
        return tensor_bytes(
            self._reader(fetcher, name, _SAFETENSORS_BLOCK), name, max_header_bytes=MAX_HEADER_BYTES - 8
        )  # fmt: skip

    def _reader(self, fetcher: Fetcher, name: str, block_bytes: int) -> RangeReader:
        return RangeReader(fetcher, self._address(name), self._headers, block_bytes=block_bytes, until=self._until)

    def _fetch(self, address: str) -> bytes:
        return self._fetcher.fetch(Request(address, headers=self._headers), until=self._until).body

    @property
    def _revision(self) -> str:
        return quote(self._id.revision, safe="")

    def _address(self, name: str) -> str:
        """Where a file's content is found, at once or by a redirect."""
        if name.startswith("/") or ".." in name.split("/"):
            msg = f"{self._id}: {name!r} lies outside of the repository"
            raise ValueError(msg)
        return f"https://huggingface.co/{self._id.repository}/resolve/{self._revision}/{quote(name)}"


def _check_count(names: Sequence[str]) -> None:
    if len(names) > MAX_FILES:
        raise CapExceeded(f"{len(names)} weight files, more than the {MAX_FILES} whose headers are read")
