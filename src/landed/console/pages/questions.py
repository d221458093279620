"""Questions to a person about no plan: what an undo costs, what is kept, what was meant."""

from dataclasses import dataclass

from starlette.responses import Response

from landed.console.visit import Page, Visit
from landed.core.approval import approval_from
from landed.core.changes import Kind
from landed.core.errors import ApprovalError
from landed.core.question import About, Question, QuestionState, question_from
from landed.core.yes import Answer, read_answer
from landed.server.asking import plain
from landed.server.problems import absent

PATIENCE_S = 2.0
NOTES = frozenset({"answer", "replayed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionCard:
    """A question as it is shown; `may_say` where it takes words, and not only a yes or a no."""

    question: Question
    may_say: bool
    is_open: bool


def question_card(asked: Question) -> QuestionCard:
    """Return a question as whoever it was put to is shown it."""
    return QuestionCard(
        question=asked,
        may_say=asked.about is About.UNSURE,
        is_open=asked.state is QuestionState.OPEN,
    )


async def show(visit: Visit) -> Response:
    """Show a question; one about a plan is answered on the page of that plan."""
    asked = await _put_to(visit)
    if asked.about is About.PLAN:
        (approval,) = await visit.rt.driver.store.load(asked.subject)
        return visit.go(f"/plans/{approval_from(approval).plan}")
    return _page(visit, asked, note=visit.asked("note"))


async def answer(visit: Visit) -> Response:
    """Take a yes, a no, or words, as the person it was put to."""
    asked, said = await _asked(visit), visit.form.get("answer", "")
    if asked.state is not QuestionState.OPEN:
        return _before(visit, asked)
    if said == "words":
        return await _say(visit, asked)
    typed = read_answer(visit.form.get("typed", ""), typed=asked.typed)
    if said == "yes" and asked.typed and typed.answer is not Answer.YES:
        return _page(visit, asked, problem="typed", status=422)
    if said not in ("yes", "no"):
        return _page(visit, asked, problem="text", status=422)
    say = visit.rt.approve if said == "yes" else visit.rt.decline
    verb = say(asked.id, principal=visit.who.principal, tenant=asked.tenant)
    try:
        await visit.console.carried(verb, patience_s=PATIENCE_S)
    except ApprovalError:
        return _before(visit, await _asked(visit))
    return visit.go(f"/questions/{asked.id}?note=answer")


async def _say(visit: Visit, asked: Question) -> Response:
    """Take what somebody says in their own words, as an input of the conversation."""
    text = visit.form.get("text", "").strip()
    if not text:
        return _page(visit, asked, problem="text", status=422)
    await visit.rt.receive(
        text,
        session=asked.session,
        principal=visit.who.principal,
        tenant=asked.tenant,
        delivery=f"console/{asked.id}",
    )
    return visit.go(f"/questions/{asked.id}?note=answer")


def _before(visit: Visit, asked: Question) -> Response:
    """Return what an answer comes to where there was one already."""
    if asked.answered_by in ("", visit.who.principal) and asked.state is not QuestionState.OPEN:
        return visit.go(f"/questions/{asked.id}?note=replayed")
    return _page(visit, asked, problem="over", status=409)


def _page(
    visit: Visit, asked: Question, *, note: str = "", problem: str = "", status: int = 200
) -> Response:
    return visit.show(
        "question.html",
        page="question",
        card=question_card(asked),
        note=note if note in NOTES else "",
        problem=problem,
        status=status,
    )


async def _asked(visit: Visit) -> Question:
    """Return a question about no plan, put to whoever is signed in; raises `ProblemError`."""
    asked = await _put_to(visit)
    if asked.about is About.PLAN:
        raise absent()
    return asked


async def _put_to(visit: Visit) -> Question:
    for record in await visit.rt.driver.store.load(plain(visit.named("id"))):
        if record.kind is Kind.QUESTION and record.tenant == visit.who.tenant:
            asked = question_from(record)
            if asked.principal in ("", visit.who.principal):
                return asked
    raise absent()


PAGES = (
    Page(path="/questions/{id}", answer=show),
    Page(path="/questions/{id}/answer", answer=answer, method="POST"),
)
