"""Mail as a tool: what each reply of a mail server proves about the effect, over real sockets."""

import asyncio
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any

import pytest

from landed.core.canonical import Json
from landed.core.contract import Effect, Risk
from landed.core.errors import ContractError, ProposalError
from landed.core.key import Ask
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    LookOutcome,
    NoAnswer,
    NotSent,
    NotYet,
    Refused,
)
from landed.core.preview import Preview, Previewing
from landed.core.tool import Call, Tool
from landed.tools.delivery import Envelope, MailServer, deliver
from landed.tools.smtp import SmtpTool
from tests.tools.calls import SENT_AT, call_of, run
from tests.tools.mail_far import (
    HANG,
    WAIT_MAX_S,
    Last,
    Reply,
    ScriptedServer,
    client_tls,
    server_tls,
)

LETTER: dict[str, Json] = {"to": "bob@example.com", "subject": "Your table", "body": "At 19:00."}
CALL = call_of(LETTER, key="")
YES = Acknowledged(
    result={"id": "<op-1@shop.example>", "to": "bob@example.com", "subject": "Your table"}
)


def mail(port: int, **given: Any) -> SmtpTool:
    told: dict[str, Any] = {
        "name": "mail",
        "server": MailServer(host="127.0.0.1", port=port, security="none"),
        "sender": "The Shop <ana@shop.example>",
        "reply_wait_s": WAIT_MAX_S,
    }
    return SmtpTool(**(told | given))


def private(port: int, **given: Any) -> MailServer:
    told: dict[str, Any] = {"host": "localhost", "port": port, "tls": client_tls()}
    return MailServer(**(told | given))


# What each reply proves.


def test_a_yes_after_the_dot_is_acknowledged_with_the_message_id() -> None:
    with ScriptedServer() as far:
        assert run(mail(far.port).send(CALL)) == YES
    assert far.commands == [
        "ehlo [127.0.0.1]",
        "MAIL FROM:<ana@shop.example>",
        "RCPT TO:<bob@example.com>",
        "DATA",
        "QUIT",
    ]
    (text,) = far.texts
    assert text.startswith(b"From: The Shop <ana@shop.example>\r\nTo: bob@example.com\r\n")
    assert b"\r\nMessage-ID: <op-1@shop.example>\r\n" in text
    assert text.endswith(b"\r\n\r\nAt 19:00.\r\n")


BEFORE_THE_DOT = ("HELLO", "EHLO", "MAIL", "RCPT", "DATA")
NO_REPLY = (
    b"",
    b"2",
    b"250",
    b"250 OK",
    b"250 OK\r",
    b"HTTP/1.1 400 Bad\r\n",
    b"\r\n",
    b"199 x\r\n",
)


@pytest.mark.req("S4-01")
@pytest.mark.parametrize("at", BEFORE_THE_DOT)
@pytest.mark.parametrize(
    ("reply", "proves"),
    [
        (b"421 4.3.2 closing\r\n", NotSent),
        (b"450 4.2.0 greylisted\r\n", NotSent),
        (b"451-4.7.1 come\r\n451 4.7.1 back later\r\n", NotSent),
        (b"550 5.1.1 no such mailbox\r\n", Refused),
        (b"553 5.7.1 not yours\r\n", Refused),
        *((cut, NotSent) for cut in NO_REPLY),
    ],
)
def test_before_the_dot_has_left_there_is_no_doubt(at: str, reply: bytes, proves: type) -> None:
    replies = {at: reply, "HELO": reply} if at == "EHLO" else {at: reply}
    with ScriptedServer(replies) as far:
        outcome = run(mail(far.port).send(CALL))
    assert type(outcome) is proves
    assert far.texts == []
    if reply.startswith((b"4", b"5")):
        assert isinstance(outcome, NotSent | Refused)
        assert outcome.reason.startswith(reply[:3].decode())


@pytest.mark.req("S4-01")
@pytest.mark.parametrize(
    ("reply", "proves"),
    [
        (b"250 2.0.0 OK\r\n", Acknowledged),
        (b"251 will forward\r\n", Acknowledged),
        (b"250-2.0.0 OK\r\n250 queued\r\n", Acknowledged),
        (b"250\n", Acknowledged),
        (b"421 4.3.2 closing\r\n", NotSent),
        (b"452 4.3.1 no room\r\n", NotSent),
        (b"552 5.2.2 too big\r\n", Refused),
        (b"554 5.7.1 spam\r\n", Refused),
        (b"354 go on\r\n", AnswerLost),
        (Last(b"250-2.0.0 OK\r\n"), AnswerLost),
        *((cut, AnswerLost) for cut in NO_REPLY),
    ],
)
def test_after_the_dot_only_a_whole_reply_settles_it(reply: bytes, proves: type) -> None:
    with ScriptedServer({".": reply}) as far:
        outcome = run(mail(far.port).send(CALL))
    assert type(outcome) is proves
    assert len(far.texts) == 1


LAST_WORDS = b"250 2.0.0 OK queued as 4711\r\n"


@pytest.mark.req("S4-01")
@pytest.mark.fault("X62")
@pytest.mark.parametrize("length", range(len(LAST_WORDS)))
def test_a_last_reply_cut_at_any_byte_is_an_answer_that_was_lost(length: int) -> None:
    with ScriptedServer({".": LAST_WORDS[:length]}) as far:
        assert isinstance(run(mail(far.port).send(CALL)), AnswerLost)


@pytest.mark.req("S4-01")
def test_a_server_that_is_not_there_was_not_sent_anything() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    outcome = run(mail(port).send(CALL))
    assert isinstance(outcome, NotSent)
    assert "ConnectionRefusedError" in outcome.reason


@pytest.mark.req("S4-01")
def test_a_name_that_cannot_be_resolved_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*asked: object, **more: object) -> object:
        raise socket.gaierror("name not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    tool = mail(25, server=MailServer(host="mail.example", port=25, security="none"))
    assert run(tool.send(CALL)) == NotSent(reason="gaierror: name not known")


@pytest.mark.req("S4-01")
@pytest.mark.fault("X50")
def test_a_text_that_breaks_off_before_its_dot_was_not_sent() -> None:
    """No server may take on what has no end (RFC 5321 §4.1.1.10), however much of it arrived."""
    with ScriptedServer({"DATA": Last(b"354 go on\r\n")}) as far:
        outcome = deliver(
            MailServer(host="127.0.0.1", port=far.port, security="none"),
            Envelope(sender="a@example.com", recipient="b@example.com", text=b"x\r\n" * 10**7),
            until=monotonic() + WAIT_MAX_S,
            reply_wait_s=WAIT_MAX_S,
            stopped=lambda: False,
        )
    assert isinstance(outcome, NotSent)
    assert far.texts == []


def test_a_reply_without_an_end_is_none() -> None:
    endless = b"250-more\r\n" * 20_000 + b"250 OK\r\n"
    with ScriptedServer({".": endless}) as far:
        assert isinstance(run(mail(far.port).send(CALL)), AnswerLost)
    with ScriptedServer({"RCPT": b"2" * 200_000}) as far:
        assert isinstance(run(mail(far.port).send(CALL)), NotSent)


# Time.


@pytest.mark.parametrize("at", BEFORE_THE_DOT)
def test_a_server_that_says_nothing_in_time_gets_no_mail(at: str) -> None:
    with ScriptedServer({at: HANG}) as far:
        outcome = run(mail(far.port).send(call_of(LETTER, deadline_s=0.2)))
        far.wait_for_end()
    assert isinstance(outcome, NotSent)
    assert far.texts == []


def test_what_never_left_is_heard_of_before_the_runtime_takes_it_for_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[float] = []

    def deliver_nothing(*what: object, until: float, **more: object) -> NotSent:
        given.append(until - monotonic())
        return NotSent(reason="")

    monkeypatch.setattr("landed.tools.smtp.deliver", deliver_nothing)
    run(mail(25).send(call_of(LETTER, deadline_s=100.0)))
    assert 50.0 < given[0] <= 75.0


@pytest.mark.req("S4-01")
def test_silence_after_the_dot_is_an_answer_that_was_lost() -> None:
    with ScriptedServer({".": HANG}) as far:
        outcome = run(mail(far.port, reply_wait_s=0.1).send(CALL))
    assert isinstance(outcome, AnswerLost)
    assert len(far.texts) == 1


def test_a_last_reply_is_waited_for_beyond_the_deadline() -> None:
    """The runtime has long called it unknown; the late yes is what settles that."""
    late = threading.Event()

    def at_last() -> bytes:
        assert late.wait(WAIT_MAX_S)
        return b"250 at last\r\n"

    async def main() -> None:
        sending = asyncio.ensure_future(mail(far.port).send(call_of(LETTER, deadline_s=0.3)))
        done, _ = await asyncio.wait({sending}, timeout=0.5)
        assert not done
        late.set()
        assert await sending == YES

    with ScriptedServer({".": at_last}) as far:
        run(main())


def test_a_send_that_is_cancelled_before_the_mail_has_left_never_lets_it_leave() -> None:
    asked, go_on = threading.Event(), threading.Event()

    def slowly() -> bytes:
        asked.set()
        assert go_on.wait(WAIT_MAX_S)
        return b"250 OK\r\n"

    async def main() -> None:
        sending = asyncio.ensure_future(mail(far.port).send(CALL))
        await asyncio.to_thread(asked.wait, WAIT_MAX_S)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        go_on.set()
        await asyncio.to_thread(far.wait_for_end)

    with ScriptedServer({"RCPT": slowly}) as far:
        run(main())
    assert far.texts == []


# Privacy.


@pytest.mark.parametrize("at_once", [True, False])
def test_mail_and_password_go_over_an_encrypted_connection(at_once: bool) -> None:
    offers = {"EHLO": b"250-far.example\r\n250-STARTTLS\r\n250 AUTH PLAIN\r\n"}
    with ScriptedServer(offers, tls=server_tls(), tls_at_once=at_once) as far:
        security = "tls" if at_once else "starttls"
        server = private(far.port, security=security, username="ana", password="pass-word")
        assert run(mail(far.port, server=server).send(CALL)) == YES
    secure = far.commands.index("STARTTLS") if not at_once else -1
    assert [each.split()[0] for each in far.commands[secure + 1 :]] == [
        *("ehlo", "AUTH", "MAIL", "RCPT", "DATA", "QUIT")
    ]


def test_a_server_that_offers_no_encryption_gets_nothing() -> None:
    with ScriptedServer() as far:
        outcome = run(mail(far.port, server=private(far.port)).send(CALL))
    assert isinstance(outcome, Refused)
    assert "STARTTLS" in outcome.reason
    assert [each.split()[0] for each in far.commands] == ["ehlo", "QUIT"]


@pytest.mark.parametrize("at_once", [True, False])
def test_a_server_that_is_somebody_else_gets_nothing(at_once: bool) -> None:
    offers = {"EHLO": b"250-far.example\r\n250 STARTTLS\r\n"}
    with ScriptedServer(offers, tls=server_tls(), tls_at_once=at_once) as far:
        security = "tls" if at_once else "starttls"
        server = private(far.port, security=security, tls=None)
        outcome = run(mail(far.port, server=server).send(CALL))
    assert isinstance(outcome, Refused)
    assert "CERTIFICATE_VERIFY_FAILED" in outcome.reason
    assert far.texts == []


def test_what_was_said_before_the_encryption_is_forgotten() -> None:
    offers: dict[str, Reply] = {
        "EHLO": b"250-far.example\r\n250 STARTTLS\r\n",
        "STARTTLS": b"220 go ahead\r\n250 I am your reply to EHLO\r\n250 and to MAIL\r\n",
        "RCPT": b"550 5.1.1 no such mailbox\r\n",
    }
    with ScriptedServer(offers, tls=server_tls()) as far:
        outcome = run(mail(far.port, server=private(far.port)).send(CALL))
    assert outcome == Refused(reason="550 5.1.1 no such mailbox")


@pytest.mark.parametrize(("reply", "proves"), [(b"535 5.7.8", Refused), (b"454 4.7.0", NotSent)])
def test_a_password_that_was_not_taken_is_not_repeated_as_evidence(
    reply: bytes, proves: type
) -> None:
    def echo() -> bytes:
        return reply + b" no: pass-word, " + far.commands[-1].encode() + b"\r\n"

    plain = b"250-far.example\r\n250 AUTH PLAIN\r\n"
    offers: dict[str, Reply] = {"EHLO": plain, "AUTH": echo}
    with ScriptedServer(offers, tls=server_tls(), tls_at_once=True) as far:
        server = private(far.port, security="tls", username="ana", password="pass-word")
        outcome = run(mail(far.port, server=server).send(CALL))
    assert outcome == proves(reason=f"{reply.decode()} no: ***, AUTH PLAIN ***")
    assert "pass-word" not in repr(server)


def test_a_password_without_encryption_is_refused() -> None:
    with pytest.raises(ContractError, match="in the clear"):
        MailServer(host="mail.example", security="none", username="ana", password="x")


# The mail.


@pytest.mark.req("S4-03")
def test_a_mail_that_is_sent_again_is_the_same_bytes() -> None:
    with ScriptedServer({".": b"451 later\r\n"}, {}) as far:
        tool = mail(far.port)
        operation = "op-01hq3v5w8x9y0z1a2b3c4d5e6f"
        first = replace(CALL, operation=operation)
        second = replace(first, attempt=2, epoch=9, sent_at=SENT_AT + 60.0)
        second = replace(second, deadline_at=SENT_AT + 80.0)
        assert isinstance(run(tool.send(first)), NotSent)
        assert isinstance(run(mail(far.port).send(second)), Acknowledged)
    assert far.texts[0] == far.texts[1]
    assert b"\r\nDate: " in far.texts[0]


def test_a_key_that_the_receiving_side_knows_is_in_the_message_id() -> None:
    keyed = mail(25, keyed="Message-ID", key_form="{session}:{operation}", domain="ids.example")
    assert keyed.message_id(call_of(LETTER, key="s 1:op-1")) == "<s%201%3Aop-1@ids.example>"
    with pytest.raises(ProposalError, match="filled by the runtime"):
        keyed.check({**LETTER, "Message-ID": "<mine@example.com>"})


def test_arguments_of_its_own_fill_the_templates() -> None:
    with ScriptedServer() as far:
        tool = mail(
            far.port,
            arguments={"invoice": str, "to": str, "note": (str | None, None)},
            subject="Invoice {invoice}",
            body="Please find invoice {invoice}.\n{note}",
            reply_to="billing@shop.example",
        )
        stored = tool.check({"invoice": "2026-014", "to": "bob@example.com"})
        sent = run(tool.send(call_of(stored)))
    assert isinstance(sent, Acknowledged)
    assert b"\r\nSubject: Invoice 2026-014\r\n" in far.texts[0]
    assert b"\r\nReply-To: billing@shop.example\r\n" in far.texts[0]
    assert far.texts[0].endswith(b"\r\n\r\nPlease find invoice 2026-014.\r\n")
    assert tool.letter(stored).subject == "Invoice 2026-014"


@pytest.mark.parametrize("field", ["to", "subject"])
@pytest.mark.parametrize("end", ["\r\n", "\n", "\r", "\u2028", "\u0085", "\x00"])
def test_a_header_that_would_become_two_is_refused_before_it_is_recorded(
    field: str, end: str
) -> None:
    poisoned = {**LETTER, field: f"{LETTER[field]}{end}Bcc: eve@example.com"}
    with pytest.raises(ProposalError, match=rf"{field} goes into a header: it must be one line"):
        mail(25).check(poisoned)


@pytest.mark.parametrize("to", ["", "$1", "bob@example.com, eve@example.com", "bob"])
def test_only_one_plain_address_is_taken(to: str) -> None:
    with pytest.raises(ProposalError, match="to must be one plain address"):
        mail(25).check({**LETTER, "to": to})


def test_what_no_mail_can_carry_is_refused_when_a_step_has_made_it() -> None:
    """At the check `$1` is still unknown; the rest of the letter is checked all the same."""
    with ScriptedServer() as far:
        tool = mail(far.port, accepts={"to": "contact"})
        waiting = tool.check({**LETTER, "to": "$1"})
        assert waiting["to"] == "$1"
        with pytest.raises(ProposalError, match="subject"):
            tool.check({**LETTER, "to": "$1", "subject": "a\nb"})
        outcome = run(tool.send(call_of({**waiting, "to": "bob\r\n@example.com"})))
    assert isinstance(outcome, Refused)
    assert far.connections == 0


# The tool.


def test_it_is_a_tool_whose_effect_is_final_and_needs_a_yes() -> None:
    declared: Tool = mail(25, description="Write to a customer.", correct="mail")
    assert declared.schema["description"] == "Write to a customer."
    contract = declared.contract
    assert (contract.effect, contract.risk) == (Effect.IRREVERSIBLE, Risk.CONFIRM)
    assert (contract.keyed, contract.lookup, contract.correct) == ("", False, "mail")
    assert not declared.interruptible
    assert mail(25, risk="safe", max_tries=3).contract.max_tries == 3


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"keyed": "Idempotency-Key"}, "only key is its Message-ID"),
        ({"fence": "epoch"}, "no mail server checks epochs"),
        ({"sender": "ana"}, "sender must be one plain address"),
        ({"sender": "ana@shop.example\nBcc: eve@example.com"}, "one line"),
        ({"subject": "Invoice {invoice}"}, "names {invoice}, which is no argument"),
        ({"subject": "Invoice {"}, "no template"),
        ({"compares_payload": True}, "not keyed"),
    ],
)
def test_promises_that_no_mail_can_keep_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ContractError, match=says):
        mail(25, **given)


def previewing(language: str, **arguments: Json) -> Previewing:
    made: dict[str, dict[str, Json]] = {"$1": {"id": "2026-014", "total_cents": 12_100}}
    return Previewing(
        tool="mail", arguments=arguments, ask=Ask(), now=0.0, language=language, made=made
    )


@pytest.mark.parametrize(
    ("language", "invoice", "summary"),
    [
        ("en", "$1", 'mail to bob@example.com: "Invoice 2026-014"'),
        ("en", "$2", 'mail to bob@example.com: "Invoice $2"'),
        ("es", "7", "correo a bob@example.com: «Invoice 7»"),
    ],
)
def test_a_preview_shows_recipient_and_subject(language: str, invoice: str, summary: str) -> None:
    tool = mail(
        25,
        arguments={"invoice": str, "to": str},
        subject="Invoice {invoice}",
        body="See {invoice}.",
        accepts={"invoice": "invoice"},
    )
    asked = previewing(language, invoice=invoice, to="bob@example.com")
    shown = run(tool.foresight.preview(asked))
    assert isinstance(shown, Preview)
    assert (shown.summary, shown.questions, shown.basis) == (summary, (), {})


def test_a_preview_of_ones_own_is_used_instead() -> None:
    own = Preview(summary="mine")
    tool = mail(25, preview=lambda asked: own)
    assert run(tool.foresight.preview(previewing("en", **LETTER))) == own


# The lookup.


def looking(lookup: Callable[[Call], object]) -> LookOutcome:
    tool = mail(25, lookup=lookup)
    assert tool.contract.lookup
    return run(tool.lookup(CALL))


@pytest.mark.parametrize("answer", [Absent(position=3), NotYet(), NoAnswer(reason="closed")])
def test_a_lookup_may_be_plain_or_async(answer: LookOutcome) -> None:
    async def later(call: Call) -> LookOutcome:
        return answer

    assert looking(later) == looking(lambda call: answer) == looking(partial(later)) == answer


def test_what_a_lookup_finds_has_the_result_of_the_send() -> None:
    assert looking(lambda call: Found(result=None, position=7)) == Found(
        result=YES.result, position=7
    )
    assert looking(lambda call: Found(result="own")) == Found(result="own")


def test_a_lookup_that_breaks_or_babbles_has_no_answer() -> None:
    def breaks(call: Call) -> LookOutcome:
        raise OSError("mailbox closed")

    assert looking(breaks) == NoAnswer(reason="OSError: mailbox closed")
    assert looking(lambda call: True) == NoAnswer(reason="the lookup of mail returned bool")
    assert run(mail(25).lookup(CALL)) == NoAnswer(reason="mail has no lookup")
    assert run(mail(25).close(CALL)) == NoAnswer(reason="mail has no close")
    assert run(mail(25).read_back(CALL, None)) == NoAnswer(reason="mail has no read_back")
