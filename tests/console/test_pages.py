"""Every page for everybody: whole in both languages, and whatever stands in it is text."""

import re
import string
from collections.abc import Iterable
from pathlib import Path

import pytest

from landed.console.pages import PAGES
from landed.console.shown import amount, moment, plain, visible
from landed.console.words import LANGUAGES, WORDS
from landed.server.auth import Role
from tests.console.pressing import Console, run

TEMPLATES = Path(__file__).parents[2] / "src/landed/console/templates"
MARKUP = "<script>window.pwned=1</script><img src=x onerror=alert(1)>\"'`{{7*7}}"
TURNED = "safe\u202egnp.exe\u200b\ufeff\x1b[31m\x00 p\u0430ypal"
SOURCES = {path.name: path.read_text("utf-8") for path in sorted(TEMPLATES.glob("*.html"))}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("who", ["ana", "boss"])
def test_every_page_is_whole_for_everybody_who_may_be_there(who: str, language: str) -> None:
    async def script(here: Console) -> None:
        plan = await here.refund(who=who)
        await here.propose("draft", what="one", who=who)
        await here.propose("draft", what="one", who=who)
        heard = await here.rt.receive("Mail Bo", principal=who, tenant="acme", session="s")
        question = await here.rt.ask(heard, "Which Bo?")
        case = await here.rt.perform("mail", {"to": "bo"}, ask=heard.ask("c"))
        named = {"plans": plan.plan, "questions": question, "cases": case.operation}
        paths = ["/waiting", "/running", "/done"]
        paths += [f"/{noun}/{id}" for noun, id in named.items()]
        for path in paths:
            answer = await here.visitors.get(path, who=who)
            if path.startswith("/cases") and who == "ana":
                assert answer.status_code == 403
                continue
            page = await here.page(path, who=who)
            assert page.one("html").attributes["lang"] == language
            assert len(page.all("h1")) == 1, path
            assert len(page.all("main")) == len(page.all("nav")) == 1
            ids = [each.attributes["id"] for each in page.elements if "id" in each.attributes]
            assert len(ids) == len(set(ids)), path

    run(script, language=language)


def test_each_page_asks_for_a_person_unless_it_is_for_signing_in() -> None:
    for page in PAGES:
        assert page.open is (page.path == "/sign-in")
        assert page.role in (Role.PERSON, Role.ADMIN)
        assert page.method in ("GET", "POST")


@pytest.mark.fault("X88")
@pytest.mark.parametrize("hostile", [MARKUP, TURNED], ids=["markup", "turned"])
def test_whatever_stands_in_an_argument_is_text(hostile: str) -> None:
    async def script(here: Console) -> None:
        await here.propose("erase", what=hostile)
        made = await here.propose("draft", what=hostile)
        await here.rt.receive(hostile, principal="ana", tenant="acme", session="s")
        for path in ("/waiting", "/done", f"/plans/{made.plan}"):
            page = await here.page(path)
            assert not page.all("img")
            assert all("src" in each.attributes and not each.words for each in page.all("script"))
            assert not any(name.startswith("on") for e in page.elements for name in e.attributes)
            for hidden in "\u202e\u200b\ufeff\x1b\x00\u0430":
                assert hidden not in page.text
        if hostile is MARKUP:
            assert "<script>window.pwned=1</script>" in page.words
            assert "{{7*7}}" in page.words
        else:
            assert "safe<U+202E>gnp.exe<U+200B>" in page.words
            assert "p<U+0430>ypal" in page.words

    run(script)


@pytest.mark.fault("X87")
def test_long_arguments_come_after_the_figures_and_the_buttons() -> None:
    async def script(here: Console) -> None:
        await here.propose("big_refund", invoice="y" * 15_000, amount_cents=48000)
        text = (await here.page("/waiting")).text
        figures, button = text.index("Refund 48000 cents"), text.index(">Approve<")
        assert figures < button < text.index("y" * 100)
        before = text[: text.index("y" * 100)]
        assert "<details>" in before

    run(script)


@pytest.mark.parametrize("name", SOURCES)
def test_no_template_has_an_inline_script_a_style_or_a_handler(name: str) -> None:
    source = SOURCES[name]
    assert not re.search(r"<style|\sstyle\s*=|\son[a-z]+\s*=|hx-on|javascript:", source)
    assert all(re.search(r'\ssrc="', tag) for tag in re.findall(r"<script[^>]*>", source))
    assert not re.search(r"\|\s*safe|autoescape|https?://", source)
    assert all(
        'method="post"' in form or 'method="get"' in form
        for form in re.findall(r"<form[^>]*>", source)
    )


def test_the_words_are_there_in_both_languages_with_the_same_fields() -> None:
    for key, both in WORDS.items():
        assert len(both) == len(LANGUAGES)
        assert bool(both[0].strip()) == bool(both[1].strip()), key
        fields = [{name for _, name, _, _ in string.Formatter().parse(text)} for text in both]
        assert fields[0] == fields[1], key


def test_the_words_that_templates_ask_for_are_there() -> None:
    for name, source in SOURCES.items():
        for key in re.findall(r"""say\(["']([a-z_.-]+)["'][,)]""", source):
            assert key in WORDS, (name, key)


def test_states_rulings_and_problems_have_words() -> None:
    from landed.core.approval import Problem
    from landed.core.case import CaseState, Ruling, Why
    from landed.core.operation import Source, State
    from landed.core.plan import At, PlanState
    from landed.server.problems import KINDS

    told: dict[str, Iterable[str]] = {
        "state": PlanState,
        "at": At,
        "is": [*State, *CaseState],
        "case.why": Why,
        "rule": Ruling,
        "source": Source,
        "not": set(Problem) - {Problem.NONE, Problem.NOT_AGREED, Problem.MISMATCH},
        "problem": ["absent", "forbidden", "elsewhere", "malformed", "ours", "store", "invalid"],
    }
    for place, names in told.items():
        assert {f"{place}.{name}" for name in names} <= set(WORDS), place
    assert set(KINDS) >= {key.partition(".")[2] for key in WORDS if key.startswith("problem.")} - {
        "back"
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, café — “so” 5 €", "plain text, café — “so” 5 €"),
        ("Привет, 日本", "Привет, 日本"),
        ("a\u202eb", "a<U+202E>b"),
        ("p\u0430ypal", "p<U+0430>ypal"),
        ("line\none", "line\none"),
        ("no\u00a0break", "no<U+00A0>break"),
        ("e\u0301\u0301\u0301\u0301", "e\u0301\u0301<U+0301><U+0301>"),
        (None, ""),
        (7, "7"),
    ],
)
def test_what_hides_is_shown_and_what_is_written_stays(text: object, shown: str) -> None:
    assert visible(text) == shown


def test_figures_have_one_form() -> None:
    assert [amount(cents) for cents in (0, 5, 123_456, -9_99, None)] == [
        *("0.00", "0.05", "1,234.56", "-9.99", ""),
    ]
    assert moment(0.0) == ""
    assert moment(1_800_000_000.9) == "2027-01-15 08:00:00 UTC"
    assert plain({"a": [1, None]}) == '{"a": [1, null]}'
    assert len(str(visible("x" * 100_000))) < 20_100
