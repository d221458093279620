"""The tools of the invoice demo, those of the invoicing service and the mail, and who may use them.

In a mailbox one can look whether a mail arrived, so a lost answer need not stay in doubt; `looks`
takes that away, and what is left is all that SMTP itself promises.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx2

from landed.core.outcome import Absent, Found, LookOutcome
from landed.core.tool import Call, Tool
from landed.runtime.permissions import Permit
from landed.testing.invoicing import invoicing_tools, sending_preview
from landed.testing.worlds.mailbox import Mailbox
from landed.tools.letters import message_id
from landed.tools.smtp import SmtpTool

DOMAIN = "studio.example"
SENDER = f"Ana <ana@{DOMAIN}>"
GIVEN_UP_AFTER_S = 60.0

LETTERS: Mapping[str, tuple[str, str]] = {
    "en": ("Invoice {invoice}", "Here is the invoice {invoice}.\n\nAna\n"),
    "es": ("Factura {invoice}", "Aquí tienes la factura {invoice}.\n\nAna\n"),
}

SAYS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "confirmed": "emailed {invoice} to {to}",
        "held": "the email of {invoice} to {to}",
        "unknown": "I may have emailed {invoice} to {to}: {why}",
        "undecided": "I may have emailed {invoice} to {to}: it was never confirmed, and I can't"
        " check",
        "failed": "{invoice} was not emailed: {why}",
        "withdrawn": "{invoice} was not emailed: {why}",
        "blocked": "{invoice} was not emailed: {by} was not settled",
    },
    "es": {
        "confirmed": "enviada {invoice} a {to}",
        "held": "el correo de {invoice} a {to}",
        "unknown": "puede que haya enviado {invoice} a {to}: {why}",
        "undecided": "puede que haya enviado {invoice} a {to}: nadie lo confirmó y no puedo"
        " comprobarlo",
        "failed": "no se envió {invoice}: {why}",
        "withdrawn": "no se envió {invoice}: {why}",
        "blocked": "no se envió {invoice}: {by} no estaba resuelto",
    },
}

Mailing = Callable[..., SmtpTool]
"""Makes the tool that mails, of all that `SmtpTool` takes but the way there."""


def office_tools(
    url: str,
    mailing: Mailing,
    box: Mailbox,
    *,
    language: str = "en",
    looks: bool = True,
    transport: httpx2.AsyncBaseTransport | None = None,
    replaced: Mapping[str, Mapping[str, object]] | None = None,
) -> list[Tool]:
    """Return the tools; `replaced` are single promises that a demo wants otherwise, by tool."""
    given = dict(replaced or {})
    own = given.pop("send_invoice", {})
    invoicing = invoicing_tools(url, transport=transport, replaced=given)
    subject, body = LETTERS[language]
    promises: dict[str, Any] = {
        "permission": "invoice.send",
        "accepts": {"invoice": "invoice"},
        "makes_type": "mail",
        "preview": sending_preview(invoicing),
        "on_interrupt": "finish",
        "escalate_after_s": GIVEN_UP_AFTER_S,
        "says": SAYS,
        **own,
    }
    mail = mailing(
        name="send_invoice",
        sender=SENDER,
        arguments={"invoice": str, "to": str},
        subject=subject,
        body=body,
        description="Email an issued invoice to its customer.",
        lookup=looking(box) if looks else None,
        **promises,
    )
    return [*invoicing, mail]


def looking(box: Mailbox) -> Callable[[Call], LookOutcome]:
    """Return a lookup that looks for the Message-ID of a call where its mail would be."""

    def look(call: Call) -> LookOutcome:
        found = box.found(message_id(call, domain=DOMAIN))
        return Found(result=None) if found else Absent()

    return look


class Office:
    """Who may do what there: Ana all of it, anybody else nothing."""

    def __init__(self, allowed: Sequence[str] = ("ana",)) -> None:
        self._allowed = tuple(allowed)

    async def allows(self, permit: Permit) -> bool:
        """Whether it is somebody who works there."""
        return permit.principal in self._allowed

    async def administers(self, principal: str, *, tenant: str) -> bool:
        """Return no: only who started something may stop it."""
        return False
