"""Random programs of commits, run on a store and on `landed.core.changes.apply` side by side.

A program is a list of `Unit`s that know nothing of versions and epochs. `compare` turns each into
`Changes` against the state of the reference, some of them stale or under a lost claim on purpose,
and demands the same records, errors, names and journal from the store. A refused unit may leave
gaps between positions and between epochs; so these must only rise, and are taken over from the
store.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from landed.core.canonical import Json
from landed.core.changes import Changes, Guard, Hold, Kind, Move, Record, Stored, apply
from landed.core.errors import LeaseLostError, StaleWriteError
from landed.core.event import Event
from landed.core.store import Store

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

IDS = ("a", "b", "c")
NAMES = ("x", "y", "z")
STATES = ("recorded", "sent", "unknown", "confirmed")

Answer = tuple[Record, ...] | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One move: of which record, to what. `off` shifts the version, `lost` spoils the epoch."""

    id: str
    state: str
    open: bool
    changing: dict[str, Json]
    off: int = 0
    lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What one commit does. `guards` are (id, how far off the version is)."""

    steps: tuple[Step, ...]
    guards: tuple[tuple[str, int], ...] = ()
    takes: tuple[tuple[str, str], ...] = ()
    frees: tuple[tuple[str, str], ...] = ()
    epoch: int = 0


def programs() -> "SearchStrategy[list[Unit]]":
    """Return Hypothesis's way of drawing programs; most of what they try goes through."""
    from hypothesis import strategies as st

    ids = st.sampled_from(IDS)
    off = st.sampled_from((0, 0, 0, 0, 0, 0, -1, 1))
    holds = st.lists(st.tuples(st.sampled_from(NAMES), ids), max_size=2).map(tuple)
    steps = st.builds(
        Step,
        id=ids,
        state=st.sampled_from(STATES),
        open=st.booleans(),
        changing=st.dictionaries(st.sampled_from(("tries", "looks")), st.integers(0, 9)),
        off=off,
        lost=st.sampled_from((False,) * 9 + (True,)),
    )
    units = st.builds(
        Unit,
        steps=st.lists(steps, max_size=3).map(tuple),
        guards=st.lists(st.tuples(ids, off), max_size=1).map(tuple),
        takes=holds,
        frees=holds,
        epoch=st.sampled_from((0, 0, 7)),
    )
    return st.lists(units, max_size=8)


async def compare(
    make: Callable[[], Awaitable[Store]], program: Sequence[Unit], *, at_once: int = 1
) -> None:
    """Run a program on a new store and on the reference; raise `AssertionError` where they differ.

    With `at_once` above 1 so many units are committed together, all built on the same state. Only a
    store that writes them in the order of the calls can pass that.
    """
    store = await make()
    try:
        stored = Stored()
        for start in range(0, len(program), at_once):
            together = [_changes(unit, stored) for unit in program[start : start + at_once]]
            stored = await _compare_together(store, stored, together)
        await _compare_all(store, stored)
    finally:
        await store.close()


async def _compare_together(store: Store, stored: Stored, together: list[Changes]) -> Stored:
    answers = await asyncio.gather(*(_answer_of(store, changes) for changes in together))
    for changes, answer in zip(together, answers, strict=True):
        drawn = _drawn(stored, changes, answer)
        assert drawn >= stored.epoch, f"{changes} drew epoch {drawn}, after {stored.epoch}"
        stored, expected = _expected(replace(stored, epoch=drawn), changes)
        placed, stored = _placed(stored, answer, expected)
        assert answer == placed, f"{changes} gave {answer}, and should give {placed}"
    return stored


def _drawn(stored: Stored, changes: Changes, answer: Answer) -> int:
    """Return the counter from which the next epoch is the one that the unit drew, if it did."""
    if changes.epoch:
        return stored.epoch
    made = [one for one in answer if isinstance(one, Record) and one.id not in stored.records]
    drawn = max((one.epoch for one in made), default=0)
    return drawn - 1 if drawn else stored.epoch


def _placed(stored: Stored, answer: Answer, expected: Answer) -> tuple[Answer, Stored]:
    """Put the expected records where the store put them, which `_compare_all` looks into."""
    places = {one.id: (one.made, one.last) for one in answer if isinstance(one, Record)}
    placed: list[Record] = []
    for one in expected:
        if isinstance(one, Record) and one.id in places:
            made, last = places[one.id]
            placed.append(replace(one, made=made, last=last))
    if not placed:
        return expected, stored
    records = {**stored.records, **{one.id: one for one in placed}}
    return tuple(placed), replace(stored, records=records)


def _changes(unit: Unit, stored: Stored) -> Changes:
    local = dict(stored.records)
    moves: list[Move] = []
    for step in unit.steps:
        after = _after(step, local.get(step.id), unit.epoch)
        local[step.id] = after
        moves.append(Move(after=after, event=Event(name=step.state, record=step.id, at=1.5)))
    return Changes(
        moves=tuple(moves),
        guards=tuple(
            Guard(id=id, version=_version(stored.records.get(id)) + off) for id, off in unit.guards
        ),
        takes=tuple(Hold(name=name, record=id) for name, id in unit.takes),
        frees=tuple(Hold(name=name, record=id) for name, id in unit.frees),
        epoch=unit.epoch,
    )


def _after(step: Step, before: Record | None, epoch: int) -> Record:
    if before is None:
        before = Record(
            id=step.id,
            kind=Kind.OPERATION,
            tenant="t",
            session="s",
            state="",
            version=0,
            epoch=epoch,
            worker="w",
            open=True,
            frozen={"arguments": {"id": step.id}},
            changing={},
        )
    return replace(
        before,
        state=step.state,
        version=before.version + 1 + step.off,
        epoch=before.epoch + step.lost,
        open=step.open,
        changing=step.changing,
    )


def _version(record: Record | None) -> int:
    return record.version if record is not None else 0


async def _answer_of(store: Store, changes: Changes) -> Answer:
    try:
        return await store.commit(changes)
    except (StaleWriteError, LeaseLostError) as error:
        return _named(error)


def _expected(stored: Stored, changes: Changes) -> tuple[Stored, Answer]:
    try:
        return apply(stored, changes)
    except (StaleWriteError, LeaseLostError) as error:
        return stored, _named(error)


def _named(error: StaleWriteError | LeaseLostError) -> tuple[str, ...]:
    # The text is made of the fields, all of them.
    return (type(error).__name__, str(error))


async def _compare_all(store: Store, stored: Stored) -> None:
    records = await store.load(*IDS)
    assert {one.id: one for one in records} == stored.records
    assert await store.holders(*NAMES) == stored.names
    entries = await store.journal()
    assert [(entry.event, entry.id) for entry in entries] == [
        (event.name, event.record) for event in stored.events
    ]
    positions = [entry.seq for entry in entries]
    assert positions == sorted(set(positions)), f"positions must rise strictly: {positions}"
    for one in records:
        own = [entry.seq for entry in entries if entry.id == one.id]
        assert (one.made, one.last) == (own[0], own[-1]), f"{one} is not where its entries are"
