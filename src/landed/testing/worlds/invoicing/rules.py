"""What may be done with a record: pure functions, for the commit and for the preview alike.

Each returns what it was asked about, or raises a ProblemError 422: a refusal, in words that a
person can read.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from landed.testing.worlds.far_side import ProblemError
from landed.testing.worlds.invoicing import figures

Record = Mapping[str, Any]


def open_draft(draft: Record) -> Record:
    """Return a draft that was neither issued nor deleted."""
    return _in_state(draft, "open", of="draft")


def standing(invoice: Record) -> Record:
    """Return an invoice that counts: one that was not voided and voids no other."""
    id = invoice["id"]
    if invoice["rectified_by"]:
        detail = f"{id} was voided by {invoice['rectified_by']}"
        raise ProblemError(422, "invoice-voided", detail)
    if invoice["rectifies"]:
        detail = f"{id} only takes back {invoice['rectifies']}"
        raise ProblemError(422, "invoice-rectifying", detail)
    return invoice


def voidable(invoice: Record) -> Record:
    """Return an invoice that counts and of which nothing was paid."""
    standing(invoice)
    if invoice["paid_cents"]:
        paid = figures.written(invoice["paid_cents"])
        raise ProblemError(422, "invoice-paid", f"{paid} of {invoice['id']} was paid")
    return invoice


def payable(invoice: Record, cents: int | None) -> int:
    """Return what is paid of an invoice that counts: by default all that is open."""
    still_open = standing(invoice)["open_cents"]
    paid = still_open if cents is None else cents
    if not 0 < paid <= still_open:
        left = figures.written(still_open)
        raise ProblemError(422, "not-open", f"{left} of {invoice['id']} is still to be paid")
    return int(paid)


def deletable_payment(payment: Record) -> Record:
    """Return a payment that nobody was told of, and that is no part of a collection."""
    _in_state(payment, "recorded", of="payment")
    if not payment["undoable"]:
        detail = f"the customer was told of payment {payment['id']}, or it is part of a collection"
        raise ProblemError(422, "payment-told", detail)
    return payment


def reminder_day(due_on: date, *, days_before: int, today: date) -> date:
    """Return the day of a reminder, which is not past."""
    day = figures.reminder_on(due_on, days_before=days_before)
    if day < today:
        raise ProblemError(422, "day-past", f"{figures.written_day(day)} is past")
    return day


def cancellable(reminder: Record) -> Record:
    """Return a reminder that is still to go out."""
    return _in_state(reminder, "scheduled", of="reminder")


def deletable_expense(expense: Record) -> Record:
    """Return an expense that is on the books."""
    return _in_state(expense, "recorded", of="expense")


def returnable(collection: Record) -> Record:
    """Return a collection that was not returned."""
    return _in_state(collection, "collected", of="collection")


def complete(contact: Record, needs: Sequence[str]) -> Record:
    """Return a contact that has all of `needs`."""
    if lacking := figures.missing(contact, needs):
        named = ", ".join(lacking).replace("_", " ")
        detail = f"{contact['name']} has no {named}"
        raise ProblemError(422, "missing", detail, more={"missing": list(lacking)})
    return contact


def _in_state(one: Record, state: str, *, of: str) -> Record:
    now = one["state"]
    if now != state:
        raise ProblemError(422, f"{of}-{now}", f"{of} {one['id']} is {now}")
    return one
