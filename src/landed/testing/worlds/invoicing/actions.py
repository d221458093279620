"""What the invoicing service does: each action with an effect, over the books, in one unit.

`asked` reads a body, or refuses it; the plain values it returns are what a key is bound to. Then
`act` does it. Every refusal comes before any effect.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date

from landed.testing.worlds.far_side import Json
from landed.testing.worlds.invoicing import asking, figures, rules
from landed.testing.worlds.invoicing.books import Books, amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What an action did: the records, the main one first, and what else its answer says."""

    records: tuple[Json, ...]
    also: Json = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing the service does at one address; `text` says it, filled from the answer."""

    path: str
    asked: Callable[[Json], Json]
    act: Callable[[Books, Json], Done]
    text: str

    def answer(self, did: Done) -> Json:
        """Return the main record, what became of which records, and how they are to be shown."""
        named = [{"type": one["type"], "id": one["id"]} for one in did.records]
        cards = [{**name, "text": _card(one)} for name, one in zip(named, did.records, strict=True)]
        answered = {**did.records[0], **did.also}
        return {
            **answered,
            "summary": self.text.format_map(answered),
            "effects": named,
            "primary": named[0],
            "cards": cards,
        }


def _card(one: Json) -> str:
    parts = (one["id"], one.get("customer"), one.get("what"), one.get("total"), one.get("day"))
    return " ".join(str(part) for part in parts if part)


# Drafts and invoices.


def _draft(books: Books, asked: Json) -> Done:
    contact = books.record("contact", asked["contact"])
    id = books.insert(
        "draft",
        contact=contact["id"],
        lines=asked["lines"],
        made_at=books.clock.now(),
    )
    return Done(records=(books.record("draft", id),))


def _delete_draft(books: Books, asked: Json) -> Done:
    draft = rules.open_draft(books.record("draft", asked["draft"]))
    return Done(records=(books.put("draft", draft["id"], "deleted"),))


def _issue(books: Books, asked: Json) -> Done:
    draft = rules.open_draft(books.record("draft", asked["draft"]))
    contact = rules.complete(books.record("contact", draft["contact"]), figures.ISSUE_NEEDS)
    what = figures.totals(figures.lines_of(draft["lines"]))
    days = figures.days_of(today=books.today, terms_days=contact["terms_days"])
    more = {"draft": draft["id"], "customer": contact["name"]}
    made = _new_invoice(books, "F", draft, what, days, more)
    books.put("draft", draft["id"], "issued")
    return Done(records=(made,), also={"email": contact["email"]})


def _void(books: Books, asked: Json) -> Done:
    voided = rules.voidable(books.record("invoice", asked["invoice"]))
    back = figures.rectified(figures.totals(figures.lines_of(voided["lines"])))
    days = figures.days_of(today=books.today, terms_days=0)
    more = {"customer": voided["customer"], "rectifies": voided["id"]}
    made = _new_invoice(books, "R", voided, back, days, more)
    after: Json = {"voided": voided["id"], "made": made["id"]}
    books.ledger.sql.execute("UPDATE invoice SET rectified_by = :made WHERE id = :voided", after)
    books.ledger.sql.execute(
        "UPDATE reminder SET state = 'cancelled' WHERE invoice = :voided", after
    )
    records = made, books.record("invoice", voided["id"])
    return Done(records=records, also={"reason": asked["reason"]})


def _new_invoice(
    books: Books,
    letter: str,
    of: rules.Record,
    what: figures.Figures,
    days: figures.Days,
    more: Mapping[str, object],
) -> Json:
    """Write an invoice under the next number of its series; number and invoice are one unit."""
    series = f"{letter}-{days.issued_on.year}"
    number = books.ledger.sql.execute(
        "INSERT INTO series (name, last) VALUES (?, 1)"
        " ON CONFLICT (name) DO UPDATE SET last = last + 1 RETURNING last",
        (series,),
    ).fetchone()[0]
    id = f"{series}-{number:04d}"
    books.insert(
        "invoice",
        id=id,
        contact=of["contact"],
        lines=of["lines"],
        net_cents=what.net_cents,
        vat_cents=what.vat_cents,
        total_cents=what.total_cents,
        issued_on=days.issued_on.isoformat(),
        due_on=days.due_on.isoformat(),
        made_at=books.clock.now(),
        **more,
    )
    return books.record("invoice", id)


# Payments and reminders.


def _pay(books: Books, asked: Json) -> Done:
    invoice = books.record("invoice", asked["invoice"])
    cents = rules.payable(invoice, asked["cents"])
    contact = books.record("contact", invoice["contact"])
    notifies = asked["notify_customer"]
    rules.complete(contact, figures.needs_of_payment(notify_customer=notifies))
    made = _payment(books, invoice["id"], cents, told=contact["email"] if notifies else None)
    return Done(
        records=(made,), also={"customer": invoice["customer"], "notify_customer": notifies}
    )


def _payment(books: Books, invoice: str, cents: int, **more: str | None) -> Json:
    day = books.today.isoformat()
    return books.record(
        "payment", books.insert("payment", invoice=invoice, cents=cents, paid_on=day, **more)
    )


def _delete_payment(books: Books, asked: Json) -> Done:
    payment = rules.deletable_payment(books.record("payment", asked["payment"]))
    return Done(records=(books.put("payment", payment["id"], "deleted"),))


def _remind(books: Books, asked: Json) -> Done:
    invoice = rules.standing(books.record("invoice", asked["invoice"]))
    contact = rules.complete(books.record("contact", invoice["contact"]), figures.REMINDER_NEEDS)
    days_before = asked["days_before"]
    due_on = date.fromisoformat(invoice["due_on"])
    day = rules.reminder_day(due_on, days_before=days_before, today=books.today)
    id = books.insert(
        "reminder",
        invoice=invoice["id"],
        email=contact["email"],
        days_before=days_before,
        remind_on=day.isoformat(),
    )
    also: Json = {"customer": invoice["customer"], "due": invoice["due"]}
    return Done(records=(books.record("reminder", id),), also=also)


def _cancel_reminder(books: Books, asked: Json) -> Done:
    reminder = rules.cancellable(books.record("reminder", asked["reminder"]))
    return Done(records=(books.put("reminder", reminder["id"], "cancelled"),))


# Expenses, collections, and sending by itself.


def _spend(books: Books, asked: Json) -> Done:
    day = books.today.isoformat()
    id = books.insert("expense", what=asked["what"], cents=asked["cents"], spent_on=day)
    return Done(records=(books.record("expense", id),), also={"expenses": [id]})


def _delete_expenses(books: Books, asked: Json) -> Done:
    ids = asked["expenses"]
    found = [rules.deletable_expense(books.record("expense", id)) for id in ids]
    cents = sum(one["cents"] for one in found)
    what = "; ".join(one["what"] for one in found)[:200]
    return Done(
        records=tuple(books.put("expense", id, "deleted") for id in ids),
        also={"expenses": ids, "count": len(ids), "what": what, "cents": cents, **amount(cents)},
    )


def _collect(books: Books, asked: Json) -> Done:
    ids = asked["invoices"]
    due = [(id, rules.payable(books.record("invoice", id), None)) for id in ids]
    total = sum(cents for _, cents in due)
    made = books.insert("collection", invoices=ids, cents=total)
    paid = [_payment(books, id, cents, collection=made) for id, cents in due]
    return Done(records=(books.record("collection", made), *paid), also={"count": len(paid)})


def _return(books: Books, asked: Json) -> Done:
    collection = rules.returnable(books.record("collection", asked["collection"]))
    returned = "UPDATE payment SET state = 'deleted' WHERE collection = ?"
    books.ledger.sql.execute(returned, (collection["id"],))
    back = books.put("collection", collection["id"], "returned")
    return Done(records=(back,), also={"count": len(back["invoices"])})


def _switch(books: Books, asked: Json) -> Done:
    before = books.sends()
    books.ledger.sql.execute(
        "INSERT INTO auto_send VALUES (1, :on)"
        " ON CONFLICT (one) DO UPDATE SET sends = excluded.sends",
        asked,
    )
    setting: Json = {"id": "auto_send", "type": "setting", **asked}
    now = "on" if asked["on"] else "off"
    also: Json = {"now": now, "before": before, "changed": before != asked["on"]}
    return Done(records=(setting,), also=also)


ACTIONS = (
    Action(
        path="/drafts",
        asked=asking.draft_asked,
        act=_draft,
        text="drafted {id} for {customer}, {total}",
    ),
    Action(
        path="/drafts/{draft}/delete",
        asked=asking.one_asked("draft"),
        act=_delete_draft,
        text="deleted draft {id}",
    ),
    Action(
        path="/drafts/{draft}/issue",
        asked=asking.one_asked("draft"),
        act=_issue,
        text="issued {id} to {customer}, {total}, due {due}",
    ),
    Action(
        path="/invoices/{invoice}/void",
        asked=asking.void_asked,
        act=_void,
        text="voided {rectifies} by {id}, {total}",
    ),
    Action(
        path="/invoices/{invoice}/payments",
        asked=asking.payment_asked,
        act=_pay,
        text="recorded {id}, {total} of {invoice}",
    ),
    Action(
        path="/payments/{payment}/delete",
        asked=asking.one_asked("payment"),
        act=_delete_payment,
        text="deleted {id}, {total} of {invoice}",
    ),
    Action(
        path="/invoices/{invoice}/reminders",
        asked=asking.reminder_asked,
        act=_remind,
        text="scheduled {id} for {invoice} on {day}",
    ),
    Action(
        path="/reminders/{reminder}/cancel",
        asked=asking.one_asked("reminder"),
        act=_cancel_reminder,
        text="cancelled {id} for {invoice} on {day}",
    ),
    Action(
        path="/expenses",
        asked=asking.expense_asked,
        act=_spend,
        text="spent {id}, {total}: {what}",
    ),
    Action(
        path="/expenses/delete",
        asked=asking.many_asked("expenses"),
        act=_delete_expenses,
        text="deleted {count} expenses, {total}: {what}",
    ),
    Action(
        path="/collections",
        asked=asking.many_asked("invoices"),
        act=_collect,
        text="collected {id}, {total} of {count} invoices",
    ),
    Action(
        path="/collections/{collection}/return",
        asked=asking.one_asked("collection"),
        act=_return,
        text="returned {id}, {total} of {count} invoices",
    ),
    Action(
        path="/auto-send",
        asked=asking.switch_asked,
        act=_switch,
        text="automatic sending is {now}",
    ),
)
