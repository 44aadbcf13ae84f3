"""Where the data lies: one folder with a live file, its lock, and published snapshots.

<home>/live.duckdb            the writer's file; readers never open it
<home>/writer.lock            flock of whoever writes; that the file exists means nothing
<home>/snapshots/*.duckdb     immutable published catalogs, each with a .json manifest
<home>/catalog.duckdb         relative symlink to the newest snapshot: what everybody reads
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from catalog.errors import ConfigurationError

SNAPSHOT_PREFIX = "catalog-"


@dataclass(frozen=True, slots=True)
class Home:
    """The data folder and the names in it."""

    path: Path

    @property
    def live(self) -> Path:
        """The writer's database file."""
        return self.path / "live.duckdb"

    @property
    def lock(self) -> Path:
        """The file whose flock makes a process the writer."""
        return self.path / "writer.lock"

    @property
    def snapshots(self) -> Path:
        """Folder of published catalogs."""
        return self.path / "snapshots"

    @property
    def pointer(self) -> Path:
        """The relative symlink that names the newest published catalog."""
        return self.path / "catalog.duckdb"

    def published(self) -> list[Path]:
        """Published catalogs, newest first: by their running number, because a clock can be set back."""
        if not self.snapshots.is_dir():
            return []
        found = self.snapshots.glob(f"{SNAPSHOT_PREFIX}*.duckdb")
        return sorted(found, key=lambda p: (p.stem.rpartition("-")[2], p.name), reverse=True)

    def ensure(self) -> Home:
        """Make the folder if it is not there.

        Raises:
            ConfigurationError: it cannot be made or is not a folder.
        """
        try:
            self.snapshots.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise ConfigurationError(f"cannot use the data folder {self.path}: {problem.strerror}") from problem
        return self


def home_from(path: str | os.PathLike[str] | None = None) -> Home:
    """The home given, or `GPUBAZAAR_HOME`, or the platform's data folder.

    Raises:
        ConfigurationError: it begins with ~ and a user who is not there, or lies where no folder can be.
    """
    chosen = path or os.environ.get("GPUBAZAAR_HOME") or platformdirs.user_data_dir("gpubazaar", appauthor=False)
    try:
        folder = Path(chosen).expanduser().absolute()
        no_folder = folder.exists() and not folder.is_dir()
    except (RuntimeError, OSError, ValueError) as problem:
        raise ConfigurationError(f"cannot use the data folder {str(chosen)!r}: {problem}") from problem
    if no_folder:
        raise ConfigurationError(f"cannot use the data folder {str(folder)!r}: it is a file")
    return Home(folder)
