"""What is shown to a person has no power over where it is shown."""

import pytest

from landed.core.visible import is_hidden, line, lines


@pytest.mark.fault("X88")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ñ and 4\u202f800 €", "plain, ñ and 4\u202f800 €"),
        ("two\nlines\tand a tab", "two lines and a tab"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("bell\x07", "bell<U+0007>"),
        ("pay \u202eevil\u202c", "pay <U+202E>evil<U+202C>"),
        ("pay\u200bpal", "pay<U+200B>pal"),
        ("\u3164", "<U+3164>"),
        (48_000, "48000"),
    ],
)
def test_a_line_can_do_nothing_but_be_read(text: object, shown: str) -> None:
    assert line(text) == shown


def test_lines_stay_lines() -> None:
    assert lines("a\x07\nb") == ["a<U+0007>", "b"]


@pytest.mark.parametrize(("letter", "hidden"), [("a", False), (" ", False), ("\u200d", True)])
def test_a_letter_is_hidden_or_not(letter: str, hidden: bool) -> None:
    assert is_hidden(letter) is hidden
