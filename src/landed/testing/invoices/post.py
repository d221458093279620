"""The way of a mail in a simulated world: no socket, but the same mailbox and the same verdicts.

What goes wrong are the mailbox's own faults, and what that proves is read off the table that
`landed.tools.delivery` goes by.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from landed.core.errors import ProposalError
from landed.core.outcome import Acknowledged, AnswerLost, NotSent, Refused, SendOutcome
from landed.core.tool import Call
from landed.testing.worlds.faults import Sleep
from landed.testing.worlds.mail_faults import At, MailFault, MailFaults
from landed.testing.worlds.mailbox import Mailbox
from landed.tools.classify import described
from landed.tools.delivery import PROVES, Envelope, MailServer
from landed.tools.smtp import SmtpTool

NOWHERE = MailServer(host="mail.test", security="none")

Unanswered = NotSent | Refused | AnswerLost
Spawn = Callable[[Coroutine[Any, Any, Unanswered | None]], Awaitable[Unanswered | None]]
"""Starts a coroutine outside of every process, and returns its reply."""

Witness = Callable[[str], Awaitable[None]]
"""Sees each operation at the moment before its mail leaves."""


class Post:
    """Carries mails to a mailbox, each as work of the world: no killed agent calls one back.

    `latency_s` passes on the way there and on the way back, by `sleep`.
    """

    def __init__(
        self,
        box: Mailbox,
        spawn: Spawn,
        faults: Sequence[MailFault] = (),
        *,
        latency_s: float = 0.01,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._box = box
        self._spawn = spawn
        self._faults = MailFaults(faults)
        self._latency_s = latency_s
        self._sleep = sleep

    async def hand_over(self, envelope: Envelope) -> Unanswered | None:
        """Hand one mail over; None when the server has taken it."""
        return await self._spawn(self._carry(envelope))

    async def _carry(self, envelope: Envelope) -> Unanswered | None:
        await self._sleep(self._latency_s)
        came = await self._server(envelope)
        await self._sleep(self._latency_s)
        return came

    async def _server(self, envelope: Envelope) -> Unanswered | None:
        """Do as the mailbox's server does, from its greeting to the end of the text."""
        for at in At:
            to = "*" if at is At.CONNECT else envelope.recipient
            fault = self._faults.due(at, to)
            if fault is None:
                continue
            if fault.keeps:
                self._take(envelope)
            said = fault.reply or fault.kind.replace("_", " ")
            self._box.note(fault.kind, f"{envelope.recipient}: {said}")
            await self._sleep(fault.seconds)
            return None if fault.kind == "delay_reply" else proved(at, fault.reply)
        self._take(envelope)
        return None

    def _take(self, envelope: Envelope) -> None:
        self._box.take(sender=envelope.sender, to=envelope.recipient, source=envelope.text)
        self._box.note("took", f"took a mail for {envelope.recipient}")


def proved(at: At, reply: str) -> Unanswered:
    """Return what a reply other than a yes, or none ("") at all, proves at that point."""
    dot_left = at is At.TEXT
    nothing_said = AnswerLost if dot_left else NotSent
    if not reply:
        return nothing_said(reason="the connection ended")
    return PROVES.get((dot_left, int(reply[0])), nothing_said)(reason=reply)


class PostedMail(SmtpTool):
    """A mail tool in a simulated world; in everything but the wire it is the real one.

    `witness` is called before each send; the rest is what `SmtpTool` takes.
    """

    def __init__(self, post: Post, witness: Witness | None = None, **given: Any) -> None:
        super().__init__(server=NOWHERE, **given)
        self._post = post
        self._witness = witness

    async def send(self, call: Call) -> SendOutcome:
        """Hand the mail to the post, once."""
        try:
            envelope = self._envelope(call)
        except ProposalError as error:
            return Refused(reason=described(error))
        if self._witness is not None:
            await self._witness(call.operation)
        return await self._post.hand_over(envelope) or Acknowledged(result=self._result(call))
