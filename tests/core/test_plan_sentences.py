"""What is said of a plan: its preview, its question, its progress and each of its endings."""

import re
from collections.abc import Mapping
from string import Formatter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.contract import LANGUAGES
from landed.core.plan import PlanState
from landed.core.plan_sentences import (
    ASKED,
    BEGINS,
    BY_OTHER_WORDS,
    BY_THE_CLOCK,
    CAN,
    ENDINGS,
    NEXT,
    NUMBERED,
    OFFERS,
    OR,
    PARTS,
    PREVIEW,
    TO_MODEL,
    TYPED,
    ended,
    ended_to_model,
    plan_question,
    preview_text,
    progress_line,
)
from landed.core.preview import SUMMARY_MAX, typed_count
from landed.core.yes import Answer, Reading, read, read_answer

# States in which a plan is still on its way, so that nothing ended.
ON_THE_WAY = {"drafted", "proposed", "running", "stopping", "undoing"}

TABLES: list[Mapping[str, Mapping[str, str]]] = [PREVIEW, ASKED, TYPED, BEGINS, PARTS, CAN, NEXT]
SINGLE: list[Mapping[str, str]] = [NUMBERED, OR]

# Four steps of which the third broke, in every ending that can have such.
DRAFT, ISSUE, EMAIL, REMIND = "draft for Ana, 605.00", "issue it", "email it", "remind her"


# Complete in each language.


@pytest.mark.req("S1-58")
def test_every_state_in_which_a_plan_comes_to_rest_has_an_ending():
    assert set(PlanState) - ON_THE_WAY <= set(ENDINGS)
    named = "partial in_doubt done stopped declined expired abandoned superseded invalid"
    assert {*named.split(), "undone", "undo_partial"} == set(ENDINGS)


@pytest.mark.req("S1-58", "S1-08")
@pytest.mark.parametrize("language", LANGUAGES)
def test_one_language_says_no_less_than_another(language):
    for table in TABLES:
        assert set(table) == set(LANGUAGES)
        assert set(table[language]) == set(table["en"])
        for name, words in table[language].items():
            assert named(words) == named(table["en"][name]), name
            assert language == "en" or not words or words != table["en"][name]
    for single in SINGLE:
        assert set(single) == set(LANGUAGES)
        assert len({named(words) for words in single.values()}) == 1


def named(words: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in Formatter().parse(words) if name is not None)


@pytest.mark.req("S1-58")
def test_each_ending_is_there_for_the_person_and_for_the_model():
    for language in LANGUAGES:
        assert set(BEGINS[language]) == set(NEXT[language]) == set(TO_MODEL)
        assert all(NEXT[language].values())


# Each ending, word by word.

STEPS = {"done": [DRAFT, ISSUE], "failed": EMAIL, "why": "no such mailbox.", "not_done": [REMIND]}
ENDED: dict[str, dict[str, Any]] = {
    "done": {"done": [DRAFT, ISSUE]},
    "done, undo": {"done": [DRAFT], "can": ["undo"]},
    "done, correct": {"done": [DRAFT, ISSUE], "can": ["correct"]},
    "partial": {**STEPS, "can": ["retry"]},
    "partial, undo": {**STEPS, "can": ["retry", "undo"]},
    "partial, no more": STEPS,
    "partial, reason alone": {"done": [DRAFT], "why": "the yes is too old", "not_done": [ISSUE]},
    "in_doubt": {"done": [DRAFT, ISSUE], "unknown": [EMAIL], "not_done": [REMIND]},
    "stopped": {"done": [DRAFT], "not_done": [ISSUE, EMAIL, REMIND], "can": ["undo"]},
    "stopped, hard": {"done": [DRAFT], "unknown": [ISSUE], "not_done": [EMAIL, REMIND]},
    "stopped, at once": {"not_done": [DRAFT, ISSUE]},
    "declined": {"not_done": [DRAFT]},
    "expired": {"not_done": [DRAFT]},
    "expired, clock": {"not_done": [DRAFT], "why": BY_THE_CLOCK},
    "expired, answer": {"not_done": [DRAFT], "why": BY_OTHER_WORDS},
    "expired, why": {"not_done": [DRAFT], "why": "the total is 726.00"},
    "abandoned": {"not_done": [DRAFT]},
    "superseded": {"done": [DRAFT], "not_done": [ISSUE]},
    "superseded, unbegun": {},
    "invalid": {"questions": ["What is Ana's email?", "when is it due"]},
    "undone": {"done": [ISSUE, DRAFT]},
    "undo_partial": {"done": [REMIND], "failed": DRAFT, "why": "not allowed", "not_done": [ISSUE]},
}

TOLD = {
    "en": {
        "done": "Done: draft for Ana, 605.00; issue it. There is nothing left to do.",
        "done, undo": "Done: draft for Ana, 605.00. It can be undone: tell me if you want that.",
        "done, correct": (
            "Done: draft for Ana, 605.00; issue it. What was done is final; it can be corrected,"
            " so tell me if it is wrong."
        ),
        "partial": (
            "Done: draft for Ana, 605.00; issue it. Couldn't: email it (no such mailbox)."
            " Not done because of that: remind her. Shall I retry?"
        ),
        "partial, undo": (
            "Done: draft for Ana, 605.00; issue it. Couldn't: email it (no such mailbox)."
            " Not done because of that: remind her. It can be undone: tell me if you want that."
            " Shall I retry?"
        ),
        "partial, no more": (
            "Done: draft for Ana, 605.00; issue it. Couldn't: email it (no such mailbox)."
            " Not done because of that: remind her."
            " It stays like that: I do nothing more about it by myself."
        ),
        "partial, reason alone": (
            "Done: draft for Ana, 605.00. Couldn't: the yes is too old."
            " Not done because of that: issue it."
            " It stays like that: I do nothing more about it by myself."
        ),
        "in_doubt": (
            "Done: draft for Ana, 605.00; issue it. Not known yet: email it."
            " Not done before that is known: remind her."
            " I am finding out and will tell you; until then there is nothing to do."
        ),
        "stopped": (
            "Stopped: 1 of 4 done. Done: draft for Ana, 605.00."
            " Not done: issue it; email it; remind her."
            " It can be undone: tell me if you want that."
        ),
        "stopped, hard": (
            "Stopped: 1 of 4 done. Done: draft for Ana, 605.00. Not known yet: issue it."
            " Not done: email it; remind her. I do nothing more of it unless you ask me to."
        ),
        "stopped, at once": (
            "Stopped: 0 of 2 done. Not done: draft for Ana, 605.00; issue it."
            " I do nothing more of it unless you ask me to."
        ),
        "declined": "You said no. Nothing was done. Tell me if you want it after all.",
        "expired": (
            "Nobody answered in time. Nothing was done."
            " Ask me for it if you still want it, and I will show it as it is by then."
        ),
        "expired, clock": (
            "Nobody answered in time. Nothing was done."
            " Ask me for it if you still want it, and I will show it as it is by then."
        ),
        "expired, answer": (
            "That was neither a yes nor a no, so the question is closed. Nothing was done."
            " Ask me for it if you still want it."
        ),
        "expired, why": (
            "The question is closed: the total is 726.00. Nothing was done."
            " Ask me for it if you still want it, and I will show it as it is now."
        ),
        "abandoned": (
            "I have dropped it before it began. Nothing was done. Tell me if you want it after all."
        ),
        "superseded": (
            "Something else was wanted meanwhile. Done: draft for Ana, 605.00. Not done: issue it."
            " What is wanted now is told by itself."
        ),
        "superseded, unbegun": (
            "Something else was wanted meanwhile. Nothing was done."
            " What is wanted now is told by itself."
        ),
        "invalid": (
            "Something is missing. Nothing was done. What is Ana's email? When is it due."
            " Tell me, and I will show you all of it again."
        ),
        "undone": "Undone: issue it; draft for Ana, 605.00. There is nothing left to do.",
        "undo_partial": (
            "Not all of it could be undone. Undone: remind her."
            " Couldn't undo: draft for Ana, 605.00 (not allowed). Not undone: issue it."
            " What is not undone stays: somebody has to look at it."
        ),
    },
    "es": {
        "done": "Hecho: draft for Ana, 605.00; issue it. No queda nada por hacer.",
        "done, undo": "Hecho: draft for Ana, 605.00. Se puede deshacer: dime si lo quieres.",
        "done, correct": (
            "Hecho: draft for Ana, 605.00; issue it."
            " Lo hecho es definitivo; se puede corregir, así que dime si está mal."
        ),
        "partial": (
            "Hecho: draft for Ana, 605.00; issue it. No se pudo: email it (no such mailbox)."
            " Sin hacer por eso: remind her. ¿Lo reintento?"
        ),
        "partial, undo": (
            "Hecho: draft for Ana, 605.00; issue it. No se pudo: email it (no such mailbox)."
            " Sin hacer por eso: remind her. Se puede deshacer: dime si lo quieres."
            " ¿Lo reintento?"
        ),
        "partial, no more": (
            "Hecho: draft for Ana, 605.00; issue it. No se pudo: email it (no such mailbox)."
            " Sin hacer por eso: remind her. Queda así: no hago nada más por mi cuenta."
        ),
        "partial, reason alone": (
            "Hecho: draft for Ana, 605.00. No se pudo: the yes is too old."
            " Sin hacer por eso: issue it. Queda así: no hago nada más por mi cuenta."
        ),
        "in_doubt": (
            "Hecho: draft for Ana, 605.00; issue it. Aún no se sabe: email it."
            " Sin hacer hasta que se sepa: remind her."
            " Lo estoy averiguando y te lo diré; hasta entonces no hay nada que hacer."
        ),
        "stopped": (
            "Parado: 1 de 4 hechos. Hecho: draft for Ana, 605.00."
            " Sin hacer: issue it; email it; remind her. Se puede deshacer: dime si lo quieres."
        ),
        "stopped, hard": (
            "Parado: 1 de 4 hechos. Hecho: draft for Ana, 605.00. Aún no se sabe: issue it."
            " Sin hacer: email it; remind her. No hago nada más de ello si no me lo pides."
        ),
        "stopped, at once": (
            "Parado: 0 de 2 hechos. Sin hacer: draft for Ana, 605.00; issue it."
            " No hago nada más de ello si no me lo pides."
        ),
        "declined": "Has dicho que no. No se hizo nada. Dime si al final lo quieres.",
        "expired": (
            "Nadie respondió a tiempo. No se hizo nada."
            " Pídemelo si aún lo quieres, y te lo muestro como esté entonces."
        ),
        "expired, clock": (
            "Nadie respondió a tiempo. No se hizo nada."
            " Pídemelo si aún lo quieres, y te lo muestro como esté entonces."
        ),
        "expired, answer": (
            "Eso no era ni un sí ni un no, así que la pregunta queda cerrada. No se hizo nada."
            " Pídemelo si aún lo quieres."
        ),
        "expired, why": (
            "La pregunta queda cerrada: the total is 726.00. No se hizo nada."
            " Pídemelo si aún lo quieres, y te lo muestro como está ahora."
        ),
        "abandoned": (
            "Lo he dejado antes de empezar. No se hizo nada. Dime si al final lo quieres."
        ),
        "superseded": (
            "Entretanto se quiso otra cosa. Hecho: draft for Ana, 605.00. Sin hacer: issue it."
            " Lo que se quiere ahora se cuenta aparte."
        ),
        "superseded, unbegun": (
            "Entretanto se quiso otra cosa. No se hizo nada."
            " Lo que se quiere ahora se cuenta aparte."
        ),
        "invalid": (
            "Falta algo. No se hizo nada. What is Ana's email? When is it due."
            " Dímelo, y te lo muestro entero otra vez."
        ),
        "undone": "Deshecho: issue it; draft for Ana, 605.00. No queda nada por hacer.",
        "undo_partial": (
            "No se pudo deshacer por completo. Deshecho: remind her."
            " No se pudo deshacer: draft for Ana, 605.00 (not allowed). Sin deshacer: issue it."
            " Lo que no se ha deshecho se queda: alguien tiene que mirarlo."
        ),
    },
}

TOLD_TO_MODEL = {
    "done": "The plan is done. Done: draft for Ana, 605.00; issue it. Do not propose it again.",
    "partial": (
        "The plan ended at the first step that had no effect."
        " Done: draft for Ana, 605.00; issue it. Couldn't: email it (no such mailbox)."
        " Not done because of that: remind her."
        " Whether to retry is the person's to say; do not propose any of it on your own."
    ),
    "in_doubt": (
        "One step may have happened. Done: draft for Ana, 605.00; issue it."
        " Not known yet: email it. Not done before that is known: remind her."
        " It is being found out; do not call or propose any of it until that is known."
    ),
    "stopped": (
        "The person stopped the plan: 1 of 4 done. Done: draft for Ana, 605.00."
        " Not done: issue it; email it; remind her."
        " Do not do it on your own: only if the person asks for it."
    ),
    "declined": (
        "The person said no. Nothing was done."
        " Do not propose it again unless the person asks for it."
    ),
    "expired": (
        "The time to answer is over; nobody said no. Nothing was done. Its figures may have moved:"
        " if it is still wanted, propose it anew, for a new preview."
    ),
    "expired, answer": (
        "The person answered with something else, so the question is closed; it was no yes."
        " Nothing was done."
        " Read what they said; if it is still wanted, propose it anew, as they want it now."
    ),
    "expired, why": (
        "The question is closed, and nobody said no: the total is 726.00. Nothing was done."
        " Its figures may have moved: if it is still wanted, propose it anew, for a new preview."
    ),
    "abandoned": (
        "The plan was dropped before it began. Nothing was done. It may be proposed anew,"
        " if wanted."
    ),
    "superseded": (
        "Something else was wanted meanwhile; another plan took over."
        " Done: draft for Ana, 605.00. Not done: issue it."
        " Do not propose what was not done of it."
    ),
    "invalid": (
        "The plan is not valid. Nothing was done. What is Ana's email? When is it due."
        " Assume nothing: ask the person for what is missing, then propose the whole plan."
    ),
    "undone": (
        "The person had the plan undone. Undone: issue it; draft for Ana, 605.00."
        " Do not do it on your own: only if the person asks for it."
    ),
    "undo_partial": (
        "The person had the plan undone, and not all of it could be. Undone: remind her."
        " Couldn't undo: draft for Ana, 605.00 (not allowed). Not undone: issue it."
        " Neither undo nor redo anything on your own; say what is and what is not undone."
    ),
}


def told(name: str, language: str) -> str:
    return ended(name.split(",")[0], language=language, **ENDED[name])


def told_to_model(name: str) -> str:
    fields = {field: given for field, given in ENDED[name].items() if field != "can"}
    return ended_to_model(name.split(",")[0], **fields)


@pytest.mark.req("S1-58")
def test_the_snapshot_has_every_ending():
    assert {name.split(",")[0] for name in ENDED} == set(ENDINGS)
    assert {name.split(",")[0] for name in TOLD_TO_MODEL} == set(ENDINGS)
    assert all(set(TOLD[language]) == set(ENDED) for language in LANGUAGES)


@pytest.mark.req("S1-58", "S1-37", "S1-50", "S1-53")
@pytest.mark.field("C20")
@pytest.mark.parametrize("name", ENDED)
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_ending_says_what_was_done_what_was_not_and_what_can_be_done(name, language):
    assert told(name, language) == TOLD[language][name]


@pytest.mark.req("S1-57", "S1-58")
@pytest.mark.parametrize("name", TOLD_TO_MODEL)
def test_each_ending_tells_the_model_what_it_must_not_do(name):
    assert told_to_model(name) == TOLD_TO_MODEL[name]


# What no ending says.

FAILED = re.compile(r"fail|error|could|did not|unsuccess|fall[oó]|no se pudo|no se hizo", re.I)
AGAIN = re.compile(r"try again|retry|once more|vuelve a|rein?t[eé]nt|otra vez", re.I)
CANCELLED = re.compile(r"cancel", re.I)


@pytest.mark.req("S4-42", "S4-51")
@pytest.mark.parametrize("field", ["unknown", "failed"])
def test_what_is_in_doubt_has_not_failed_and_is_not_to_be_tried_again(field):
    doubt: dict[str, Any] = {
        "done": [DRAFT],
        field: [EMAIL] if field == "unknown" else EMAIL,
        "why": "503: sending failed, please try again",
        "not_done": [REMIND],
    }
    said = [ended_to_model("in_doubt", **doubt)]
    said += [ended("in_doubt", can=OFFERS, language=each, **doubt) for each in LANGUAGES]
    for text in said:
        assert EMAIL in text
        assert not FAILED.search(text), text
        assert not AGAIN.search(text), text
    assert "do not call or propose" in said[0]


@pytest.mark.parametrize("state", [each for each in ENDINGS if each != "in_doubt"])
def test_nothing_is_offered_to_be_retried_while_any_step_is_unknown(state):
    for language in LANGUAGES:
        text = ended(state, unknown=[EMAIL], can=["retry"], language=language)
        assert ASKED[language]["retry"] not in text
        assert text.endswith(NEXT[language][state])


@pytest.mark.req("S0-69")
def test_nothing_that_was_stopped_is_called_cancelled():
    tables = [words for table in TABLES for named in table.values() for words in named.values()]
    for text in (*tables, *(each for pair in TO_MODEL.values() for each in pair)):
        assert not CANCELLED.search(text), text


@pytest.mark.field("C20")
def test_an_expiry_is_the_clocks_and_no_persons():
    for language in LANGUAGES:
        assert told("declined", language) != told("expired", language)
    assert told_to_model("expired").startswith("The time to answer is over; nobody said no.")


@pytest.mark.parametrize("state", ["declined", "expired", "abandoned", "invalid"])
def test_a_plan_that_never_ran_says_that_nothing_was_done_and_lists_no_step(state):
    for language, nothing in (("en", "Nothing was done."), ("es", "No se hizo nada.")):
        text = ended(state, not_done=[DRAFT], language=language)
        assert nothing in text
        assert DRAFT not in text


# The preview, the question, the progress.


@pytest.mark.req("S1-08")
def test_a_preview_is_one_text_with_each_step_and_each_possible_duplicate():
    steps = ["Draft for Ana: 500.00 + 105.00 VAT = 605.00", "Issue it: 605.00, due 18/11/2026"]
    assert preview_text(steps, similar=["draft for Ana, 605.00, 3 minutes ago"]) == (
        "1. Draft for Ana: 500.00 + 105.00 VAT = 605.00\n"
        "2. Issue it: 605.00, due 18/11/2026\n"
        "Possible duplicate: draft for Ana, 605.00, 3 minutes ago"
    )
    assert (
        preview_text(["Uno"], similar=["otro"], language="es") == "1. Uno\nPosible duplicado: otro"
    )
    assert preview_text(["One"]) == "1. One"


UNSEEN = "\u202e\u202a\u2066\u2069\u200f\u061c\x1b\x00\x08\x7f\x9b"


@pytest.mark.parametrize("between", ["\n", "\r\n", "\u2028", "\u2029", "\x85", "\x0b", "\x1d"])
def test_no_summary_can_pass_for_another_step(between):
    text = preview_text([f"Draft{between}2. Delete all"], similar=[f"a{between}3. b"])
    assert text.splitlines() == ["1. Draft 2. Delete all", "Possible duplicate: a 3. b"]
    assert progress_line(step=1, of=2, what=f"a{between}b") == "Step 1 of 2: a b"
    assert ended("done", done=[f"a{between}b"]).startswith("Done: a b.")


def test_no_summary_turns_what_follows_or_speaks_to_a_terminal():
    text = "a" + "".join(UNSEEN) + "b"
    assert preview_text([text]) == "1. ab"
    assert "Done: ab." in ended("done", done=[text])
    assert "ab" in ended_to_model("partial", failed="x", why=text)


@given(st.lists(st.text(max_size=30), max_size=5), st.lists(st.text(max_size=30), max_size=3))
def test_a_preview_has_as_many_lines_as_steps_and_duplicates(steps, similar):
    assert len(preview_text(steps, similar=similar).split("\n")) == max(1, len(steps + similar))
    assert len(preview_text(steps, similar=similar).splitlines()) == len(steps + similar)


def test_each_summary_is_bounded_and_none_of_a_hundred_is_left_out():
    steps = [f"step-{number} {'x' * 1000}" for number in range(100)]
    for text in (
        preview_text(steps),
        ended("done", done=steps),
        ended_to_model("done", done=steps),
    ):
        assert len(text) < 100 * (SUMMARY_MAX + 10)
        assert all(f"step-{number} " in text for number in range(100))


@pytest.mark.parametrize(
    ("kind", "language", "asked"),
    [
        ("confirm", "en", "Shall I do it?"),
        ("confirm", "es", "¿Lo hago?"),
        ("retry", "en", "Shall I retry?"),
        ("retry", "es", "¿Lo reintento?"),
        ("undo", "en", "Shall I undo it?"),
        ("undo", "es", "¿Lo deshago?"),
    ],
)
def test_a_question_is_one_sentence_of_its_kind(kind, language, asked):
    assert plan_question(kind, language=language) == asked


@pytest.mark.req("S1-26")
def test_a_challenge_says_which_words_to_type():
    typed = typed_count(3)
    assert plan_question("confirm", typed=typed) == "Type 3 or DELETE to go ahead."
    assert plan_question("confirm", typed=typed, number=2) == "Type 3 or DELETE to go ahead."
    spanish = plan_question("undo", typed=typed, language="es")
    assert spanish == "Escribe 3 o BORRAR para deshacerlo."
    assert plan_question("retry", typed=("A", "B", "C")) == "Type A, B or C to retry."
    assert plan_question("confirm", typed=("BORRAR",)) == "Type BORRAR to go ahead."


@pytest.mark.field("C25")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_numbered_question_tells_answers_that_are_read_as_its_own(language):
    text = plan_question("confirm", number=2, language=language)
    yes, no = re.findall(r"[“«](.+?)[”»]", text)
    assert read_answer(yes) == Reading(answer=Answer.YES, number=2)
    assert read_answer(no) == Reading(answer=Answer.NO, number=2)


@pytest.mark.fault("X86")
def test_no_sentence_of_ours_is_a_yes_when_it_is_sent_back():
    sentences = [told(name, language) for name in ENDED for language in LANGUAGES]
    questions = [plan_question(kind, language=each) for kind in ASKED["en"] for each in LANGUAGES]
    for text in (*sentences, *questions, *TOLD_TO_MODEL.values()):
        assert read(text) is Answer.OTHER


@pytest.mark.req("S1-51")
def test_progress_says_which_step_of_how_many():
    assert progress_line(step=2, of=4, what="issue the invoice") == "Step 2 of 4: issue the invoice"
    assert progress_line(step=2, of=4, what="emitir", language="es") == "Paso 2 de 4: emitir"


@pytest.mark.parametrize("words", ["{what}", "{0}", "{", "}", "{why.__class__}", "%s", "{{"])
def test_braces_in_a_summary_are_only_braces(words):
    assert words in ended("partial", done=[words], failed=words, why=words)
    assert words in ended_to_model("expired", why=words)
    assert words in plan_question("confirm", typed=(words,))
    assert words in preview_text([words])
