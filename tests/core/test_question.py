"""A question is durable, put to one person, the last of its conversation, and answered once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.arrival import AskPerson
from landed.core.changes import Kind
from landed.core.errors import IllegalEventError
from landed.core.question import (
    QUESTION_MOVES,
    About,
    Question,
    QuestionEvent,
    QuestionState,
    last_question_name,
    question_from,
    question_moved,
    question_record,
)
from tests.core.conversation import PRICED, TOOLS, Conversation, book

LAST = last_question_name(tenant="default", session="s1")

words = st.text(max_size=4)
questions = st.builds(
    Question,
    id=words,
    tenant=words,
    session=words,
    turn=words,
    principal=words,
    about=st.sampled_from(About),
    subject=words,
    text=words,
    amount_cents=st.none() | st.integers(0, 9_999),
    claim=words,
    made_at=st.floats(0, 1e9),
    state=st.sampled_from(QuestionState),
    version=st.integers(0, 9),
    answered_by=words,
    answered_at=st.floats(0, 1e9),
    input=words,
)


def unsure(words: str = "Sat instead, or as well?") -> AskPerson:
    return AskPerson(
        turn="T1",
        tenant="default",
        session="s1",
        principal="ann",
        text=words,
        about=About.UNSURE,
    )


def test_an_open_question_is_answered_once_and_never_again():
    opened = dict(QUESTION_MOVES)
    assert set(opened.pop(QuestionState.OPEN).values()) == set(opened)
    assert set(opened) == {QuestionState.YES, QuestionState.NO, QuestionState.LAPSED}
    assert not any(opened.values())


@given(questions, st.sampled_from(QuestionEvent))
def test_every_event_either_answers_a_question_or_is_illegal(question, event):
    after = QUESTION_MOVES[question.state].get(event)
    if after is None:
        with pytest.raises(IllegalEventError, match=f"is {question.state}: it cannot be {event}"):
            question_moved(question, event)
    else:
        answered = question_moved(question, event, answered_by="ann")
        assert (answered.state, answered.answered_by) == (after, "ann")
        assert answered.version == question.version + 1
        assert question_record(answered).frozen == question_record(question).frozen


@given(questions)
def test_a_question_is_read_back_from_its_record_as_it_was(question):
    record = question_record(question)
    assert question_from(record) == question
    assert (record.kind, record.open, record.worker) == (Kind.QUESTION, False, "")


def test_a_conversation_has_one_last_question():
    assert LAST == "question/default/s1"
    assert last_question_name(tenant="t", session="a/b") == "question/t/a%2Fb"


# In the conversation.


def test_what_the_application_asks_interrupts_nothing_and_is_the_last_question():
    talk = Conversation()
    talk.ask(book())
    assert talk.put(unsure()) == ["q-1 asked"]
    assert talk.leaves == []
    assert talk.store.names[LAST] == "q-1"
    assert (talk.question.text, talk.question.principal) == ("Sat instead, or as well?", "ann")
    assert (talk.question.about, talk.question.amount_cents) == (About.UNSURE, None)
    talk.lands("op-1")
    assert talk.states("op-1", "plan-T1", "q-1") == ["confirmed", "done", "open"]


@pytest.mark.parametrize(("yes", "state"), [(True, "yes"), (False, "no"), (None, "lapsed")])
def test_what_the_user_meant_is_left_to_the_model_whatever_the_answer(yes, state):
    talk = Conversation()
    talk.put(unsure())
    assert talk.answer(yes, said="as well") == [
        "in-T1 received",
        "T1 opened",
        f"q-1 {({True: 'approved', False: 'declined', None: 'lapsed'})[yes]}",
    ]
    assert talk.states("q-1") == [state]
    assert (talk.question.answered_by, talk.question.input) == ("ann", "in-T1")
    assert talk.question.answered_at == talk.now


def test_an_answer_is_made_durable_with_what_it_does_and_its_delivery_counts_once():
    talk = Conversation()
    talk.put(unsure())
    talk.answer(None, said="as well")
    assert talk.store.records["in-T1"].frozen["text"] == "as well"
    assert talk.store.names["delivery/default/d-T1"] == "in-T1"


def test_a_second_question_takes_over_and_the_first_can_still_be_answered_by_a_button():
    talk = Conversation()
    talk.put(unsure())
    talk.put(unsure("Which day?"))
    assert talk.store.names[LAST] == "q-2"
    assert talk.states("q-1") == ["open"]
    talk.answer(True, question="q-1")
    assert talk.states("q-1", "q-2") == ["yes", "open"]


def test_two_questions_in_one_lap_leave_the_later_one_as_the_last():
    talk = Conversation()
    talk.put(unsure())
    assert talk.lap(unsure("Which day?"), unsure("Which one?")) == ["q-2 asked", "q-3 asked"]
    assert talk.store.names[LAST] == "q-3"


def test_an_answer_that_comes_twice_counts_once():
    talk = Conversation(tools={**TOOLS, "reserve": PRICED})
    talk.ask(book("Fri"))
    talk.lands("op-1")
    talk.revise(book("Sat"))
    talk.lands("op-2")
    talk.price(2000)
    talk.answer(False)
    assert talk.answer(True, question="q-1") == []
    assert talk.states("release/op-1", "q-1") == ["waived", "no"]


def test_a_question_is_put_in_the_language_of_the_person():
    talk = Conversation(tools={**TOOLS, "reserve": PRICED}, language="es")
    talk.ask(book("Fri"))
    talk.lands("op-1")
    talk.revise(book("Sat"))
    talk.lands("op-2")
    talk.price(2050)
    assert talk.question.text == "Deshacer reserve(day=Fri) cuesta 20.50. ¿Lo hago?"
