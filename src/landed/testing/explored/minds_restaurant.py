"""The restaurant of the second explorer: tables by key, cancellations at a fee, keys that close.

It is a careless one: a cancellation under another key takes effect, and is charged, once more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from landed.core.canonical import Json
from landed.core.outcome import Absent, Acknowledged, Found, LookOutcome, Refused, SendOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """How the restaurant is set up.

    full        days on which there is no table
    fees_cents  what a cancellation costs at first, and then; each is put up once at most
    keyless     it knows no keys, so that each request is another one
    lenient     a key that comes with other arguments is answered as before, not refused
    """

    full: frozenset[str] = frozenset()
    fees_cents: tuple[int, ...] = (0,)
    keyless: bool = False
    lenient: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table that was reserved; `charges_cents` has what each cancellation of it cost."""

    id: str
    key: str
    day: str
    operation: str
    charges_cents: tuple[int, ...] = ()

    @property
    def held(self) -> bool:
        """Whether it is still reserved."""
        return not self.charges_cents


@dataclass(frozen=True, slots=True, kw_only=True)
class Restaurant:
    """What it holds: tables in order, closed keys, keys of cancellations, today's fee."""

    fee_cents: int
    tables: tuple[Table, ...] = ()
    closed: frozenset[str] = frozenset()
    cancelled: frozenset[str] = frozenset()

    def under(self, key: str) -> Table | None:
        """Return the table that was reserved under a key."""
        return next((table for table in self.tables if table.key == key), None)

    def knows(self, key: str) -> bool:
        """Whether something took effect under a key."""
        return key in self.cancelled or self.under(key) is not None

    @property
    def held(self) -> tuple[Table, ...]:
        """The tables that are still reserved."""
        return tuple(table for table in self.tables if table.held)


Done = tuple[Restaurant, SendOutcome]


def reserve(restaurant: Restaurant, house: House, *, key: str, operation: str, day: str) -> Done:
    """Reserve a table; `operation` is only noted, to know what came of whom."""
    if key in restaurant.closed:
        return restaurant, Refused(reason="the key is closed")
    before = None if house.keyless else restaurant.under(key)
    if before is not None and before.day != day and not house.lenient:
        return restaurant, Refused(reason="the key was used for another day")
    if before is not None:
        return restaurant, Acknowledged(result={"id": before.id})
    if day in house.full:
        return restaurant, Refused(reason=f"{day} is full")
    id = f"R{len(restaurant.tables) + 1}"
    table = Table(id=id, key=key, day=day, operation=operation)
    after = replace(restaurant, tables=(*restaurant.tables, table))
    return after, Acknowledged(result={"id": id})


def cancel(
    restaurant: Restaurant, house: House, *, key: str, arguments: Mapping[str, Json]
) -> Done:
    """Cancel a table, at today's fee or not at all."""
    if key in restaurant.closed:
        return restaurant, Refused(reason="the key is closed")
    if key in restaurant.cancelled and not house.keyless:
        return restaurant, Acknowledged(result={})
    fee = restaurant.fee_cents
    if arguments.get("fee_cents", 0) != fee:
        return restaurant, Refused(reason=f"that costs {fee} now")
    tables = tuple(
        replace(table, charges_cents=(*table.charges_cents, fee))
        if table.id == arguments["id"]
        else table
        for table in restaurant.tables
    )
    cancelled = restaurant.cancelled | {key}
    return replace(restaurant, tables=tables, cancelled=cancelled), Acknowledged(result={})


def look(restaurant: Restaurant, key: str) -> LookOutcome:
    """Return what there is under a key."""
    table = restaurant.under(key)
    if table is not None:
        return Found(result={"id": table.id})
    return Found(result={}) if key in restaurant.cancelled else Absent()


def close(restaurant: Restaurant, key: str) -> tuple[Restaurant, LookOutcome]:
    """Return the same, and refuse the key from now on."""
    return replace(restaurant, closed=restaurant.closed | {key}), look(restaurant, key)
