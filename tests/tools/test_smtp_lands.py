"""Mails through the runtime, over real SMTP: what each failure comes to, and how many arrive."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import landed
from landed.core.canonical import Json
from landed.core.key import Ask
from landed.core.operation import State
from landed.core.outcome import Absent, Found, LookOutcome
from landed.core.session import input_of
from landed.core.tool import Call
from landed.core.value import Confirmed, Failed, Undecided, Unknown
from landed.runtime.runtime import Runtime
from landed.testing.faults import Point
from landed.testing.sim import World
from landed.testing.worlds.mail_faults import MailFault
from landed.testing.worlds.mailbox import Mailbox, serving
from landed.tools.delivery import MailServer
from landed.tools.letters import message_id, operation_of
from landed.tools.smtp import SmtpTool
from tests.runtime.rig import Rig

BOB = "bob@example.com"
LETTER: dict[str, Json] = {"to": BOB, "subject": "Your table", "body": "At 19:00."}
DOMAIN = "shop.example"
WAIT_MAX_S = 20.0
LONG_S = 3_600.0  # of virtual time


@pytest.fixture
def box() -> Iterator[Mailbox]:
    with Mailbox(":memory:") as one:
        yield one


@pytest.fixture
def rig() -> Iterator[Rig]:
    with World() as world:
        yield Rig(world)


@contextmanager
def mailing(box: Mailbox, *faults: MailFault, **given: Any) -> Iterator[SmtpTool]:
    """A mail tool whose server has these faults; its sends run inline in a simulation."""
    with serving(box, faults=faults) as port:
        told: dict[str, Any] = {
            "name": "mail",
            "server": MailServer(host="127.0.0.1", port=port, security="none"),
            "sender": f"ana@{DOMAIN}",
            "risk": "safe",
            "reply_wait_s": WAIT_MAX_S,
        }
        yield SmtpTool(**(told | given))


def in_the_inbox(box: Mailbox) -> Any:
    """A lookup: is there a mail of that Message-ID?"""

    async def look(call: Call) -> LookOutcome:
        there = box.found(message_id(call, domain=DOMAIN))
        return Found(result=None, position=there[0].number) if there else Absent()

    return look


async def write(rt: Runtime):
    return await rt.perform("mail", LETTER, patience_s=LONG_S)


def kinds(box: Mailbox) -> list[str]:
    return [line.kind for line in box.log()]


@pytest.mark.parametrize("body", ["At 19:00.", ".\n..\n.hidden\n\n.", "¡Mañana!\n.", "x" * 3_000])
def test_a_mail_that_is_taken_is_confirmed(rig: Rig, box: Mailbox, body: str) -> None:
    async def script(rt: Runtime):
        return await rt.perform("mail", {**LETTER, "body": body})

    with mailing(box) as mail:
        value = rig.run(script, mail)
    assert isinstance(value, Confirmed)
    assert value.result == {"id": f"<op-a1@{DOMAIN}>", "to": BOB, "subject": "Your table"}
    (there,) = box.mails(to=BOB)
    assert (there.subject, there.body) == ("Your table", f"{body}\n".replace("\n", "\r\n"))


@pytest.mark.req("S4-01")
@pytest.mark.fault("X51")
@pytest.mark.field("F7")
def test_a_mail_whose_reply_was_lost_is_found_by_its_message_id(rig: Rig, box: Mailbox) -> None:
    with mailing(box, MailFault(kind="lose_reply"), lookup=in_the_inbox(box)) as mail:
        value = rig.run(write, mail)
    assert isinstance(value, Confirmed)
    assert value.result == {"id": f"<op-a1@{DOMAIN}>", "to": BOB, "subject": "Your table"}
    assert rig.events("op-a1") == ["made", "sent", "answer_lost", "found"]
    assert kinds(box) == ["took", "lose_reply"]
    assert len(box.mails()) == 1


@pytest.mark.field("F7")
def test_a_mail_whose_yes_could_not_be_written_down_is_not_sent_again(
    rig: Rig, box: Mailbox
) -> None:
    """The process dies between the server's yes and the record of it; the same call comes again."""

    async def same_again(rt: Runtime):
        return await rt.perform("mail", LETTER, ask=Ask(input="in-1", call_id="1"))

    with mailing(box, lookup=in_the_inbox(box)) as mail:
        rig.kill_at = Point(side="before", name="acknowledged")
        first = rig.start(same_again, mail)
        rig.world.wait(first)
        assert first.ended().crashed_at == "before:acknowledged"
        rig.kill(first)
        assert (rig.states(), len(box.mails())) == ([State.SENT], 1)
        rig.kill_at = None
        value = rig.run(same_again, mail)
    assert isinstance(value, Confirmed)
    assert rig.events("op-a1")[:4] == ["made", "sent", "answer_lost", "found"]
    assert len(box.mails()) == 1


@pytest.mark.req("S4-01")
@pytest.mark.parametrize("kind", ["lose_reply", "drop_text"])
def test_where_nobody_can_look_a_lost_reply_goes_to_a_person(
    rig: Rig, box: Mailbox, kind: Any
) -> None:
    """Ordinary mail software would send again, and make the second copy."""
    with mailing(box, MailFault(kind=kind)) as mail:
        value = rig.run(write, mail)
    assert isinstance(value, Undecided)
    assert rig.events("op-a1")[:4] == ["made", "sent", "answer_lost", "gave_up"]
    assert "resent" not in rig.events("op-a1")
    assert len(kinds(box)) == len(box.mails()) + 1


@pytest.mark.fault("X50")
def test_a_mail_that_is_not_there_is_not_taken_for_a_no(rig: Rig, box: Mailbox) -> None:
    """It may still be on its way from one server to the next: the look alone settles nothing."""
    with mailing(box, MailFault(kind="drop_text"), lookup=in_the_inbox(box)) as mail:
        value = rig.run(write, mail)
    assert isinstance(value, Undecided)
    assert kinds(box) == ["drop_text"]


@pytest.mark.req("S4-01")
@pytest.mark.parametrize("kind", ["refuse", "refuse_text"])
def test_a_recipient_or_a_text_that_is_refused_is_failed(rig: Rig, box: Mailbox, kind: Any) -> None:
    with mailing(box, MailFault(kind=kind, to=BOB, nth=None)) as mail:
        value = rig.run(write, mail)
    assert isinstance(value, Failed)
    assert value.reason.startswith("the service refused: 55")
    assert (kinds(box), box.mails()) == ([kind], [])


@pytest.mark.req("S4-01", "S4-03")
@pytest.mark.parametrize("kind", ["greylist", "later_text", "busy", "drop_connection"])
def test_what_is_to_come_back_later_is_sent_again_by_the_same_operation(
    rig: Rig, box: Mailbox, kind: Any
) -> None:
    with mailing(box, MailFault(kind=kind, times=2)) as mail:
        value = rig.run(write, mail)
    assert isinstance(value, Confirmed)
    assert rig.states() == [State.CONFIRMED]
    again = ["sent", "not_sent"]
    assert rig.events("op-a1") == ["made", *again, *again, "sent", "acknowledged"]
    assert kinds(box) == [kind, kind, "took"]
    assert [one.message_id for one in box.mails()] == [f"<op-a1@{DOMAIN}>"]


def test_greylisting_is_outlasted_for_longer_than_it_lasts(rig: Rig, box: Mailbox) -> None:
    """A server that wants five minutes to pass gets them, within the quarter of an hour."""
    with mailing(box, MailFault(kind="greylist", nth=1, times=11)) as mail:
        value = rig.run(write, mail)
        assert isinstance(value, Confirmed)
    assert rig.first_at("acknowledged") - rig.first_at("sent") > 300.0
    assert len(box.mails()) == 1


def test_a_greylist_without_an_end_is_failed_and_nothing_was_sent(rig: Rig, box: Mailbox) -> None:
    with mailing(box, MailFault(kind="greylist", nth=None), max_tries=3) as mail:
        value = rig.run(write, mail)
    assert isinstance(value, Failed)
    assert (kinds(box), box.mails()) == (["greylist"] * 3, [])


@pytest.mark.req("S1-60")
def test_a_mail_leads_back_to_the_sentence_that_asked_for_it(rig: Rig, box: Mailbox) -> None:
    async def script(rt: Runtime) -> None:
        for text, call_id in (("good morning", "1"), ("write to Bob about Friday", "2")):
            heard = await rt.receive(text, principal="ana")
            await rt.perform("mail", {**LETTER, "body": text}, ask=heard.ask(call_id))

    with mailing(box) as mail:
        rig.run(script, mail)
    (one,) = [each for each in box.mails() if "Friday" in each.body]
    (operation,) = [
        each for each in rig.operations() if each.id == operation_of(one.header("Message-ID"))
    ]
    told: list[str] = []

    async def read(rt: Runtime) -> None:
        records = await rig.base.open_again().load(operation.ask.input)
        told.extend(input_of(each).text for each in records)

    rig.run(read, mail)
    assert told == ["write to Bob about Friday"]
    assert (operation.ask.principal, operation.ask.call_id) == ("ana", "2")


async def late_yes(box: Mailbox) -> None:
    late = asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def until_late(seconds: float) -> None:
        loops.append(asyncio.get_running_loop())
        await late.wait()

    with serving(box, faults=[MailFault(kind="delay_reply")], sleep=until_late) as port:
        mail = SmtpTool(
            name="mail",
            server=MailServer(host="127.0.0.1", port=port, security="none"),
            sender=f"ana@{DOMAIN}",
            risk="safe",
            deadline_s=0.4,
        )
        async with landed.open("sqlite://:memory:", tools=[mail]) as rt:
            ask = Ask(call_id="1")
            value = await rt.perform("mail", LETTER, ask=ask, patience_s=0.8)
            assert isinstance(value, Unknown)
            assert len(box.mails()) == 1
            loops[0].call_soon_threadsafe(late.set)
            joined = await rt.perform("mail", LETTER, ask=ask, patience_s=WAIT_MAX_S)
            assert isinstance(joined, Confirmed)
            assert joined.operation == value.operation
    assert len(box.mails()) == 1


@pytest.mark.req("S4-01")
@pytest.mark.fault("X51")
def test_a_yes_that_comes_after_the_deadline_settles_what_was_unknown(box: Mailbox) -> None:
    asyncio.run(late_yes(box))
