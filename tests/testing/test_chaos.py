"""The parts of a chaos run that need no processes: load, notes, and above all the auditor."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from landed.core.changes import Changes, Kind, Move, Record
from landed.core.event import Event
from landed.core.journal import Entry
from landed.core.operation import Evidence, Operation, Source, State
from landed.core.plan import Plan, PlanState
from landed.core.undo import Release, ReleaseState
from landed.stores.sqlite import open_sqlite
from landed.testing.chaos.auditor import Wrong, audit
from landed.testing.chaos.books import Books, Chain, read_books
from landed.testing.chaos.crew import Worker
from landed.testing.chaos.hand import Orphans
from landed.testing.chaos.ledgers import Effect
from landed.testing.chaos.load import Do, Script, scripts
from landed.testing.chaos.notes import Noted, Notes
from landed.testing.chaos.places import place_of
from landed.testing.chaos.report import adoption
from landed.testing.worlds.weather import Weather
from tests.core import build

SAYS = (Evidence(source=Source.REPLY, at=1.0, says="done"),)
OLD, NEW = "7.old", "7.new"
REVISED = Script(
    number=7,
    do=Do.REVISE,
    tenant="t0",
    session="s7",
    orders=("O1", "O2"),
    cents=5,
    after_s=0.1,
    hard=False,
)


def booked(id: str, mark: str, state: State = State.CONFIRMED) -> Operation:
    return build.operation(
        state, id=id, key=id, tool="reserve_table", arguments={"name": mark}, evidence=SAYS
    )


def table(key: str, mark: str, *, id: str = "R1", standing: bool = True) -> Effect:
    return Effect(tool="reserve_table", id=id, key=key, mark=mark, standing=standing)


def released(operation: str, state: ReleaseState) -> Release:
    return Release(
        id=f"release/{operation}",
        operation=operation,
        tenant="t0",
        session="s7",
        principal="ana",
        origin="user",
        made_at=1.0,
        state=state,
    )


RUNNING = Plan(
    id="plan-1",
    tenant="t0",
    session="s7",
    turn="T1",
    input="in-1",
    principal="ana",
    origin="user",
    call_id="plan",
    revises="",
    intent={},
    steps=(),
    places=(),
    made_at=1.0,
    send_by=9.0,
    state=PlanState.RUNNING,
)

A, B = booked("op-a", OLD), booked("op-b", NEW)
GONE = table("op-a", OLD, id="R1", standing=False)
STANDS = table("op-a", OLD, id="R1")
REPLACES = table("op-b", NEW, id="R2")
DONE = released("op-a", ReleaseState.DONE)

# What is in the books, what is in the ledgers, what is wrong with that.
CASES: list[tuple[str, Books, tuple[Effect, ...], set[Wrong]]] = [
    ("a change of mind that ended well", Books(operations=(A, B), releases=(DONE,)),
     (GONE, REPLACES), set()),
    ("confirmed, and nothing there", Books(operations=(A,)), (), {Wrong.LOST}),
    ("failed, and there", Books(operations=(booked("op-a", OLD, State.FAILED),)), (STANDS,),
     {Wrong.FALSE_NO}),
    ("still in doubt", Books(operations=(booked("op-a", OLD, State.UNKNOWN),)), (STANDS,),
     {Wrong.UNRESOLVED}),
    ("in front of a person", Books(operations=(booked("op-a", OLD, State.UNDECIDED),)), (STANDS,),
     set()),
    ("settled by nothing", Books(operations=(replace(A, evidence=()),)), (STANDS,),
     {Wrong.UNEVIDENCED}),
    ("two keys for one wish", Books(operations=(A, booked("op-c", OLD))),
     (STANDS, table("op-c", OLD, id="R3")), {Wrong.TWICE}),
    ("a plan that goes on", Books(operations=(A,), plans=(RUNNING,)),
     (STANDS,), {Wrong.OPEN_PLAN}),
    ("one key that took effect twice", Books(operations=(A,)),
     (STANDS, table("op-a", "", id="R3")), {Wrong.TWICE}),
    ("an effect under a key that nobody knows", Books(operations=(A,)),
     (STANDS, table("op-x", "9.only", id="R3")), {Wrong.UNRECORDED}),
    ("a release that is owed", Books(
        operations=(A,), releases=(released("op-a", ReleaseState.DUE),)), (STANDS,), {Wrong.OWED}),
    ("a release that waits for a person", Books(
        operations=(A, B), releases=(released("op-a", ReleaseState.ASKED),)),
     (STANDS, REPLACES), set()),
    ("a release said to be done", Books(operations=(A,), releases=(DONE,)), (STANDS,),
     {Wrong.NOT_RELEASED}),
    ("a change of mind that left both", Books(operations=(A, B)), (STANDS, REPLACES),
     {Wrong.NOT_RELEASED}),
    ("given back by nobody", Books(operations=(A,)), (GONE,), {Wrong.RELEASED}),
    ("a wish without an operation", Books(operations=()), (), {Wrong.FORGOTTEN}),
    ("a name that is never freed", Books(
        operations=(replace(A, names=("same/a",)),), held={"same/a": "op-a"}), (STANDS,),
     {Wrong.HELD}),
    ("a journal that was edited", Books(operations=(A,), broken=("entry 3",)), (STANDS,),
     {Wrong.JOURNAL}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("books", "landed", "wrong"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_the_auditor_names_what_differs(
    books: Books, landed: tuple[Effect, ...], wrong: set[Wrong]
) -> None:
    assert {each.wrong for each in audit(books, landed, (REVISED,))} == wrong


def test_every_complaint_there_is_can_be_made() -> None:
    assert {wrong for case in CASES for wrong in case[3]} == set(Wrong)


def test_the_same_seed_is_the_same_load() -> None:
    first = scripts(seed=3, operations=400)
    assert first == scripts(seed=3, operations=400)
    assert first != scripts(seed=4, operations=400)
    assert 400 <= sum(script.operations for script in first) < 404
    assert {script.do for script in first} == set(Do)


def test_a_share_that_is_none_is_refused() -> None:
    for share, late_s in ((1.5, 0.0), (-0.1, 0.0), (0.1, -1.0)):
        with pytest.raises(ValueError):
            Weather(share=share, late_s=late_s)


def noted(path: Path, *lines: dict[str, object]) -> Notes:
    notes = Notes(path)
    for line in lines:
        notes.add(Noted.CLAIMED, **line)
    return notes


def test_a_line_that_was_cut_short_by_a_kill_is_none_and_hides_none(tmp_path: Path) -> None:
    notes = noted(tmp_path / "notes", {"ids": ["op-a"]})
    with notes.path.open("a") as file:
        file.write('{"at": 1.0, "noted": "done", "scr')
    notes.add(Noted.BEGAN, worker="w2")
    assert [line["noted"] for line in notes.lines()] == ["claimed", "began"]
    assert Worker(number=0, command=(), notes=notes).name == "w2"


# One worker died at 100 and left op-a, which others may take from 103 on; they looked at these
# times ▸ how long it lay there after that, and whether somebody who looked left it there.
LOOKS: list[tuple[list[tuple[float, float, list[str]]], float, int]] = [
    ([(101.0, 101.1, []), (103.5, 103.6, ["op-a"])], 0.6, 0),
    ([(102.9, 103.1, []), (104.0, 104.5, ["op-a"])], 1.5, 0),
    ([(103.5, 103.6, []), (104.0, 104.5, ["op-a"])], 1.5, 1),
]


@pytest.mark.parametrize(("looks", "worst_s", "passed_over"), LOOKS)
def test_adoption_is_counted_from_the_end_of_the_lease(
    looks: list[tuple[float, float, list[str]]], worst_s: float, passed_over: int
) -> None:
    left = Orphans(at=100.0, how="killed", ids=("op-a",), free_at=103.0)
    notes = [
        {"noted": Noted.CLAIMED, "began": began, "at": at, "ids": ids} for began, at, ids in looks
    ]
    told = adoption([left], notes, [], lease_s=3.0)
    assert (told.left, told.passed_over, told.beat_s) == (1, passed_over, 1.0)
    assert told.worst_s == pytest.approx(worst_s)
    assert adoption([left], notes, [(101.0, 102.0)], lease_s=3.0).left == 0


RECEIVED = Record(
    id="in-1",
    kind=Kind.INPUT,
    tenant="t0",
    session="s1",
    state="received",
    version=1,
    epoch=0,
    worker="",
    open=False,
    frozen={"text": "hello"},
    changing={},
)


async def written_and_read(path: Path) -> tuple[Books, Entry]:
    store = open_sqlite(str(path))
    event = Event(name="received", record="in-1", at=1.0)
    await store.commit(Changes(moves=(Move(after=RECEIVED, event=event),)))
    books = await read_books(store)
    (entry,) = await store.journal()
    await store.close()
    return books, entry


def test_the_books_are_what_is_in_a_store_and_an_edited_one_is_noticed(tmp_path: Path) -> None:
    books, entry = asyncio.run(written_and_read(tmp_path / "a.db"))
    assert (books.operations, books.events, books.broken) == ((), 1, ())
    edited = Chain()
    edited.add(replace(entry, body=b'{"text": "other"}', before=3, prev="made up"))
    assert len(edited.complaints()) == 3
    assert edited.differing([]) == ["record in-1 is not as its journal says"]


def test_who_holds_what_is_stuck_is_said(tmp_path: Path) -> None:
    async def stored() -> None:
        store = open_sqlite(str(tmp_path / "a.db"))
        await store.renew(worker="w1", until=10.0)
        held = replace(RECEIVED, id="op-1", kind=Kind.OPERATION, state="sent", worker="w1")
        moves = [
            Move(after=replace(held, open=True), event=Event(name="sent", record="op-1", at=1))
        ]
        await store.commit(Changes(moves=tuple(moves)))
        await store.close()

    asyncio.run(stored())
    with place_of(f"sqlite:///{tmp_path}/a.db", tmp_path) as place:
        assert place.left() == ("operation sent op-1, held by w1",)
