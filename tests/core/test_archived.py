"""A segment reads back as what was written, and whatever was done to it since is found out."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from landed.core.archived import Archived, differing, read_segment, segment
from landed.core.errors import StoreError
from landed.core.journal import Entry, body_digest, link
from landed.core.operation_record import to_record
from tests.core.build import operation

SECRET = b"a secret of the test"


def archived(id: str = "op-1", *, events: int = 2, gone: tuple[int, ...] = ()) -> Archived:
    """Return a record with so many events, some of whose bodies were erased before."""
    entries: list[Entry] = []
    for version in range(1, events + 1):
        body = json.dumps({"n": version, "text": "ñ\n"}).encode()
        fields: dict[str, Any] = {
            "seq": version * 10,
            "id": id,
            "version": version,
            "before": (version - 1) * 10,
            "event": "moved",
            "state": "sent",
            "at": 1.25 * version,
            "body_digest": body_digest(body),
            "prev": "before",
        }
        kept = None if version in gone else body
        entries.append(Entry(**fields, body=kept, hash=link(**fields, secret=SECRET)))
    record = replace(
        to_record(operation(id=id)),
        version=events,
        last=events * 10,
        made=10,
        frozen={},
        changing={},
    )
    return Archived(record=record, entries=tuple(entries))


def read(body: bytes) -> tuple[Archived, ...]:
    return read_segment(body, name="it", secrets=(b"", SECRET))


def test_a_segment_reads_back_as_it_was_written() -> None:
    held = (archived(), archived("op-2", events=5, gone=(1, 3)))
    assert read(segment(held)) == held
    assert read(segment(())) == ()


EDITS: dict[str, Callable[[bytes], bytes]] = {
    "nothing is left": lambda body: b"",
    "its end is gone": lambda body: body.rsplit(b"\n", 2)[0] + b"\n",
    "it was cut": lambda body: body[:-20],
    "a line is gone": lambda body: body.split(b"\n", 1)[1],
    "a letter is another": lambda body: body.replace(b"sent", b"lost", 1),
    "its form is another": lambda body: body.replace(b"landed-archive/1", b"landed-archive/9"),
    "its end is a list": lambda body: body.rsplit(b"\n", 2)[0] + b"\n[]\n",
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_segment_that_was_edited_is_refused(edit: str) -> None:
    with pytest.raises(StoreError, match="it is not whole"):
        read(EDITS[edit](segment((archived(), archived("op-2")))))


def without_the_first(held: Archived) -> Archived:
    return replace(held, entries=held.entries[1:])


def without_the_last(held: Archived) -> Archived:
    return replace(held, entries=held.entries[:-1])


def of_another(held: Archived) -> Archived:
    return replace(held, record=replace(held.record, id="op-9"))


@pytest.mark.parametrize(
    "wrong", [without_the_first, without_the_last, of_another, lambda h: replace(h, entries=())]
)
def test_half_a_journal_is_refused_though_its_segment_is_whole(
    wrong: Callable[[Archived], Archived],
) -> None:
    with pytest.raises(StoreError, match="not have the whole journal"):
        read(segment([wrong(archived())]))


@pytest.mark.req("S4-17")
def test_an_entry_that_was_made_up_carries_no_link() -> None:
    held = archived()
    entries = (replace(held.entries[0], body=b"{}"), held.entries[1])
    with pytest.raises(StoreError, match="edited after it was written"):
        read(segment([replace(held, entries=entries)]))


def test_what_a_store_lost_or_changed_since_is_said() -> None:
    held = archived()
    later = replace(held.entries[1], seq=30)
    assert differing(held, (*held.entries, later)) == ""
    assert differing(held, [replace(entry, body=None) for entry in held.entries]) == ""
    assert differing(held, held.entries[:1]) == "the store has no entry 20 of op-1"
    moved = (held.entries[0], replace(held.entries[1], state="lost"))
    assert differing(held, moved) == "entry 20 of op-1 is another one in the store"
