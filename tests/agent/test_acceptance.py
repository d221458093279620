"""What the finished harness can do, in fifteen sentences, each from end to end.

A real provider's wire (a scripted one answers, and refuses what providers refuse), real files, a
real shell, a log on the disk.
"""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from landed.agent.bash import LocalShell, bash_tool
from landed.agent.briefing import build_system_prompt, discover_project_files, discover_skills
from landed.agent.button import Button, Pressed
from landed.agent.compaction import maybe_compact
from landed.agent.files import Folder, file_tools
from landed.agent.guard import allow_only, guard
from landed.agent.harness import Harness
from landed.agent.loop import Limits
from landed.agent.messages import ABORTED, Message, text_of
from landed.agent.render import FinalTextRenderer, JsonRenderer, show
from landed.agent.repair import INTERRUPTED
from landed.agent.session_log import SessionLog, persist_to, repair_tail
from landed.testing.provider import Called, Protocol, Reply
from landed.testing.provider_inline import InlineProvider
from landed.testing.shapes import shape
from landed.testing.ticks import Background, driven, tick
from tests.agent.far import result_of
from tests.agent.speaking import PROTOCOLS, model_of

pytestmark = pytest.mark.req("S2-104")

SOON_S = 30.0
BRIEFED_ON = date(2026, 11, 30)


@dataclass(slots=True, eq=False)
class Desk:
    """A harness with its provider, its folder and its log."""

    there: InlineProvider
    harness: Harness
    log: SessionLog

    def asked(self, nth: int = -1) -> str:
        """Return a request as it came to the provider."""
        return json.dumps(self.there.received[nth].body, ensure_ascii=False)


@pytest.fixture(params=PROTOCOLS)
def protocol(request: Any) -> Protocol:
    """Give the protocol that is spoken."""
    return request.param


def desk(protocol: Protocol, folder: Path, *replies: Reply, **options: Any) -> Desk:
    """Set a harness up in a folder, over a provider that follows this script."""
    there = InlineProvider(*replies, forever=Reply(text="Yes?"))
    bash = bash_tool(LocalShell(folder))
    check = options.pop("check", None)
    tools = (*file_tools(Folder(folder)), guard(bash, check) if check else bash)
    log = SessionLog(folder / "session.jsonl", sync="system")
    harness = Harness(
        model=model_of(protocol, there),
        tools=tools,
        messages=log.replay(),
        **options,
    )
    harness.subscribe(persist_to(log))
    return Desk(there=there, harness=harness, log=log)


def calls(*called: tuple[str, dict[str, Any]]) -> Reply:
    """Return a reply that asks for these calls, c1, c2, …"""
    return Reply(
        calls=tuple(
            Called(id=f"c{n}", name=name, arguments=arguments)
            for n, (name, arguments) in enumerate(called, 1)
        )
    )


def ran(program: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SOON_S):
            await program()

    asyncio.run(bounded())


def test_01_it_holds_a_conversation(protocol: Protocol, tmp_path: Path) -> None:
    async def program() -> None:
        at = desk(protocol, tmp_path, Reply(text="Hello, Ana."), Reply(text="You said hello."))
        await driven(at.harness.prompt("Hello, I am Ana."))
        await driven(at.harness.prompt("What did I say?"))
        assert shape(at.harness.messages) == "U A U A"
        for said in ("Hello, I am Ana.", "Hello, Ana.", "What did I say?"):
            assert said in at.asked()

    ran(program)


def test_02_it_uses_a_tool(protocol: Protocol, tmp_path: Path) -> None:
    async def program() -> None:
        (tmp_path / "a.txt").write_text("the café is shut\n")
        at = desk(protocol, tmp_path, calls(("read", {"path": "a.txt"})), Reply(text="Shut."))
        await driven(at.harness.prompt("Is it open?"))
        assert shape(at.harness.messages) == "U A[c1] R(c1) A"
        assert "the café is shut" in at.asked()

    ran(program)


def test_03_it_goes_on_until_the_work_is_done(protocol: Protocol, tmp_path: Path) -> None:
    async def program() -> None:
        at = desk(
            protocol,
            tmp_path,
            calls(("write", {"path": "sum.sh", "content": "echo $((6*7))\n"})),
            Reply(calls=(Called(id="c2", name="bash", arguments={"command": "sh sum.sh"}),)),
            Reply(text="It is 42."),
        )
        await driven(at.harness.prompt("Write a sum and run it."))
        assert shape(at.harness.messages) == "U A[c1] R(c1) A[c2] R(c2) A"
        assert result_of(at.harness.messages, "c2") == "42"

    ran(program)


def test_04_a_tool_that_fails_is_told_and_the_run_goes_on(
    protocol: Protocol, tmp_path: Path
) -> None:
    async def program() -> None:
        at = desk(
            protocol,
            tmp_path,
            calls(("read", {"path": "none.txt"}), ("fly", {}), ("read", {"path": 5})),
            Reply(text="There is none."),
        )
        await driven(at.harness.prompt("Read it."))
        record = at.harness.messages
        assert "none.txt" in result_of(record, "c1")
        assert result_of(record, "c2") == "Tool fly not found"
        assert result_of(record, "c3") == "path must be a string"
        assert shape(record, errors=True).endswith("R(c1 error) R(c2 error) R(c3 error) A")

    ran(program)


def test_05_a_runaway_is_stopped_and_a_provider_that_fails_is_survived(
    protocol: Protocol, tmp_path: Path
) -> None:
    async def program() -> None:
        there = [calls(("bash", {"command": "true"}))] * 3
        at = desk(protocol, tmp_path, *there, limits=Limits(max_turns=3))
        await driven(at.harness.prompt("For ever."))
        assert at.harness.messages[-1].get("error_message") == "Agent stopped after max_turns=3"
        assert len(at.there.received) == 3
        at.there.say(Reply(status=400, says="not today"), Reply(text="Back again."))
        await driven(at.harness.prompt("And?"))
        assert shape(at.harness.messages).endswith("U A(error)")
        await driven(at.harness.prompt("And now?"))
        assert text_of(at.harness.messages[-1]) == "Back again."

    ran(program)


def test_06_no_result_is_longer_than_its_budget(protocol: Protocol, tmp_path: Path) -> None:
    async def program() -> None:
        (tmp_path / "long.txt").write_text("".join(f"line {n}\n" for n in range(5_000)))
        at = desk(
            protocol,
            tmp_path,
            calls(("read", {"path": "long.txt"}), ("bash", {"command": "cat long.txt"})),
        )
        await driven(at.harness.prompt("Read it, twice."))
        head, tail = (result_of(at.harness.messages, id) for id in ("c1", "c2"))
        assert "Use offset=2001" in head
        assert "line 4999" not in head
        assert "line 4999" in tail
        assert "[Showing the last 2000 of 5000 lines." in tail

    ran(program)


def test_07_any_frontend_can_show_it(protocol: Protocol, tmp_path: Path) -> None:
    async def program() -> None:
        at = desk(protocol, tmp_path, Reply(text="Ready."), Reply(status=400, says="no"))
        shown, lines, failed = io.StringIO(), io.StringIO(), io.StringIO()
        heard: list[str] = []
        at.harness.observe(lambda event: heard.append(event["type"]))
        assert await show(at.harness.prompt("Go."), JsonRenderer(lines)) is True
        assert [json.loads(line)["type"] for line in lines.getvalue().splitlines()] == heard
        assert await show(at.harness.prompt("Go."), FinalTextRenderer(failed)) is False
        assert failed.getvalue().startswith("Error: ")
        assert await show(at.harness.prompt("Go."), FinalTextRenderer(shown)) is True
        assert shown.getvalue() == "Yes?\n"

    ran(program)


def test_08_there_is_one_writer(protocol: Protocol, tmp_path: Path) -> None:
    async def program() -> None:
        at = desk(protocol, tmp_path, calls(("bash", {"command": "sleep 600"})))
        background = Background(at.harness.prompt("Wait."))
        await background.until("tool_execution_start")
        with pytest.raises(RuntimeError, match="already running; use steer"):
            at.harness.prompt("Me too.")
        with pytest.raises(RuntimeError):
            at.harness.replace_messages([])
        assert isinstance(at.harness.messages, tuple)
        at.harness.cancel()
        await background.running
        assert at.log.replay() == list(at.harness.messages)

    ran(program)


def test_09_what_is_said_meanwhile_goes_in_where_it_is_safe(
    protocol: Protocol, tmp_path: Path
) -> None:
    async def program() -> None:
        both = calls(("bash", {"command": "echo one"}), ("bash", {"command": "echo two"}))
        at = desk(protocol, tmp_path, both, Reply(text="In Spanish, then."))
        background = Background(at.harness.prompt("Build."))
        await background.until("tool_execution_start")
        at.harness.steer("In Spanish.")
        await background.running
        assert shape(at.harness.messages) == "U A[c1,c2] R(c1) R(c2) U A"
        assert "In Spanish." in at.asked()

    ran(program)


def test_10_after_any_interruption_the_transcript_is_taken(
    protocol: Protocol, tmp_path: Path
) -> None:
    async def program() -> None:
        three = [("bash", {"command": command}) for command in ("echo 1", "sleep 600", "echo 3")]
        at = desk(protocol, tmp_path, calls(*three))
        background = Background(at.harness.prompt("Build."))
        await background.until("tool_execution_start", nth=2)
        background.running.cancel()
        await asyncio.wait({background.running})
        await at.harness.aclose()
        assert shape(at.harness.messages) == "U A[c1,c2,c3] R(c1)"
        await driven(at.harness.prompt("And?"))
        assert text_of(at.harness.messages[-1]) == "Yes?"
        assert at.asked().count(INTERRUPTED) == 2

    ran(program)


def test_11_a_power_cut_loses_no_line_that_was_written(protocol: Protocol, tmp_path: Path) -> None:
    async def program() -> None:
        at = desk(protocol, tmp_path, Reply(text="Noted."))
        await driven(at.harness.prompt("Remember 42."))
        with at.log.path.open("a") as file:
            file.write('{"id":"e3","type":"mess')
        with pytest.raises(ValueError, match=r"line 3: .*repair_tail"):
            desk(protocol, tmp_path)
        assert repair_tail(at.log.path) is not None
        again = desk(protocol, tmp_path)
        assert list(again.harness.messages) == list(at.harness.messages)
        await driven(again.harness.prompt("What was it?"))
        assert "Remember 42." in again.asked()

    ran(program)


def test_12_a_long_conversation_fits_into_the_window(protocol: Protocol, tmp_path: Path) -> None:
    async def program() -> None:
        at = desk(protocol, tmp_path)
        long: list[Message] = []
        for n in range(40):
            at.there.say(Reply(text=f"Answer {n}. " + "x" * 4_000, piece_chars=4_000))
            await driven(at.harness.prompt(f"Question {n}?"))
        at.there.say(Reply(text="They asked forty questions."))
        long += at.harness.messages
        model = model_of(protocol, at.there)
        assert await maybe_compact(at.harness, at.log, model, window_tokens=40_000)
        await driven(at.harness.prompt("Go on."))
        assert len(at.asked()) < len(json.dumps(long)) // 2
        assert "They asked forty questions." in at.asked()
        assert "Answer 39." in at.asked()
        assert at.log.replay() == list(at.harness.messages)

    ran(program)


def test_13_the_model_is_briefed_by_what_is_there(protocol: Protocol, tmp_path: Path) -> None:
    async def program() -> None:
        (tmp_path / "AGENTS.md").write_text("Speak Spanish here.\n")
        skill = tmp_path / "skills" / "deploy" / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text("---\nname: deploy\ndescription: How we deploy.\n---\nSecret steps.\n")
        tools = file_tools(Folder(tmp_path))
        system = build_system_prompt(
            tools=tools,
            project_files=discover_project_files(tmp_path, top=tmp_path),
            skills=discover_skills(tmp_path / "skills"),
            cwd=tmp_path,
            today=BRIEFED_ON,
        )
        at = desk(protocol, tmp_path, system=system)
        await driven(at.harness.prompt("Hello."))
        for there in ("Speak Spanish here.", "How we deploy.", "read: read a file"):
            assert there in at.asked()
        assert "Secret steps." not in at.asked()

    ran(program)


def test_14_the_door_refuses_with_the_reason(protocol: Protocol, tmp_path: Path) -> None:
    async def program() -> None:
        (tmp_path / "build").mkdir()
        at = desk(
            protocol,
            tmp_path,
            calls(("bash", {"command": "rm -fr build"}), ("bash", {"command": "ls"})),
            Reply(text="I left it."),
            check=allow_only("ls"),
        )
        await driven(at.harness.prompt("Clean up."))
        assert (tmp_path / "build").is_dir()
        refusal = result_of(at.harness.messages, "c1")
        assert refusal.startswith("Tool call blocked: ")
        assert "'rm'" in refusal
        assert "build" in result_of(at.harness.messages, "c2")
        assert text_of(at.harness.messages[-1]) == "I left it."

    ran(program)


@pytest.mark.req("S2-108")
def test_15_stopped_in_the_middle_of_a_build_it_is_usable_at_once(
    protocol: Protocol, tmp_path: Path
) -> None:
    async def program() -> None:
        build = "echo $$ > pid; sleep 600 & sleep 600"
        at = desk(
            protocol, tmp_path, calls(("bash", {"command": build}), ("bash", {"command": ""}))
        )
        button = Button(lambda: at.harness)
        begun = asyncio.Event()
        run = at.harness.prompt("Build.")
        heard: list[str] = []

        def hears(event: Any) -> None:
            heard.append(event["type"])
            if event["type"] == "tool_execution_start":
                begun.set()

        driving = asyncio.ensure_future(button.drive(run, hears))
        await begun.wait()
        while not (tmp_path / "pid").is_file() or not (tmp_path / "pid").read_text():
            await tick()
        assert button.press("ana", "wrong branch") is Pressed.ASKED
        await driving
        assert shape(at.harness.messages) == "U A[c1,c2] R(c1) R(c2) A(aborted)"
        assert result_of(at.harness.messages, "c2") == ABORTED
        assert heard[-1] == "agent_end"
        pid = int((tmp_path / "pid").read_text())
        assert not Path(f"/proc/{pid}").exists()
        await driven(at.harness.prompt("The other branch."))
        assert text_of(at.harness.messages[-1]) == "Yes?"

    ran(program)
