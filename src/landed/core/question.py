"""Questions to a person: durable, bound to one person and one amount, answered once.

A yes answers the *last* question of its conversation; any other answer than a yes or a no lets the
question lapse, and what was owed stays owed. Nothing that a model writes answers one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from landed.core.changes import Kind, Record
from landed.core.errors import IllegalEventError
from landed.core.key import name_of


class About(StrEnum):
    """What is asked."""

    PRICE = "price"  # may this undo be done at this price (or at all)?
    KEPT = "kept"  # what is still held: shall it be taken back?
    UNSURE = "unsure"  # what did the user mean? the model reads the answer
    PLAN = "plan"  # may a plan be run, or run once more? its subject is an approval
    CLAIM = "claim"  # is what somebody says happened to be taken for true?


class QuestionState(StrEnum):
    """Where a question is."""

    OPEN = "open"
    YES = "yes"
    NO = "no"
    LAPSED = "lapsed"


class QuestionEvent(StrEnum):
    """The events of a question."""

    ASKED = "asked"
    APPROVED = "approved"
    DECLINED = "declined"
    LAPSED = "lapsed"


QUESTION_MOVES: Mapping[QuestionState, Mapping[QuestionEvent, QuestionState]] = {
    QuestionState.OPEN: {
        QuestionEvent.APPROVED: QuestionState.YES,
        QuestionEvent.DECLINED: QuestionState.NO,
        QuestionEvent.LAPSED: QuestionState.LAPSED,
    },
    QuestionState.YES: {},
    QuestionState.NO: {},
    QuestionState.LAPSED: {},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The record of a question.

    `subject` is the record it is about (a release, an operation, "" for one about words);
    `amount_cents` what a yes agrees to, `typed` the words of which one has to be typed for it.
    `number` is what it can be answered by while others are open, 0 where it was asked alone. Only
    `principal` may answer it; "" lets anybody of the conversation.
    """

    id: str
    tenant: str
    session: str
    turn: str
    principal: str
    about: About
    subject: str
    text: str
    amount_cents: int | None
    claim: str
    made_at: float
    typed: tuple[str, ...] = ()
    number: int = 0

    state: QuestionState = QuestionState.OPEN
    version: int = 0
    epoch: int = 0
    answered_by: str = ""
    answered_at: float = 0.0
    input: str = ""


def last_question_name(*, tenant: str, session: str) -> str:
    """Return the name that the last question of a conversation holds."""
    return name_of("question", tenant, session)


def question_moved(question: Question, event: QuestionEvent, **changed: object) -> Question:
    """Return the question after `event`; raises `IllegalEventError` where it was answered."""
    after = QUESTION_MOVES[question.state].get(event)
    if after is None:
        raise IllegalEventError(f"{question.id} is {question.state}: it cannot be {event}")
    return replace(
        question,
        state=after,
        version=question.version + 1,
        **changed,  # type: ignore[arg-type]
    )


_FROZEN = (
    *("turn", "principal", "about", "subject", "text", "amount_cents", "claim", "made_at"),
    "number",
)
_CHANGING = ("answered_by", "answered_at", "input")


def question_record(question: Question) -> Record:
    """Return the question as a store holds it; no worker has to hold it."""
    return Record(
        id=question.id,
        kind=Kind.QUESTION,
        tenant=question.tenant,
        session=question.session,
        state=question.state,
        version=question.version,
        epoch=question.epoch,
        worker="",
        open=False,
        frozen={
            **{name: getattr(question, name) for name in _FROZEN},
            "typed": list(question.typed),
        },
        changing={name: getattr(question, name) for name in _CHANGING},
    )


def question_from(record: Record) -> Question:
    """Read a question back; the reverse of `question_record`."""
    typed: list[str] = record.frozen["typed"]  # type: ignore[assignment]
    about = About(str(record.frozen["about"]))
    frozen = {**record.frozen, "about": about, "typed": tuple(typed)}
    return Question(
        id=record.id,
        tenant=record.tenant,
        session=record.session,
        state=QuestionState(record.state),
        version=record.version,
        epoch=record.epoch,
        **frozen,  # type: ignore[arg-type]
        **record.changing,  # type: ignore[arg-type]
    )
