"""What counts as a yes, phrase by phrase in both languages, and what never does."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.yes import NO, POLITE, TEXT_MAX, WORDS_MAX, YES, Answer, read

YESES = """
yes
Yes.
YES!
yes, please
Yes please.
yes yes
yes, go ahead
Yes, I confirm.
please do
please, go ahead
go ahead
Go ahead, please!
do it
confirm
Confirmed.
I confirm
approve
approved
I approve
yes, thanks
yes thank you
yes, approved, go ahead
yes 👍
sí
Sí.
SÍ
si
sí, por favor
Sí, adelante.
adelante
vale, adelante
Vale, adelante, gracias.
confirmo
lo confirmo
Sí, lo confirmo
confirmado
apruebo
hazlo
hazlo, por favor
yes, adelante
"""

NOES = """
no
No.
NO!
no, thanks
No thank you
no, please
no no
don't
Don’t.
do not
decline
keep it
no, keep it
no, gracias
no lo hagas
No, no lo hagas, por favor.
déjalo
no, déjalo
consérvalo
"""

# Neither, though the first look might say so.
NEITHER = """
yes?
yes, but on Sunday
yes, if it is free
yes, for 5
confirm 1
confirm R1
yes and no
yes, no
no, yes
not yes
no, don't approve
don't approve
I do not approve
I can't approve that
cannot approve
disallow
disapprove
unconfirmed
I don't confirm
never
note
yesterday
eyes
okay
ok
ok, do we have to?
sure
fine
yeah whatever
y
please
thanks
please, please
go
go ahead and book Sunday
do it on Sunday
do it tomorrow at 8
I would like to confirm something else first
yes yes yes yes yes yes yes
what would that cost
I said yes to the other one
the answer was yes
"yes" is what she said
he approved it
do you confirm
¿sí?
¿Confirmo?
sí, pero el domingo
sí, pero no
si no
no, sí
no sé
no lo confirmo
no apruebo
no confirmo nada
tampoco
vale
claro
bueno, vale
adelante con el domingo
hazlo el domingo
si puede ser
ya veremos
por favor
gracias
ya está confirmado el viernes
y3s
yes1
...
👍
"""


def phrases(table: str) -> list[str]:
    return table.strip().splitlines()


def test_the_tables_below_are_long_enough_to_mean_something():
    assert len({*phrases(YESES), *phrases(NOES), *phrases(NEITHER)}) >= 100


@pytest.mark.req("S1-24")
@pytest.mark.parametrize("text", phrases(YESES))
def test_a_yes_is_made_of_yes_words(text):
    assert read(text) is Answer.YES


@pytest.mark.req("S1-24")
@pytest.mark.parametrize("text", phrases(NOES))
def test_a_no_is_read_as_strictly(text):
    assert read(text) is Answer.NO


@pytest.mark.req("S1-24")
@pytest.mark.field("C22", "C23")
@pytest.mark.parametrize("text", phrases(NEITHER))
def test_whatever_else_is_said_is_neither(text):
    assert read(text) is Answer.OTHER


@pytest.mark.parametrize("text", ["", " ", "\n", "\u200b", "_"])
def test_to_say_nothing_is_no_answer(text):
    assert read(text) is Answer.OTHER


@pytest.mark.req("S1-24")
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (" ".join(["yes"] * WORDS_MAX), Answer.YES),
        (" ".join(["yes"] * (WORDS_MAX + 1)), Answer.OTHER),
        ("yes" + "." * (TEXT_MAX - 3), Answer.YES),
        ("yes" + "." * (TEXT_MAX - 2), Answer.OTHER),
    ],
)
def test_a_yes_has_six_words_at_most_and_is_short(text, answer):
    assert read(text) is answer


@pytest.mark.field("C25")
@pytest.mark.parametrize("filler", ["ok", "okay", "well", "sure", "bueno", "vale", "so", "right"])
@pytest.mark.parametrize("language", YES)
def test_a_word_that_is_only_a_filler_makes_no_yes(filler, language):
    assert read(filler) is Answer.OTHER
    for phrase in YES[language]:
        if phrase.split()[0] != filler:
            assert read(f"{phrase}, but {filler}") is Answer.OTHER


@pytest.mark.parametrize("language", YES)
def test_every_phrase_of_the_tables_is_what_its_table_says(language):
    assert {read(phrase) for phrase in YES[language]} == {Answer.YES}
    assert {read(phrase) for phrase in NO[language]} == {Answer.NO}
    assert set(YES) == set(NO) == {"en", "es"}


@pytest.mark.parametrize("phrase", POLITE)
def test_a_polite_word_alone_means_nothing(phrase):
    assert read(phrase) is Answer.OTHER


every_yes = st.sampled_from([phrase for phrases in YES.values() for phrase in phrases])
words = st.text(alphabet="abcdefghijklmnopqrstuvwxyz áéíñ'?¿.,!", max_size=100)


@given(every_yes, st.sampled_from(["no", "not", "don't", "pero", "but", "never", "nunca"]))
def test_no_yes_survives_a_word_against_it(phrase, against):
    assert read(f"{phrase} {against}") is not Answer.YES
    assert read(f"{against} {phrase}") is not Answer.YES


@given(words)
def test_nothing_but_the_words_of_the_tables_is_a_yes(text):
    if read(text) is Answer.YES:
        said = set(text.casefold().replace(",", " ").replace(".", " ").replace("!", " ").split())
        known = {word for phrase in [*YES["en"], *YES["es"], *POLITE] for word in phrase.split()}
        assert {each.strip("'") for each in said} <= known | {""}
        assert "?" not in text


def _refuse(*_: object) -> None:
    raise AssertionError("a text that is too long was read")


# A text that must not be looked into: whatever reads a character of it fails the test.
READING = ("casefold", "__iter__", "__contains__", "__getitem__", "encode", "lower", "split")
Unread: Any = type("Unread", (str,), dict.fromkeys(READING, _refuse))


def test_what_is_too_long_is_not_even_read():
    assert read(Unread("a" * (TEXT_MAX + 1))) is Answer.OTHER


@pytest.mark.parametrize("mark", ["\uff1f", "\u061f", "\u037e"])
def test_a_question_mark_of_another_keyboard_makes_a_question(mark):
    assert read("yes" + mark) is Answer.OTHER


def test_an_accent_that_is_typed_as_two_characters_is_the_same_word():
    assert read(unicodedata.normalize("NFD", "déjalo")) is Answer.NO
