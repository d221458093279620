"""What can be wrong with a file is said when it is opened, and nothing in it is changed then."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from landed.core.changes import Changes
from landed.core.errors import StoreError
from landed.stores import driver, place
from landed.stores.driver import has_wal_reset_bug
from landed.stores.locks import FileLock
from landed.stores.migrate import migrations
from landed.stores.sqlite import SqliteStore, open_sqlite
from landed.testing.store_checks.suite import inserted, moved

pytestmark = pytest.mark.anyio

Open = Callable[..., SqliteStore]


def on(path: str) -> "closing[sqlite3.Connection]":
    """Open the file as any other program would."""
    return closing(driver.connect(path, wait_ms=0))


async def fact(store: SqliteStore, name: str) -> tuple[str, bool]:
    return next((one.value, one.ok) for one in await store.facts() if one.name == name)


async def test_what_was_committed_is_there_when_opened_again(opened: Open) -> None:
    first = opened()
    record = await inserted(first, "op-1")
    await first.close()
    second = first.open_again()
    assert await second.load("op-1") == (record,)
    (record,) = await second.commit(Changes(moves=(moved(record, "sent"),)))
    await second.close()
    assert await opened().load("op-1") == (record,)


async def test_the_store_says_what_it_found_out(store: SqliteStore) -> None:
    assert await fact(store, "journal_mode") == ("wal", True)
    assert await fact(store, "synchronous") == ("2", True)
    assert await fact(store, "schema") == (str(migrations()[-1].version), True)
    assert (await fact(store, "file_system"))[1]
    name, version = driver.library()
    assert await fact(store, "sqlite") == (f"{version} ({name})", not has_wal_reset_bug(version))


async def test_a_store_in_memory_says_what_it_is() -> None:
    store = open_sqlite(":memory:")
    assert await fact(store, "journal_mode") == ("memory", True)
    assert await fact(store, "file_system") == ("memory", True)
    await store.close()


async def test_a_changed_setting_is_reported(store: SqliteStore) -> None:
    store._opened.writer.execute("PRAGMA synchronous = OFF")
    assert await fact(store, "synchronous") == ("0", False)


def test_durability_is_read_back(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_SYNCHRONOUS", "NORMAL")
    with pytest.raises(StoreError, match="synchronous is 1, where wal and 2"):
        open_sqlite(path)


@pytest.mark.parametrize(
    ("version", "is_affected"),
    [("3.6.23", False), ("3.7.0", True), ("3.51.2", True), ("3.51.3", False), ("3.53.4", False)],
)
def test_an_old_sqlite_is_warned_of(
    version: str, is_affected: bool, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert has_wal_reset_bug(version) == is_affected
    monkeypatch.setattr(driver, "library", lambda: ("sqlite3", version))
    if is_affected:
        with pytest.warns(RuntimeWarning, match="install pysqlite3"):
            open_sqlite(path)
    else:
        open_sqlite(path)


async def test_another_programs_file_is_refused_and_left_as_it_is(path: str) -> None:
    with on(path) as other:
        other.execute("CREATE TABLE customer (id INTEGER)")
    before = Path(path).read_bytes()
    with pytest.raises(StoreError, match="another program's tables"):
        open_sqlite(path)
    assert Path(path).read_bytes() == before


def test_what_is_no_database_is_refused(path: str) -> None:
    Path(path).write_text("this is a text, and a long one, " * 200)
    with pytest.raises(StoreError, match="not a SQLite database; give another path"):
        open_sqlite(path)
    assert Path(path).read_text().startswith("this is a text")


async def test_a_damaged_file_stops_the_store(opened: Open, path: str) -> None:
    store = opened()
    for n in range(50):
        await inserted(store, f"op-{n}")
    await store.close()
    pages = bytearray(Path(path).read_bytes())
    pages[4096:] = b"\xff" * (len(pages) - 4096)
    Path(path).write_bytes(pages)
    with pytest.raises(StoreError, match=r"is damaged; .* restore it from a backup"):
        await opened().load("op-1")


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="its directory must exist and be writable"):
        open_sqlite(str(tmp_path / "absent" / "agent.db"))


@contextmanager
def as_nobody(*paths: Path) -> Iterator[None]:
    """Be a user whom file modes stop; root is stopped by none."""
    if os.geteuid() != 0:
        yield
        return
    for path in paths:
        os.chown(path, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_read_only_directory_is_named() -> None:
    with as_nobody(), pytest.raises(StoreError, match="is read-only; give the file and its"):
        open_sqlite("/agent.db")


async def test_a_read_only_file_is_named(opened: Open, path: str, tmp_path: Path) -> None:
    store = opened()
    await inserted(store, "op-1")
    await store.close()
    for parent in (tmp_path, *tmp_path.parents):
        if parent.name.startswith(("pytest", "test", "popen")):
            parent.chmod(0o755)
    tmp_path.chmod(0o777)
    with as_nobody(*tmp_path.iterdir()):
        Path(path).chmod(0o444)
        with pytest.raises(StoreError, match="is read-only; give the file and its directory"):
            open_sqlite(path)


@pytest.mark.fault("X36")
def test_a_network_file_system_is_refused_unless_forced(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/x {tmp_path.resolve()} nfs4 rw 0 0\n")
    monkeypatch.setattr(place, "MOUNTS", mounts)
    with pytest.raises(StoreError, match=r"network file system \(nfs4\).*allow_network_fs=True"):
        open_sqlite(path)
    assert [one.name for one in tmp_path.iterdir()] == ["mounts"]
    open_sqlite(path, allow_network_fs=True)


@pytest.mark.parametrize(
    ("mounts", "kind"),
    [
        ("/dev/a / ext4 rw 0 0\n/dev/b /mnt xfs rw 0 0\n", "ext4"),
        ("/dev/a / ext4 rw 0 0\n/dev/b /srv xfs rw 0 0\n", "xfs"),
        ("/dev/a / ext4 rw 0 0\n/dev/b /srv/a\\040b xfs rw 0 0\n", "xfs"),
        ("/dev/a / ext4 rw 0 0\n/dev/b /srv xfs rw 0 0\nx /srv cifs rw 0 0\n", "cifs"),
        ("", "unknown"),
    ],
)
def test_a_directory_is_on_the_longest_and_latest_mount(
    mounts: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mounts").write_text(mounts)
    monkeypatch.setattr(place, "MOUNTS", tmp_path / "mounts")
    assert place.file_system(Path("/srv/a b/c")) == kind


def test_without_a_list_of_mounts_nothing_is_refused(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "MOUNTS", tmp_path / "absent")
    open_sqlite(path)


async def test_another_secret_is_refused(opened: Open, path: str) -> None:
    store = opened(secret=b"one")
    await inserted(store, "op-1")
    await store.close()
    for secret in (b"", b"two"):
        with pytest.raises(StoreError, match="does not end in a link of this secret"):
            open_sqlite(path, secret=secret)
    assert len(await opened(secret=b"one").load("op-1")) == 1


@pytest.mark.fault("X34")
async def test_opening_waits_for_others_in_bounds(opened: Open, path: str) -> None:
    opened()
    turn = FileLock(Path(path + "-lock"))
    assert turn.try_lock()
    with pytest.raises(StoreError, match=r"by another process for more than 0\.02 s"):
        open_sqlite(path, lock_wait_max_s=0.02)
    turn.close()
    opened(lock_wait_max_s=0.02)


async def test_reads_are_bounded(store: SqliteStore) -> None:
    with pytest.raises(StoreError, match="ask for 1 to 10000 at a time, not 10001"):
        await store.load(*["op"] * 10_001)
    with pytest.raises(StoreError, match="ask for 1 to 10000 at a time, not 0"):
        await store.journal(limit=0)
    assert await store.load() == ()
