"""An invoice scenario as values: who says what, what goes wrong, and how it must end."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from landed.core.canonical import Json
from landed.testing.designs import RIGHT, Design
from landed.testing.invoices.clerk import OURS, Clerk, Manner
from landed.testing.invoices.words import LANGUAGES
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.invoicing.figures import written, written_day
from landed.testing.worlds.mail_faults import MailFault
from landed.testing.worlds.mailbox import Mail

SUBJECTS: Mapping[str, str] = {"en": "Invoice", "es": "Factura"}


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a scenario must end.

    `invoices` is what the books must hold, `mailed` the invoices that must have gone out, one for
    each mail, `reconciled` whether records and world must agree, `says` what the last message must
    contain in each language, `asked` how many questions there must have been.
    """

    invoices: tuple[str, ...] = ()
    mailed: tuple[str, ...] = ()
    reconciled: bool = True
    says: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    asked: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceScenario:
    """What happens, and how it must end; `kill` are the points where the processes are killed.

    `design` and `manner` are ours unless a wrong one is to be seen failing, which `wrong` says
    beforehand. `looks` says whether
    anybody can look into the mailbox. Where it is not `tabulated`, nothing is said of its end.
    """

    name: str
    line: str
    script: Callable[[Clerk], Awaitable[None]]
    end: End
    faults: tuple[Fault, ...] = ()
    mail_faults: tuple[MailFault, ...] = ()
    looks: bool = True
    replaced: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict[str, Mapping[str, object]]
    )
    design: Design = RIGHT
    manner: Manner = OURS
    wrong: str = ""
    kill: tuple[str, ...] = ()
    language: str = "en"
    tabulated: bool = True

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise ValueError(f"there is no language {self.language!r}: {', '.join(LANGUAGES)}")

    @property
    def wanted(self) -> Mapping[str, tuple[str, ...]]:
        """What must be held in the end, by where."""
        subject = SUBJECTS[self.language]
        mails = tuple(f"E{n} {TO}: {subject} {id}" for n, id in enumerate(self.end.mailed, 1))
        return {"invoices": self.end.invoices, "mailbox": mails, "payments": ()}

    @property
    def reconciled(self) -> bool:
        """Whether records and world must agree."""
        return self.end.reconciled

    @property
    def says(self) -> tuple[str, ...]:
        """What the last message must contain."""
        return self.end.says.get(self.language, ())

    @property
    def asked(self) -> int | None:
        """How many questions must have been put."""
        return self.end.asked

    def spoken(self, language: str) -> "InvoiceScenario":
        """Return the same in that language; raises `ValueError` for one that nobody speaks."""
        return replace(self, language=language)


TO = "marta@example.com"

Books = Mapping[str, Any]
Held = dict[str, list[dict[str, Json]]]


def held(books: Books, mails: Sequence[Mail]) -> Held:
    """Return what is held, for a reader: by the books (as `GET /books` gives them), the mailbox."""
    reminders = {one["invoice"]: one for one in books["reminders"] if one["state"] == "scheduled"}
    drafts = [one for one in books["drafts"] if one["state"] == "open"]
    return {
        "invoices": [_invoice(one, reminders.get(one["id"])) for one in books["invoices"]]
        + [_amount(one, "draft for ") for one in drafts],
        "mailbox": [_mail(number, one) for number, one in enumerate(mails, 1)],
        "payments": [_amount(one, "") for one in books["payments"] if one["state"] == "recorded"],
    }


def made(books: Books, mails: Sequence[Mail]) -> list[str]:
    """Return the id of all that was made and not taken back, as a tool names it."""
    kinds = {"drafts": "deleted", "reminders": "cancelled", "payments": "deleted"}
    there = [one["id"] for one in books["invoices"]]
    for kind, gone in kinds.items():
        there += [one["id"] for one in books[kind] if one["state"] != gone]
    return [*there, *(mail.message_id for mail in mails)]


def _invoice(one: Mapping[str, Any], reminder: Mapping[str, Any] | None) -> dict[str, Json]:
    text = f"{one['id']} {one['customer']} {written(one['total_cents'])} due {one['due']}"
    if reminder is not None:
        text += f", reminder {written_day(reminder['remind_on'])}"
    return {
        "id": one["id"],
        "text": text,
        "total_cents": one["total_cents"],
        "due_on": one["due_on"],
        "remind_on": reminder["remind_on"] if reminder else None,
    }


def _amount(one: Mapping[str, Any], what: str) -> dict[str, Json]:
    cents = one["total_cents"] if "total_cents" in one else one["cents"]
    whom = one.get("customer") or one["invoice"]
    return {"id": one["id"], "text": f"{one['id']} {what}{whom} {written(cents)}", "cents": cents}


def _mail(number: int, mail: Mail) -> dict[str, Json]:
    id = f"E{number}"
    return {
        "id": id,
        "text": f"{id} {mail.to}: {mail.subject}",
        "to": mail.to,
        "message_id": mail.message_id,
    }
