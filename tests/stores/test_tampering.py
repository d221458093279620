"""What is written stays as it was written: the database refuses changes, and reads find them."""

from collections.abc import Callable

import pytest

from landed.core.canonical import digest
from landed.core.changes import Changes, Record
from landed.core.errors import StoreError
from landed.core.journal import body_of, verify
from landed.stores.driver import driver
from landed.stores.sqlite import SqliteStore
from landed.testing.store_checks.suite import inserted, made, moved

pytestmark = pytest.mark.anyio


async def sent(store: SqliteStore) -> Record:
    """Write one operation with two events."""
    record = await inserted(store, "op-1")
    (record,) = await store.commit(Changes(moves=(moved(record, "sent"),)))
    return record


IMMUTABLE = ["id", "kind", "tenant", "session", "made"]
ENTRY = ["seq", "id", "version", "before", "event", "state", "at", "body_digest", "prev", "hash"]


@pytest.mark.req("S4-17")
@pytest.mark.parametrize(
    "statement",
    [
        *(f"UPDATE record SET {column} = {column}" for column in IMMUTABLE),
        *(f"UPDATE journal SET {column} = {column}" for column in ENTRY),
        "UPDATE journal SET body = CAST('{\"amount\":1}' AS BLOB)",
        "UPDATE journal SET body = body",
        "DELETE FROM journal",
        "DELETE FROM record",
        "INSERT INTO journal SELECT * FROM journal",
        "INSERT INTO journal (seq, id, version, before, event, state, at, body, body_digest, prev,"
        " hash) VALUES (9, 'op-1', 'two', 1, 'e', 's', 1.5, x'', '', '', '')",
    ],
)
async def test_the_database_refuses_changes(statement: str, store: SqliteStore) -> None:
    record = await sent(store)
    with pytest.raises(driver.IntegrityError):
        store._opened.writer.execute(statement)
    assert await store.load("op-1") == (record,)


@pytest.mark.req("S4-17")
async def test_the_stored_bytes_are_those_that_were_hashed(store: SqliteStore) -> None:
    await sent(store)
    (row,) = store._opened.reader.execute("SELECT body, body_digest FROM journal WHERE seq = 1")
    assert row[0] == body_of(made("op-1"))
    assert row[1] == digest(row[0], domain="journal-body")


EDITS = {
    "the state of a record": "UPDATE record SET state = 'confirmed'",
    "its version": "UPDATE record SET version = 7",
    "where its latest event is": "UPDATE record SET last = 1",
    "to nowhere": "UPDATE record SET last = 99",
    "where its first event is": "UPDATE record SET made = 2",
    "and that to nowhere": "UPDATE record SET made = 99",
    **{
        f"{column} of an entry": f"UPDATE journal SET {column} = {value} WHERE seq = 2"
        for column, value in {
            "id": "'op-2'",
            "version": "3",
            "before": "0",
            "event": "'confirmed'",
            "state": "'confirmed'",
            "at": "at + 1",
            "body": "CAST('{}' AS BLOB)",
            "body_digest": "'sha256:00'",
            "prev": "''",
            "hash": "'00'",
        }.items()
    },
    "the body of the first": "UPDATE journal SET body = CAST('{}' AS BLOB) WHERE seq = 1",
    "an entry that is gone": "DELETE FROM journal WHERE seq = 2",
    "the first that is gone": "DELETE FROM journal WHERE seq = 1",
}


def edit(store: SqliteStore, statement: str) -> None:
    """Edit the file as somebody would who first takes the triggers away."""
    writer = store._opened.writer
    for (name,) in writer.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'"):
        writer.execute(f"DROP TRIGGER {name}")
    writer.execute(statement)


@pytest.mark.parametrize("what", EDITS)
async def test_an_edited_row_is_refused(what: str, store: SqliteStore) -> None:
    record = await sent(store)
    edit(store, EDITS[what])
    with pytest.raises(StoreError, match="edited"):
        await store.load("op-1")
    with pytest.raises(StoreError, match="edited"):
        await store.session_records(tenant="t", session="s")
    with pytest.raises(StoreError, match="edited"):
        await store.open_records(tenant="t", session="s", worker="w")
    # Not even a move that nothing else speaks against, once the unit has to be looked at closely.
    with pytest.raises(StoreError):
        await store.commit(Changes(moves=(made("op-1"), moved(record, "unknown"))))


async def test_with_a_secret_links_cannot_be_made_anew(
    opened: Callable[..., SqliteStore],
) -> None:
    store = opened(secret=b"a secret")
    await sent(store)
    entry = (await store.journal())[1]
    verify(entry, secret=b"a secret")
    with pytest.raises(StoreError, match="edited"):
        verify(entry)


async def test_an_edited_record_keeps_nobody_from_the_others(store: SqliteStore) -> None:
    await inserted(store, "op-1", worker="gone")
    await inserted(store, "op-2", worker="gone")
    edit(store, "UPDATE record SET state = 'confirmed' WHERE id = 'op-1'")
    assert [record.id for record in await store.claim(worker="me", now=1.0)] == ["op-2"]
    assert await store.claim(worker="me", now=1.0) == ()


async def test_an_edited_worker_row_names_no_file(store: SqliteStore, path: str) -> None:
    await store.renew(worker="a", until=1e12)
    await inserted(store, "op-1", worker="a")
    store._opened.writer.execute("UPDATE worker SET file = '../agent.db'")
    with pytest.raises(StoreError, match="no name for a worker"):
        await store.claim(worker="me", now=1.0)


async def test_a_body_can_be_erased_and_the_chain_still_proves_the_rest(
    store: SqliteStore,
) -> None:
    await sent(store)
    store._opened.writer.execute("UPDATE journal SET body = NULL WHERE seq = 1")
    for entry in await store.journal():
        verify(entry)
    with pytest.raises(StoreError, match="was erased"):
        await store.load("op-1")
