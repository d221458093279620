"""An archive as lines of JSON: each record whole, with every entry of its journal and its links.

A segment is one line for each record and a last one that says how many there are and what they
digest to, so that one that is cut short, or was edited, is not taken for whole. Everything that is
needed to check an entry is in its line, so an archive can be read without the store.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import cast

from landed.core.changes import Kind, Record
from landed.core.errors import StoreError
from landed.core.journal import Entry, verify

FORM = "landed-archive/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """One record as it is archived: its row, and all that was written down of it, oldest first."""

    record: Record
    entries: tuple[Entry, ...]


def segment(archived: Sequence[Archived]) -> bytes:
    """Return the records as the bytes of one segment."""
    lines = b"".join(_line(_plain(each)) for each in archived)
    end = {"form": FORM, "records": len(archived), "sha256": hashlib.sha256(lines).hexdigest()}
    return lines + _line(end)


def read_segment(
    body: bytes, *, name: str, secrets: tuple[bytes, ...] = (b"",)
) -> tuple[Archived, ...]:
    """Return the records in a segment, each checked.

    Raises `StoreError` for one that is cut short or edited, and for an entry that does not carry
    its link; one of `secrets` made that.
    """
    lines, last = _parted(body)
    end = _parsed(last, name)
    digest = hashlib.sha256(lines).hexdigest()
    if end.get("form") != FORM or end.get("sha256") != digest:
        raise StoreError(f"{name} is not whole, or was edited; take it from another copy")
    return tuple(
        _checked(_archived(_parsed(line, name)), name, secrets) for line in lines.splitlines()
    )


def differing(archived: Archived, found: Iterable[Entry]) -> str:
    """Return how the store's journal of a record differs from the archive, "" where it does not.

    A body that was erased since is no difference, and neither are events that came later.
    """
    there = {entry.seq: entry for entry in found}
    for entry in archived.entries:
        held = there.get(entry.seq)
        if held is None:
            return f"the store has no entry {entry.seq} of {entry.id}"
        if replace(held, body=None) != replace(entry, body=None):
            return f"entry {entry.seq} of {entry.id} is another one in the store"
    return ""


def _line(plain: object) -> bytes:
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _parted(body: bytes) -> tuple[bytes, bytes]:
    lines, _, last = body.removesuffix(b"\n").rpartition(b"\n")
    return (lines + b"\n" if lines else b""), last


def _plain(archived: Archived) -> dict[str, object]:
    record = archived.record
    return {
        "record": {name: getattr(record, name) for name in _ROW},
        "entries": [_entry(entry) for entry in archived.entries],
    }


_ROW = tuple(each.name for each in fields(Record) if each.name not in ("frozen", "changing"))


def _entry(entry: Entry) -> dict[str, object]:
    return {**asdict(entry), "body": None if entry.body is None else entry.body.decode()}


def _parsed(line: bytes, name: str) -> dict[str, object]:
    try:
        found: object = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise StoreError(f"{name} is not whole: a line of it is no JSON")
    return cast("dict[str, object]", found)


def _archived(plain: Mapping[str, object]) -> Archived:
    row = cast("dict[str, object]", plain["record"])
    rows = cast("list[dict[str, object]]", plain["entries"])
    bodies: dict[str, object] = {"frozen": {}, "changing": {}}  # They are in the entries.
    kept = {**row, **bodies, "kind": Kind(str(row["kind"]))}
    return Archived(
        record=Record(**kept),  # type: ignore[arg-type]
        entries=tuple(map(_entry_of, rows)),
    )


def _entry_of(row: Mapping[str, object]) -> Entry:
    return Entry(**{**row, "body": _body(row["body"])})  # type: ignore[arg-type]


def _body(text: object) -> bytes | None:
    return None if text is None else str(text).encode()


def _checked(archived: Archived, name: str, secrets: tuple[bytes, ...]) -> Archived:
    """Return it when its entries are its whole journal, each with its own link and body."""
    record, before = archived.record, 0
    for version, entry in enumerate(archived.entries, 1):
        verify(entry, secret=secrets[0], older=secrets[1:])
        if (entry.id, entry.version, entry.before) != (record.id, version, before):
            raise StoreError(f"{name} does not have the whole journal of {record.id}")
        before = entry.seq
    if before != record.last or not before:
        raise StoreError(f"{name} does not have the whole journal of {record.id}")
    return archived
