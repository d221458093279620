"""Cases and questions on the console: a person decides from the page alone, and it is kept."""

import asyncio

import pytest

from landed.core.operation import Source, State
from landed.core.outcome import Found
from landed.core.question import QuestionState, question_from
from landed.core.value import Receipt
from tests.console.pressing import Console, csrf_of, run


async def doubt(here: Console) -> str:
    """Have a mail of Ana's end in front of a person; return its operation."""
    heard = await here.rt.receive("Mail Bo <b>now</b>", principal="ana", tenant="acme", session="s")
    return (await here.rt.perform("mail", {"to": "bo@example.com"}, ask=heard.ask("c1"))).operation


async def unrecorded(here: Console) -> None:
    """Have a service tell of an effect that nobody recorded."""
    await here.rt.receive(
        "refund RF1 succeeded",
        principal="payments",
        tenant="acme",
        session="hook",
        origin="webhook",
        evidence=Receipt(outcome=Found(result={"id": "RF1"}), key="RF1"),
    )


@pytest.mark.req("S4-53")
def test_a_case_has_all_that_a_person_needs_and_their_ruling_is_kept() -> None:
    async def script(here: Console) -> None:
        id = await doubt(here)
        held = await here.rt.driver.reader.operation(id)
        page = await here.page("/waiting", who="boss")
        (card,) = page.all("article")
        for told in (
            "Nobody could find out whether it took effect",
            "Mail Bo <b>now</b>",  # what was wanted, in their words
            "bo@example.com",  # as it was authorised
            "Authorised by ana",
            held.key,  # what to search the service for
            "It knows this key until 20",
            "no answer",  # the evidence so far
        ):
            assert told in card.words, told
        labels = [button.words for button in card.all("button")]
        assert labels[:3] == [
            "Confirmed: it took effect",
            "Failed: it had no effect",
            "Hold: not known yet",
        ]
        goal = f"/cases/{id}/resolve"
        said = {"note": "their log has it", "made": "M7", "ruling": "landed"}
        done = await here.follow(
            await here.send(goal, {"csrf": csrf_of(page), **said}, who="boss"), who="boss"
        )
        assert "What you said is written down, under your name." in done.words
        now = await here.rt.driver.reader.operation(id)
        assert now.state is State.CONFIRMED
        last = now.evidence[-1]
        assert (last.source, last.by) == (Source.PERSON, "boss")
        assert "their log has it" in last.says
        assert "Nothing waits for you." in (await here.page("/waiting", who="boss")).words

    run(script)


def test_a_ruling_needs_how_it_is_known_and_a_second_press_changes_nothing() -> None:
    async def script(here: Console) -> None:
        id = await doubt(here)
        goal, path = f"/cases/{id}/resolve", f"/cases/{id}"
        csrf = csrf_of(await here.page(path, who="boss"))
        for sent, status in (
            ({"ruling": "absent", "note": " "}, 422),
            ({"ruling": "sign_off", "note": "x"}, 409),
            ({"ruling": "nonsense", "note": "x"}, 409),
            ({"note": "x"}, 409),
        ):
            answer = await here.send(goal, {"csrf": csrf, **sent}, who="boss")
            assert answer.status_code == status
        assert (await here.rt.driver.reader.operation(id)).state is State.UNDECIDED
        said = {"csrf": csrf, "ruling": "absent", "note": "their log has nothing"}
        await here.send(goal, said, who="boss")
        before = await here.rt.driver.reader.operation(id)
        assert before.state is State.FAILED
        twice = await here.follow(await here.send(goal, said, who="boss"), who="boss")
        assert "nothing was done a second time" in twice.words
        other = {**said, "csrf": csrf_of(await here.page(path, who="boss"))}
        assert (await here.send(goal, other, who="boss")).status_code == 303
        assert await here.rt.driver.reader.operation(id) == before

    run(script)


def test_what_is_held_stays_open_with_the_note_on_it() -> None:
    async def script(here: Console) -> None:
        id = await doubt(here)
        goal, path = f"/cases/{id}/resolve", f"/cases/{id}"
        csrf = csrf_of(await here.page(path, who="boss"))
        said = {"csrf": csrf, "ruling": "hold", "note": "asked the provider"}
        page = await here.follow(await here.send(goal, said, who="boss"), who="boss")
        assert "asked the provider" in page.words
        assert (await here.rt.driver.reader.operation(id)).state is State.UNDECIDED

    run(script)


def test_an_effect_that_nobody_recorded_is_seen_and_signed_off() -> None:
    async def script(here: Console) -> None:
        await unrecorded(here)
        page = await here.page("/waiting", who="boss")
        assert "The service holds an effect that no record here speaks of" in page.words
        (form,) = [f for f in page.all("form") if f.attributes["action"].endswith("/resolve")]
        goal = form.attributes["action"].removeprefix("/console")
        said = {"csrf": csrf_of(page), "ruling": "sign_off", "note": "by hand, on purpose"}
        done = await here.follow(await here.send(goal, said, who="boss"), who="boss")
        assert "by hand, on purpose" in done.words
        assert "Nothing waits for you." in (await here.page("/waiting", who="boss")).words

    run(script)


@pytest.mark.parametrize("who", ["ana", "bob"])
def test_a_case_is_for_those_who_administer(who: str) -> None:
    async def script(here: Console) -> None:
        id = await doubt(here)
        page = await here.page("/waiting", who=who)
        assert "Nothing waits for you." in page.words
        for path in (f"/cases/{id}", "/cases/nothing"):
            assert (await here.visitors.get(path, who=who)).status_code == 403
        said = {"csrf": csrf_of(page), "ruling": "landed", "note": "x"}
        assert (await here.send(f"/cases/{id}/resolve", said, who=who)).status_code == 403
        assert (await here.rt.driver.reader.operation(id)).state is State.UNDECIDED

    run(script)


def test_a_case_of_another_tenant_is_one_that_there_is_not() -> None:
    async def script(here: Console) -> None:
        id = await doubt(here)
        csrf = csrf_of(await here.page("/waiting", who="eve"))
        said = {"csrf": csrf, "ruling": "landed", "note": "x"}
        answers = []
        for case in (id, "op-nothing"):
            answers.append(await here.visitors.get(f"/cases/{case}", who="eve"))
            answers.append(await here.send(f"/cases/{case}/resolve", said, who="eve"))
        assert {each.status_code for each in answers} == {404}
        assert len({each.content for each in answers}) == 1
        assert (await here.rt.driver.reader.operation(id)).state is State.UNDECIDED

    run(script)


async def asked(here: Console, text: str = "Do you mean Bo Smith?") -> str:
    """Have the agent ask Ana something; return the question."""
    heard = await here.rt.receive("Mail Bo", principal="ana", tenant="acme", session="s")
    return await here.rt.ask(heard, text)


async def state_of(here: Console, id: str) -> QuestionState:
    """How a question stands in the store."""
    (record,) = await here.rt.driver.store.load(id)
    return question_from(record).state


@pytest.mark.parametrize(("said", "state"), [("yes", QuestionState.YES), ("no", QuestionState.NO)])
def test_a_question_is_answered_once_by_whom_it_was_put_to(said: str, state: QuestionState) -> None:
    async def script(here: Console) -> None:
        id = await asked(here)
        page = await here.page("/waiting")
        assert "Do you mean Bo Smith?" in page.words
        goal = f"/questions/{id}/answer"
        sent = {"csrf": csrf_of(page), "answer": said}
        done = await here.follow(await here.send(goal, sent))
        assert "You answered." in done.words
        assert await state_of(here, id) is state
        other = {**sent, "answer": "no" if said == "yes" else "yes"}
        late = await here.follow(await here.send(goal, other))
        assert "nothing was done a second time" in late.words
        assert await state_of(here, id) is state

    run(script)


def test_a_question_about_what_was_meant_takes_words_once() -> None:
    async def script(here: Console) -> None:
        id = await asked(here)
        goal = f"/questions/{id}/answer"
        csrf = csrf_of(await here.page("/waiting"))
        empty = await here.send(goal, {"csrf": csrf, "answer": "words", "text": " "})
        assert empty.status_code == 422
        sent = {"csrf": csrf, "answer": "words", "text": "Bo Jones, at work"}
        answers = await asyncio.gather(*(here.send(goal, sent) for _ in range(2)))
        assert {each.status_code for each in answers} == {303}
        heard = await here.rt.unacted("s", tenant="acme")
        assert [each.text for each in heard].count("Bo Jones, at work") == 1
        assert await state_of(here, id) is QuestionState.LAPSED

    run(script)


@pytest.mark.parametrize("who", ["bob", "eve", "boss"])
def test_a_question_to_somebody_else_is_one_that_there_is_not(who: str) -> None:
    async def script(here: Console) -> None:
        id = await asked(here)
        page = await here.page("/waiting", who=who)
        assert "Do you mean" not in page.words
        sent = {"csrf": csrf_of(page), "answer": "yes"}
        answers = [await here.send(f"/questions/{q}/answer", sent, who=who) for q in (id, "q-x")]
        answers += [await here.visitors.get(f"/questions/{q}", who=who) for q in (id, "q-x")]
        assert {each.status_code for each in answers} == {404}
        assert len({each.content for each in answers}) == 1
        assert await state_of(here, id) is QuestionState.OPEN

    run(script)


async def broken_off(here: Console) -> str:
    """Have a plan that needed a yes break off at its second step; return its id."""
    here.desk.refuses = True
    plan = await here.propose("erase", ("refund", {"invoice": "1", "amount_cents": 5}), what="x")
    await here.press("/waiting", f"/plans/{plan.plan}/approve", typed="3")
    here.desk.refuses = False
    return plan.plan


def test_a_question_to_retry_is_shown_as_its_plan() -> None:
    async def script(here: Console) -> None:
        id = await broken_off(here)
        assert "Couldn't: Refund 5 cents" in (await here.page("/waiting")).words
        done = await here.follow(await here.press("/waiting", f"/plans/{id}/retry"))
        assert "You had it retried." in done.words
        assert here.desk.refunds == [3, 5]

    run(script)


def test_a_no_to_retrying_stays_a_no() -> None:
    async def script(here: Console) -> None:
        id = await broken_off(here)
        fields = await here.fields("/waiting", f"/plans/{id}/retry")
        no = await here.follow(await here.press("/waiting", f"/plans/{id}/decline"))
        assert "You said no." in no.words
        assert "Nothing waits for you." in (await here.page("/waiting")).words
        assert not (await here.page("/done")).all("form", action=f"/console/plans/{id}/retry")
        assert (await here.send(f"/plans/{id}/retry", fields)).status_code in (409, 412)
        assert here.desk.refunds == [3]

    run(script)
