"""The tools by which an agent reaches the invoicing service; their contracts are its promises."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import ClassVar, Literal, cast

import httpx2

from landed.core.canonical import Json
from landed.core.preview import Preview, Previewing
from landed.testing.invoicing_previews import Previews
from landed.testing.invoicing_words import says
from landed.testing.worlds.invoicing import Invoicing
from landed.tools.foresight import PreviewOf
from landed.tools.http import HttpTool
from landed.tools.promises import Promises
from landed.tools.reading import Reading

DEADLINE_S = 5.0
SEVERAL = 2
"""From how many expenses on a deletion is no small thing."""

CONTACTS: tuple[Mapping[str, Json], ...] = (
    {"name": "Marta", "email": "marta@example.com", "tax_id": "12345678Z", "terms_days": 30},
    {"name": "Bruno", "email": None, "tax_id": "87654321X", "terms_days": 30},
    {"name": "Carla", "email": "carla@example.com", "tax_id": "11223344B", "terms_days": None},
)
"""One contact of whom all is known, one without an email address, one without terms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceLine:
    """One line of an invoice: its price is `unit_price`, in euros, or `unit_cents`.

    Amounts are exact: whole numbers, or decimals as text; a float is refused.
    """

    __pydantic_config__: ClassVar[Mapping[str, object]] = {"extra": "forbid"}

    what: str
    quantity: Decimal = Decimal(1)
    unit_price: Decimal | None = None
    unit_cents: int | None = None


Risky = Literal["safe", "confirm"]


def payment_risk(arguments: Mapping[str, Json], origin: str) -> Risky:
    """Writing to a customer needs a yes; writing down does not."""
    return "confirm" if arguments.get("notify_customer") else "safe"


def deletion_risk(arguments: Mapping[str, Json], origin: str) -> Risky:
    """One expense may go at once, several need a yes."""
    return "confirm" if len(cast("Sequence[Json]", arguments["expenses"])) >= SEVERAL else "safe"


def switch_risk(arguments: Mapping[str, Json], origin: str) -> Risky:
    """Whoever switches automatic sending on, writes to every customer to come."""
    return "confirm" if arguments["on"] else "safe"


# Per tool: its effect, where it sends, its arguments, and what it promises of its own.
_Row = tuple[Literal["reversible", "irreversible"], str, Mapping[str, object], Promises]


def invoicing_tools(
    url: str,
    settings: Invoicing | None = None,
    *,
    transport: httpx2.AsyncBaseTransport | None = None,
    replaced: Mapping[str, Mapping[str, object]] | None = None,
) -> list[HttpTool]:
    """Return the tools of the invoicing service at `url`, which behaves as `settings` say.

    The first three only read. `replaced` are single promises, by the name of the tool, that a demo
    or a test wants otherwise.
    """
    readers = _readers(url, transport)
    previews = _previews(readers)
    rows = {**_invoices(previews), **_payments(previews), **_expenses(previews)}
    kept = _kept(settings or Invoicing())
    tools = [*readers]
    for name, (effect, path, arguments, own) in rows.items():
        promises: Promises = {**kept, "says": says(name), **own}
        promises.update((replaced or {}).get(name, {}))  # type: ignore[typeddict-item]
        tools.append(
            HttpTool(
                name=name,
                effect=effect,
                url=f"{url}{path}",
                arguments=arguments,
                description=_DESCRIPTIONS[name],
                lookup=f"{url}/keys/{{key}}" if _offers(settings, "can_look_up") else "",
                close=f"{url}/keys/{{key}}/close" if _offers(settings, "can_close") else "",
                reading=Reading(requires=("id",), position_header="X-Position"),
                sent_at_header="X-Sent-At",
                transport=transport,
                **promises,
            )
        )
    return tools


def sending_preview(tools: Sequence[HttpTool]) -> PreviewOf:
    """Return the preview of a tool that mails the invoice in its argument `invoice`.

    It asks for the address where the customer has none, and where `to` is not theirs. `tools` are
    those of `invoicing_tools`.
    """
    return _previews(tools).sending


async def fill(url: str, *, transport: httpx2.AsyncBaseTransport | None = None) -> dict[str, str]:
    """Add those of `CONTACTS` that are missing; returns the ids of all contacts, by name."""
    client = httpx2.AsyncClient(transport=transport, base_url=url)
    try:
        books = (await client.get("/books")).raise_for_status().json()
        ids: dict[str, str] = {one["name"]: one["id"] for one in books["contacts"]}
        for contact in CONTACTS:
            if (name := str(contact["name"])) not in ids:
                made = await client.post("/contacts", json=dict(contact))
                ids[name] = made.raise_for_status().json()["id"]
    finally:
        if transport is None:  # One that was given is closed by whoever made it.
            await client.aclose()
    return ids


def _kept(settings: Invoicing) -> Promises:
    """What the service promises about every request that carries a key.

    A step that was started is finished, whatever comes between: half an invoice is nobody's wish.
    """
    return {
        "service": "invoicing",
        "keyed": "Idempotency-Key",
        "key_form": "{session}:{operation}",
        "compares_payload": settings.strict,
        "retention_s": settings.retention_s,
        "refuses_after_s": settings.refuses_after_s,
        "on_interrupt": "finish",
        "deadline_s": DEADLINE_S,
    }


def _offers(settings: Invoicing | None, what: Literal["can_look_up", "can_close"]) -> bool:
    return bool(getattr(settings or Invoicing(), what))


def _readers(url: str, transport: httpx2.AsyncBaseTransport | None) -> tuple[HttpTool, ...]:
    """Return the tools without effect; they are also what the previews read with."""

    def found(asked: Previewing) -> Awaitable[Preview]:
        return _previews((contacts, records, similar)).contact(asked)

    read = partial(
        HttpTool, effect="none", service="invoicing", transport=transport, deadline_s=DEADLINE_S
    )
    contacts = read(
        name="find_contact",
        url=f"GET {url}/contacts/find",
        arguments={"name": str},
        description="Find one contact by name.",
        permission="contact.read",
        makes_type="contact",
        preview=found,
        says={"en": {"answered": "{name} is {id}"}, "es": {"answered": "{name} es {id}"}},
    )
    records = read(
        name="read_record",
        url=f"GET {url}/records/{{id}}",
        arguments={"id": str},
        description="Read one contact, draft, invoice, payment, reminder, expense or collection.",
        permission="record.read",
    )
    similar = read(
        name="find_similar",
        url=f"GET {url}/similar",
        arguments={"contact": str, "total_cents": int},
        description="Find what was drafted or issued for that customer and total just now.",
        permission="record.read",
    )
    return contacts, records, similar


def _previews(readers: Sequence[HttpTool]) -> Previews:
    contacts, records, similar = readers[:3]
    return Previews(records=records, contacts=contacts, similar=similar)


def _invoices(previews: Previews) -> Mapping[str, _Row]:
    return {
        "create_draft": (
            "reversible",
            "/drafts",
            {"contact": str, "lines": list[InvoiceLine]},
            {
                "permission": "draft.create",
                "preview": previews.draft,
                "look_alike": previews.drafts_alike,
                "if_alike": "warn",
                "accepts": {"contact": "contact"},
                "makes_type": "draft",
                "undo": "delete_draft",
                "undo_arguments": {"draft": "{result.id}"},
            },
        ),
        "delete_draft": (
            "irreversible",
            "/drafts/{draft}/delete",
            {"draft": str},
            {
                "permission": "draft.delete",
                "preview": previews.deleting_draft,
                "target": ("draft/{draft}",),
                "correct": "create_draft",
                "correct_arguments": {"contact": "{result.contact}", "lines": "{result.lines}"},
            },
        ),
        "issue_invoice": (
            "irreversible",
            "/drafts/{draft}/issue",
            {"draft": str},
            {
                "risk": "confirm",
                "permission": "invoice.issue",
                "preview": previews.issue,
                "accepts": {"draft": "draft"},
                "makes_type": "invoice",
                "target": ("draft/{draft}",),
                "correct": "void_invoice",
                "correct_arguments": {"invoice": "{result.id}"},
            },
        ),
        "void_invoice": (
            "irreversible",
            "/invoices/{invoice}/void",
            {"invoice": str, "reason": (str, "")},
            {
                "risk": "confirm",
                "permission": "invoice.void",
                "preview": previews.void,
                "accepts": {"invoice": "invoice"},
                "makes_type": "invoice",
                "target": ("invoice/{invoice}",),
                "correct": "create_draft",
                "correct_arguments": {"contact": "{result.contact}", "lines": "{result.lines}"},
            },
        ),
        "switch_auto_send": (
            "reversible",
            "/auto-send",
            {"on": bool},
            {
                "risk": switch_risk,
                "permission": "invoice.auto_send",
                "preview": previews.switch,
                "target": ("auto_send",),
                "undo": "switch_auto_send",
                "undo_arguments": {"on": "{result.before}"},
                "undo_where": "changed",
            },
        ),
    }


def _payments(previews: Previews) -> Mapping[str, _Row]:
    return {
        "record_payment": (
            "reversible",
            "/invoices/{invoice}/payments",
            {"invoice": str, "cents": (int | None, None), "notify_customer": (bool, False)},
            {
                "risk": payment_risk,
                "permission": "payment.record",
                "preview": previews.payment,
                "accepts": {"invoice": "invoice"},
                "makes_type": "payment",
                "target": ("invoice/{invoice}",),
                "undo": "delete_payment",
                "undo_arguments": {"payment": "{result.id}"},
                "undo_where": "undoable",
            },
        ),
        "delete_payment": (
            "irreversible",
            "/payments/{payment}/delete",
            {"payment": str},
            {
                "permission": "payment.delete",
                "preview": previews.deleting_payment,
                "target": ("payment/{payment}",),
                "correct": "record_payment",
                "correct_arguments": {"invoice": "{result.invoice}", "cents": "{result.cents}"},
            },
        ),
        "collect_bulk": (
            "irreversible",
            "/collections",
            {"invoices": list[str]},
            {
                "risk": "confirm",
                "permission": "payment.collect",
                "preview": previews.collection,
                "makes_type": "collection",
                "target": ("collections",),
                "correct": "return_collection",
                "correct_arguments": {"collection": "{result.id}"},
            },
        ),
        "return_collection": (
            "irreversible",
            "/collections/{collection}/return",
            {"collection": str},
            {
                "risk": "confirm",
                "permission": "payment.collect",
                "preview": previews.returning,
                "target": ("collections",),
                "correct": "collect_bulk",
                "correct_arguments": {"invoices": "{result.invoices}"},
            },
        ),
        "schedule_reminder": (
            "reversible",
            "/invoices/{invoice}/reminders",
            {"invoice": str, "days_before": int},
            {
                "risk": "confirm",  # It writes to a customer, if not today.
                "permission": "reminder.schedule",
                "preview": previews.reminder,
                "accepts": {"invoice": "invoice"},
                "makes_type": "reminder",
                "target": ("invoice/{invoice}",),
                "undo": "cancel_reminder",
                "undo_arguments": {"reminder": "{result.id}"},
            },
        ),
        "cancel_reminder": (
            "irreversible",
            "/reminders/{reminder}/cancel",
            {"reminder": str},
            {
                "permission": "reminder.cancel",
                "preview": previews.cancelling,
                "target": ("reminder/{reminder}",),
                "correct": "schedule_reminder",
                "correct_arguments": {
                    "invoice": "{result.invoice}",
                    "days_before": "{result.days_before}",
                },
            },
        ),
    }


def _expenses(previews: Previews) -> Mapping[str, _Row]:
    return {
        "create_expense": (
            "reversible",
            "/expenses",
            {"what": str, "cents": int},
            {
                "permission": "expense.create",
                "preview": previews.expense,
                "makes_type": "expense",
                "undo": "delete_expenses",
                "undo_arguments": {"expenses": "{result.expenses}"},
            },
        ),
        "delete_expenses": (
            "irreversible",
            "/expenses/delete",
            {"expenses": list[str]},
            {
                "risk": deletion_risk,
                "permission": "expense.delete",
                "preview": previews.expenses,
                "target": ("expenses",),
                # What was deleted is entered again as one expense of the same total.
                "correct": "create_expense",
                "correct_arguments": {"what": "{result.what}", "cents": "{result.cents}"},
            },
        ),
    }


_DESCRIPTIONS: Mapping[str, str] = {
    "create_draft": "Draft an invoice for a contact. VAT and totals are computed.",
    "delete_draft": "Delete a draft that was not issued.",
    "issue_invoice": "Issue a draft as an invoice, under the next number. This is final.",
    "void_invoice": "Void an issued invoice by a rectifying invoice; nothing is deleted.",
    "switch_auto_send": "Switch the automatic sending of invoices on or off.",
    "record_payment": "Record a payment of an invoice; without cents, all that is open.",
    "delete_payment": "Delete a payment of which the customer was not told.",
    "collect_bulk": "Collect what is open of several invoices in one go.",
    "return_collection": "Return a collection: its invoices are open again.",
    "schedule_reminder": "Remind a customer some days before an invoice is due.",
    "cancel_reminder": "Cancel a reminder that has not gone out.",
    "create_expense": "Record an expense, in cents.",
    "delete_expenses": "Delete one or more expenses for good.",
}
