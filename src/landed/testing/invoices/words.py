"""What is said in the invoice demo, in both languages, and how the model reads it."""

from collections.abc import Mapping
from dataclasses import dataclass

from landed.core.canonical import Json
from landed.testing.models import Wanted

ANA = "ana"
EVE = "eve"  # She works elsewhere.
LANGUAGES = ("en", "es")

CONTACT, ADDRESS = "C1", "marta@example.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What the user says, in one language.

    `order` is the whole request, `draft` asks for a draft alone, `other` agrees and does not: it
    changes the date.
    """

    order: str
    draft: str
    other: str
    yes: str


WORDS: Mapping[str, Words] = {
    "en": Words(
        order="Invoice Marta for the logo, 500, email it to her, and remind her five days before"
        " it's due",
        draft="Draft an invoice for Marta for the logo, 500",
        other="Yes, but change the date: remind her ten days before",
        yes="yes",
    ),
    "es": Words(
        order="Factura a Marta el logo, 500, envíasela por correo y recuérdaselo cinco días antes"
        " de que venza",
        draft="Haz un borrador de factura para Marta por el logo, 500",
        other="Sí, pero cambia la fecha: recuérdaselo diez días antes",
        yes="sí",
    ),
}


def _draft() -> Wanted:
    lines: Json = [{"what": "logo", "unit_price": "500.00"}]
    return Wanted(tool="create_draft", arguments={"contact": CONTACT, "lines": lines})


def _whole(days_before: int) -> tuple[Wanted, ...]:
    return (
        _draft(),
        Wanted(tool="issue_invoice", arguments={"draft": "$1"}),
        Wanted(tool="send_invoice", arguments={"invoice": "$2", "to": ADDRESS}),
        Wanted(tool="schedule_reminder", arguments={"invoice": "$2", "days_before": days_before}),
    )


READ: Mapping[str, tuple[Wanted, ...]] = {
    text: steps
    for words in WORDS.values()
    for text, steps in (
        (words.order, _whole(5)),
        (words.draft, (_draft(),)),
        (words.other, _whole(10)),
    )
}
