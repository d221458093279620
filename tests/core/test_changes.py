"""A unit is written whole or not at all, and every condition of it is checked first."""

from dataclasses import FrozenInstanceError, replace

import pytest

from landed.core.absorb import Question
from landed.core.changes import (
    Changes,
    Guard,
    Hold,
    Kind,
    Move,
    Record,
    Stored,
    apply,
)
from landed.core.errors import ConflictError, LeaseLostError, StaleWriteError
from landed.core.event import Event
from landed.core.operation import MOVES, Evidence, Happened, Source, State, moved
from landed.core.operation_record import to_record
from landed.core.store import Store
from landed.core.tool import Tool
from tests.core.build import SENT_AT, operation


def record(id: str = "op-a1", version: int = 1, **fields) -> Record:
    plain = {
        "kind": Kind.OPERATION,
        "tenant": "t1",
        "session": "s1",
        "state": "recorded",
        "epoch": 0,
        "worker": "w1",
        "open": True,
        "frozen": {"tool": "reserve_table"},
        "changing": {},
    }
    return Record(id=id, version=version, **{**plain, **fields})


def move(id: str = "op-a1", version: int = 1, event: str = "made", **fields) -> Move:
    after = record(id, version, **fields)
    return Move(after=after, event=Event(name=event, record=id, at=SENT_AT))


def holding(*records: Record, epoch: int = 0, **names: str) -> Stored:
    """A store that holds these records and names already."""
    return Stored(records={each.id: each for each in records}, names=names, epoch=epoch)


# What goes in.


def test_a_new_record_comes_back_as_stored_with_its_position_and_its_claim():
    after, (stored,) = apply(Stored(), Changes(moves=(move(),)))
    assert stored == record(epoch=1, made=1, last=1)
    assert after.records == {"op-a1": stored}
    assert after.epoch == 1
    assert [each.name for each in after.events] == ["made"]


def test_a_later_event_keeps_what_never_changes_and_where_the_record_was_made():
    before, (_, held) = apply(Stored(), Changes(moves=(move("op-a0"), move())))
    changed = move(version=2, event="sent", epoch=1, state="sent", frozen={"tool": "other"})
    after, (stored,) = apply(before, Changes(moves=(changed,)))
    assert stored.frozen == held.frozen == {"tool": "reserve_table"}
    assert (stored.made, stored.last) == (2, 3)
    assert (stored.state, stored.version, stored.epoch) == ("sent", 2, 1)
    assert len(after.events) == 3


def test_a_record_may_move_twice_in_one_unit_and_comes_back_as_it_ends():
    twice = Changes(moves=(move(), move(version=2, event="sent"), move("op-a2")))
    after, (first, second) = apply(Stored(), twice)
    assert (first.id, first.version, first.made, first.last) == ("op-a1", 2, 1, 2)
    assert (second.id, second.version, second.made, second.last) == ("op-a2", 1, 3, 3)
    assert [each.name for each in after.events] == ["made", "sent", "made"]


def test_an_empty_unit_is_false_and_changes_nothing():
    assert not Changes()
    assert not Changes(guards=(Guard(id="op-a1", version=0),))
    assert apply(Stored(), Changes()) == (Stored(), ())


@pytest.mark.parametrize(
    "changes",
    [
        Changes(moves=(move(),)),
        Changes(takes=(Hold(name="n", record="op-a1"),)),
        Changes(frees=(Hold(name="n", record="op-a1"),)),
    ],
)
def test_a_unit_that_writes_anything_is_true(changes):
    assert changes


# Epochs.


@pytest.mark.req("S4-25")
def test_each_unit_that_inserts_open_records_draws_one_epoch_larger_than_any_before():
    first, _ = apply(Stored(epoch=6), Changes(moves=(move("op-a1"), move("op-a2"))))
    after, (third,) = apply(first, Changes(moves=(move("op-a3"),)))
    assert [first.records[id].epoch for id in ("op-a1", "op-a2")] == [7, 7]
    assert (third.epoch, after.epoch) == (8, 8)


def test_a_record_born_closed_draws_no_epoch_and_carries_none():
    after, (closed,) = apply(Stored(epoch=6), Changes(moves=(move(open=False),)))
    assert (closed.epoch, after.epoch) == (0, 6)
    mixed = Changes(moves=(move("in-1", open=False), move("op-a1")))
    after, (closed, opened) = apply(Stored(epoch=6), mixed)
    assert (closed.epoch, opened.epoch, after.epoch) == (0, 7, 7)


def test_a_unit_under_a_claim_inserts_under_that_claim_and_draws_none():
    after, (stored,) = apply(Stored(epoch=6), Changes(moves=(move(),), epoch=4))
    assert (stored.epoch, after.epoch) == (4, 6)


def test_a_move_of_what_exists_draws_no_epoch():
    before = holding(record(epoch=4), epoch=6)
    after, (stored,) = apply(before, Changes(moves=(move(version=2, epoch=4),)))
    assert (stored.epoch, after.epoch) == (4, 6)


# Conditions: each of them stops the whole unit.

HELD = record(version=3, epoch=4)

REFUSED: list[tuple[str, Changes, dict]] = [
    (
        "a guard on a record that moved",
        Changes(moves=(move("op-a2"),), guards=(Guard(id="op-a1", version=2),)),
        {"record": "op-a1", "expected": 2, "found": 3},
    ),
    (
        "a guard on a record that should be absent",
        Changes(moves=(move("op-a2"),), guards=(Guard(id="op-a1", version=0),)),
        {"record": "op-a1", "expected": 0, "found": 3},
    ),
    (
        "a guard on a record that is absent",
        Changes(moves=(move("op-a2"),), guards=(Guard(id="op-a9", version=1),)),
        {"record": "op-a9", "expected": 1, "found": 0},
    ),
    (
        "a move decided on an older version",
        Changes(moves=(move("op-a2"), move(version=3, epoch=4))),
        {"record": "op-a1", "expected": 2, "found": 3},
    ),
    (
        "a move decided on a version that never was",
        Changes(moves=(move("op-a2"), move(version=5, epoch=4))),
        {"record": "op-a1", "expected": 4, "found": 3},
    ),
    (
        "an insert of what exists",
        Changes(moves=(move("op-a2"), move())),
        {"record": "op-a1", "expected": 0, "found": 3},
    ),
    (
        "a move of what does not exist",
        Changes(moves=(move("op-a2"), move("op-a9", version=2, epoch=4))),
        {"record": "op-a9", "expected": 1, "found": 0},
    ),
    (
        "a name that another record holds",
        Changes(moves=(move("op-a2"),), takes=(Hold(name="table", record="op-a2"),)),
        {"name": "table", "holder": "op-a1"},
    ),
    (
        "a name twice in one unit",
        Changes(
            moves=(move("op-a2"), move("op-a3")),
            takes=(Hold(name="chair", record="op-a2"), Hold(name="chair", record="op-a3")),
        ),
        {"name": "chair", "holder": "op-a2"},
    ),
]


@pytest.mark.parametrize(
    ("changes", "says"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED]
)
def test_a_condition_that_does_not_hold_names_what_moved_and_nothing_is_written(changes, says):
    before = holding(HELD, epoch=4, table="op-a1")
    unchanged = holding(HELD, epoch=4, table="op-a1")
    with pytest.raises(StaleWriteError) as refused:
        apply(before, changes)
    assert {name: getattr(refused.value, name) for name in says} == says
    assert "read it and decide again" in str(refused.value)
    assert before == unchanged


def test_conditions_that_hold_let_the_unit_in():
    changes = Changes(
        moves=(move("op-a2"), move(version=4, epoch=4)),
        guards=(Guard(id="op-a1", version=3), Guard(id="op-a2", version=0)),
        takes=(Hold(name="chair", record="op-a2"),),
    )
    after, stored = apply(holding(HELD, epoch=4, table="op-a1"), changes)
    assert [each.id for each in stored] == ["op-a2", "op-a1"]
    assert after.names == {"table": "op-a1", "chair": "op-a2"}


def test_conditions_are_checked_in_the_order_guards_moves_names():
    guard = Guard(id="op-a9", version=1)
    stale = move(version=2, epoch=4)
    taken = Hold(name="table", record="op-a2")
    before = holding(HELD, table="op-a1")
    with pytest.raises(StaleWriteError) as first:
        apply(before, Changes(guards=(guard,), moves=(stale,), takes=(taken,)))
    assert first.value.record == "op-a9"
    with pytest.raises(StaleWriteError) as second:
        apply(before, Changes(moves=(stale,), takes=(taken,)))
    assert second.value.record == "op-a1"


@pytest.mark.req("S4-25")
def test_a_lost_claim_is_named_before_a_stale_version():
    late = move(version=2, epoch=2)
    with pytest.raises(LeaseLostError) as refused:
        apply(holding(HELD), Changes(moves=(late,)))
    assert (refused.value.record, refused.value.held, refused.value.found) == ("op-a1", 2, 4)
    assert "the worker that holds it goes on with it" in str(refused.value)


REPLY = Evidence(source=Source.REPLY, at=SENT_AT, says="the service answered")
MOVABLE = [(state, event) for state, ways in MOVES.items() for event in ways]


@pytest.mark.req("S4-25")
@pytest.mark.parametrize(("state", "event"), MOVABLE, ids=[f"{s}-{e}" for s, e in MOVABLE])
def test_no_move_of_a_worker_that_lost_its_claim_goes_in(state: State, event: Happened):
    mine = operation(state, epoch=1)
    before = holding(replace(to_record(mine), epoch=2, worker="w2"))
    write = Move(
        after=to_record(moved(mine, event, at=SENT_AT, evidence=REPLY)),
        event=Event(name=event, record=mine.id, at=SENT_AT),
    )
    with pytest.raises(LeaseLostError):
        apply(before, Changes(moves=(write,)))


@pytest.mark.req("S4-25")
def test_a_move_under_no_claim_does_not_go_in_where_somebody_holds_one():
    with pytest.raises(LeaseLostError):
        apply(holding(HELD), Changes(moves=(move(version=4, epoch=0),)))


def test_the_moves_of_a_record_that_the_unit_inserts_are_held_to_no_epoch():
    twice = Changes(moves=(move(), move(version=2, event="sent", epoch=9)))
    _, (stored,) = apply(Stored(), twice)
    assert (stored.version, stored.epoch) == (2, 1)


# Names.


def test_frees_go_before_takes_so_that_one_unit_hands_a_name_on():
    changes = Changes(
        frees=(Hold(name="table", record="op-a1"),), takes=(Hold(name="table", record="op-a2"),)
    )
    after, _ = apply(holding(table="op-a1"), changes)
    assert after.names == {"table": "op-a2"}


@pytest.mark.parametrize("hold", [Hold(name="table", record="op-a2"), Hold(name="x", record="y")])
def test_freeing_what_one_does_not_hold_changes_nothing(hold):
    after, _ = apply(holding(table="op-a1"), Changes(frees=(hold,)))
    assert after.names == {"table": "op-a1"}


def test_a_name_that_was_freed_is_gone():
    after, _ = apply(holding(table="op-a1"), Changes(frees=(Hold(name="table", record="op-a1"),)))
    assert after.names == {}


# What the errors carry.


def test_an_error_carries_what_moved_and_says_what_to_do():
    stale = StaleWriteError(record="op-a1", expected=2, found=3)
    assert str(stale) == "record op-a1 is at version 3, not 2; read it and decide again"
    taken = StaleWriteError(name="table")
    assert str(taken) == "the name table is held by nobody; read it and decide again"
    moved_on = ConflictError("the table is gone", changed=("free_tables",))
    assert (str(moved_on), moved_on.changed) == ("the table is gone", ("free_tables",))


# The seams keep to what was agreed.


def test_records_and_units_cannot_be_changed_once_they_are_made():
    with pytest.raises(FrozenInstanceError):
        record().version = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        Changes().epoch = 2  # type: ignore[misc]


def _verbs(seam: type) -> set[str]:
    return {name for name in vars(seam) if callable(getattr(seam, name)) and name[0] != "_"}


def test_a_store_has_one_writing_verb_and_at_most_twelve_in_all():
    assert "commit" in _verbs(Store)
    assert len(_verbs(Store)) <= 12


def test_a_tool_can_be_asked_every_question_there_is():
    put = set(Question) - {Question.RECEIPT}  # That is sent to us; nobody asks for it.
    assert {each.value.replace("-", "_") for each in put} <= _verbs(Tool)
