"""How often a store was restored: the mark that tells, and the record of it."""

from dataclasses import replace

import pytest

from landed.core.changes import Stored, apply
from landed.core.errors import IllegalEventError
from landed.core.incarnation import (
    INCARNATION,
    NEVER_RESTORED,
    Incarnation,
    IncarnationState,
    Mark,
    declared,
    incarnation_from,
    is_intact,
    reconciled,
    writing,
)
from landed.core.journal import Entry

ENTRY = Entry(
    seq=7,
    id="op-a1",
    version=1,
    before=0,
    event="made",
    state="recorded",
    at=1.0,
    body=b"{}",
    body_digest="d",
    prev="",
    hash="h7",
)
MARK = Mark(position=7, hash="h7")


def stored(*incarnations: Incarnation) -> Incarnation:
    store = Stored()
    for each in incarnations:
        store, _ = apply(store, writing(each))
    return incarnation_from(store.records[INCARNATION])


def restored(before: Incarnation, known_at: float = 90.0) -> Incarnation:
    return declared(before, missed=MARK, known_at=known_at, by="w1", why="so", at=100.0)


@pytest.mark.parametrize(
    "page",
    [
        (),
        (replace(ENTRY, seq=8),),
        (replace(ENTRY, hash="another"),),
    ],
    ids=["rolled back", "a later entry in its place", "a fork"],
)
@pytest.mark.fault("X38")
def test_a_journal_without_that_very_entry_is_not_the_one_that_was_known(page: tuple[Entry, ...]):
    assert is_intact(MARK, (ENTRY,))
    assert not is_intact(MARK, page)


def test_a_restore_is_read_back_as_it_was_written_and_its_horizon_is_where_that_stands():
    once = stored(restored(NEVER_RESTORED))
    assert (once.number, once.missed, once.horizon, once.known_at) == (1, MARK, 1, 90.0)
    assert (once.by, once.why, once.at, once.reconciling) == ("w1", "so", 100.0, True)


def test_the_horizon_stays_when_it_is_reconciled():
    once = stored(restored(NEVER_RESTORED))
    over = reconciled(once, by="w2", why="all is found out", at=200.0)
    store, _ = apply(Stored(), writing(restored(NEVER_RESTORED)))
    store, _ = apply(store, writing(over))
    read = incarnation_from(store.records[INCARNATION])
    assert (read.horizon, read.state, read.version) == (1, IncarnationState.RECONCILED, 2)
    assert not read.reconciling


def test_one_that_was_declared_by_a_person_misses_no_mark():
    by_hand = declared(NEVER_RESTORED, missed=None, known_at=0.0, by="ana", why="", at=1.0)
    assert stored(by_hand).missed is None


def test_a_second_restore_during_a_reconciliation_looks_as_far_back_as_the_first():
    twice = restored(restored(NEVER_RESTORED), known_at=99.0)
    assert (twice.number, twice.known_at) == (2, 90.0)
    after = restored(reconciled(twice, by="w1", why="", at=101.0), known_at=99.0)
    assert (after.number, after.known_at) == (3, 99.0)


def test_what_is_reconciled_cannot_be_once_more():
    with pytest.raises(IllegalEventError, match="reconciled"):
        reconciled(NEVER_RESTORED, by="w1", why="", at=1.0)
