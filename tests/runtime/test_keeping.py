"""Archives: nothing is erased that is not durably in one, whatever dies, and all of it is there."""

import os
from pathlib import Path

import pytest

import landed
from landed.core.archived import Archived
from landed.core.changes import Changes
from landed.core.errors import ProposalError, StoreError
from landed.core.key import Ask
from landed.runtime import keeping
from landed.runtime.archive import Archive
from landed.runtime.keeping import Keeper, Retention
from landed.stores.sqlite import SqliteStore, open_sqlite
from landed.tools.function import tool
from tests.kept import LATER, journal_of, records_of, said_of

pytestmark = pytest.mark.anyio

SECRET = "4111-1111"
CALLS = 6


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@tool(effect="reversible")
async def note(text: str) -> dict[str, str]:
    """Keep a note."""
    return {"id": f"noted {text}"}


async def filled(path: Path) -> None:
    """Make a store in which there are things that are over, in two conversations."""
    async with landed.open(f"sqlite:///{path}", tools=[note], mark="") as rt:
        for n in range(CALLS):
            heard = await rt.receive(f"note {SECRET}", session=f"s{n % 2}", principal="ana")
            await rt.perform("note", {"text": f"{SECRET} {n}"}, ask=heard.ask("c"))


def kept_for(days: float, to: Path) -> Retention:
    return Retention(archive_after_days=days, erase_after_days=days, to=str(to))


def keeper_of(store: SqliteStore, to: Path) -> Keeper:
    return Keeper(store=store, keeping=store.keeping(), archive=Archive(place=to))


async def keep(store: SqliteStore, to: Path) -> None:
    await keeper_of(store, to).keep(kept_for(1, to), by="ana", now=LATER)


def archived_in(to: Path) -> dict[str, Archived]:
    """Return what an archive holds, by id; each segment is checked."""
    return {one.record.id: one for _, segment in Archive(place=to).read() for one in segment}


async def test_what_is_archived_is_whole_and_what_was_erased_is_in_it(tmp_path: Path) -> None:
    await filled(tmp_path / "a.db")
    store = open_sqlite(str(tmp_path / "a.db"))
    before = {each.id: each for each in await records_of(store)}
    journal = await journal_of(store)
    await keep(store, tmp_path / "to")
    held = archived_in(tmp_path / "to")
    for id, record in before.items():
        assert [e for e in journal if e.id == id] == list(held[id].entries)
        assert (held[id].record.state, held[id].record.last) == (record.state, record.last)
    contracts = [id for id in held if id.startswith("contract/")]
    assert len(contracts) == 1
    assert SECRET not in "".join([*map(repr, await records_of(store)), *await said_of(store)])
    keeper = keeper_of(store, tmp_path / "to")
    assert await keeper.verify() == []
    await store.close()


async def test_running_it_again_writes_nothing_and_a_new_conversation_is_a_new_segment(
    tmp_path: Path,
) -> None:
    path, to = tmp_path / "a.db", tmp_path / "to"
    await filled(path)
    store = open_sqlite(str(path))
    for _ in range(2):
        await keep(store, to)
        assert [each.name for each in sorted(to.iterdir())] == ["000001.jsonl"]
    await store.close()
    async with landed.open(f"sqlite:///{path}", tools=[note]) as rt:
        await rt.perform("note", {"text": "new"}, ask=Ask(session="s9"))
    store = open_sqlite(str(path))
    await keep(store, to)
    assert [each.name for each in sorted(to.iterdir())] == ["000001.jsonl", "000002.jsonl"]
    await store.close()


async def test_what_is_not_over_long_enough_is_left_alone(tmp_path: Path) -> None:
    await filled(tmp_path / "a.db")
    store = open_sqlite(str(tmp_path / "a.db"))
    before = await journal_of(store)
    keeper = keeper_of(store, tmp_path / "to")
    now = before[-1].at + 3600.0
    tally = await keeper.keep(kept_for(1, tmp_path / "to"), by="ana", now=now)
    assert (tally.archived, tally.erased) == (0, 0)
    assert await journal_of(store) == before
    await store.close()


# Edits and losses.


@pytest.mark.parametrize("where", ["a letter", "the last line", "half of it", "a record"])
async def test_an_edited_archive_is_found_out_and_nothing_is_erased(
    tmp_path: Path, where: str
) -> None:
    await filled(tmp_path / "a.db")
    store = open_sqlite(str(tmp_path / "a.db"))
    keeper = keeper_of(store, tmp_path / "to")
    only = Retention(archive_after_days=1, to=str(tmp_path / "to"))
    await keeper.keep(only, by="ana", now=LATER)
    segment = tmp_path / "to/000001.jsonl"
    body = segment.read_bytes()
    lines = body.splitlines(keepends=True)
    edited = {
        "a letter": body.replace(b"4111-1111", b"4111-1112", 1),
        "the last line": b"".join(lines[:-1]),
        "half of it": body[: len(body) // 2],
        "a record": b"".join(lines[1:]),
    }
    segment.write_bytes(edited[where])
    before = await journal_of(store)
    with pytest.raises(StoreError, match="not whole"):
        await keeper.verify()
    with pytest.raises(StoreError, match="not whole"):
        await keep(store, tmp_path / "to")
    assert await journal_of(store) == before
    await store.close()


async def test_an_archive_of_another_store_is_found_out(tmp_path: Path) -> None:
    for name in ("a", "b"):
        await filled(tmp_path / f"{name}.db")
    first, second = (open_sqlite(str(tmp_path / f"{name}.db")) for name in "ab")
    await keep(first, tmp_path / "to")
    keeper = keeper_of(second, tmp_path / "to")
    problems = await keeper.verify()
    assert any(problem.startswith("000001.jsonl: the store has no entry") for problem in problems)
    await second.close()
    await first.close()


# Deaths.


class Dead(BaseException):
    """The process died here."""


class Deaths:
    """Counts the points at which a process may die, and dies at one of them."""

    def __init__(self, at: int) -> None:
        self.left = at

    def point(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Dead


class Mortal:
    """A store, and what it keeps, that may die before and after each write."""

    def __init__(self, store: SqliteStore, deaths: Deaths) -> None:
        self.inner, self.deaths = store, deaths
        self.keeps = store.keeping()
        self.load, self.journal = store.load, store.journal
        self.sessions, self.kept = self.keeps.sessions, self.keeps.kept

    async def commit(self, changes: Changes) -> object:
        self.deaths.point()
        done = await self.inner.commit(changes)
        self.deaths.point()
        return done

    async def let_go(self, *ids: str) -> None:
        self.deaths.point()
        await self.keeps.let_go(*ids)
        self.deaths.point()

    async def scrub(self, *, rewrites: bool = False) -> str:
        self.deaths.point()
        return await self.keeps.scrub(rewrites=rewrites)


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> list[Deaths]:
    """Let a process die at each call by which an archive is written, too."""
    current: list[Deaths] = []

    def mortal(name: str) -> None:
        real = getattr(os, name)

        def call(*arguments: object) -> object:
            current[-1].point()
            done = real(*arguments)
            current[-1].point()
            return done

        monkeypatch.setattr(os, name, call)

    for name in ("fsync", "link"):
        mortal(name)
    return current


@pytest.mark.services
@pytest.mark.timeout(300)
async def test_a_death_at_any_point_erases_nothing_that_is_not_archived(
    tmp_path: Path, dying: list[Deaths], small_batches: None
) -> None:
    await filled(tmp_path / "a.db")
    at = 1
    while await dies_and_goes_on(tmp_path, dying, at):
        at += 1
    assert at > 25


async def test_a_death_at_some_points_erases_nothing_that_is_not_archived(
    tmp_path: Path, dying: list[Deaths], small_batches: None
) -> None:
    await filled(tmp_path / "a.db")
    for at in (3, 9, 20, 24):
        assert await dies_and_goes_on(tmp_path, dying, at)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "ERASED_AT_ONCE_MAX", 4)
    monkeypatch.setattr(keeping, "SEGMENT_RECORDS_MAX", 8)


async def dies_and_goes_on(tmp_path: Path, dying: list[Deaths], at: int) -> bool:
    """Die at a point, look, run it again, look; return whether there was such a point."""
    path, to = tmp_path / f"{at}.db", tmp_path / f"to{at}"
    path.write_bytes((tmp_path / "a.db").read_bytes())
    store = open_sqlite(str(path))
    whole = {each.id: each for each in await records_of(store)}
    dying.append(Deaths(at))
    keeper = Keeper(
        store=Mortal(store, dying[-1]),  # type: ignore[arg-type]
        keeping=Mortal(store, dying[-1]),
        archive=Archive(place=to),
    )
    died = False
    try:
        await keeper.keep(kept_for(1, to), by="ana", now=LATER)
    except Dead:
        died = True
    dying.append(Deaths(-1))
    await require_kept(store, to, whole)
    await keep(store, to)
    assert SECRET not in repr(await records_of(store))
    await require_kept(store, to, whole)
    assert all(each.suffix == ".jsonl" for each in to.iterdir())
    await store.close()
    return died


async def require_kept(store: SqliteStore, to: Path, whole: dict) -> None:
    """Demand of each record that it is whole in the store or in the archive, and readable."""
    held = archived_in(to) if to.exists() else {}
    entries = await journal_of(store)
    for record in whole.values():
        bodies = [e.body for e in entries if e.id == record.id and e.seq <= record.last]
        if None in bodies:
            assert held[record.id].record.last == record.last
            assert None not in [e.body for e in held[record.id].entries]
    await said_of(store)


# What makes no sense.


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "says when to archive, when to erase"),
        ({"archive_after_days": 1}, "needs both"),
        ({"erase_after_days": 1, "to": "x"}, "needs both"),
        ({"erase_after_days": -1}, "from 0 on"),
        ({"archive_after_days": 9, "erase_after_days": 1, "to": "x"}, "before it is archived"),
    ],
)
def test_a_retention_that_makes_no_sense_is_refused(given: dict, says: str) -> None:
    with pytest.raises(ProposalError, match=says):
        Retention(**given)


async def test_the_value_is_all_that_is_needed(tmp_path: Path) -> None:
    await filled(tmp_path / "a.db")
    url = f"sqlite:///{tmp_path / 'a.db'}"
    assert (await landed.keep(url, landed.Retention(erase_after_days=1), by="cron")).erased == 0
    assert (await landed.keep(url, landed.Retention(erase_after_days=0), by="cron")).erased > 0
    store = open_sqlite(str(tmp_path / "a.db"))
    assert SECRET not in repr(await records_of(store))
    await store.close()
