"""What the invoicing tools say before anything is sent: real figures, and what is missing.

The figures come from `worlds.invoicing.figures` and what may be done from `worlds.invoicing.rules`,
the functions of the service itself; only records are read over the wire, and nothing is written.
The number that an invoice will have is not said: it is taken when the invoice is issued.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import wraps
from typing import Any, cast

from landed.core.canonical import Json
from landed.core.outcome import Acknowledged, Refused
from landed.core.preview import Preview, Previewing, Similar, typed_count
from landed.core.tool import Call, Tool
from landed.testing.invoicing_words import NEW, alike, question, refused, summary
from landed.testing.worlds.far_side import ProblemError
from landed.testing.worlds.invoicing import figures, rules

Record = Mapping[str, Any]
Previewed = Callable[["Previews", Previewing], Awaitable[Preview]]


class UnreadableError(Exception):
    """A record could not be read, so nobody knows the figures."""


class _AskedError(Exception):
    """What a person has to say before there are figures; a question in their language."""


def _told(previewed: Previewed) -> Previewed:
    """What the rules refuse becomes the question of the preview."""

    @wraps(previewed)
    async def told(self: "Previews", asked: Previewing) -> Preview:
        try:
            return await previewed(self, asked)
        except _AskedError as error:
            return Preview(summary="", questions=(str(error),))
        except ProblemError as error:
            why = refused(error.code, error.detail, language=asked.language)
            return Preview(summary="", questions=(why,))

    return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Previews:
    """The previews of all tools; `records`, `contacts` and `similar` are the tools that read."""

    records: Tool
    contacts: Tool
    similar: Tool

    @_told
    async def contact(self, asked: Previewing) -> Preview:
        """Find a contact; later steps may build on it."""
        found = await self._read(self.contacts, asked, {"name": asked.arguments["name"]})
        said = summary("find_contact", {"customer": found["name"]}, language=asked.language)
        return Preview(summary=said, makes={"id": found["id"], "type": "contact"})

    @_told
    async def draft(self, asked: Previewing) -> Preview:
        """Draft an invoice: what its lines come to."""
        contact = await self._contact(asked)
        what = figures.totals(_lines(asked))
        made = {"contact": contact["id"], "customer": contact["name"], **asdict(what)}
        return Preview(
            summary=summary("create_draft", made, language=asked.language),
            basis={"customer": contact["name"], "vat_percent": figures.VAT_PERCENT},
            makes={"type": "draft", **made},
        )

    async def drafts_alike(self, asked: Previewing) -> Sequence[Similar]:
        """Find drafts and invoices of the same customer and total, of the last ten minutes.

        Where customer or lines are not right the preview asks about them, and nothing is alike.
        """
        try:
            contact = await self._contact(asked)
            total_cents = figures.totals(_lines(asked)).total_cents
        except (_AskedError, ProblemError):
            return ()
        wanted: dict[str, Json] = {"contact": contact["id"], "total_cents": total_cents}
        found = (await self._read(self.similar, asked, wanted))["similar"]
        return [
            Similar(id=one["id"], text=alike(one, language=asked.language))
            for one in cast("Sequence[Record]", found)
        ]

    @_told
    async def issue(self, asked: Previewing) -> Preview:
        """Issue a draft: what for, and when it will be due. Its number is taken at run time."""
        draft, there = await self._thing(asked, "draft")
        if there:
            rules.open_draft(draft)
        contact = await self._record(asked, draft["contact"])
        days = _days(contact)
        made = {name: draft[name] for name in ("contact", "net_cents", "vat_cents", "total_cents")}
        made |= {"type": "invoice", "customer": contact["name"], "email": contact["email"], **days}
        basis = {"tax_id": contact["tax_id"], "terms_days": contact["terms_days"], **days}
        return Preview(
            summary=summary("issue_invoice", made, language=asked.language),
            basis={**basis, **({"total_cents": draft["total_cents"]} if there else {})},
            questions=_missing(contact, figures.ISSUE_NEEDS, asked),
            makes=made,
        )

    @_told
    async def sending(self, asked: Previewing) -> Preview:
        """Email an invoice to its customer: to which address. For a mail tool with `invoice`."""
        invoice, there = await self._thing(asked, "invoice")
        contact = await self._record(asked, invoice["contact"])
        email, to = contact["email"], asked.arguments.get("to")
        questions = _missing(contact, ("email",), asked)
        if email and to and to != email:
            words = {"name": contact["name"], "email": email, "to": to}
            questions = (question("other_email", language=asked.language, **words),)
        sent = {**invoice, "customer": contact["name"], "email": email}
        return Preview(
            summary=summary("send_invoice", sent, language=asked.language),
            basis={"email": email, **({"total_cents": invoice["total_cents"]} if there else {})},
            questions=questions,
        )

    @_told
    async def void(self, asked: Previewing) -> Preview:
        """Void an invoice: by a rectifying invoice of which amount."""
        invoice, there = await self._thing(asked, "invoice")
        if there:
            rules.voidable(invoice)
        what = figures.Figures(**{name: invoice[name] for name in _FIGURES})
        back = asdict(figures.rectified(what))
        shown = {**invoice, "id": _called(asked, "invoice"), "back_cents": back["total_cents"]}
        made = {"contact": invoice["contact"], "customer": invoice["customer"], **back}
        return Preview(
            summary=summary("void_invoice", shown, language=asked.language),
            basis={name: invoice[name] for name in ("total_cents", "paid_cents") if there},
            makes={"type": "invoice", "rectifies": shown["id"], **made},
        )

    @_told
    async def payment(self, asked: Previewing) -> Preview:
        """Record a payment: how much is open, and who is told."""
        invoice, there = await self._thing(asked, "invoice")
        contact = await self._record(asked, invoice["contact"])
        cents = rules.payable(
            _as_read(invoice, asked), cast("int | None", asked.arguments.get("cents"))
        )
        notifies = asked.arguments.get("notify_customer") is True
        facts = {"customer": contact["name"], "email": contact["email"], "paid_now_cents": cents}
        name = "record_payment_and_tell" if notifies else "record_payment"
        basis = {"email": contact["email"]} if notifies else {}
        return Preview(
            summary=summary(name, facts, language=asked.language),
            basis={**basis, **({"open_cents": invoice["open_cents"]} if there else {})},
            questions=_missing(contact, figures.needs_of_payment(notify_customer=notifies), asked),
            makes={"type": "payment", "cents": cents, "undoable": figures.undoable(told=notifies)},
        )

    @_told
    async def reminder(self, asked: Previewing) -> Preview:
        """Schedule a reminder: on which day, and to which address."""
        invoice, there = await self._thing(asked, "invoice")
        if there:
            rules.standing(invoice)
        contact = await self._record(asked, invoice["contact"])
        days_before = cast("int", asked.arguments["days_before"])
        made = {"customer": contact["name"], "email": contact["email"], "remind_on": None}
        if due_on := invoice.get("due_on"):
            due, today = date.fromisoformat(due_on), date.fromisoformat(contact["today"])
            day = rules.reminder_day(due, days_before=days_before, today=today)
            made["remind_on"] = day.isoformat()
        shown = {**invoice, **made, "days_before": days_before}
        return Preview(
            summary=summary("schedule_reminder", shown, language=asked.language),
            basis={"email": contact["email"], **({"due_on": due_on} if there else {})},
            questions=_missing(contact, figures.REMINDER_NEEDS, asked),
            makes={"type": "reminder", "remind_on": made["remind_on"]},
        )

    async def expense(self, asked: Previewing) -> Preview:
        """Record an expense."""
        what, cents = asked.arguments["what"], asked.arguments["cents"]
        shown = {"what": what, "total_cents": cents}
        return Preview(
            summary=summary("create_expense", shown, language=asked.language),
            makes={"type": "expense", "what": what, "cents": cents},
        )

    @_told
    async def expenses(self, asked: Previewing) -> Preview:
        """Delete expenses: which, and what they come to. From three on it has to be typed."""
        found = [rules.deletable_expense(one) for one in await self._many(asked, "expenses")]
        shown = _listed(found, "what", "cents", asked)
        return Preview(
            summary=summary("delete_expenses", shown, language=asked.language),
            basis={one["id"]: one["cents"] for one in found},
            typed=typed_count(len(found)) if len(found) >= figures.TYPED_FROM else (),
        )

    @_told
    async def collection(self, asked: Previewing) -> Preview:
        """Collect invoices in one go: what is open of each."""
        found = await self._many(asked, "invoices")
        due: list[Record] = [{**one, "due_cents": rules.payable(one, None)} for one in found]
        shown = _listed(due, "id", "due_cents", asked)
        return Preview(
            summary=summary("collect_bulk", shown, language=asked.language),
            basis={one["id"]: one["due_cents"] for one in due},
            makes={"type": "collection", "cents": shown["total_cents"]},
        )

    @_told
    async def returning(self, asked: Previewing) -> Preview:
        """Return a collection."""
        one = rules.returnable(await self._there(asked, "collection"))
        shown = {**one, "total_cents": one["cents"], "count": len(one["invoices"])}
        return Preview(
            summary=summary("return_collection", shown, language=asked.language),
            basis={"cents": one["cents"]},
        )

    @_told
    async def deleting_draft(self, asked: Previewing) -> Preview:
        """Delete a draft."""
        draft = rules.open_draft(await self._there(asked, "draft"))
        return Preview(
            summary=summary("delete_draft", draft, language=asked.language),
            basis={"total_cents": draft["total_cents"]},
        )

    @_told
    async def deleting_payment(self, asked: Previewing) -> Preview:
        """Delete a payment, unless the customer was told of it."""
        payment = rules.deletable_payment(await self._there(asked, "payment"))
        shown = {**payment, "total_cents": payment["cents"]}
        return Preview(
            summary=summary("delete_payment", shown, language=asked.language),
            basis={"cents": payment["cents"]},
        )

    @_told
    async def cancelling(self, asked: Previewing) -> Preview:
        """Cancel a reminder."""
        reminder = rules.cancellable(await self._there(asked, "reminder"))
        said = summary("cancel_reminder", reminder, language=asked.language)
        return Preview(summary=said, basis={"remind_on": reminder["remind_on"]})

    async def switch(self, asked: Previewing) -> Preview:
        """Switch automatic sending."""
        way = "on" if asked.arguments["on"] else "off"
        return Preview(summary=summary(f"switch_auto_send_{way}", {}, language=asked.language))

    async def _contact(self, asked: Previewing) -> Record:
        facts = asked.facts("contact")
        id = asked.arguments["contact"] if facts is None else facts.get("id")
        if id is None:
            raise _AskedError(question("contact", language=asked.language))
        return _of_kind(await self._record(asked, id), "contact", asked)

    async def _thing(self, asked: Previewing, name: str) -> tuple[Record, bool]:
        """Return what an argument names, and whether it is there already."""
        facts = asked.facts(name)
        if facts is not None:
            return facts, False
        return await self._there(asked, name), True

    async def _there(self, asked: Previewing, name: str) -> Record:
        return _of_kind(await self._record(asked, asked.arguments[name]), name, asked)

    async def _many(self, asked: Previewing, name: str) -> list[Record]:
        ids = cast("Sequence[Json]", asked.arguments[name])
        kind = name.removesuffix("s")
        return [_of_kind(await self._record(asked, id), kind, asked) for id in ids]

    async def _record(self, asked: Previewing, id: Json) -> Record:
        return await self._read(self.records, asked, {"id": id})

    async def _read(self, tool: Tool, asked: Previewing, arguments: Mapping[str, Json]) -> Record:
        call = Call(
            operation="preview",
            tool=tool.name,
            key="",
            arguments=arguments,
            ask=asked.ask,
            epoch=0,
            attempt=1,
            sent_at=asked.now,
            deadline_at=asked.now + tool.contract.deadline_s,
        )
        match await tool.send(call):
            case Acknowledged(result=result):
                return cast("Record", result)
            case Refused(reason=reason):
                # The service's own words follow its status.
                raise ProblemError(422, "refused", reason.partition(" ")[2])
            case lost:
                raise UnreadableError(lost.reason)


_FIGURES = ("net_cents", "vat_cents", "total_cents")


def _lines(asked: Previewing) -> tuple[figures.Line, ...]:
    try:
        return figures.lines_of(asked.arguments["lines"])
    except ValueError as error:
        raise ProblemError(400, "bad-lines", str(error)) from None


def _days(contact: Record) -> dict[str, Json]:
    """Return the days an invoice of today would have; none where the terms are not known."""
    if contact["terms_days"] is None:
        return {"issued_on": contact["today"], "due_on": None}
    today = date.fromisoformat(contact["today"])
    days = figures.days_of(today=today, terms_days=contact["terms_days"])
    return {"issued_on": days.issued_on.isoformat(), "due_on": days.due_on.isoformat()}


def _missing(contact: Record, needs: Sequence[str], asked: Previewing) -> tuple[str, ...]:
    return tuple(
        question(name, language=asked.language, name=contact["name"])
        for name in figures.missing(contact, needs)
    )


def _of_kind(one: Record, kind: str, asked: Previewing) -> Record:
    if one["type"] != kind:
        words = {"id": one["id"], "is_one": one["type"], "wanted": kind}
        raise _AskedError(question("kind", language=asked.language, **words))
    return one


def _called(asked: Previewing, name: str) -> Json:
    """Return what a thing is called; one that is still to be made has no id."""
    return asked.arguments[name] if asked.facts(name) is None else NEW[asked.language]


def _as_read(invoice: Record, asked: Previewing) -> Record:
    """Return an invoice that is still to be made as it will read: nothing of it is paid."""
    total = invoice["total_cents"]
    new = {"id": _called(asked, "invoice"), "rectifies": None, "rectified_by": None}
    return {**new, "open_cents": figures.open_cents(total_cents=total, paid_cents=0), **invoice}


def _listed(found: Sequence[Record], name: str, cents: str, asked: Previewing) -> dict[str, Any]:
    """Return several things as the fields of a summary: how many, which, and what in all."""
    each = [f"{one[name]} {figures.written(one[cents], asked.language)}" for one in found]
    more = f" … +{len(each) - _SHOWN_MAX}" if len(each) > _SHOWN_MAX else ""
    return {
        "count": len(found),
        "total_cents": sum(one[cents] for one in found),
        "list": "; ".join(each[:_SHOWN_MAX]) + more,
    }


_SHOWN_MAX = 8
