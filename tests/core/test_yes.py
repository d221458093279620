"""What counts as a yes, phrase by phrase in both languages, and what never does."""

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.preview import typed_count
from landed.core.yes import TEXT_MAX, WORDS_MAX, Answer, Reading, read, read_answer
from landed.core.yes_words import NO, NUMBERED, POLITE, THUMB, YES
from tests.core.yes_corpus import messages, plain

YESES = """
yes
Yes.
YES!
yes!!!
yes, please
Yes please.
yes yes
yes, go ahead
Yes, I confirm.
please do
please, go ahead
please do it
yes, please do it
go ahead
Go ahead, please!
do it
confirm
Confirmed.
I confirm
I confirm it.
approve
approved
I approve
proceed
Yes, proceed.
yes, thanks
yes thank you
yes, approved, go ahead
yes 👍
yes 👍🏽
👍 yes
sí
Sí.
SÍ
¡Sí!
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
confirmar
apruebo
aprobar
aprobado
procede
hazlo
hazlo, por favor
sí, hazlo
sí 🙏
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
no, don't
no, don't do it
please don't
do not
Do not do it, please.
decline
reject
keep it
no, keep it
no, gracias
no lo hagas
No, no lo hagas, por favor.
mejor no
no, mejor no
rechazo
rechazar
déjalo
no, déjalo
consérvalo
"""

# A number with something wrong about it.
NO_NUMBERS = """
1
#1
nº 1
number 1
1 yes
yes 1 2
yes 0
yes 01
yes 1000
yes number
No. 2
no. #2
No.\u00a02
yes number #1
yes number number 1
yes 1st
yes1
please 1
👍 1
"""

# What does not count where 3, DELETE or BORRAR has to be typed.
NOT_TYPED = r"""
sí
yes
confirm
4
33
03
3.
3 3
yes 3
sí, 3
confirm 3
3, please
delete 3
delete them
"DELETE"
> DELETE
DELETE?
don't DELETE
no, delete
dele\u200bte
D\u0415LETE
\uff13
\u0663
\u00b3
delet\u00e9
"""


def phrases(table: str) -> list[str]:
    return table.strip().splitlines()


def parts(*kinds: str) -> list[str]:
    return [each.text for each in messages() if each.kind in kinds]


# The tables of answers.


@pytest.mark.req("S1-24")
def test_the_tables_are_long_enough_to_mean_something():
    assert len(set(phrases(YESES))) >= 40
    assert len(set(phrases(NOES))) >= 20


@pytest.mark.req("S1-24")
@pytest.mark.parametrize("text", phrases(YESES))
def test_a_yes_is_made_of_yes_words(text):
    assert read(text) is Answer.YES
    assert read_answer(text) == Reading(answer=Answer.YES)


@pytest.mark.req("S1-24")
@pytest.mark.parametrize("text", phrases(NOES))
def test_a_no_is_read_as_strictly(text):
    assert read(text) is Answer.NO
    assert read_answer(text) == Reading(answer=Answer.NO)


@pytest.mark.parametrize("language", YES)
def test_every_phrase_of_the_tables_is_what_its_table_says(language):
    assert {read(phrase) for phrase in YES[language]} == {Answer.YES}
    assert {read(phrase) for phrase in NO[language]} == {Answer.NO}
    assert set(YES) == set(NO) == {"en", "es"}


@pytest.mark.req("S1-24")
def test_no_phrase_stands_for_both_and_no_yes_has_a_word_of_a_no():
    yes = {phrase for table in YES.values() for phrase in table}
    no = {phrase for table in NO.values() for phrase in table}
    assert not yes & no
    assert not {"no", "not", "don't", "pero", "but"} & {w for phrase in yes for w in phrase.split()}


@pytest.mark.parametrize("phrase", [*POLITE, THUMB])
def test_a_polite_word_alone_means_nothing(phrase):
    assert read(phrase) is Answer.OTHER


@pytest.mark.parametrize("text", ["", " ", "\n", "_", "...", "!", "¡", "\u00a0"])
def test_to_say_nothing_is_no_answer(text):
    assert read(text) is Answer.OTHER


# What is no answer at all: the corpus.


def test_the_corpus_is_broad_enough_to_mean_something():
    texts = {each.text for each in messages()}
    languages = [each.language for each in messages()]
    often = {language for language in languages if languages.count(language) >= 15}
    assert len(texts) >= 600
    assert often >= {"en", "es", "fr", "de", "it", "pt", "zh", "ja", "ru", "ar"}


@pytest.mark.fault("X86")
@pytest.mark.field("C22", "C23", "C25")
@pytest.mark.req("S1-24")
@pytest.mark.parametrize("kind", sorted({each.kind for each in messages()}))
def test_no_message_of_the_corpus_is_an_answer_typed_words_or_not(kind):
    for text in parts(kind):
        assert read(text) is Answer.OTHER, text
        for typed in ((), typed_count(3)):
            assert read_answer(text, typed=typed) == Reading(answer=Answer.OTHER), text


def folded(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKC", text) if c.isprintable()).casefold()


# Readers that others have written, and what each is fooled by.
NAIVE: dict[str, Callable[[str], bool]] = {
    "holds a yes": lambda text: "yes" in text.casefold(),
    "holds allow": lambda text: "allow" in text.casefold(),
    "has a yes among its words": lambda text: bool({"yes", "sí"} & {*text.casefold().split()}),
    "begins with a yes": lambda text: text.casefold().startswith(("yes", "sí", "ok")),
    "begins with a y": lambda text: text[:1].casefold() == "y",
    "is folded first": lambda text: folded(text) != text and read(folded(text)) is Answer.YES,
    "is stripped of quotes": lambda text: read(text.strip("\"'>“”‘’«»()[]*_` ")) is Answer.YES,
    "is read line by line": lambda text: any(read(t) is Answer.YES for t in text.splitlines()),
    "is stripped of signs": lambda text: read("".join(filter(str.isalpha, text))) is Answer.YES,
    "is stripped of numbers": lambda text: read(text.rstrip("0123456789 .,-")) is Answer.YES,
    "is stripped of questions": lambda text: read(text.strip("?¿")) is Answer.YES,
}


@pytest.mark.parametrize("reader", NAIVE)
def test_every_naive_reader_is_fooled_by_the_corpus(reader):
    assert any(NAIVE[reader](each.text) for each in messages())


@pytest.mark.field("C22")
@pytest.mark.parametrize("text", ["disallow", "cannot approve", "note", "yesterday", "unconfirmed"])
def test_a_yes_or_a_no_inside_a_longer_word_is_none(text):
    assert read(text) is Answer.OTHER


@pytest.mark.field("C23")
@pytest.mark.parametrize(
    "text",
    ["no, don't approve", "yes and no", "yes, no", "no, sí", "do you confirm?", "¿confirmo?"],
)
def test_negations_both_words_and_questions_answer_nothing(text):
    assert read(text) is Answer.OTHER


@pytest.mark.field("C24")
@pytest.mark.parametrize(
    "text", ["yes to the other one", "I said yes to the other one", "confirmo la otra", "yes to A"]
)
def test_a_yes_that_names_another_question_in_words_is_none(text):
    assert read(text) is Answer.OTHER


@pytest.mark.field("C25")
@pytest.mark.parametrize("filler", ["ok", "okay", "well", "sure", "bueno", "vale", "so", "right"])
@pytest.mark.parametrize("language", YES)
def test_a_word_that_is_only_a_filler_makes_no_yes(filler, language):
    assert read(filler) is Answer.OTHER
    for phrase in YES[language]:
        if phrase.split()[0] != filler:
            assert read(f"{phrase}, but {filler}") is Answer.OTHER
            assert read(f"{phrase}, {filler}") is Answer.OTHER


# Numbers and typed words.


@pytest.mark.field("C25")
@pytest.mark.parametrize(
    ("text", "answer", "number"),
    [
        ("confirm 1", Answer.YES, 1),
        ("Confirm 1.", Answer.YES, 1),
        ("sí, 2", Answer.YES, 2),
        ("yes 3", Answer.YES, 3),
        ("yes #3", Answer.YES, 3),
        ("confirm number 12", Answer.YES, 12),
        ("sí, nº 2", Answer.YES, 2),
        ("sí, n° 2", Answer.YES, 2),
        ("sí, nº2", Answer.YES, 2),
        ("confirmo, número 999", Answer.YES, 999),
        ("aprobar 1", Answer.YES, 1),
        ("vale, adelante, 4", Answer.YES, 4),
        ("no 2", Answer.NO, 2),
        ("no, 2", Answer.NO, 2),
        ("rechazar 2", Answer.NO, 2),
        ("decline #2", Answer.NO, 2),
    ],
)
def test_an_answer_with_a_number_names_its_question(text, answer, number):
    assert read_answer(text) == Reading(answer=answer, number=number)


@pytest.mark.field("C24", "C25")
@pytest.mark.parametrize("text", ["confirm 1", "yes 3", "sí, 2", "no 2"])
def test_where_no_question_has_a_number_one_that_names_a_number_answers_none(text):
    assert read(text) is Answer.OTHER


@pytest.mark.parametrize("text", phrases(NO_NUMBERS))
def test_a_number_stands_after_a_whole_answer_and_alone(text):
    assert read_answer(text) == Reading(answer=Answer.OTHER)


@pytest.mark.req("S1-26")
@pytest.mark.parametrize("text", ["3", "DELETE", "delete", "Delete", " BORRAR\n", "borrar"])
def test_one_of_the_typed_words_is_the_yes_where_they_are_asked_for(text):
    assert read_answer(text, typed=typed_count(3)) == Reading(answer=Answer.YES)
    assert read(text) is Answer.OTHER


@pytest.mark.req("S1-26")
@pytest.mark.parametrize("text", ["", *map(plain, phrases(NOT_TYPED))])
def test_nothing_else_is_a_yes_where_words_have_to_be_typed(text):
    assert read_answer(text, typed=typed_count(3)) == Reading(answer=Answer.OTHER)


@pytest.mark.req("S1-26")
@pytest.mark.parametrize("text", phrases(NOES))
def test_a_no_needs_no_typing(text):
    assert read_answer(text, typed=typed_count(3)) == Reading(answer=Answer.NO)


@pytest.mark.req("S1-26")
@pytest.mark.parametrize("text", phrases(YESES))
def test_no_plain_yes_is_one_where_words_have_to_be_typed(text):
    assert read_answer(text, typed=typed_count(3)) == Reading(answer=Answer.OTHER)


@pytest.mark.parametrize("typed", [("",), (" ",), ("\n", "DELETE"), ("\u212a",)])
@pytest.mark.parametrize("text", ["", " ", "\n", "\u212a"])
def test_an_empty_word_to_type_is_never_typed(text, typed):
    assert read_answer(text, typed=typed) == Reading(answer=Answer.OTHER)


def test_a_typed_word_may_have_accents_and_be_typed_in_either_form():
    for form in ("NFC", "NFD"):
        said = unicodedata.normalize(form, "vacía")
        assert read_answer(said, typed=("VACÍA",)).answer is Answer.YES
    assert read_answer("vacia", typed=("VACÍA",)).answer is Answer.OTHER
    assert read_answer("\u017fi", typed=("SI",)).answer is Answer.OTHER
    assert read_answer("strasse", typed=("STRAßE",)).answer is Answer.OTHER


# Bounds: X73.


@pytest.mark.fault("X73")
@pytest.mark.req("S1-24")
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (" ".join(["yes"] * WORDS_MAX), Answer.YES),
        (" ".join(["yes"] * (WORDS_MAX + 1)), Answer.OTHER),
        ("yes" + " " * (TEXT_MAX - 3), Answer.YES),
        ("yes" + " " * (TEXT_MAX - 2), Answer.OTHER),
        ("yes" + "!" * (TEXT_MAX - 3), Answer.YES),
    ],
)
def test_a_yes_has_six_words_at_most_and_is_short(text, answer):
    assert read(text) is answer


def test_the_number_is_one_of_the_six_words():
    assert read_answer("yes yes yes yes yes 1").number == 1
    assert read_answer("yes yes yes yes yes yes 1").answer is Answer.OTHER


def _refuse(*_: object) -> None:
    raise AssertionError("a text that is too long was read")


# A text that must not be looked into: whatever reads a character of it fails the test.
READING = ("casefold", "__iter__", "__contains__", "__getitem__", "encode", "lower", "split")
ALSO = ("strip", "translate", "startswith", "__eq__", "__hash__", "replace", "upper")
Unread: Any = type("Unread", (str,), dict.fromkeys(READING + ALSO, _refuse))


@pytest.mark.fault("X73")
def test_what_is_too_long_is_not_even_read():
    assert read(Unread("a" * (TEXT_MAX + 1))) is Answer.OTHER
    assert read_answer(Unread("3" * (TEXT_MAX + 1)), typed=("3",)).answer is Answer.OTHER
    with pytest.raises(AssertionError, match="was read"):
        read(Unread("a" * TEXT_MAX))


@pytest.mark.fault("X73")
@pytest.mark.parametrize(
    "unit", ["yes ", "a", "no. ", "no.", "si\u0301", "\u0301", ". ", "'", "1 "]
)
def test_what_is_repeated_without_end_is_no_answer(unit):
    for times in (100, 10_000, 1_000_000):
        assert read(unit * times) is Answer.OTHER


# Characters.


def test_an_accent_that_is_typed_as_two_characters_is_the_same_word():
    assert read(unicodedata.normalize("NFD", "déjalo")) is Answer.NO
    assert read(unicodedata.normalize("NFD", "Sí, adelante")) is Answer.YES


@pytest.mark.parametrize("mark", "?¿;\u037e\u061f\uff1f\u055e\u1367\ua60f\u203d\u2047\u2753\u2e2e")
def test_a_question_mark_of_any_keyboard_makes_a_question(mark):
    assert read("yes" + mark) is Answer.OTHER
    assert read("yes " + mark) is Answer.OTHER


EVERY = [chr(code) for code in range(0x110000)]
INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Mn", "Me", "Mc", "Zl", "Zp", "Zs")
KNOWN = {*"\t \u00a0.,!¡\r\n"}


@pytest.mark.fault("X86")
def test_no_character_without_a_face_hides_in_a_yes():
    for each in EVERY:
        category = unicodedata.category(each)
        if category == "Co" and ord(each) % 61:
            continue  # The private ones are all alike.
        if category in INVISIBLE and each not in KNOWN:
            for text in (f"y{each}es", f"yes{each}", f"{each}yes", f"yes{each}adelante"):
                assert read(text) is Answer.OTHER, ascii(text)


@pytest.mark.fault("X86")
def test_no_character_becomes_a_letter_of_a_yes_by_being_folded():
    letters_of_it = {*"yesínofrm", *"YESÍNOFRM"}
    for each in EVERY:
        folds = unicodedata.normalize("NFKC", each).casefold(), each.lower(), each.upper()
        if each not in letters_of_it and letters_of_it & {*"".join(folds)}:
            for letter in "yesíconfirm":
                for phrase in ("yes", "sí", "confirm"):
                    if letter in phrase and letter not in each:
                        text = phrase.replace(letter, each)
                        assert read(text) is Answer.OTHER, ascii(text)


# Properties.

every_yes = st.sampled_from([phrase for phrases in YES.values() for phrase in phrases])
every_no = st.sampled_from([phrase for phrases in NO.values() for phrase in phrases])
WORDS = {
    word
    for table in (YES, NO, NUMBERED, {"": POLITE})
    for phrases in table.values()
    for phrase in phrases
    for word in phrase.split()
} | {THUMB}
letters = st.text(st.characters(categories=["L", "M", "N", "P", "S", "C"]), min_size=1, max_size=12)
keyboard = st.text("abcdefghijklmnopqrstuvwxyzáéíñ'", min_size=1, max_size=12)
# A mark is no word, and a number after a yes names a question.
MARKS = {*".,!¡", *"\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"}
outside = (keyboard | letters).filter(
    lambda word: (
        not {*word} <= MARKS
        and not any(part in WORDS for part in split_at_marks(word))
        and not any(each.isdigit() for each in word)
        and not word.isspace()
    )
)


def split_at_marks(word: str) -> list[str]:
    marked = word.casefold().replace("’", "'")
    parted = "".join(" " if each in MARKS else each for each in marked)
    return unicodedata.normalize("NFC", parted).split()


@pytest.mark.fault("X86")
@pytest.mark.field("C22", "C25")
@given(every_yes | every_no, outside, st.sampled_from([" ", ", ", ". ", "! "]))
def test_any_word_outside_the_tables_makes_an_answer_none(phrase, word, between):
    assert read(f"{phrase}{between}{word}") is Answer.OTHER
    assert read(f"{word}{between}{phrase}") is Answer.OTHER
    assert read_answer(f"{phrase} {word} 1").answer is Answer.OTHER


@pytest.mark.field("C23")
@given(every_yes, st.sampled_from(["no", "not", "don't", "pero", "but", "never", "nunca"]))
def test_no_yes_survives_a_word_against_it(phrase, against):
    assert read(f"{phrase} {against}") is not Answer.YES
    assert read(f"{against} {phrase}") is not Answer.YES
    assert read_answer(f"{phrase} {against} 1").answer is not Answer.YES


@pytest.mark.field("C23")
@given(every_yes, every_no)
def test_both_answers_in_one_message_are_none(yes, no):
    assert read(f"{yes} {no}") is Answer.OTHER
    if f"{no} {yes}" not in NO["en"]:  # "don't" and "do it" are "don't do it", however they part
        assert read(f"{no} {yes}") is Answer.OTHER


@pytest.mark.fault("X86")
@given(every_yes, st.sampled_from(['"{}"', "'{}'", "«{}»", "“{}”", "> {}", "Fwd: {}", "x:\n{}"]))
def test_no_quoted_or_forwarded_yes_is_one(phrase, quote):
    assert read(quote.format(phrase)) is Answer.OTHER
    assert read_answer(quote.format("DELETE"), typed=("DELETE",)).answer is Answer.OTHER


@given(st.text("abcdefghijklmnopqrstuvwxyz áéíñ'?¿.,!", max_size=100) | st.text(max_size=100))
def test_nothing_but_the_words_of_the_tables_is_a_yes(text):
    if read(text) is Answer.YES:
        assert set(split_at_marks(text)) <= WORDS
        assert "?" not in text


@given(st.text(max_size=100), st.lists(st.text(max_size=10), max_size=3).map(tuple))
def test_every_text_is_read_without_an_error(text, typed):
    assert read_answer(text, typed=typed).answer in Answer
