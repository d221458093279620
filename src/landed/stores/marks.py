"""The mark of a store as a small file beside it: JSON, replaced whole and synced.

For a SQLite file it is `<file>.mark`, in the same directory and outside the database: a backup of
the database does not take it along. A copy of the whole directory does, and then nothing can be
noticed; keep it elsewhere where that is how backups are made.
"""

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from landed.core.errors import StoreError
from landed.core.incarnation import Mark

SQLITE_URL = "sqlite:///"


@dataclass(frozen=True, slots=True)
class FileMarks:
    """`landed.core.incarnation.Marks` in a file; a file that is not there is no mark."""

    path: Path

    @property
    def place(self) -> str:
        """Where the file is."""
        return str(self.path)

    async def read(self) -> Mark | None:
        """Return the mark, None where there is no file; raises `StoreError` for a damaged one."""
        return await asyncio.to_thread(self._read)

    async def write(self, mark: Mark) -> None:
        """Replace the file, durably and whole; raises `StoreError` with what to do."""
        try:
            await asyncio.to_thread(self._write, mark)
        except OSError as error:
            raise StoreError(
                f"the mark at {self.path} cannot be written ({error}); make its directory writable,"
                " or name another place by mark="
            ) from error

    def _read(self) -> Mark | None:
        try:
            text = self.path.read_text("utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise self._damaged(error) from error
        try:
            held = cast("dict[str, object]", json.loads(text))
            position, hash = held["position"], held["hash"]
        except (ValueError, TypeError, KeyError) as error:
            raise self._damaged(error) from error
        if not isinstance(position, int) or not isinstance(hash, str) or position < 1:
            raise self._damaged("it holds no entry of a journal")
        return Mark(position=position, hash=hash)

    def _damaged(self, error: object) -> StoreError:
        return StoreError(
            f"the mark at {self.path} cannot be read ({error}), so nobody can tell whether the"
            " store was restored, and nothing is sent. If it may have been, run `landed restored`;"
            " then remove the file"
        )

    def _write(self, mark: Mark) -> None:
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            with beside.open("w", encoding="utf-8") as file:
                json.dump({"position": mark.position, "hash": mark.hash}, file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
        except OSError:
            beside.unlink(missing_ok=True)
            raise
        directory = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def marks_of(url: str, mark: str | Path | None = None) -> FileMarks | None:
    """Return where the mark of the store of that URL is kept, None for nowhere.

    `mark` names a file, or nowhere by ""; None is `<file>.mark` for a SQLite file, and nowhere for
    any other store.
    """
    if mark is not None:
        return FileMarks(Path(mark)) if str(mark) else None
    path = url.removeprefix(SQLITE_URL)
    if url == path or not path:
        return None
    return FileMarks(Path(f"{path}.mark"))
