"""An archive as a directory of segments: each is durable and read back before it counts.

A segment is written beside its place, fsynced, read back, and only then given its name; so what has
a name is whole, whatever died in between. What has none yet is thrown away and written again.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from landed.core.archived import Archived, read_segment, segment
from landed.core.errors import StoreError

SUFFIX = ".jsonl"
UNFINISHED = ".part"


@dataclass(slots=True, eq=False)
class Archive:
    """The segments in a directory, and which records they hold, up to which journal position."""

    place: Path
    secrets: tuple[bytes, ...] = (b"",)
    held: dict[str, int] = field(default_factory=dict[str, int])
    segments: int = 0

    def open(self) -> None:
        """Make the directory where there is none, and read every segment, checking each.

        Raises `StoreError` for a segment that is not whole, and for a directory that cannot be
        used.
        """
        try:
            self.place.mkdir(parents=True, exist_ok=True)
            _sync(self.place.parent)
            for left in self.place.glob(f"*{UNFINISHED}"):
                left.unlink()
        except OSError as error:
            raise _unusable(self.place, error) from error
        for name, archived in self.read():
            self._hold(archived)
            self.segments = int(Path(name).stem)

    def require(self) -> None:
        """Raise `StoreError` where there is no segment."""
        if not any(self.place.glob(f"*{SUFFIX}")):
            raise StoreError(f"there is no archive in {self.place}")

    def read(self) -> Iterator[tuple[str, tuple[Archived, ...]]]:
        """Yield each segment's name and its records, checked, oldest first."""
        for path in sorted(self.place.glob(f"*{SUFFIX}")):
            yield path.name, self._read(path, name=path.name)

    def write(self, archived: Sequence[Archived]) -> None:
        """Add a segment, and return when it is durable and was read back.

        Raises `StoreError` where that did not come about, or another process wrote here meanwhile.
        """
        name = f"{self.segments + 1:06d}{SUFFIX}"
        path = self.place / name
        unfinished = path.with_name(name + UNFINISHED)
        try:
            _write(unfinished, segment(archived))
            read = self._read(unfinished, name=name)
            os.link(unfinished, path)  # Unlike a rename, it replaces nothing.
            unfinished.unlink()
            _sync(self.place)
        except OSError as error:
            raise _unusable(self.place, error) from error
        self.segments += 1
        self._hold(read)

    def _read(self, path: Path, *, name: str) -> tuple[Archived, ...]:
        try:
            body = path.read_bytes()
        except OSError as error:
            raise _unusable(self.place, error) from error
        return read_segment(body, name=name, secrets=self.secrets)

    def _hold(self, archived: Sequence[Archived]) -> None:
        self.held.update(_positions(archived))


def _positions(archived: Sequence[Archived]) -> Mapping[str, int]:
    return {each.record.id: each.record.last for each in archived}


def _write(path: Path, body: bytes) -> None:
    with path.open("wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unusable(place: Path, error: OSError) -> StoreError:
    return StoreError(f"the archive in {place} cannot be written or read ({error})")
