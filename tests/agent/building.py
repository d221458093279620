"""A run with everything in it, to be cut off anywhere; and what must then be so."""

from dataclasses import replace
from pathlib import Path

from landed.agent.bash import bash_tool
from landed.agent.files import file_tools
from landed.agent.guard import confirm_with, guard
from landed.agent.harness import Harness
from landed.agent.repair import INTERRUPTED, messages_for_model
from landed.agent.session_log import SessionLog, persist_to
from landed.agent.tool import AgentTool
from landed.agent.validate import transcript_problems
from landed.testing.scripted import Request, ScriptedReplies, asks, call, says
from landed.testing.shapes import shape
from landed.testing.ticks import driven, tick, ticks
from landed.testing.workspace import FakeShell, FakeWorkspace


class Building:
    """A harness whose run reads, asks a person, builds slowly, writes, and is told more meanwhile.

    `returned` are the calls whose tool came to its end: none of them may be told as interrupted.
    """

    def __init__(self, folder: Path) -> None:
        self.log = SessionLog(folder / "session.jsonl", sync="system")
        self.shell = FakeShell(FakeWorkspace({"a.py": "one\ntwo\n"}))
        self.returned: list[str] = []
        self.running = ""
        self.left_to_ask = [
            asks(
                call("c1", "read", path="a.py"),
                call("c2", "bash", command="sleep 3; echo built"),
                call("c3", "write", path="b.py", content="three"),
            ),
            asks(call("c4", "bash", command="sleep 2; false"), text="Built."),
        ]
        self.model = ScriptedReplies(forever=self.reply)
        read, write, _ = map(self.watched, file_tools(self.shell.workspace))
        bash = guard(self.watched(bash_tool(self.shell)), confirm_with(agrees))
        self.harness = Harness(model=self.model, tools=[read, write, bash])
        self.harness.subscribe(persist_to(self.log))
        self.harness.subscribe(self.listen)

    async def reply(self, request: Request):
        await ticks(2)
        return self.left_to_ask.pop(0) if self.left_to_ask else says("Answer.")

    def watched(self, tool: AgentTool) -> AgentTool:
        async def execute(arguments, signal=None):
            result = await tool.execute(arguments, signal)
            self.returned.append(self.running)
            return result

        return replace(tool, execute=execute)

    def listen(self, event) -> None:
        if event["type"] == "tool_execution_start":
            self.running = event["call"]["id"]
            if self.running == "c2":
                self.harness.steer("Hurry.")

    async def is_whole(self) -> None:
        """Require that the run is over, nothing is lost, and the conversation goes on."""
        assert not self.harness.is_running
        await tick()
        assert self.shell.alive == []
        self.is_consistent()
        self.left_to_ask = []
        for expected in ("First?", "Second?"):
            await driven(self.harness.prompt(expected))
            assert shape(self.harness.messages).endswith("U A")
            self.is_consistent()
        assert [text for text in self.words() if text in ("First?", "Second?")] == [
            "First?",
            "Second?",
        ]
        assert self.words().count("Hurry.") == (self.running not in ("", "c1"))
        for request in self.model.calls:
            assert transcript_problems(request.messages, "request") == []

    def is_consistent(self) -> None:
        record = list(self.harness.messages)
        assert transcript_problems(record) == []
        assert transcript_problems(messages_for_model(record), "request") == []
        assert self.log.replay() == record
        told = {
            message["tool_call_id"]: message["content"]
            for message in messages_for_model(record)
            if message["role"] == "toolResult"
        }
        assert INTERRUPTED not in [told[id] for id in self.returned]

    def words(self) -> list[str]:
        return [m["content"] for m in self.harness.messages if m["role"] == "user"]


async def agrees(question: str) -> bool:
    await ticks(2)
    return True
