"""The writer's lock: an flock on a file, released by the kernel when its holder ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from catalog.errors import StoreBusy, StoreError

_POLL_S = 0.1


@contextmanager
def exclusive(
    path: Path, timeout_s: float, *, what: str = "the catalog", sleep: Callable[[float], None] = time.sleep
) -> Iterator[None]:
    """Hold the lock for the body of the with statement.

    Raises:
        StoreBusy: another process holds it for longer than `timeout_s`; the message names that process where it can.
        StoreError: the lock file cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as problem:
        raise StoreError(f"cannot open the lock file {path}: {problem.strerror}") from problem
    try:
        deadline = time.monotonic() + timeout_s
        while not _try(descriptor):
            if time.monotonic() >= deadline:
                holder = os.pread(descriptor, 64, 0).decode("ascii", "replace").strip() or "unknown"
                raise StoreBusy(
                    f"{what} in {path.parent} is being written by process {holder}; waited {timeout_s:.0f} s. "
                    "Try again when it has finished."
                )
            sleep(_POLL_S)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
