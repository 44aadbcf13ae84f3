"""Every damage has an outcome: for readers, for a refresh, in what doctor says, and in what a restore brings back."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from catalog.doctor import examine
from catalog.doctor_restore import restore
from catalog.engine import attach, memory_connection
from catalog.errors import CatalogDamaged, CatalogMissing, StoreError, UnknownName
from catalog.home import Home
from catalog.manifest import file_of
from catalog.queries import offers, provider_health
from catalog.reader import reading
from catalog.writer import writing
from jobs.refresh import refresh

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with two snapshots."""
    home = Home(tmp_path_factory.mktemp("twice"))
    for _ in range(2):
        refresh(home, ["nebius", "ecb"], source="recorded")
    return home


@pytest.fixture
def home(twice: Home, tmp_path: Path) -> Home:
    """A copy of it: copied and moved folders are whole catalogs."""
    shutil.copytree(twice.path, tmp_path / "home", symlinks=True)
    return Home(tmp_path / "home")


def counted(home: Home) -> tuple[int, list[str]]:
    with reading(home) as catalog:
        return len(offers(catalog)), catalog.warnings


def states(home: Home) -> dict[str, str]:
    return {f.item: f.state for f in examine(home)}


def write_again(home: Home) -> None:
    refresh(home, ["nebius", "ecb"], source="recorded")


def test_a_healthy_home_is_found_healthy_and_a_copied_or_moved_one_too(home: Home, tmp_path: Path) -> None:
    assert set(states(home).values()) == {"ok"}
    assert counted(home) == (26, [])
    moved = Home(tmp_path / "elsewhere" / "deep")
    moved.path.parent.mkdir()
    home.path.rename(moved.path)
    assert counted(moved) == (26, [])
    write_again(moved)
    assert counted(moved) == (26, [])
    assert set(states(moved).values()) == {"ok"}
    assert not moved.pointer.readlink().is_absolute()


def flip(path: Path, share: float = 0.5, count: int = 4096) -> None:
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    at = int(len(data) * share)
    for i in range(at, min(at + count, len(data))):
        data[i] ^= 0xFF
    path.write_bytes(data)
    path.chmod(0o444)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.6, 0.9])
def test_flipped_bytes_in_the_newest_snapshot(home: Home, share: float) -> None:
    newest = home.pointer.resolve()
    flip(newest, share)
    assert states(home)[newest.name] == "error"
    with contextlib.suppress(CatalogDamaged):  # or an error, when the damage shows only in the middle of an answer
        count, warnings = counted(home)
        assert count == 26  # the block is one that no query needs, or the snapshot before it answers
        assert not warnings or "showing" in warnings[0]
    done = restore(home)
    assert done.snapshot != newest.stem
    assert any(newest.name in p.name for p in done.put_aside)
    assert counted(home) == (26, [])
    assert "error" not in states(home).values()
    write_again(home)
    assert counted(home) == (26, [])


@pytest.mark.parametrize("how", ["missing", "dangling", "nothing published"])
def test_pointer(home: Home, how: str) -> None:
    home.pointer.unlink()
    if how == "dangling":
        home.pointer.symlink_to("snapshots/catalog-gone.duckdb")
    if how == "nothing published":
        shutil.rmtree(home.snapshots)
        with pytest.raises(CatalogMissing):
            counted(home)
        write_again(home)
        assert counted(home) == (26, [])
        return
    count, warnings = counted(home)
    assert count == 26
    assert "doctor --restore" in warnings[0]
    assert states(home)["pointer"] == "error"
    restore(home)
    assert counted(home) == (26, [])
    assert states(home)["pointer"] == "ok"


def interrupted(home: Home) -> Path:
    """A write-ahead log as a killed writer leaves it: committed, not checkpointed."""
    script = (
        "import os, sys; from catalog.home import Home; from catalog.writer import writing; from pathlib import Path\n"
        "with writing(Home(Path(sys.argv[1])), 5) as writer:\n"
        "    writer.connection.execute(\"INSERT INTO live.scheduler_events SELECT now(), 'x', 'killed', '' "
        'FROM range(5000)")\n'
        "    os._exit(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(home.path)], cwd=ROOT, check=False, timeout=60)
    assert done.returncode == 9
    wal = home.live.with_name("live.duckdb.wal")
    assert wal.stat().st_size > 1000
    return wal


def refusal(home: Home) -> str:
    """Why a refresh refuses to write; '' where it does not."""
    try:
        write_again(home)
    except StoreError as problem:
        return str(problem)
    return ""


def spoil(wal: Path, how: str) -> None:
    size = wal.stat().st_size
    data = wal.read_bytes()
    if how == "cut off":
        wal.write_bytes(data[: size // 2])
    elif how == "emptied":
        wal.write_bytes(b"")
    elif how == "garbage":
        wal.write_bytes(os.urandom(size))
    elif how == "flipped":
        wal.write_bytes(
            data[: size // 2] + bytes(b ^ 0xFF for b in data[size // 2 : size // 2 + 64]) + data[size // 2 + 64 :]
        )
    elif how == "removed":
        wal.unlink()


@pytest.mark.parametrize("how", ["whole", "cut off", "emptied", "garbage", "flipped", "removed"])
def test_write_ahead_log(home: Home, how: str) -> None:
    """Only what was never acknowledged lies in it; nothing published is lost, and doctor mends what does not open."""
    spoil(interrupted(home), how)
    assert counted(home) == (26, [])
    refused = refusal(home)
    if refused:
        assert "doctor --restore" in refused
        assert states(home)["live file"] == "error"
        restore(home)
        write_again(home)
    assert counted(home) == (26, [])
    assert "error" not in states(home).values()


def test_a_live_file_that_is_behind_its_snapshots_is_refused(home: Home, tmp_path: Path) -> None:
    old = tmp_path / "old.duckdb"
    shutil.copy(home.live, old)
    write_again(home)
    shutil.copy(old, home.live)
    before = home.pointer.resolve()
    with pytest.raises(CatalogDamaged, match="older than the published snapshot"):
        write_again(home)
    assert home.pointer.resolve() == before
    assert states(home)["live file"] == "error"
    restore(home)
    write_again(home)
    assert counted(home) == (26, [])


@pytest.mark.parametrize("content", [b"", b"not a database" * 1000])
def test_a_live_file_that_does_not_open(home: Home, content: bytes) -> None:
    home.live.write_bytes(content)
    with pytest.raises(StoreError, match="doctor --restore"):
        write_again(home)
    assert counted(home) == (26, [])
    done = restore(home)
    assert [p.name.split("-", 1)[1] for p in done.put_aside] == ["live.duckdb"]
    write_again(home)
    assert counted(home) == (26, [])


def test_a_deleted_live_file_starts_from_the_newest_snapshot(home: Home) -> None:
    home.live.unlink()
    with writing(home, 5) as writer:
        assert len(writer.known_rows("nebius")) == 26
        writer.publish()
    assert counted(home) == (26, [])


def test_lost_rows_are_not_published(home: Home) -> None:
    before = home.pointer.resolve()
    with writing(home, 5) as writer:
        writer.connection.execute("DELETE FROM live.current WHERE gpu_count = 1")
        with pytest.raises(CatalogDamaged, match="nothing was published"):
            writer.publish()
    assert home.pointer.resolve() == before
    assert counted(home) == (26, [])
    assert states(home)["live file"] == "error"


def test_a_snapshot_opened_read_write_costs_its_readers_nothing(home: Home) -> None:
    newest = home.pointer.resolve()
    newest.chmod(0o644)
    assert states(home)[newest.name] == "warning"
    script = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(newest)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        count, warnings = counted(home)
        assert count == 26
        assert "open elsewhere" in warnings[0]
        write_again(home)
        assert counted(home) == (26, [])
        holder.communicate("")


def test_snapshots_are_read_only_files_for_everyone(home: Home) -> None:
    newest = home.pointer.resolve()
    assert newest.stat().st_mode & 0o222 == 0
    connection = duckdb.connect(str(home.pointer), read_only=True)
    assert connection.execute("SELECT count(*) FROM v_offers").fetchall() == [(26,)]
    connection.close()


def test_a_reader_asleep_in_its_transaction_keeps_its_catalog(home: Home) -> None:
    with reading(home) as sleeper:
        path = sleeper.path
        old = datetime.now(UTC).timestamp() - 3600
        for _ in range(10):
            write_again(home)
            for snapshot in home.published():
                os.utime(snapshot, (old, old))
        assert not path.exists()  # pruned
        assert len(offers(sleeper)) == 26
        assert len(provider_health(sleeper, ["nebius"])) == 1
    assert len(home.published()) <= 9


def test_doctor_leaves_a_busy_writer_alone(home: Home) -> None:
    script = (
        "import sys; from catalog.home import Home; from catalog.writer import writing; from pathlib import Path\n"
        "with writing(Home(Path(sys.argv[1])), 5): print('open', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(home.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=ROOT,
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        live = next(f for f in examine(home) if f.item == "live file")
        assert live.state == "ok"
        assert str(holder.pid) in live.detail
        with pytest.raises(StoreError, match="being written"):
            restore(home, timeout_s=0.2)
        holder.communicate("")


def without_root_powers() -> None:
    """Root ignores permissions; a child without this capability does not."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE


def cli(home: Home, *arguments: str, before: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from interfaces.cli import main; main()", *arguments], capture_output=True, text=True,
        env={**os.environ, "GPUBAZAAR_HOME": str(home.path)}, cwd=ROOT, timeout=120, preexec_fn=before, check=False,
    )  # fmt: skip


def test_a_read_only_folder_is_readable_and_says_why_it_cannot_be_refreshed(home: Home) -> None:
    folders = [home.path, home.snapshots, *(p for p in home.path.iterdir() if p.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        assert cli(home, "offers", "--limit", "1", before=without_root_powers).returncode in {0, 4}
        done = cli(home, "refresh", "--from-fixtures", "nebius", "ecb", before=without_root_powers)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert "cannot" in done.stderr
        doctor = cli(home, "doctor", "--format", "csv", before=without_root_powers)
        assert doctor.returncode == 1
        assert "folder,error" in doctor.stdout
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert counted(home) == (26, [])


def no_file_over(limit: int) -> Callable[[], None]:
    """A disk that is full in the middle of a write, as a process sees it: no file may grow beyond the limit."""

    def apply() -> None:
        import resource
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return apply


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_a_full_disk_in_the_middle_of_a_write_loses_nothing(home: Home, share: float) -> None:
    limit = int(home.live.stat().st_size * share)
    done = cli(home, "refresh", "--from-fixtures", "scaleway", "nebius", "ecb", before=no_file_over(limit))
    assert done.returncode in {1, 5}
    assert "Traceback" not in done.stderr
    assert counted(home) == (26, [])
    refresh(home, ["scaleway", "nebius", "ecb"], source="recorded")
    assert counted(home) == (48, [])
    assert "error" not in states(home).values()


def test_restore_goes_back_to_a_named_snapshot(home: Home) -> None:
    names = [p.stem for p in home.published()]
    with pytest.raises(UnknownName, match=names[0]):
        restore(home, "catalog-never")
    assert restore(home, names[-1]).snapshot == names[-1]
    assert home.pointer.resolve().stem == names[-1]
    with pytest.raises(StoreError, match="older than the published"):
        write_again(home)  # the newer snapshots are good and still there: going back was on purpose, and is said


def test_records_that_are_gone_make_a_warning_and_no_more(home: Home) -> None:
    file_of(home.pointer.resolve()).unlink()
    assert "warning" in states(home).values()
    assert counted(home) == (26, [])
    write_again(home)
    assert counted(home) == (26, [])


def test_offer_numbers_of_closed_months_are_never_given_twice(home: Home) -> None:
    month = home.path / "history" / "history-2026-10.duckdb"
    month.parent.mkdir()
    connection = memory_connection()
    attach(connection, month, "month")
    connection.execute("CREATE TABLE month.price_log AS SELECT 777 AS offer_no")
    connection.close()
    restore(home)
    with writing(home, 5) as writer:
        number = writer.connection.execute("SELECT value FROM live.meta WHERE key = 'next_offer_no'").fetchall()
    assert number == [("778",)]


def test_snapshots_are_kept_for_a_while_and_then_pruned(home: Home) -> None:
    for _ in range(10):
        write_again(home)
    assert len(home.published()) == 12  # all younger than ten minutes
    old = (datetime.now(UTC) - timedelta(hours=1)).timestamp()
    for path in home.published():
        os.utime(path, (old, old))
    write_again(home)
    assert len(home.published()) == 8
    assert {p.suffix for p in home.snapshots.iterdir()} == {".duckdb", ".json"}
    assert len(list(home.snapshots.iterdir())) == 16


def test_types_of_findings(home: Home) -> None:
    found: Any = examine(home)
    assert all(f.detail for f in found)
    assert examine(Home(home.path / "nowhere"))[0].state == "warning"


def test_a_clock_that_was_set_back_does_not_hide_the_newest_snapshot(home: Home) -> None:
    with writing(home, 5) as writer:
        newest = writer.publish(datetime.now(UTC) - timedelta(days=10))
    assert home.published()[0] == newest == home.pointer.resolve()
    home.live.unlink()
    write_again(home)
    assert counted(home) == (26, [])
    assert "error" not in states(home).values()
