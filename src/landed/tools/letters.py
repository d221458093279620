"""What a mail is: one recipient, one line of subject, a text; written the same for every send.

Everything that depends on when or how often something is sent is left out of the bytes: the
Message-ID is the operation's name, the Date is when that name was made. So a mail that is sent
again is the same mail, and whoever finds it in a mailbox can say which operation it came from.

What goes into a header is one line without control characters, or a model that was fed a poisoned
subject adds a Bcc of its own.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from string import Formatter
from urllib.parse import quote, unquote

from landed.core.canonical import Json
from landed.core.contract import filled
from landed.core.errors import ContractError, ProposalError
from landed.core.tool import Call

SUBJECT_MAX = 250  # characters
BODY_MAX = 100_000

# RFC 5321 §4.5.3.1: the local part and the whole address, in bytes.
LOCAL_MAX, ADDRESS_MAX = 64, 254

# Text in 7 bits, so that no server's extensions are needed to carry it.
_POLICY = SMTP.clone(cte_type="7bit")

_ATEXT = "!#$%&'*+/=?^_`{|}~-"
_ADDRESS = re.compile(
    rf"[\w{_ATEXT}]+(?:\.[\w{_ATEXT}]+)*"
    r"@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]",
    re.ASCII | re.IGNORECASE,
)

# The ids of `landed.runtime.clock`: 48 bits of milliseconds, then 82 of chance.
_TIMED_ID = re.compile(r"op-([0-9a-hjkmnp-tv-z]{26})")
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_CHANCE_BITS = 82


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """What is written to one recipient; `reply_to` may be "".

    Raises `ProposalError`, saying which field and why, for what no mail can carry.
    """

    to: str
    subject: str
    body: str
    reply_to: str = ""

    def __post_init__(self) -> None:
        address(self.to, name="to")
        if self.reply_to:
            address(self.reply_to, name="reply_to")
        one_line(self.subject, name="subject")
        if not self.subject.strip() or len(self.subject) > SUBJECT_MAX:
            raise ProposalError(f"subject must have 1 to {SUBJECT_MAX} characters")
        if len(self.body) > BODY_MAX:
            raise ProposalError(f"body may have {BODY_MAX} characters, not {len(self.body)}")
        if strange := _controls(re.sub(r"\r\n|[\n\t]", "", self.body)):
            raise ProposalError(f"body holds {strange}; send plain text")

    def written(self, *, sender: str, message_id: str, made_at: float | None) -> bytes:
        """Return the mail as it goes over the wire: the same bytes for the same values.

        Without `made_at` (UTC, seconds since the epoch) it has no Date; the server that takes it
        adds one (RFC 6409 §8.2).
        """
        mail = EmailMessage(policy=_POLICY)
        mail["From"] = sender
        mail["To"] = self.to
        if self.reply_to:
            mail["Reply-To"] = self.reply_to
        mail["Subject"] = self.subject
        if made_at is not None:
            mail["Date"] = format_datetime(datetime.fromtimestamp(int(made_at), UTC))
        mail["Message-ID"] = message_id
        mail.set_content(self.body)
        return mail.as_bytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A letter with braces, which name the arguments of a tool (`Invoice {invoice}`)."""

    to: str
    subject: str
    body: str
    reply_to: str

    @property
    def fields(self) -> Mapping[str, str]:
        """The templates by the name of what they fill."""
        return {
            "to": self.to,
            "subject": self.subject,
            "body": self.body,
            "reply_to": self.reply_to,
        }

    def check(self, *, tool: str, arguments: frozenset[str]) -> None:
        """Raise `ContractError` for braces that name no argument."""
        for field, template in self.fields.items():
            try:
                names = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
            except ValueError as error:
                raise ContractError(
                    f"{tool}: {field}={template!r} is no template: {error}"
                ) from None
            for name in names:
                if name.partition(".")[0] not in arguments:
                    raise ContractError(
                        f"{tool}: {field}={template!r} names {{{name}}}, which is no argument; it"
                        f" may name {', '.join(sorted(arguments)) or 'nothing'}"
                    )

    def texts(self, arguments: Mapping[str, Json]) -> dict[str, str]:
        """Return the filled templates, unchecked; null is an empty text."""
        given = {name: "" if value is None else value for name, value in arguments.items()}
        texts = filled(self.fields, arguments=given, result=None)
        return {name: str(text) for name, text in texts.items()}

    def letter(self, arguments: Mapping[str, Json]) -> Letter:
        """Return the letter; `ProposalError` for one that no mail can carry."""
        return Letter(**self.texts(arguments))


def address(text: str, *, name: str) -> str:
    """Return a mail address as it is; `ProposalError` unless it is one plain address.

    One `local@domain` in ASCII, without a display name, quotes, comments or a second recipient.
    """
    one_line(text, name=name)
    local, _, _ = text.partition("@")
    fits = len(local) <= LOCAL_MAX and len(text) <= ADDRESS_MAX
    if not fits or not _ADDRESS.fullmatch(text):
        raise ProposalError(
            f"{name} must be one plain address such as ana@example.com, not {text[:80]!r};"
            " each recipient is a call of its own"
        )
    return text


def one_line(text: str, *, name: str) -> str:
    """Return `text`; `ProposalError` where it would end the header it stands in."""
    if strange := _controls(text):
        raise ProposalError(f"{name} goes into a header: it must be one line, and holds {strange}")
    return text


def sender_of(text: str, *, tool: str) -> tuple[str, str]:
    """Return the From header and the envelope's address of `Name <address>` or `address`.

    Raises `ContractError` for anything else.
    """
    try:
        one_line(text, name="sender")
        name, _, plain = text.strip().removesuffix(">").rpartition("<")
        name = name.strip().strip('"')
        shown = str(Address(display_name=name, addr_spec=address(plain, name="sender")))
    except (ProposalError, ValueError) as error:
        raise ContractError(f"{tool}: {error}") from None
    return shown, plain


def message_id(call: Call, *, domain: str) -> str:
    """Return the Message-ID of a call: the name of its operation at `domain`.

    It is the same for every send, shared by no two operations, and `operation_of` reads it back.
    """
    return f"<{quote(call.key or call.operation, safe=_SAFE)}@{domain}>"


def operation_of(message_id: str) -> str:
    """Return the operation that a Message-ID names; "" where it has no form of ours.

    Where the contract has a `key_form`, it is that key.
    """
    found = re.fullmatch(r"\s*<([^<>@\s]+)@[^<>@\s]+>\s*", message_id)
    return unquote(found[1]) if found else ""


def made_at(operation: str) -> float | None:
    """Return when an operation was recorded, UTC seconds, by its id; None where that says nothing.

    A Date has to be the same in every send, so it can't be the time of the send.
    """
    found = _TIMED_ID.fullmatch(operation)
    if found is None:
        return None
    number = 0
    for character in found[1]:
        number = number << 5 | _ALPHABET.index(character)
    return (number >> _CHANCE_BITS) / 1000


# What may stand before the @ as it is; the rest is percent-encoded, which is atext again.
_SAFE = "".join(character for character in _ATEXT if character != "%")


def _controls(text: str) -> str:
    """Return the first character that is no text, by its number; "" where there is none."""
    for character in text:
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
            return f"the control character U+{ord(character):04X}"
    return ""
