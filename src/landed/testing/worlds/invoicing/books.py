"""The books of the invoicing service: its tables, and how a record of them reads.

The database itself keeps the two rules that no code may break: an invoice is never deleted and
never gets other figures, and a series only ever goes on.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import Any

from landed.testing.worlds.far_side import PAGE_MAX, Json, KeyedLedger, ProblemError
from landed.testing.worlds.faults import Clock
from landed.testing.worlds.invoicing import figures
from landed.testing.worlds.invoicing.figures import Figures

SCHEMA = """
CREATE TABLE IF NOT EXISTS contact (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
    email TEXT, tax_id TEXT, terms_days INTEGER
);
CREATE TABLE IF NOT EXISTS draft (
    number INTEGER PRIMARY KEY AUTOINCREMENT, contact TEXT NOT NULL, lines TEXT NOT NULL,
    made_at REAL NOT NULL, state TEXT NOT NULL DEFAULT 'open'
);
CREATE TABLE IF NOT EXISTS series (name TEXT PRIMARY KEY, last INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS invoice (
    id TEXT PRIMARY KEY, contact TEXT NOT NULL, customer TEXT NOT NULL, lines TEXT NOT NULL,
    net_cents INTEGER NOT NULL, vat_cents INTEGER NOT NULL, total_cents INTEGER NOT NULL,
    issued_on TEXT NOT NULL, due_on TEXT NOT NULL, made_at REAL NOT NULL,
    draft TEXT, rectifies TEXT UNIQUE, rectified_by TEXT
);
CREATE TABLE IF NOT EXISTS payment (
    number INTEGER PRIMARY KEY AUTOINCREMENT, invoice TEXT NOT NULL, cents INTEGER NOT NULL,
    paid_on TEXT NOT NULL, told TEXT, collection TEXT, state TEXT NOT NULL DEFAULT 'recorded'
);
CREATE TABLE IF NOT EXISTS reminder (
    number INTEGER PRIMARY KEY AUTOINCREMENT, invoice TEXT NOT NULL, email TEXT NOT NULL,
    days_before INTEGER NOT NULL, remind_on TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'scheduled'
);
CREATE TABLE IF NOT EXISTS expense (
    number INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT NOT NULL, cents INTEGER NOT NULL,
    spent_on TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'recorded'
);
CREATE TABLE IF NOT EXISTS collection (
    number INTEGER PRIMARY KEY AUTOINCREMENT, invoices TEXT NOT NULL, cents INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'collected'
);
CREATE TABLE IF NOT EXISTS auto_send (one INTEGER PRIMARY KEY CHECK (one = 1), sends INTEGER);
CREATE TRIGGER IF NOT EXISTS invoice_stays BEFORE DELETE ON invoice
BEGIN SELECT RAISE(ABORT, 'an invoice is never deleted'); END;
CREATE TRIGGER IF NOT EXISTS invoice_keeps_its_figures
BEFORE UPDATE OF id, contact, lines, net_cents, vat_cents, total_cents, issued_on, due_on ON invoice
BEGIN SELECT RAISE(ABORT, 'an issued invoice is never changed'); END;
CREATE TRIGGER IF NOT EXISTS series_goes_on BEFORE UPDATE ON series
WHEN NEW.last <= OLD.last OR NEW.name <> OLD.name
BEGIN SELECT RAISE(ABORT, 'a series only goes on'); END;
CREATE TRIGGER IF NOT EXISTS series_stays BEFORE DELETE ON series
BEGIN SELECT RAISE(ABORT, 'a series is never begun again'); END;
"""

# Per kind: its table, the letter of its ids ("" where the id is stored), and its columns.
KINDS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "contact": ("contact", "C", ("name", "email", "tax_id", "terms_days")),
    "draft": ("draft", "D", ("contact", "lines", "state")),
    "invoice": (
        "invoice",
        "",
        (
            *("contact", "customer", "lines", "net_cents", "vat_cents", "total_cents"),
            *("issued_on", "due_on", "draft", "rectifies", "rectified_by"),
        ),
    ),
    "payment": ("payment", "P", ("invoice", "cents", "paid_on", "told", "collection", "state")),
    "reminder": ("reminder", "M", ("invoice", "email", "days_before", "remind_on", "state")),
    "expense": ("expense", "E", ("what", "cents", "spent_on", "state")),
    "collection": ("collection", "B", ("invoices", "cents", "state")),
}
_JSON = ("lines", "invoices")


class Books:
    """Reads the records. `today` is the day it always is here, None for the clock's own day."""

    def __init__(
        self, path: str, clock: Clock, *, retention_s: float | None, today: date | None
    ) -> None:
        self.clock = clock
        self.ledger = KeyedLedger(path, clock, schema=SCHEMA, retention_s=retention_s)
        self._today = today

    @property
    def today(self) -> date:
        """The day it is."""
        return self._today or figures.day_of(self.clock.now())

    def record(self, kind: str, id: object) -> Json:
        """Return one record; a ProblemError 422 where there is none of that id."""
        table, letter, columns = KINDS[kind]
        key = f"'{letter}' || number" if letter else "id"
        select = f"SELECT {key}, {', '.join(columns)} FROM {table} WHERE {key} = ?"
        row = self.ledger.sql.execute(select, (id,)).fetchone()
        if row is None:
            raise ProblemError(422, f"no-such-{kind}", f"there is no {kind} {id}")
        return self._read(kind, row)

    def every(self, kind: str) -> list[Json]:
        """Return the records of a kind, in the order they were made, at most PAGE_MAX."""
        table, letter, columns = KINDS[kind]
        key = f"'{letter}' || number" if letter else "id"
        select = f"SELECT {key}, {', '.join(columns)} FROM {table} ORDER BY rowid LIMIT ?"
        rows = self.ledger.sql.execute(select, (PAGE_MAX,)).fetchall()
        return [self._read(kind, row) for row in rows]

    def of_id(self, id: str) -> Json:
        """Return the record of any kind that has this id."""
        letters = {letter: kind for kind, (_, letter, _) in KINDS.items() if letter}
        kind = "invoice" if id[1:2] == "-" else letters.get(id[:1])
        if kind is None:
            raise ProblemError(422, "no-such-record", f"there is no record {id}")
        return self.record(kind, id)

    def paid_cents(self, invoice: str) -> int:
        """Return what was paid of an invoice so far."""
        paid = "SELECT coalesce(sum(cents), 0) FROM payment WHERE invoice = ? AND state = ?"
        return int(self.ledger.sql.execute(paid, (invoice, "recorded")).fetchone()[0])

    def sends(self) -> bool:
        """Return whether invoices are sent by themselves."""
        row = self.ledger.sql.execute("SELECT sends FROM auto_send").fetchone()
        return bool(row and row[0])

    def alike(self, *, contact: str, total_cents: int) -> list[Json]:
        """Return drafts and invoices of that customer and total, made in the last ten minutes."""
        since = self.clock.now() - figures.ALIKE_WITHIN_S
        made = self.ledger.sql.execute(
            "SELECT 'D' || number, made_at FROM draft WHERE contact = :contact AND state = 'open'"
            " AND made_at >= :since UNION ALL SELECT id, made_at FROM invoice WHERE"
            " contact = :contact AND rectifies IS NULL AND rectified_by IS NULL"
            " AND made_at >= :since ORDER BY 2",
            {"contact": contact, "since": since},
        ).fetchall()
        found = [self.of_id(id) for id, _ in made]
        return [one for one in found if one["total_cents"] == total_cents]

    def insert(self, kind: str, **values: object) -> str:
        """Write a new record; returns its id."""
        table, letter, _ = KINDS[kind]
        key = f"'{letter}' || number" if letter else "id"
        written = {n: json.dumps(v) if n in _JSON else v for n, v in values.items()}
        names, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
        insert = f"INSERT INTO {table} ({names}) VALUES ({marks}) RETURNING {key}"
        return str(self.ledger.sql.execute(insert, written).fetchone()[0])

    def put(self, kind: str, id: str, state: str) -> Json:
        """Put a record that is there into another state; returns it as it is then."""
        self.change(kind, id, state=state)
        return self.record(kind, id)

    def change(self, kind: str, id: str, **values: object) -> None:
        """Write other values into a numbered record."""
        table, letter, _ = KINDS[kind]
        for name, value in values.items():
            written = json.dumps(value) if name in _JSON else value
            update = f"UPDATE {table} SET {name} = ? WHERE '{letter}' || number = ?"
            self.ledger.sql.execute(update, (written, id))

    def _read(self, kind: str, row: Sequence[Any]) -> Json:
        one: Json = {"id": row[0], "type": kind, **dict(zip(KINDS[kind][2], row[1:], strict=True))}
        one |= {name: json.loads(one[name]) for name in _JSON if name in one}
        more = _MORE.get(kind)
        return more(self, one) if more else one


def amount(cents: int) -> Json:
    """Return an amount as it is written, in both languages."""
    return {"total": figures.written(cents), "total_es": figures.written(cents, "es")}


def shown(what: Figures) -> Json:
    """Return figures as members of a record: cents, and the total as it is written."""
    return {**asdict(what), **amount(what.total_cents)}


def _draft(books: Books, one: Json) -> Json:
    customer = books.record("contact", one["contact"])["name"]
    return {**one, "customer": customer, **shown(figures.totals(figures.lines_of(one["lines"])))}


def _invoice(books: Books, one: Json) -> Json:
    total, paid = one["total_cents"], books.paid_cents(one["id"])
    return {
        **one,
        **amount(total),
        "due": figures.written_day(one["due_on"]),
        "paid_cents": paid,
        "open_cents": figures.open_cents(total_cents=total, paid_cents=paid),
    }


def _amount(_: Books, one: Json) -> Json:
    return {**one, **amount(one["cents"])}


def _payment(books: Books, one: Json) -> Json:
    undoable = figures.undoable(told=one["told"] is not None) and one["collection"] is None
    return {**_amount(books, one), "undoable": undoable}


def _reminder(_: Books, one: Json) -> Json:
    return {**one, "day": figures.written_day(one["remind_on"])}


_MORE: Mapping[str, Callable[[Books, Json], Json]] = {
    "draft": _draft,
    "invoice": _invoice,
    "payment": _payment,
    "reminder": _reminder,
    "expense": _amount,
    "collection": _amount,
}
