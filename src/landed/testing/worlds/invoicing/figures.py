"""The figures of an invoice: one set of pure functions, for the editor, the commit and the preview.

Money is whole cents. A price may also be an exact decimal as text; a float is refused, because it
is not the number that somebody wrote. Days are calendar days in UTC.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from landed.core.sentences import money

VAT_PERCENT = 21
LINES_MAX = 50
TERMS_MAX_DAYS = 365
CENTS_MAX = 10**11
ALIKE_WITHIN_S = 600.0
TYPED_FROM = 3

_WHAT_MAX = 200
_PRICE = re.compile(r"[0-9]{1,9}(\.[0-9]{1,4})?")
_QUANTITY = re.compile(r"[0-9]{1,7}(\.[0-9]{1,3})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of an invoice. `unit_cents` may have parts of a cent; the line's amount has none."""

    what: str
    quantity: Decimal
    unit_cents: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What an invoice comes to, in cents."""

    net_cents: int
    vat_cents: int
    total_cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """The days of an invoice."""

    issued_on: date
    due_on: date


def lines_of(plain: object) -> tuple[Line, ...]:
    """Read lines: `{what, quantity?, unit_price | unit_cents}`.

    `unit_price` is a decimal as text ("500.00"), `unit_cents` a whole number. Raises `ValueError`,
    saying what to write instead, for anything else and where all of it comes to nothing.
    """
    if not isinstance(plain, list | tuple) or not 1 <= len(plain) <= LINES_MAX:  # pyright: ignore
        raise ValueError(f"lines must be a list of 1 to {LINES_MAX} lines")
    lines = tuple(_line(n, each) for n, each in enumerate(plain, 1))  # pyright: ignore
    if not 0 < totals(lines).total_cents <= CENTS_MAX:
        raise ValueError("the lines must come to more than nothing, and to less than a billion")
    return lines


def _line(number: int, plain: Mapping[str, Any]) -> Line:
    where = f"line {number}"
    if not isinstance(plain, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"{where} must be an object")
    what = plain.get("what")
    if not isinstance(what, str) or not what or not what.isprintable() or len(what) > _WHAT_MAX:
        raise ValueError(f"{where}: what must be one line of 1 to {_WHAT_MAX} characters")
    return Line(
        what=what,
        quantity=_quantity(where, plain.get("quantity", 1)),
        unit_cents=_unit_cents(where, plain.get("unit_price"), plain.get("unit_cents")),
    )


def _quantity(where: str, quantity: object) -> Decimal:
    text = str(quantity) if type(quantity) in (int, str) else ""
    if _QUANTITY.fullmatch(text) is None or Decimal(text) == 0:
        raise ValueError(f'{where}: quantity must be a whole number, or a decimal as text ("1.5")')
    return Decimal(text)


def _unit_cents(where: str, price: object, cents: object) -> Decimal:
    if (price is None) == (cents is None):
        raise ValueError(f"{where}: give unit_price or unit_cents, one of the two")
    if cents is not None:
        if type(cents) is not int or not 0 <= cents <= CENTS_MAX:
            raise ValueError(f"{where}: unit_cents must be a whole number of cents")
        return Decimal(cents)
    if not isinstance(price, str) or _PRICE.fullmatch(price) is None:
        raise ValueError(
            f'{where}: unit_price must be a decimal as text ("500.00"), never a float; or give'
            " unit_cents, a whole number"
        )
    return Decimal(price) * 100


def totals(lines: Iterable[Line]) -> Figures:
    """Return what lines come to: each line rounded to the cent, VAT on their sum; halves go up."""
    net = sum(_cents(line.quantity * line.unit_cents) for line in lines)
    vat = _cents(Decimal(net) * VAT_PERCENT / 100)
    return Figures(net_cents=net, vat_cents=vat, total_cents=net + vat)


def _cents(amount: Decimal) -> int:
    return int(amount.quantize(Decimal(1), ROUND_HALF_UP))


def rectified(figures: Figures) -> Figures:
    """Return the figures of the invoice that takes all of another back."""
    return Figures(
        net_cents=-figures.net_cents,
        vat_cents=-figures.vat_cents,
        total_cents=-figures.total_cents,
    )


def days_of(*, today: date, terms_days: int) -> Days:
    """Return the days of an invoice that is issued today, from its customer's terms."""
    return Days(issued_on=today, due_on=today + timedelta(days=terms_days))


def reminder_on(due_on: date, *, days_before: int) -> date:
    """Return the day of a reminder."""
    return due_on - timedelta(days=days_before)


def open_cents(*, total_cents: int, paid_cents: int) -> int:
    """Return what is still to be paid."""
    return max(total_cents - paid_cents, 0)


def missing(contact: Mapping[str, object], needs: Sequence[str]) -> tuple[str, ...]:
    """Return which of `needs` (`email`, `tax_id`, `terms_days`) a contact does not have."""
    return tuple(name for name in needs if contact.get(name) in (None, ""))


def needs_of_payment(*, notify_customer: bool) -> tuple[str, ...]:
    """Return what a contact must have before a payment of theirs can be recorded."""
    return ("email",) if notify_customer else ()


ISSUE_NEEDS = ("tax_id", "terms_days")
REMINDER_NEEDS = ("email",)


def undoable(*, told: bool) -> bool:
    """Whether a payment can be taken off the books: not once the customer was told of it."""
    return not told


def day_of(at: float) -> date:
    """Return the day of an instant (UTC, seconds since the epoch)."""
    return datetime.fromtimestamp(at, UTC).date()


def written(cents: int, language: str = "en") -> str:
    """Return an amount as it is written: 605.00, in Spanish 605,00."""
    amount = ("-" if cents < 0 else "") + money(abs(cents))
    return amount.replace(".", ",") if language == "es" else amount


def written_day(day: date | str) -> str:
    """Return a day as it is written, 18/11/2026; text is read as YYYY-MM-DD."""
    return (day if isinstance(day, date) else date.fromisoformat(day)).strftime("%d/%m/%Y")
