"""What a SQLite store finds out about itself, for `landed doctor`."""

from pathlib import Path

from landed.core.store import Fact
from landed.stores.driver import FULL_SYNC, has_wal_reset_bug, library, pragma
from landed.stores.opening import MEMORY, Opened
from landed.stores.place import NETWORK, UNKNOWN, file_system
from landed.stores.wal import wal_fact


def facts(opened: Opened) -> tuple[Fact, ...]:
    """Return the facts of an opened store, each read back from where it is in force."""
    return (
        _sqlite(),
        _journal_mode(opened),
        _synchronous(opened),
        _place(opened),
        _schema(opened),
        *_size(opened),
        *_log(opened),
        *((opened.reserve.fact(),) if opened.reserve else ()),
    )


def _sqlite() -> Fact:
    name, version = library()
    return Fact(
        name="sqlite",
        value=f"{version} ({name})",
        ok=not has_wal_reset_bug(version),
        advice="two connections can corrupt a file with this SQLite; install pysqlite3",
    )


def _journal_mode(opened: Opened) -> Fact:
    mode = str(pragma(opened.writer, "journal_mode"))
    wanted = "memory" if opened.settings.path == MEMORY else "wal"
    advice = "another program changed it; open the store again"
    return Fact(name="journal_mode", value=mode, ok=mode == wanted, advice=advice)


def _synchronous(opened: Opened) -> Fact:
    level = pragma(opened.writer, "synchronous")
    advice = "a power cut would lose acknowledged commits; open the store again"
    return Fact(name="synchronous", value=str(level), ok=level == FULL_SYNC, advice=advice)


def _place(opened: Opened) -> Fact:
    path = opened.settings.path
    if path == MEMORY:
        advice = "nothing outlives the process; give a path for anything real"
        return Fact(name="file_system", value="memory", ok=True, advice=advice)
    kind = file_system(Path(path).resolve().parent)
    advice = "a network file system can damage the file; put it on a local disk"
    if kind == UNKNOWN:
        advice = "could not tell; make sure that it is a local disk"
    return Fact(name="file_system", value=kind, ok=kind not in NETWORK, advice=advice)


def _size(opened: Opened) -> tuple[Fact, ...]:
    path = Path(opened.settings.path)
    if opened.settings.path == MEMORY:
        return ()
    megabytes = path.stat().st_size / 1e6
    return (Fact(name="size", value=f"{megabytes:.1f} MB", ok=True),)


def _log(opened: Opened) -> tuple[Fact, ...]:
    path = opened.settings.path
    return () if path == MEMORY else (wal_fact(str(Path(path).resolve())),)


def _schema(opened: Opened) -> Fact:
    return Fact(name="schema", value=str(opened.schema), ok=True)
