"""What a store must do when it is read: pages, sessions, and the journal as a chain."""

from landed.core.census import OLDEST_UNKNOWN, OPEN, WAITING
from landed.core.changes import Changes
from landed.core.journal import GENESIS, body_of, verify
from landed.core.store import Selection, Store
from landed.testing.store_checks.suite import Maker, check, check_maker, inserted, made, moved

PAGES_MAX = 1_000


@check
async def sessions_and_tenants_are_apart(store: Store) -> None:
    """A read sees one session of one tenant, and of one worker if asked."""
    moves = (made("op-1"), made("op-2", session="s2"), made("op-3", tenant="t2"))
    await store.commit(Changes(moves=(*moves, made("op-4", worker="v"), made("op-5", open=False))))
    whole = await store.session_records(tenant="t", session="s")
    assert [record.id for record in whole] == ["op-1", "op-4", "op-5"]
    mine = await store.open_records(tenant="t", session="s", worker="w")
    assert [record.id for record in mine] == ["op-1"]


@check
async def a_session_is_paged(store: Store) -> None:
    """A session is read in pages, each after the last record of the one before."""
    for n in range(5):
        await inserted(store, f"op-{n}")
    pages: list[list[str]] = []
    after = 0
    while page := await store.session_records(tenant="t", session="s", after=after, limit=2):
        pages.append([record.id for record in page])
        after = page[-1].made
    assert pages == [["op-0", "op-1"], ["op-2", "op-3"], ["op-4"]]


@check
async def what_waits_for_a_person_is_found(store: Store) -> None:
    """What is in one of the states that wait is read in pages, of one tenant, whoever holds it."""
    moves = (
        made("op-1"),
        made("plan-1", state="proposed", open=False),
        made("case-1", state="open", open=False, session="s2"),
        made("case-2", state="open", open=False, tenant="t2"),
        made("op-2", state="undecided", open=False, worker="v"),
    )
    await store.commit(Changes(moves=moves))
    whole = await store.listed(tenant="t", of=Selection.WAITING)
    assert ([record.id for record in whole.records], whole.next) == (
        ["plan-1", "case-1", "op-2"],
        0,
    )
    first = await store.listed(tenant="t", of=Selection.WAITING, limit=1)
    second = await store.listed(tenant="t", of=Selection.WAITING, after=first.next, limit=1)
    assert [record.id for record in second.records] == ["case-1"]


@check
async def what_is_open_is_listed(store: Store) -> None:
    """What is open in a tenant is read in pages, oldest first, whoever holds it."""
    moves = (
        made("op-1", worker="v"),
        made("op-2", open=False),
        made("op-3", tenant="t2"),
        made("op-4", session="s2"),
        made("op-5", worker=""),
        made("op-6", worker="v"),
    )
    await store.commit(Changes(moves=moves))
    assert await pages(store, Selection.OPEN, limit=3) == [["op-1", "op-4", "op-5"], ["op-6"]]
    (first,) = (await store.listed(tenant="t", of=Selection.OPEN, limit=1)).records
    await store.commit(Changes(moves=(moved(first, "confirmed", open=False),)))
    assert await pages(store, Selection.OPEN, limit=2) == [["op-4", "op-5"], ["op-6"]]


@check
async def what_is_recent_is_listed(store: Store) -> None:
    """Every record of a tenant is read once, the one that was last written to first."""
    made_first = [await inserted(store, f"op-{n}") for n in range(4)]
    await store.commit(Changes(moves=(made("op-4", tenant="t2"), made("op-5", open=False))))
    await store.commit(Changes(moves=(moved(made_first[1], "confirmed", open=False),)))
    assert await pages(store, Selection.RECENT, limit=2) == [
        ["op-1", "op-5"],
        ["op-3", "op-2"],
        ["op-0"],
    ]
    newest, *rest = (await store.listed(tenant="t", of=Selection.RECENT)).records
    assert all(record.last < newest.last for record in rest)


@check
async def what_is_recent_is_found_behind_what_others_wrote(store: Store) -> None:
    """However much others wrote since, the pages lead to the first record; some may be empty."""
    await inserted(store, "op-1")
    for n in range(12):
        await store.commit(
            Changes(moves=tuple(made(f"op-{n}-{i}", tenant="t2") for i in range(100)))
        )
    found = await pages(store, Selection.RECENT, limit=5)
    assert [ids for ids in found if ids] == [["op-1"]]


async def pages(store: Store, of: Selection, *, limit: int) -> list[list[str]]:
    """Return the ids on every page of a listing, as long as there is a next one."""
    found: list[list[str]] = []
    after = 0
    for _ in range(PAGES_MAX):
        page = await store.listed(tenant="t", of=of, after=after, limit=limit)
        found.append([record.id for record in page.records])
        after = page.next
        if not after:
            return found
    raise AssertionError(f"{PAGES_MAX} pages, and no end: {found[-1]}")


@check
async def what_is_open_is_counted(store: Store) -> None:
    """Its facts count what is open and what waits, and name the oldest doubt and who has it."""
    moves = (
        made("op-1"),
        made("op-2", state="confirmed", open=False),
        made("op-3", state="unknown", tenant="t2", worker="v"),
        made("op-4", state="unknown"),
        made("op-5", state="undecided", open=False),
    )
    await store.commit(Changes(moves=moves))
    facts = {fact.name: fact for fact in await store.facts()}
    assert facts[OPEN].numbers == {"operation/recorded": 1.0, "operation/unknown": 2.0}
    assert facts[WAITING].numbers == {"operation/undecided": 1.0}
    assert facts[OLDEST_UNKNOWN].value == "op-3 (book), in the hands of worker v"


@check
async def a_journal_is_paged(store: Store) -> None:
    """The journal, and one record's part of it, is read in pages."""
    first, second = await inserted(store, "op-1"), await inserted(store, "op-2")
    for state in ("sent", "unknown"):
        moves = (moved(first, state), moved(second, state))
        first, second = await store.commit(Changes(moves=moves))
    whole = await store.journal()
    assert [entry.seq for entry in whole] == [1, 2, 3, 4, 5, 6]
    assert await store.journal(after=2, limit=2) == whole[2:4]
    own = await store.journal(record="op-2")
    assert own == tuple(entry for entry in whole if entry.id == "op-2")
    assert await store.journal(record="op-2", after=own[0].seq, limit=1) == own[1:2]
    assert await store.journal(record="op-3") == ()


@check_maker
async def the_journal_is_a_chain(maker: Maker) -> None:
    """Each entry has its body, its predecessor and a link that verifies."""
    store = await maker.make()
    first = made("op-1")
    moves = [first, moved(first.after, "sent"), made("op-2")]
    sent, _ = await store.commit(Changes(moves=tuple(moves)))
    moves.append(moved(sent, "confirmed", open=False))
    await store.commit(Changes(moves=(moves[-1],)))
    entries = await store.journal()
    await store.close()
    assert [entry.prev for entry in entries] == [GENESIS, *(entry.hash for entry in entries[:-1])]
    assert [entry.before for entry in entries] == [0, 1, 0, 2]
    assert [entry.body for entry in entries] == [body_of(move) for move in moves]
    for entry in entries:
        verify(entry, secret=maker.secret)
