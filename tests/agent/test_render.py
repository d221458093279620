"""Renderers: what each shows, and that a run which was stopped is never told as a success."""

import io
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable

import pytest
from rich.console import Console

from landed.agent.live import LiveRenderer
from landed.agent.loop import Event
from landed.agent.messages import (
    ABORTED,
    AssistantMessage,
    Message,
    assistant_message,
    error_message,
    text_block,
    text_of,
    tool_call,
    tool_result,
    user_message,
)
from landed.agent.render import FinalTextRenderer, JsonRenderer, Renderer, show
from landed.testing.stops.designs import ErrorsOnly
from tests.agent.simulated import simulated

CALL = tool_call("c1", "read", {"path": "naïve.py"})
ASKED = assistant_message(text_block("I look."), CALL)
ANSWER = assistant_message(text_block("An é."))
STOPPED = error_message(ABORTED, "aborted")
HALF: AssistantMessage = {
    "role": "assistant",
    "content": [text_block("An")],
    "stop_reason": "aborted",
    "error_message": ABORTED,
}


def ended(message: Message) -> Event:
    return {"type": "message_end", "message": message}


def a_run(*ends: Message, is_error: bool = False) -> list[Event]:
    """Return the events of a run of two turns with one call, which ends with these messages."""
    result = tool_result(CALL, "é = 1\nmore", is_error=is_error)
    return [
        {"type": "agent_start"},
        {"type": "turn_start"},
        ended(user_message("What is in it?")),
        ended(ASKED),
        {"type": "tool_execution_start", "call": CALL},
        ended(result),
        {"type": "tool_execution_end", "call": CALL, "result": result},
        {"type": "turn_end"},
        {"type": "turn_start"},
        *map(ended, ends),
        {"type": "turn_end"},
        {"type": "agent_end"},
    ]


def rendered(renderer: Renderer, events: Iterable[Event]) -> bool:
    for event in events:
        renderer.render(event)
    return renderer.finish()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# What they have in common.

ENDINGS = {
    "answered": (a_run(ANSWER), True),
    "stopped": (a_run(STOPPED), False),
    "stopped-halfway": (a_run(HALF), False),
    "failed": (a_run(error_message("overloaded")), False),
    "broken-off": (a_run()[:8], False),
    "before-a-reply": (a_run()[:3], False),
    "nothing": ([], False),
}


@pytest.mark.req("S2-86", "S2-87", "S2-88")
@pytest.mark.parametrize("ending", ENDINGS)
def test_each_renderer_is_a_fold_that_says_whether_it_ended_well(ending: str) -> None:
    events, is_well = ENDINGS[ending]
    every: list[Renderer] = [
        FinalTextRenderer(io.StringIO()),
        JsonRenderer(io.StringIO()),
        LiveRenderer(Console(file=io.StringIO())),
    ]
    assert [rendered(renderer, events) for renderer in every] == [is_well] * 3


@pytest.mark.req("S2-86")
def test_a_run_is_shown_as_it_comes() -> None:
    """The renderer has heard of each event before the run goes on."""
    heard: list[str] = []

    class Listening:
        def render(self, event: Event) -> None:
            heard.append(event["type"])

        def finish(self) -> bool:
            heard.append("finish")
            return True

    async def run() -> AsyncIterator[Event]:
        for number, event in enumerate(a_run(ANSWER)):
            assert len(heard) == number
            yield event

    assert simulated(show(run(), Listening()))
    assert heard == [*(event["type"] for event in a_run(ANSWER)), "finish"]


# One JSON line for each event.


@pytest.mark.req("S2-87")
def test_each_event_is_one_line_of_json_at_once() -> None:
    out = io.StringIO()
    renderer = JsonRenderer(out)
    for number, event in enumerate(a_run(ANSWER), 1):
        renderer.render(event)
        lines = out.getvalue().splitlines()
        assert len(lines) == number
        assert json.loads(lines[-1]) == event
    renderer.finish()
    assert len(out.getvalue().splitlines()) == number


@pytest.mark.req("S2-87")
@pytest.mark.parametrize("failed", [STOPPED, error_message("overloaded")])
def test_a_failure_in_an_earlier_run_is_not_forgotten(failed: Message) -> None:
    assert not rendered(JsonRenderer(io.StringIO()), [*a_run(failed), *a_run(ANSWER)])


# The answer and nothing else.


@pytest.mark.req("S2-88")
@pytest.mark.parametrize(
    ("ending", "printed"),
    [
        ("answered", "An é.\n"),
        ("stopped", "Error: Operation aborted\n"),
        ("stopped-halfway", "Error: Operation aborted\n"),
        ("failed", "Error: overloaded\n"),
        ("broken-off", "Error: the run ended before an answer\n"),
        ("nothing", "Error: the run ended before an answer\n"),
    ],
)
def test_nothing_is_printed_until_the_end_and_then_the_answer(ending: str, printed: str) -> None:
    out = io.StringIO()
    renderer = FinalTextRenderer(out)
    for event in ENDINGS[ending][0]:
        renderer.render(event)
    assert out.getvalue() == ""
    renderer.finish()
    assert out.getvalue() == printed


def test_a_terminal_is_shown_the_answer_without_its_power() -> None:
    sly = assistant_message(text_block("Done.\n\x1b[2J\x1b]0;title\x07\u202eevil"))
    piped, terminal = io.StringIO(), Terminal()
    rendered(FinalTextRenderer(piped), a_run(sly))
    rendered(FinalTextRenderer(terminal), a_run(sly))
    assert piped.getvalue() == text_of(sly) + "\n"
    assert "\x1b" not in terminal.getvalue()
    assert "<U+202E>evil" in terminal.getvalue()


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_what_an_output_cannot_spell_is_no_crash(encoding: str) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    assert rendered(FinalTextRenderer(out), a_run(assistant_message(text_block("é\ud83d!"))))
    out.seek(0)
    assert out.read() == ("é?!\n" if encoding == "utf-8" else "??!\n")


SCRIPT = """
import sys
from landed.agent.messages import assistant_message, error_message, text_block
from landed.agent.render import {renderer}
ends = {{
    "answered": assistant_message(text_block("Here.")),
    "stopped": error_message("Operation aborted", "aborted"),
}}
renderer = {renderer}()
renderer.render({{"type": "message_end", "message": ends["{ending}"]}})
sys.exit(0 if renderer.finish() else 1)
"""


@pytest.mark.req("S2-88")
@pytest.mark.parametrize("renderer", ["FinalTextRenderer", "JsonRenderer"])
def test_a_script_that_was_stopped_ends_with_another_code_than_zero(renderer: str) -> None:
    codes = {
        ending: subprocess.run(
            [sys.executable, "-c", SCRIPT.format(renderer=renderer, ending=ending)],
            capture_output=True,
            check=False,
        ).returncode
        for ending in ("answered", "stopped")
    }
    assert codes == {"answered": 0, "stopped": 1}


@pytest.mark.req("F2-12")
def test_a_renderer_that_knows_errors_only_tells_a_stop_as_an_empty_success() -> None:
    """The wrong design: it looks for "error", and finds nothing wrong with "aborted"."""

    out = io.StringIO()
    assert rendered(ErrorsOnly(out), a_run(STOPPED))
    assert out.getvalue() == "\n"
    out = io.StringIO()
    assert not rendered(FinalTextRenderer(out), a_run(STOPPED))
    assert out.getvalue() == "Error: Operation aborted\n"


# Live.


def drawn(events: Iterable[Event], *, is_terminal: bool = False) -> str:
    console = Console(file=io.StringIO(), width=80, force_terminal=is_terminal, color_system=None)
    rendered(LiveRenderer(console), events)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_a_live_run_is_told_in_order() -> None:
    assert drawn(a_run(ANSWER)) == (
        '> What is in it?\nI look.\n✓ read {"path": "naïve.py"}\nAn é.\n'
    )
    assert drawn(a_run(STOPPED, is_error=True)).splitlines()[2:] == [
        '✗ read {"path": "naïve.py"}',
        "  é = 1 more",
        "Error: Operation aborted",
    ]


def test_a_call_that_came_to_no_result_is_not_told_as_done() -> None:
    events = a_run()[:5]
    killed: Event = {"type": "tool_execution_end", "call": CALL}
    assert drawn([*events, killed]).splitlines()[2:] == [
        '✗ read {"path": "naïve.py"}',
        "Error: the run ended before an answer",
    ]


def test_on_a_terminal_what_runs_now_is_shown_and_taken_away_again() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    renderer = LiveRenderer(console)
    for event in a_run()[:5]:
        renderer.render(event)
    assert isinstance(console.file, io.StringIO)
    running = console.file.getvalue()
    assert running.rstrip().endswith('read {"path": "naïve.py"}')
    assert "\x1b[?25l" in running  # The cursor is hidden meanwhile,
    for event in a_run()[6:8]:
        renderer.render(event)
    other = tool_call("c2", "bash", {"command": "make"})
    renderer.render({"type": "tool_execution_start", "call": other})
    lines = console.file.getvalue().splitlines()
    assert any('✓ read {"path": "naïve.py"}' in each for each in lines)
    assert lines[-1].endswith('bash {"command": "make"}')
    assert "read" not in lines[-1]
    renderer.finish()
    shown, hidden = (console.file.getvalue().count(f"\x1b[?25{each}") for each in "hl")
    assert shown == hidden  # and there again, also after a stop.


def test_a_live_run_shows_what_others_wrote_without_its_power() -> None:
    sly = "[bold]no markup[/bold] \x1b[2J \u202e"
    call = tool_call("c2", "bash", {"command": sly})
    result = tool_result(call, sly, is_error=True)
    told = drawn(
        [
            ended(user_message(sly)),
            ended(assistant_message(text_block(sly), call)),
            {"type": "tool_execution_start", "call": call},
            ended(result),
            {"type": "tool_execution_end", "call": call, "result": result},
            ended(error_message(sly)),
        ]
    )
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert told.count("[bold]no markup[/bold]") == 5


def test_without_rich_the_other_renderers_work(tmp_path: object) -> None:
    """It is an extra; only the live one asks for it, when it is made."""
    script = (
        "import sys; sys.modules['rich'] = sys.modules['rich.console'] = None\n"
        "import landed.agent.live, landed.agent.render\n"
        "landed.agent.render.JsonRenderer(sys.stdout)\n"
        "try:\n    landed.agent.live.LiveRenderer()\n"
        "except ModuleNotFoundError as error:\n    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "landed[cli]" in ran.stdout
