"""Every entry carries its own link and its own body, so that an edit of either is noticed."""

import hashlib
import hmac
from dataclasses import fields, replace
from typing import Any

import pytest

from landed.core.canonical import digest
from landed.core.changes import Kind, Move, Record
from landed.core.errors import StoreError
from landed.core.event import Event
from landed.core.journal import GENESIS, Entry, as_of, bodies, body_digest, body_of, link, verify

SECRET = b"only the owner knows"


def moved_to(version: int, **fields: Any) -> Move:
    plain: dict[str, Any] = {
        "kind": Kind.OPERATION,
        "tenant": "t1",
        "session": "s1",
        "state": "sent",
        "epoch": 1,
        "worker": "w1",
        "open": True,
        "frozen": {"tool": "reserve_table", "names": ("table",)},
        "changing": {"tries": 1},
    }
    after = Record(id="op-a1", version=version, **{**plain, **fields})
    return Move(after=after, event=Event(name="sent", record="op-a1", at=1.5))


def entry(*, secret: bytes = b"", prev: str = "the-one-before", seq: int = 7) -> Entry:
    body = b'{"tries":1}'
    line: dict[str, Any] = {
        "prev": prev,
        "seq": seq,
        "id": "op-a1",
        "version": 2,
        "before": 5,
        "event": "sent",
        "state": "sent",
        "at": 1.5,
        "body_digest": body_digest(body),
    }
    return Entry(body=body, hash=link(**line, secret=secret), **line)


# What a body holds.


def test_a_first_body_holds_what_never_changes_and_what_may():
    made = body_of(moved_to(1))
    assert made == b'{"tool":"reserve_table","names":["table"],"now":{"tries":1}}'
    assert bodies(made, None) == (
        {"tool": "reserve_table", "names": ["table"]},
        {"tries": 1},
    )


def test_a_first_body_leaves_out_what_may_change_where_that_is_empty():
    made = body_of(moved_to(1, changing={}))
    assert made == b'{"tool":"reserve_table","names":["table"]}'
    assert bodies(made, None) == ({"tool": "reserve_table", "names": ["table"]}, {})


def test_a_later_body_holds_all_that_may_change_and_nothing_else():
    assert body_of(moved_to(2)) == b'{"tries":1}'
    assert body_of(moved_to(3, changing={})) == b"{}"


def test_two_bodies_load_a_record_whatever_lay_between():
    first, last = moved_to(1), moved_to(9, changing={"tries": 3, "looked": "Absent"})
    frozen, changing = bodies(body_of(first), body_of(last))
    assert frozen == {"tool": "reserve_table", "names": ["table"]}
    assert changing == {"tries": 3, "looked": "Absent"}


def test_a_body_is_written_as_unicode():
    assert body_of(moved_to(2, changing={"looked": "é"})) == '{"looked":"é"}'.encode()


def test_a_body_that_json_cannot_say_is_not_written():
    with pytest.raises(ValueError, match="not JSON compliant"):
        body_of(moved_to(2, changing={"result": float("nan")}))


def test_a_record_can_be_seen_as_it_was_right_after_one_of_its_events():
    now = moved_to(9, state="confirmed", changing={"tries": 3}).after
    then = as_of(now, entry())
    assert then == replace(now, state="sent", version=2, changing={"tries": 1}, last=7)


def test_an_event_whose_body_was_erased_says_nothing_of_what_may_change():
    now = moved_to(9, state="confirmed", changing={"tries": 3}).after
    assert as_of(now, replace(entry(), body=None)).changing == {}


# The links.


def test_a_link_can_be_computed_in_any_language():
    body = entry().body_digest
    assert body == digest(b'{"tries":1}', domain="journal-body")
    line = f"the-one-before\n7\nop-a1\n2\n5\nsent\nsent\n1.5\n{body}".encode()
    assert entry().hash == hashlib.sha256(line).hexdigest()
    keyed = hmac.new(SECRET, line, hashlib.sha256).hexdigest()
    assert entry(secret=SECRET).hash == keyed


def test_an_entry_as_it_was_written_is_accepted():
    verify(entry())
    verify(entry(prev=GENESIS, seq=1))
    verify(entry(secret=SECRET), secret=SECRET)


EDITS: dict[str, Any] = {
    "seq": 8,
    "id": "op-a2",
    "version": 3,
    "before": 6,
    "event": "acknowledged",
    "state": "confirmed",
    "at": 1.25,
    "body": b'{"tries":2}',
    "body_digest": body_digest(b'{"tries":2}'),
    "prev": "another",
    "hash": "0" * 64,
}


def test_every_field_of_an_entry_is_edited_below():
    assert set(EDITS) == {each.name for each in fields(Entry)}


@pytest.mark.parametrize("secret", [b"", SECRET], ids=["plain", "keyed"])
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_any_field_is_refused_and_the_text_says_what_follows(name, secret):
    edited = replace(entry(secret=secret), **{name: EDITS[name]})
    with pytest.raises(StoreError) as refused:
        verify(edited, secret=secret)
    assert f"journal entry {edited.seq} of {edited.id} was edited" in str(refused.value)
    assert "until a person has compared it with a backup" in str(refused.value)


def test_a_body_and_its_digest_edited_together_are_refused():
    body = b'{"tries":2}'
    with pytest.raises(StoreError):
        verify(replace(entry(), body=body, body_digest=body_digest(body)))


def test_a_body_can_be_erased_and_the_link_still_proves_the_rest():
    erased = replace(entry(), body=None)
    verify(erased)
    with pytest.raises(StoreError):
        verify(replace(erased, state="confirmed"))


@pytest.mark.parametrize("secret", [b"", b"another secret"])
def test_an_edit_that_was_linked_anew_without_the_secret_is_refused(secret):
    forged = entry(secret=secret)
    verify(forged, secret=secret)
    with pytest.raises(StoreError):
        verify(forged, secret=SECRET)
