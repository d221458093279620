"""What really happened: every effect in the services' own ledgers, read from their files."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from landed.stores.driver import driver


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One effect: what it is, its key at the service, and the mark of the call that wanted it.

    `id` is the service's own. `standing` says of a table that it was not given back. `of` names the
    table that a cancellation gave back.
    """

    tool: str
    id: str
    key: str
    mark: str = ""
    standing: bool = True
    of: str = ""


def effects(*, restaurant: Path, payments: Path) -> tuple[Effect, ...]:
    """Return all effects that these two files hold."""
    return (*_tables(restaurant), *_cancellations(restaurant), *_refunds(payments))


def _tables(path: Path) -> Iterator[Effect]:
    rows = _rows(path, "SELECT 'R' || number, key, name, cancelled FROM reservation")
    for id, key, name, cancelled in rows:
        yield Effect(tool="reserve_table", id=id, key=key, mark=name or "", standing=not cancelled)


def _cancellations(path: Path) -> Iterator[Effect]:
    """What was cancelled is kept under the key that did it, with the table as it was."""
    did = "SELECT key, answer ->> '$.id' FROM key WHERE action = 'cancel' AND answer IS NOT NULL"
    for key, of in _rows(path, did):
        yield Effect(tool="cancel_reservation", id=f"cancelled {of}", key=key, of=of)


def _refunds(path: Path) -> Iterator[Effect]:
    for id, key, reason in _rows(path, "SELECT 'RF' || number, key, reason FROM refund"):
        yield Effect(tool="refund_order", id=id, key=key or "", mark=reason or "")


def _rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(driver.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return list(connection.execute(query))
