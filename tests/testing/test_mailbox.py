"""The mailbox: a mail server that takes, refuses, loses replies, and keeps its file."""

import smtplib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from landed.testing.worlds import mailbox
from landed.testing.worlds.mail_faults import KINDS, At, MailFault, MailFaults
from landed.testing.worlds.mailbox import NAME, Mailbox, serving
from landed.testing.worlds.serve import WorldStartError

ANA, BOB, EVE = "ana@shop.example", "bob@example.com", "eve@example.com"
WAIT_MAX_S = 20.0


def text(message_id: str = "<1@shop.example>", subject: str = "Hello") -> str:
    return f"Message-ID: {message_id}\r\nSubject: {subject}\r\n\r\nHi.\r\n.dotted\r\n"


@contextmanager
def connected(port: int) -> Iterator[smtplib.SMTP]:
    line = smtplib.SMTP("127.0.0.1", port, local_hostname="test", timeout=WAIT_MAX_S)
    try:
        yield line
    finally:
        line.close()


def send(port: int, to: str = BOB, **given: Any) -> tuple[int, str]:
    """Send one mail with the standard library; returns the last reply, 0 where there was none."""
    try:
        with connected(port) as line:
            line.ehlo()
            line.mail(ANA)
            code, words = line.rcpt(to)
            if code == 250:
                code, words = line.data(text(**given))
            return code, words.decode()
    except smtplib.SMTPResponseException as error:
        return error.smtp_code, str(error.smtp_error)
    except (smtplib.SMTPServerDisconnected, ConnectionError):
        return 0, ""


@pytest.fixture
def box() -> Iterator[Mailbox]:
    with Mailbox(":memory:", now=lambda: 1_000.0) as one:
        yield one


def kinds(box: Mailbox) -> list[str]:
    return [line.kind for line in box.log()]


def test_a_mail_is_kept_as_it_came_and_can_be_read(box: Mailbox) -> None:
    with serving(box) as port:
        assert send(port, subject="=?utf-8?q?Caf=C3=A9?=") == (250, "2.0.0 OK")
    (mail,) = box.mails()
    assert (mail.number, mail.at, mail.sender, mail.to) == (1, 1_000.0, ANA, BOB)
    assert (mail.message_id, mail.subject) == ("<1@shop.example>", "Café")
    assert mail.source == text(subject="=?utf-8?q?Caf=C3=A9?=").encode()
    assert mail.body == "Hi.\r\n.dotted\r\n"
    assert mail.header("X-Nothing") == ""
    (line,) = box.log()
    assert (line.number, line.at, line.text) == (1, 1_000.0, f"took a mail for {BOB}")


def test_a_second_copy_is_a_second_mail(box: Mailbox) -> None:
    with serving(box) as port:
        for message_id in ("<1@x>", "<2@x>", "<1@x>"):
            send(port, message_id=message_id)
        send(port, to=EVE)
    assert [mail.number for mail in box.found("<1@x>")] == [1, 3]
    assert box.found("<3@x>") == []
    assert [mail.number for mail in box.mails(to=BOB, after=1)] == [2, 3]
    assert [mail.to for mail in box.mails(to=EVE)] == [EVE]
    assert [line.number for line in box.log(after=3)] == [4]


REPLIES = {
    "drop_connection": (0, 0),
    "busy": (421, 0),
    "refuse": (550, 0),
    "greylist": (450, 0),
    "drop_text": (0, 0),
    "refuse_text": (554, 0),
    "later_text": (452, 0),
    "lose_reply": (0, 1),
    "delay_reply": (250, 1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_fault_says_what_it_should_and_keeps_what_it_should(box: Mailbox, kind: Any) -> None:
    code, kept = REPLIES[kind]
    with serving(box, faults=[MailFault(kind=kind)]) as port:
        assert send(port)[0] == code
        assert len(box.mails()) == kept
        assert send(port) == (250, "2.0.0 OK")
    assert len(box.mails()) == kept + 1
    assert kinds(box) == ["took"] * kept + [kind, "took"]


def test_a_late_reply_is_as_late_as_it_should_be(box: Mailbox) -> None:
    slept: list[float] = []

    async def at_once(seconds: float) -> None:
        slept.append(seconds)

    late = MailFault(kind="delay_reply", seconds=3_600.0)
    with serving(box, faults=[late], sleep=at_once) as port:
        assert send(port) == (250, "2.0.0 OK, at last")
    assert slept == [3_600.0]


def test_a_fault_strikes_whom_and_as_often_as_it_says(box: Mailbox) -> None:
    greylist = MailFault(kind="greylist", to=BOB, nth=1, times=2)
    never = MailFault(kind="refuse", to=EVE, nth=None)
    with serving(box, faults=[greylist, never]) as port:
        codes = [send(port, to=to)[0] for to in (EVE, BOB, ANA, BOB, EVE, BOB, EVE)]
    assert codes == [550, 450, 250, 450, 550, 250, 550]


def test_faults_are_counted_by_place_and_recipient() -> None:
    second = MailFault(kind="refuse_text", nth=2)
    of_bob = MailFault(kind="lose_reply", to=BOB, nth=2)
    faults = MailFaults([second, of_bob])
    assert [faults.due(At.TEXT, to) for to in (EVE, BOB, EVE, BOB)] == [None, second, None, of_bob]
    assert faults.due(At.RECIPIENT, BOB) is None


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"kind": "explode"}, "unknown fault 'explode'; choose one of drop_connection"),
        ({"kind": "busy", "nth": 0}, "count from 1"),
        ({"kind": "busy", "times": 0}, "count from 1"),
        ({"kind": "busy", "seconds": -1.0}, "0 or more"),
        ({"kind": "busy", "seconds": float("nan")}, "0 or more"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        MailFault(**wrong)


def test_an_open_connection_does_not_keep_it_from_ending(box: Mailbox) -> None:
    with serving(box) as port, connected(port) as line:
        assert line.ehlo()[0] == 250
        assert NAME.encode() in line.ehlo()[1]
    with pytest.raises(ConnectionError):
        smtplib.SMTP("127.0.0.1", port)


def test_a_mailbox_in_a_process_of_its_own_keeps_its_file(tmp_path: Path) -> None:
    path = str(tmp_path / "mailbox.db")
    with mailbox.start(db=path, faults=[MailFault(kind="lose_reply")]) as far:
        port = urlsplit(far.url).port
        assert far.url == f"smtp://127.0.0.1:{port}"
        assert port is not None
        assert send(port) == (0, "")
        with Mailbox(path) as box:
            assert [mail.message_id for mail in box.mails()] == ["<1@shop.example>"]
        far.process.kill()
    with mailbox.start(db=path) as far:
        port = urlsplit(far.url).port
        assert port is not None
        assert send(port, message_id="<2@shop.example>") == (250, "2.0.0 OK")
        with Mailbox(path) as box:
            assert [mail.number for mail in box.mails()] == [1, 2]
            assert kinds(box) == ["took", "lose_reply", "took"]
        # The child ends when its parent does, which is when this stream ends.
        assert far.process.stdin is not None
        far.process.stdin.close()
        assert far.process.wait(WAIT_MAX_S) == 0


def test_a_mailbox_that_can_not_start_is_an_error_and_leaves_no_process(tmp_path: Path) -> None:
    with pytest.raises(WorldStartError, match="the mailbox did not start"):
        mailbox.start(db=str(tmp_path / "no" / "such" / "folder.db"))


@pytest.mark.parametrize(
    "text", ["7", "[7]", "{", '[{"kind": "explode"}]', '[{"kind": "busy", "who": "me"}]']
)
def test_a_command_line_that_makes_no_sense_is_refused(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        mailbox.main(["--db", ":memory:", "--faults", text])
    assert stopped.value.code == 2
    assert "bad --faults" in capsys.readouterr().err
