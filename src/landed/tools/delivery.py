"""Hands one mail to an SMTP server, once, and says what the server's answer proves.

A server takes a mail on when it has read the line with a single dot that ends the text, and not
before: a connection that is lost earlier cancels the transaction (RFC 5321 §4.1.1.10), whatever
part of the text has arrived. So that line is written by itself, and only one thing has to be known:
whether it has left. Before it, there is no doubt whatever happens; after it, only a whole reply
settles anything.

    the answer      before the dot has left             after it
    2xx             (the dialogue goes on)              acknowledged: the server has it
    4xx             not sent: come back later           not sent: it did not take it (§4.2.1)
    5xx             refused                             refused
    none, in part,  not sent                            answer lost
    or no reply

*Not sent* is what may be sent again by the same operation, which is what a server that says 4xx
asks for (greylisting; too busy; mailbox full). A refusal would end the operation, a lost answer
would put it in doubt, and neither is true.

Mail servers send again after a lost answer, and this is where the second copies in mailboxes come
from (RFC 1047). Here that is left to whoever can find out.
"""

import re
import smtplib
import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from socket import IPPROTO_TCP, TCP_NODELAY, socket
from time import monotonic
from typing import Literal

from landed.core.errors import ContractError
from landed.core.outcome import AnswerLost, NotSent, Refused
from landed.tools.classify import Unanswered, bounded, described

Security = Literal["starttls", "tls", "none"]

REPLY_MAX_BYTES = 65_536  # Of one reply, which may have many lines.
QUIT_WAIT_S = 1.0  # A good-bye is a courtesy; the outcome is known by then.

DOT = b".\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """Where mails are handed in, and who we say we are.

    security        how the connection is made private: `starttls`, `tls` from its first byte, or
                    `none`; where the server does not offer that, nothing is sent
    username, password
                    for AUTH, where there are any; never over an open connection
    tls             an `ssl.SSLContext` of one's own; the machine's certificates otherwise
    introduced_as   our name in EHLO

    Raises `ContractError` for a password without security.
    """

    host: str
    port: int = 587
    security: Security = "starttls"
    username: str = ""
    password: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None
    introduced_as: str = "[127.0.0.1]"

    def __post_init__(self) -> None:
        if self.password and self.security == "none":
            raise ContractError(
                f"security='none' would send the password for {self.host} in the clear; use"
                " starttls or tls"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """One mail and whom the server is to carry it to; `text` has CRLF line ends."""

    sender: str
    recipient: str
    text: bytes


class _At(Enum):
    """How far it has come."""

    DIALOGUE = 1
    TEXT = 2
    AFTER_DOT = 3


def deliver(
    server: MailServer,
    envelope: Envelope,
    *,
    until: float,
    reply_wait_s: float,
    stopped: Callable[[], bool],
) -> Unanswered | None:
    """Hand one mail over; None when the server has taken it. Never raises.

    Nothing leaves after `until` (by `time.monotonic`), nor once `stopped` is true. The last reply
    is waited for up to `reply_wait_s`: what comes late is evidence all the same.
    """
    at = _At.DIALOGUE
    line: _Line | None = None
    try:
        line = _connected(server, until)
        _introduce(line, server)
        _address(line, envelope)
        at = _At.TEXT
        line.write(_stuffed(envelope.text))
        if stopped():
            return NotSent(reason="stopped before the mail had left")
        at = _At.AFTER_DOT  # From here on it may have, also when the next line raises.
        line.until = monotonic() + reply_wait_s
        line.write(DOT)
        _require(line.getreply(), 2)
    except Exception as error:
        return _meaning(error, server, dot_left=at is _At.AFTER_DOT)
    finally:
        if line is not None:
            _leave(line, politely=at is not _At.TEXT)
    return None


# (whether the dot has left, the first digit of the reply) ▸ what that proves.
PROVES: Mapping[tuple[bool, int], type[NotSent | Refused]] = {
    (False, 4): NotSent,
    (False, 5): Refused,
    (True, 4): NotSent,
    (True, 5): Refused,
}

# What we refuse ourselves, for good: the server lacks what the operator asked for.
_UNFIT = (smtplib.SMTPNotSupportedError, ssl.SSLCertVerificationError)


def _meaning(error: Exception, server: MailServer, *, dot_left: bool) -> Unanswered:
    nothing_said = AnswerLost if dot_left else NotSent
    if not isinstance(error, smtplib.SMTPResponseException):
        unfit = isinstance(error, _UNFIT) and not dot_left
        means = Refused if unfit else nothing_said
        return means(reason=_hidden(described(error), server))
    said = error.smtp_error
    words = said.decode(errors="replace") if isinstance(said, bytes) else said
    proves = PROVES.get((dot_left, error.smtp_code // 100), nothing_said)
    return proves(reason=_hidden(bounded(f"{error.smtp_code} {words}"), server))


def _hidden(text: str, server: MailServer) -> str:
    """Return evidence without the password, also when a server echoes what it was sent."""
    plain = f"\0{server.username}\0{server.password}"
    for secret in (server.password, *map(_base64, (plain, server.password))):
        text = text.replace(secret, "***") if server.password else text
    return text


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()


# The dialogue.


def _connected(server: MailServer, until: float) -> "_Line":
    if server.security == "tls":
        return _TlsLine(server, until, context=_tls(server))
    return _Line(server, until)


def _tls(server: MailServer) -> ssl.SSLContext:
    return server.tls or ssl.create_default_context()


def _introduce(line: "_Line", server: MailServer) -> None:
    line.ehlo_or_helo_if_needed()
    if server.security == "starttls":
        line.secure(_tls(server))
    if server.username:
        line.login(server.username, server.password)


def _address(line: "_Line", envelope: Envelope) -> None:
    _require(line.docmd("MAIL", f"FROM:<{envelope.sender}>"), 2)
    _require(line.docmd("RCPT", f"TO:<{envelope.recipient}>"), 2)
    _require(line.docmd("DATA"), 3)


def _require(reply: tuple[int, bytes], digit: int) -> None:
    code, words = reply
    if code // 100 != digit:
        raise smtplib.SMTPResponseException(code, words)


def _stuffed(text: bytes) -> bytes:
    """Return the text with its leading dots doubled (RFC 5321 §4.5.2)."""
    return re.sub(rb"^\.", b"..", text, flags=re.MULTILINE)


def _leave(line: "_Line", *, politely: bool) -> None:
    with suppress(Exception):
        line.until = monotonic() + QUIT_WAIT_S
        if politely:
            line.docmd("QUIT")
    line.close()


class _Line(smtplib.SMTP):
    """A connection whose every wait ends at `until`, and that takes only whole replies.

    The standard library takes `250` without an end of line for a yes, and bounds each read but not
    their sum.
    """

    def __init__(self, server: MailServer, until: float, **tls: ssl.SSLContext) -> None:
        self.until = until
        self._read = bytearray()
        super().__init__(  # Connects, and raises for a greeting that is no welcome.
            host=server.host,
            port=server.port,
            local_hostname=server.introduced_as,
            timeout=self.require_time(),
            **tls,  # type: ignore[arg-type]
        )
        if self.sock is not None:  # The dot is a small write after another, and must not wait.
            self.sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)

    def require_time(self) -> float:
        """Return how long there is, in seconds; `TimeoutError` where its time is over."""
        left = self.until - monotonic()
        if left <= 0:
            raise TimeoutError("its time was over")
        return left

    def putcmd(self, cmd: str, args: str = "") -> None:
        """Write one command."""
        self._bound()
        super().putcmd(cmd, args)

    def write(self, octets: bytes) -> None:
        """Write what is no command."""
        self._bound()
        self.send(octets)

    def secure(self, context: ssl.SSLContext) -> None:
        """Encrypt what follows, and begin anew."""
        self.starttls(context=context)
        self._read.clear()  # What came before the encryption is nobody's word (CVE-2011-0411).
        self.ehlo_or_helo_if_needed()

    def getreply(self) -> tuple[int, bytes]:
        """Return code and words of one whole reply; closes and raises where there is none."""
        try:
            return self._reply()
        except Exception:
            self.close()
            raise

    def _reply(self) -> tuple[int, bytes]:
        words: list[bytes] = []
        size = 0
        while True:
            line = self._whole_line()
            size += len(line)
            found = _REPLY.fullmatch(line)
            if found is None or size > REPLY_MAX_BYTES:
                raise smtplib.SMTPServerDisconnected(f"no SMTP reply: {line[:80]!r}")
            words.append((found[3] or b"").strip())
            if found[2] != b"-":
                return int(found[1]), b"\n".join(words)

    def _whole_line(self) -> bytes:
        while b"\n" not in self._read:
            piece = self._bound().recv(4096)
            if not piece or len(self._read) > REPLY_MAX_BYTES:
                raise smtplib.SMTPServerDisconnected("the connection ended within a reply")
            self._read += piece
        end = self._read.index(b"\n") + 1
        line = bytes(self._read[:end])
        del self._read[:end]
        return line

    def _bound(self) -> socket:
        if self.sock is None:
            raise smtplib.SMTPServerDisconnected("not connected")
        self.sock.settimeout(self.require_time())
        return self.sock


class _TlsLine(_Line, smtplib.SMTP_SSL):
    """The same, encrypted from its first byte."""


_REPLY = re.compile(rb"([2-5][0-9]{2})(?:([ -])(.*))?\r?\n")
