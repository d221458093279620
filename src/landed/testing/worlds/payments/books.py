"""The ledger of the payments service: orders, refunds, what each key did, and what is told of it.

A refund that is pending settles when its time has come; nobody has to wake it, since its status is
computed from the time of whoever looks. That is also how the replica looks: at an earlier time.
"""

from landed.testing.worlds.far_side import PAGE_MAX, Json, KeyedLedger, ProblemError
from landed.testing.worlds.faults import Clock
from landed.testing.worlds.payments.settings import Payments

_SCHEMA = """
CREATE TABLE IF NOT EXISTS payment (name TEXT PRIMARY KEY, cents INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS refund (
    number INTEGER PRIMARY KEY AUTOINCREMENT, payment TEXT NOT NULL, cents INTEGER NOT NULL,
    reason TEXT, key TEXT, at REAL NOT NULL,
    settles_at REAL NOT NULL, settles_as TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS refund_payment ON refund (payment);
CREATE INDEX IF NOT EXISTS refund_key ON refund (key);
CREATE TABLE IF NOT EXISTS address (payment TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS plan (
    number INTEGER PRIMARY KEY AUTOINCREMENT, inputs TEXT NOT NULL, stands_on TEXT NOT NULL,
    made_at REAL NOT NULL, expires_at REAL NOT NULL, ended TEXT NOT NULL DEFAULT '',
    key TEXT, result TEXT
);
"""


class Books(KeyedLedger):
    """The tables. `at` is always a time, UTC in seconds: what is later has not happened yet."""

    def __init__(self, path: str, clock: Clock, settings: Payments) -> None:
        super().__init__(path, clock, schema=_SCHEMA, retention_s=settings.retention_s)
        self._settings = settings
        for name, cents in settings.orders.items():
            self.pay(name, cents)
        for name, text in settings.addresses.items():
            self.move(name, text, replaces=False)

    def move(self, order: str, text: str, *, replaces: bool = True) -> None:
        """Note where the customer of an order lives; without `replaces` what is known stays."""
        how = "REPLACE" if replaces else "IGNORE"
        with self.unit():
            self.sql.execute(f"INSERT OR {how} INTO address VALUES (?, ?)", (order, text))

    def address(self, order: str) -> str:
        """Return where the customer of an order lives, "" where nobody said."""
        row = self.sql.execute("SELECT text FROM address WHERE payment = ?", (order,)).fetchone()
        return str(row[0]) if row else ""

    def pay(self, order: str, cents: int) -> None:
        """Note what was paid for an order; the first figure stays."""
        with self.unit():
            self.sql.execute("INSERT OR IGNORE INTO payment VALUES (?, ?)", (order, cents))

    def order(self, name: str, at: float) -> Json:
        """Return what was paid, and what is left of it: what is pending counts as gone."""
        row = self.sql.execute("SELECT cents FROM payment WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise ProblemError(422, "no-such-order", f"there is no order {name}")
        gone = sum(
            refund["cents"]
            for refund in self._rows(at, "payment = ?", name, at_most=-1)
            if _as_of(refund, at)["status"] != "failed"
        )
        paid = int(row[0])
        return {
            "order": name,
            "cents": paid,
            "refunded_cents": gone,
            "left_cents": paid - gone,
        }

    def refund(self, wanted: Json, key: str | None, at: float) -> Json:
        """Make a refund; a ProblemError where that is more than is left."""
        left = self.order(wanted["order"], at)["left_cents"]
        if wanted["cents"] > left:
            detail = f"{left} cents of {wanted['order']} are left to refund"
            raise ProblemError(422, "exceeds-total", detail, more={"left_cents": left})
        later_s = self._settings.settles_after_s
        bounces = later_s is not None and wanted["order"] in self._settings.bounces
        number = self.sql.execute(
            "INSERT INTO refund (payment, cents, reason, key, at, settles_at, settles_as)"
            " VALUES (:order, :cents, :reason, :key, :at, :settles_at, :settles_as)"
            " RETURNING number",
            {
                **wanted,
                "key": key,
                "at": at,
                "settles_at": at + (later_s or 0.0),
                "settles_as": "failed" if bounces else "succeeded",
            },
        ).fetchone()[0]
        return self.found(f"RF{number}", at) or {}

    def found(self, id: str, at: float) -> Json | None:
        """Return a refund as it was at a time, None where there was none."""
        rows = self._rows(at, "number = ?", id[2:]) if id.startswith("RF") else []
        return _as_of(rows[0], at) if rows else None

    def refunds(self, at: float, *, since: float = 0.0) -> list[Json]:
        """Return the refunds made from `since` on that were there at a time, oldest first.

        At most `PAGE_MAX`: the rest are those made from the last one's time on.
        """
        return [_as_of(row, at) for row in self._rows(at, "at >= ?", since)]

    def events(self, at: float) -> list[Json]:
        """Return what is told of refunds up to a time, oldest first."""
        told: list[Json] = []
        for row in self._rows(at, "?", True, at_most=-1):
            refund = {name: row[name] for name in ("id", "order", "cents", "key")}
            moments = [(row["settles_as"], row["settles_at"], 2)]
            if row["settles_at"] > row["at"]:
                moments.append(("pending", row["at"], 1))
            told += [
                {"type": f"refund.{what}", "at": when, "refund": refund, "version": version}
                for what, when, version in moments
                if when <= at
            ]
        told.sort(key=lambda event: (event["at"], event["version"]))
        return [{"id": f"E{number}", **event} for number, event in enumerate(told, 1)]

    def _rows(self, at: float, where: str, value: object, *, at_most: int = PAGE_MAX) -> list[Json]:
        rows = self.sql.execute(
            "SELECT 'RF' || number, payment, cents, reason, key, at, settles_at, settles_as"
            f" FROM refund WHERE at <= ? AND {where} ORDER BY number LIMIT ?",
            (at, value, at_most),
        )
        names = ("id", "order", "cents", "reason", "key", "at", "settles_at", "settles_as")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def position(self, at: float) -> int:
        """Return the number of the last log entry at a time, 0 before the first."""
        last = "SELECT coalesce(max(n), 0) FROM log WHERE at <= ?"
        return int(self.sql.execute(last, (at,)).fetchone()[0])

    def keyed_at(self, key: str, at: float) -> Json | None:
        """Return what a key had done at a time, as far as it is remembered now."""
        row = self.sql.execute(
            "SELECT answer FROM key WHERE key = ? AND at <= ? AND answer IS NOT NULL", (key, at)
        ).fetchone()
        rows = self._rows(at, "key = ?", key) if row else []
        return _as_of(rows[0], at) if rows else None


def _as_of(row: Json, at: float) -> Json:
    settles_at, settles_as = row.pop("settles_at"), row.pop("settles_as")
    return row | {"status": settles_as if settles_at <= at else "pending"}
