"""What a chat shows: calls as they ended, the account as such, nothing that steers a terminal."""

import pytest

from landed.agent.loop import Account, Event
from landed.agent.messages import assistant_message, text_block, tool_call, tool_result
from landed.cli.chatting.showing import Lines, Quiet, Showing

CALL = tool_call("c1", "text", {"to": "Sam\x1b]0;x\x07"})
SAID = assistant_message(text_block("Done.\x1b[2J\r\u202e"))


def account(**more: object) -> Event:
    told: Account = {
        "turn": "t",
        "report": "Texted Sam.",
        "operations": ["op-1"],
        "questions": [],
        "unsupported": [("I called \x1b[31mBob.", "nobody was called")],
    }
    told.update(more)  # type: ignore[typeddict-item]
    return {"type": "account", "account": told}


def test_the_account_is_told_and_what_it_does_not_bear_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    showing = Showing(Lines())
    showing.event({"type": "message_end", "message": SAID})
    showing.event(account())
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "Done. <U+202E>",
        "| Texted Sam.",
        "! the records do not bear this out: “I called Bob.”: nobody was called",
    ]


@pytest.mark.parametrize(
    ("told", "is_error", "sign"),
    [({"p": "done"}, False, "✓"), ({"p": "proposed"}, False, "?"), ({}, True, "✗")],
)
def test_a_call_that_only_asked_is_not_shown_as_done(
    told: dict[str, str], is_error: bool, sign: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = tool_result(CALL, "so it is", is_error=is_error)
    event: Event = {"type": "tool_execution_end", "call": CALL, "result": {**result, "tells": told}}
    Showing(Lines()).event(event)
    said = capsys.readouterr().out
    assert said.startswith(f"{sign} text ")
    assert "\x1b" not in said


def test_an_answer_that_is_the_report_is_not_told_twice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    showing = Showing(Lines())
    showing.event({"type": "message_end", "message": assistant_message(text_block("Texted."))})
    showing.event(account(report="Texted.", unsupported=[]))
    assert capsys.readouterr().out == "Texted.\n"


def test_with_json_the_chat_itself_speaks_beside_the_events(
    capsys: pytest.CaptureFixture[str],
) -> None:
    showing = Showing(Quiet())
    showing.say("finishing what was left")
    showing.event(account())
    said = capsys.readouterr()
    assert said.err == "finishing what was left\n"
    assert said.out.startswith('{"type": "account"')
    assert len(said.out.splitlines()) == 1
