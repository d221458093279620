"""The contracts of the invoicing tools, as a table: what each does, where it sends, what it takes.

Whoever writes to a customer, or does what is final for several, needs a yes. What is final names
what corrects it; what is not names its undo.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Literal, cast

from landed.core.canonical import Json
from landed.core.preview import Preview, Previewing, Similar
from landed.testing.invoicing_previews import Previews
from landed.tools.promises import Promises

SEVERAL = 2
"""From how many expenses on a deletion is no small thing."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One tool: its effect, where it sends, its arguments, its previews, and its other promises."""

    effect: Literal["reversible", "irreversible"]
    path: str
    arguments: Mapping[str, object]
    description: str
    preview: Callable[[Previews, Previewing], Awaitable[Preview]]
    look_alike: Callable[[Previews, Previewing], Awaitable[Sequence[Similar]]] | None = None
    promises: Promises


TOOLS: Mapping[str, Row] = {
    "create_draft": Row(
        description="Draft an invoice for a contact. VAT and totals are computed.",
        effect="reversible",
        path="/drafts",
        arguments={"contact": str, "lines": list[InvoiceLine]},
        preview=Previews.draft,
        look_alike=Previews.drafts_alike,
        promises={
            "permission": "draft.create",
            "if_alike": "warn",
            "accepts": {"contact": "contact"},
            "makes_type": "draft",
            "undo": "delete_draft",
            "undo_arguments": {"draft": "{result.id}"},
        },
    ),
    "delete_draft": Row(
        description="Delete a draft that was not issued.",
        effect="irreversible",
        path="/drafts/{draft}/delete",
        arguments={"draft": str},
        preview=Previews.deleting_draft,
        promises={
            "permission": "draft.delete",
            "target": ("draft/{draft}",),
            "correct": "create_draft",
            "correct_arguments": {"contact": "{result.contact}", "lines": "{result.lines}"},
        },
    ),
    "issue_invoice": Row(
        description="Issue a draft as an invoice, under the next number. This is final.",
        effect="irreversible",
        path="/drafts/{draft}/issue",
        arguments={"draft": str},
        preview=Previews.issue,
        promises={
            "risk": "confirm",
            "permission": "invoice.issue",
            "accepts": {"draft": "draft"},
            "makes_type": "invoice",
            "target": ("draft/{draft}",),
            "correct": "void_invoice",
            "correct_arguments": {"invoice": "{result.id}"},
        },
    ),
    "void_invoice": Row(
        description="Void an issued invoice by a rectifying invoice; nothing is deleted.",
        effect="irreversible",
        path="/invoices/{invoice}/void",
        arguments={"invoice": str, "reason": (str, "")},
        preview=Previews.void,
        promises={
            "risk": "confirm",
            "permission": "invoice.void",
            "accepts": {"invoice": "invoice"},
            "makes_type": "invoice",
            "target": ("invoice/{invoice}",),
            "correct": "create_draft",
            "correct_arguments": {"contact": "{result.contact}", "lines": "{result.lines}"},
        },
    ),
    "switch_auto_send": Row(
        description="Switch the automatic sending of invoices on or off.",
        effect="reversible",
        path="/auto-send",
        arguments={"on": bool},
        preview=Previews.switch,
        promises={
            "risk": switch_risk,
            "permission": "invoice.auto_send",
            "target": ("auto_send",),
            "undo": "switch_auto_send",
            "undo_arguments": {"on": "{result.before}"},
            "undo_where": "changed",
        },
    ),
    "record_payment": Row(
        description="Record a payment of an invoice; without cents, all that is open.",
        effect="reversible",
        path="/invoices/{invoice}/payments",
        arguments={"invoice": str, "cents": (int | None, None), "notify_customer": (bool, False)},
        preview=Previews.payment,
        promises={
            "risk": payment_risk,
            "permission": "payment.record",
            "accepts": {"invoice": "invoice"},
            "makes_type": "payment",
            "target": ("invoice/{invoice}",),
            "undo": "delete_payment",
            "undo_arguments": {"payment": "{result.id}"},
            "undo_where": "undoable",
        },
    ),
    "delete_payment": Row(
        description="Delete a payment of which the customer was not told.",
        effect="irreversible",
        path="/payments/{payment}/delete",
        arguments={"payment": str},
        preview=Previews.deleting_payment,
        promises={
            "permission": "payment.delete",
            "target": ("payment/{payment}",),
            "correct": "record_payment",
            "correct_arguments": {"invoice": "{result.invoice}", "cents": "{result.cents}"},
        },
    ),
    "collect_bulk": Row(
        description="Collect what is open of several invoices in one go.",
        effect="irreversible",
        path="/collections",
        arguments={"invoices": list[str]},
        preview=Previews.collection,
        promises={
            "risk": "confirm",
            "permission": "payment.collect",
            "makes_type": "collection",
            "target": ("collections",),
            "correct": "return_collection",
            "correct_arguments": {"collection": "{result.id}"},
        },
    ),
    "return_collection": Row(
        description="Return a collection: its invoices are open again.",
        effect="irreversible",
        path="/collections/{collection}/return",
        arguments={"collection": str},
        preview=Previews.returning,
        promises={
            "risk": "confirm",
            "permission": "payment.collect",
            "target": ("collections",),
            "correct": "collect_bulk",
            "correct_arguments": {"invoices": "{result.invoices}"},
        },
    ),
    "schedule_reminder": Row(
        description="Remind a customer some days before an invoice is due.",
        effect="reversible",
        path="/invoices/{invoice}/reminders",
        arguments={"invoice": str, "days_before": int},
        preview=Previews.reminder,
        promises={
            "risk": "confirm",  # It writes to a customer, if not today.
            "permission": "reminder.schedule",
            "accepts": {"invoice": "invoice"},
            "makes_type": "reminder",
            "target": ("invoice/{invoice}",),
            "undo": "cancel_reminder",
            "undo_arguments": {"reminder": "{result.id}"},
        },
    ),
    "cancel_reminder": Row(
        description="Cancel a reminder that has not gone out.",
        effect="irreversible",
        path="/reminders/{reminder}/cancel",
        arguments={"reminder": str},
        preview=Previews.cancelling,
        promises={
            "permission": "reminder.cancel",
            "target": ("reminder/{reminder}",),
            "correct": "schedule_reminder",
            "correct_arguments": {
                "invoice": "{result.invoice}",
                "days_before": "{result.days_before}",
            },
        },
    ),
    "create_expense": Row(
        description="Record an expense, in cents.",
        effect="reversible",
        path="/expenses",
        arguments={"what": str, "cents": int},
        preview=Previews.expense,
        promises={
            "permission": "expense.create",
            "makes_type": "expense",
            "undo": "delete_expenses",
            "undo_arguments": {"expenses": "{result.expenses}"},
        },
    ),
    "delete_expenses": Row(
        description="Delete one or more expenses for good.",
        effect="irreversible",
        path="/expenses/delete",
        arguments={"expenses": list[str]},
        preview=Previews.expenses,
        promises={
            "risk": deletion_risk,
            "permission": "expense.delete",
            "target": ("expenses",),
            # What was deleted is entered again as one expense of the same total.
            "correct": "create_expense",
            "correct_arguments": {"what": "{result.what}", "cents": "{result.cents}"},
        },
    ),
}
