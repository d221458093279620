"""The picture of a timeline: lanes, bars and one time axis, and nothing that is not text in it."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import replace

import pytest

from landed.core.operation import State
from landed.testing.axis import axis_of
from landed.testing.doubts import stage as doubts
from landed.testing.doubts.scenarios import DOUBTS_BY_NAME
from landed.testing.invoices import stage as invoices
from landed.testing.invoices.scenarios import INVOICES_BY_NAME
from landed.testing.picture import BESIDE, document, inline, lane_of, told
from landed.testing.scenario import Ran, run
from landed.testing.scenarios import BY_NAME
from landed.testing.spans import Open, Span, spans
from landed.testing.timeline import Line

SERVICES = ("restaurant", "texts", "payments", "invoicing", "mailbox")
TOLD_OF = (
    *("revise-ops-lost", "fee-consent", "replacement-full-release-first"),
    *("unexplained-recovery", "changed-amount"),
    *("invoice-double-click", "invoice-deploy", "invoice-cancel"),
)
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</text><script>alert(1)</script>\"' onload=x \u202eevil\u202c\u200b \x1b[31mred\x00"


def lines_of(name: str) -> list[Line]:
    return run(BY_NAME[name]).timeline.lines


def parsed(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)


def texts_in(picture: str) -> list[str]:
    return ["".join(text.itertext()) for text in parsed(picture).iter(f"{SVG}text")]


def of(lines: Sequence[Line], kind: Open) -> list[Span]:
    return [span for span in spans(lines) if span.kind is kind]


def test_the_picture_is_a_document_with_a_lane_for_each_who_acts() -> None:
    texts = texts_in(document(lines_of("revise-in-flight"), title="<a & b>"))
    assert {"user", "agent", "restaurant", "texts", "<a & b>"} <= set(texts)


def test_what_was_in_doubt_is_a_bar_from_the_doubt_to_its_end() -> None:
    lines = lines_of("revise-in-flight")
    (doubt,) = of(lines, Open.DOUBT)
    assert lines[doubt.first].type == "tool.unknown"
    assert lines[doubt.last].text == "s1:op-a2: R1; key closed"


def test_what_was_owed_is_a_bar_from_its_record_to_the_undo() -> None:
    lines = lines_of("revise-in-flight")
    (owed,) = of(lines, Open.OWED)
    assert "owed if it landed" in lines[owed.first].text
    assert lines[owed.last].text == "T2 R1: done"


def test_a_look_that_found_nothing_and_a_resend_do_not_end_the_doubt() -> None:
    lines = lines_of("refused-resend")
    (doubt,) = of(lines, Open.DOUBT)
    assert lines[doubt.last].text.endswith("key closed")


def test_what_was_out_when_its_process_died_is_in_doubt_from_then_on() -> None:
    lines = lines_of("crash-after-commit")
    (doubt,) = of(lines, Open.DOUBT)
    assert lines[doubt.first].type == "crash"
    assert lines[doubt.last].state == State.CONFIRMED


def test_what_nobody_ever_knew_is_in_doubt_to_the_end() -> None:
    lines = lines_of("no-lookup")
    (doubt,) = of(lines, Open.DOUBT)
    assert doubt.last == len(lines) - 1


def test_an_agent_that_takes_a_stopped_wait_for_a_no_is_in_no_doubt() -> None:
    assert of(lines_of("revise-in-flight-naive"), Open.DOUBT) == []


def test_bars_that_overlap_stand_beside_each_other() -> None:
    lines = lines_of("revise-in-flight")
    doubt, owed = of(lines, Open.DOUBT)[0], of(lines, Open.OWED)[0]
    assert doubt.first <= owed.last
    assert owed.first <= doubt.last
    bars = [
        (rect.get("class"), rect.get("x"))
        for rect in parsed(document(lines, title="x")).iter(f"{SVG}rect")
        if rect.get("class") in ("doubt", "owed") and rect.get("rx")
    ]
    assert len({x for _, x in bars}) == len(bars) == 2


def ran(name: str) -> Ran:
    if name in BY_NAME:
        return run(BY_NAME[name])
    if name in DOUBTS_BY_NAME:
        return doubts.run(DOUBTS_BY_NAME[name])
    return invoices.run(INVOICES_BY_NAME[name])


@pytest.mark.parametrize("name", TOLD_OF)
def test_every_lane_is_of_the_user_the_agent_or_a_service(name: str) -> None:
    lanes = {lane_of(line) for line in ran(name).timeline.lines}
    assert lanes <= {"user", "agent", *SERVICES}


@pytest.mark.fault("X88")
def test_what_was_written_by_others_is_text_and_can_be_seen() -> None:
    lines = [
        replace(line, text=f"{line.text} {HOSTILE}", type=line.type)
        for line in lines_of("fee-consent")
    ]
    lines.append(replace(lines[0], type=f"evil {HOSTILE}", operation=HOSTILE, state="unknown"))
    for picture in (document(lines, title=HOSTILE), inline(lines, title=HOSTILE)):
        root = parsed(picture)
        assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
            *("svg", "style", "text", "line", "rect", "g", "title")
        }
        names = [name for each in root.iter() for name in each.attrib]
        assert not [name for name in names if name.startswith("on")]
        assert not re.search("[\u202e\u202c\u200b\x1b\x00]", picture)
        assert "<U+202E>" in "".join(root.itertext())


def test_a_line_that_is_too_long_is_cut_and_told_whole() -> None:
    lines = [Line(n=1, at_s=0.0, type="input", text="word " * 100 + "end")]
    root = parsed(inline(lines, title="x"))
    texts = [text for each in root.iter(f"{SVG}text") if (text := each.text)]
    (shown,) = [text for text in texts if text.startswith("word")]
    assert len(shown) == 62
    assert shown.endswith("…")
    assert [t.text for t in root.iter(f"{SVG}title")] == [f"input {lines[0].text}"]
    assert told(lines)[0].text == lines[0].text


def test_the_picture_of_a_page_has_no_style_of_its_own() -> None:
    picture = inline(lines_of("reply-lost"), title="x")
    assert "style" not in picture
    assert "<style>" in document(lines_of("reply-lost"), title="x")


def test_of_a_timeline_without_lines_there_is_a_picture_with_nothing_in_it() -> None:
    assert {"user", "agent"} <= set(texts_in(document([], title="x")))
    assert told([]) == ()


# One axis.


def test_two_runs_share_their_rows_as_long_as_they_go_the_same_way() -> None:
    right, naive = lines_of("revise-in-flight"), lines_of("revise-in-flight-naive")
    axis = axis_of(naive, right)
    same = next(n for n, pair in enumerate(zip(naive, right, strict=False)) if pair[0] != pair[1])
    assert same > 5
    assert axis.rows[0][:same] == axis.rows[1][:same]
    for lines, rows in zip((naive, right), axis.rows, strict=True):
        assert [axis.at_s[row] for row in rows] == [line.at_s for line in lines]
        assert list(rows) == sorted(set(rows))
    assert list(axis.at_s) == sorted(axis.at_s)


def test_pictures_on_one_axis_are_of_one_height() -> None:
    right, naive = lines_of("revise-in-flight"), lines_of("revise-in-flight-naive")
    axis = axis_of(naive, right)
    heights = {
        parsed(inline(lines, title="x", axis=axis, beside=n, look=BESIDE)).get("height")
        for n, lines in enumerate((naive, right))
    }
    assert len(heights) == 1
    assert heights != {parsed(inline(right, title="x")).get("height")}


def test_a_long_wait_between_two_rows_is_drawn() -> None:
    root = parsed(inline(lines_of("request-delayed"), title="x"))
    waits = [each.text for each in root.iter(f"{SVG}title") if each.text]
    assert any(text.startswith("+ ") for text in waits)


def test_a_row_of_the_table_says_what_was_in_doubt_and_owed_then() -> None:
    lines = lines_of("revise-in-flight")
    (doubt,) = of(lines, Open.DOUBT)
    for index, row in enumerate(told(lines)):
        assert (row.in_doubt == (doubt.what,)) == (doubt.first <= index <= doubt.last)
