"""Makes sending a mail a tool: real SMTP, with the Message-ID as the operation's handle.

SMTP has no keys and nothing to ask: a lost answer stays in doubt, unless somebody can look into a
mailbox. What each reply proves stands in `landed.tools.delivery`.
"""

import inspect
import threading
import time
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Unpack, cast

from landed.core.canonical import Json
from landed.core.contract import Contract, Effect, check
from landed.core.declared import from_values
from landed.core.errors import ContractError, NotSentError, ProposalError
from landed.core.outcome import (
    Absent,
    Acknowledged,
    Found,
    Listed,
    LookOutcome,
    NoAnswer,
    NotSent,
    NotYet,
    Prepared,
    Refused,
    SendOutcome,
)
from landed.core.preview import Preview, Previewing
from landed.core.reference import referred
from landed.core.tool import Call
from landed.tools.arguments import Arguments
from landed.tools.classify import described
from landed.tools.delivery import Envelope, MailServer, deliver
from landed.tools.foresight import foresight
from landed.tools.function import THREADS_MAX
from landed.tools.letters import Form, Letter, made_at, message_id, sender_of
from landed.tools.promises import Promises
from landed.tools.threads import Threads

Lookup = Callable[[Call], "LookOutcome | Awaitable[LookOutcome]"]

MAIL: Mapping[str, object] = {"to": str, "subject": str, "body": str}

REPLY_WAIT_S = 600.0
"""How long the last reply is waited for (RFC 5321 §4.5.3.2.6): long after the operation is in
doubt, since the late reply settles it."""

# How much of the deadline there is before the mail has left. What ends then is *not sent* for sure,
# and has to be heard before the runtime takes it for a lost answer.
LEAVES_WITHIN = 0.75

# A mail can't be taken back, so that a person is asked; it is tried for a quarter of an hour, which
# is longer than greylisting lasts; and the dialogue may be slow.
DEFAULTS: Promises = {"risk": "confirm", "max_tries": 20, "deadline_s": 60.0}

KEY_HEADER = "Message-ID"

STAND_IN = "somebody@example.com"  # For what is not known yet: fit for every field of a letter.


class SmtpTool:
    """Mails to one recipient each, as a `landed.core.tool.Tool`.

    server      the server that takes mails on, and how it is reached
    sender      `address` or `Name <address>`
    arguments   per argument its type, or (type, default); to, subject and body unless said
    to, subject, body, reply_to
                templates over the arguments (`Invoice {invoice}`)
    domain      what stands behind the @ of the Message-ID; the sender's unless said
    lookup      a function of the call, plain or async, that looks for its Message-ID where sent
                mails can be seen, and returns Found, Absent, NotYet or NoAnswer; to
                `Found(result=None)` the result is added that the send would have had
    reply_wait_s
                how long the last reply is waited for, beyond the deadline

    The result is `{id, to, subject}`, the Message-ID being the id. The effect is irreversible;
    `correct` may name another mail. The key, where `keyed="Message-ID"` says that the receiving
    side drops a second mail of the same id, is in the Message-ID. The other promises are the fields
    of `landed.core.contract.Contract`; `risk`, `max_tries` and `deadline_s` start from DEFAULTS.
    Without `preview` the recipient and the subject are shown.

    Raises `ContractError` where the promises contradict each other or a template names no argument.
    """

    interruptible = False

    def __init__(
        self,
        *,
        name: str,
        server: MailServer,
        sender: str,
        arguments: Mapping[str, object] = MAIL,
        to: str = "{to}",
        subject: str = "{subject}",
        body: str = "{body}",
        reply_to: str = "",
        domain: str = "",
        description: str = "",
        lookup: Lookup | None = None,
        reply_wait_s: float = REPLY_WAIT_S,
        **promises: Unpack[Promises],
    ) -> None:
        given = {"preview": self._preview, **DEFAULTS, **promises}
        self.foresight, plain = foresight(name, {**given, "effect": Effect.IRREVERSIBLE})
        self.name = name
        self.contract = _checked(plain | {"lookup": lookup is not None}, tool=name)
        self._form = Form(to=to, subject=subject, body=body, reply_to=reply_to)
        self._form.check(tool=name, arguments=frozenset(arguments))
        self._arguments = Arguments(
            name, lambda: _fields(arguments), own={KEY_HEADER}, description=description
        )
        self._from, self._sender = sender_of(sender, tool=name)
        self._domain = domain or self._sender.partition("@")[2]
        self._server = server
        self._lookup = lookup
        self._reply_wait_s = reply_wait_s
        self._sends = Threads(name, at_most=self.contract.concurrency or THREADS_MAX)
        # Threads apart, so that sends that hang do not keep anybody from asking about them.
        self._asks = Threads(f"{name} questions", at_most=THREADS_MAX)

    @property
    def schema(self) -> Mapping[str, Json]:
        """The JSON Schema of its arguments."""
        return self._arguments.schema

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments as stored; `ProposalError` also for what no mail can carry.

        What an earlier step is still to make (`$n`) is checked when it is known.
        """
        stored = self._arguments.check(arguments)
        later = dict.fromkeys(referred(stored, self.contract.accepts), STAND_IN)
        self._form.letter({**stored, **later})
        return stored

    def letter(self, arguments: Mapping[str, Json]) -> Letter:
        """Return what is written; `ProposalError` for what no mail can carry."""
        return self._form.letter(arguments)

    def message_id(self, call: Call) -> str:
        """Return the Message-ID of a call, the same for every send of it."""
        return message_id(call, domain=self._domain)

    async def prepare(self, call: Call) -> Prepared | NoAnswer:
        """Say that there is nothing to prepare: each send is made of the stored arguments."""
        return NoAnswer(reason=f"{self.name} has nothing to prepare")

    async def send(self, call: Call) -> SendOutcome:
        """Hand the mail to the server, once, in a thread of its own.

        Cancelled before the mail has left, it does not leave any more.
        """
        bound_s = max(call.deadline_at - call.sent_at, 0.0) * LEAVES_WITHIN
        until, stopped = time.monotonic() + bound_s, threading.Event()
        try:
            send = partial(
                deliver,
                self._server,
                self._envelope(call),
                until=until,
                reply_wait_s=self._reply_wait_s,
                stopped=stopped.is_set,
            )
            unanswered = await self._sends.run(send, wait_s=bound_s)
        except ProposalError as error:
            return Refused(reason=described(error))  # No other try would be another mail.
        except NotSentError as error:
            return NotSent(reason=described(error))
        except CancelledError:
            stopped.set()
            raise
        return unanswered or Acknowledged(result=self._result(call))

    async def list_effects(self, since: float) -> Listed | NoAnswer:
        """Say that it has no list of what the service holds."""
        return NoAnswer(reason=f"{self.name} has no list of effects")

    async def lookup(self, call: Call) -> LookOutcome:
        """Ask the `lookup` function."""
        if self._lookup is None:
            return NoAnswer(reason=f"{self.name} has no lookup")
        try:
            answer = await self._asked(self._lookup, call)
        except Exception as error:
            return NoAnswer(reason=described(error))
        match answer:
            case Found(result=None, position=position):
                return Found(result=self._result(call), position=position)
            case Found() | Absent() | NotYet() | NoAnswer():
                return answer
            case _:
                returned = type(answer).__name__
                return NoAnswer(reason=f"the lookup of {self.name} returned {returned}")

    async def close(self, call: Call) -> LookOutcome:
        """Say that SMTP has nothing to close."""
        return NoAnswer(reason=f"{self.name} has no close")

    async def read_back(self, call: Call, result: Json) -> LookOutcome:
        """Say that SMTP has nothing to read back."""
        return NoAnswer(reason=f"{self.name} has no read_back")

    def _envelope(self, call: Call) -> Envelope:
        letter = self._form.letter(call.arguments)
        text = letter.written(
            sender=self._from, message_id=self.message_id(call), made_at=made_at(call.operation)
        )
        return Envelope(sender=self._sender, recipient=letter.to, text=text)

    def _result(self, call: Call) -> Json:
        letter = self._form.letter(call.arguments)
        return {"id": self.message_id(call), "to": letter.to, "subject": letter.subject}

    async def _asked(self, lookup: Lookup, call: Call) -> object:
        if inspect.iscoroutinefunction(lookup):
            return await lookup(call)
        answer = await self._asks.run(partial(lookup, call), wait_s=self.contract.deadline_s)
        return await answer if inspect.isawaitable(answer) else answer

    def _preview(self, asked: Previewing) -> Preview:
        """Show recipient and subject; what an earlier step makes, by the id its preview gave."""
        facts = {name: asked.facts(name) for name in asked.arguments}
        known = {name: made["id"] for name, made in facts.items() if made and "id" in made}
        texts = self._form.texts({**asked.arguments, **known})
        to, subject = texts["to"], texts["subject"]
        summary = _SHOWN.get(asked.language, _SHOWN["en"]).format(to=to, subject=subject)
        return Preview(summary=summary, makes={"to": to, "subject": subject})


_SHOWN = {"en": 'mail to {to}: "{subject}"', "es": "correo a {to}: «{subject}»"}


def _checked(plain: Mapping[str, object], *, tool: str) -> Contract:
    contract = check(from_values(plain, tool=tool), tool=tool)
    if contract.keyed not in ("", KEY_HEADER):
        raise ContractError(
            f"contract of {tool}: a mail's only key is its {KEY_HEADER}; give keyed={KEY_HEADER!r}"
            " where the receiving side drops a second mail of the same id, and nothing elsewhere"
        )
    if contract.fence:
        raise ContractError(f"contract of {tool}: no mail server checks epochs; drop fence")
    return contract


def _fields(kinds: Mapping[str, object]) -> dict[str, tuple[object, object]]:
    return {
        name: cast("tuple[object, object]", kind) if isinstance(kind, tuple) else (kind, ...)
        for name, kind in kinds.items()
    }
