"""Where scenarios of a stop are played: on virtual time, with its turns counted.

`run` plays one. A script is handed the `Stage`: it opens conversations, begins runs and presses the
button. When it is over the stage looks at what is there, and then prompts once more, for the
request that this makes is what the model is shown next.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from landed.agent.harness import Harness
from landed.agent.loop import Event, Limits
from landed.agent.messages import FAILED, AssistantMessage, Message, ToolCall, calls_of, text_of
from landed.agent.session_log import SessionLog, Sync, persist_to
from landed.agent.signal import Signal
from landed.agent.tool import AgentTool, ToolSpec
from landed.agent.validate import transcript_problems
from landed.testing.scripted import Reply, ScriptedReplies, says
from landed.testing.shapes import shape
from landed.testing.stops.designs import StopDesign
from landed.testing.stops.ending import End, TurnLine
from landed.testing.ticks import Background, driven, tick, ticks
from landed.testing.workspace import FakeShell

TURNS_MAX = 5_000
"""How many turns are counted: a run that is stuck is then seen to be."""

SETTLES_IN = 5
"""So many turns has what was let go to be over."""

GONE_IN = 20
TEXT_MAX_CHARS = 100


def seen(messages: Sequence[Message]) -> str:
    """Return the shape of a request, with which results are errors, or such that nobody saw."""
    return " ".join(
        f"R({message['tool_call_id']} interrupted)"
        if message["role"] == "toolResult" and message.get("synthetic")
        else shape([message], errors=True)
        for message in messages
    )


class Turns:
    """Counts the turns of the event loop, in `now`."""

    def __init__(self) -> None:
        self.now = 0

    def count(self) -> None:
        """Begin the next turn, and call again in the one after it."""
        self.now += 1
        if self.now < TURNS_MAX:
            asyncio.get_running_loop().call_soon(self.count)

    def end(self) -> None:
        """Count no more."""
        self.now = TURNS_MAX


class Provider:
    """A model that follows a script, and refuses what every provider does: a request with holes."""

    def __init__(self, replies: ScriptedReplies, say: Callable[[str, str], None]) -> None:
        self.asked: list[list[Message]] = []
        self.refused = ""
        self.answers_all = False
        self._replies = replies
        self._say = say

    async def __call__(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        signal: Signal | None = None,
        /,
    ) -> AssistantMessage:
        """Answer as the script says; raises `RuntimeError` for a request that is refused."""
        self.asked.append(list(messages))
        self._say("model.asked", f"request {len(self.asked)}: {seen(messages)}")
        if problems := transcript_problems(messages, "request"):
            self.refused = f"400 {problems[0]}"
            raise RuntimeError(self.refused)
        if self.answers_all:
            return says("Here.")
        return await self._replies(system, messages, tools, signal)


class Stage:
    """A conversation on a design, a shell and a log of what happens, for one script."""

    def __init__(self, design: StopDesign, folder: Path) -> None:
        self.design = design
        self.shell = FakeShell()
        self.turns = Turns()
        self.lines: list[TurnLine] = []
        self.endings: list[str] = []
        self.records: list[str] = []
        self.broken: list[str] = []
        self.words: str | None = None
        self.looks_at_files = False
        self.is_quiet = False
        self.log: SessionLog | None = None
        self.provider = Provider(ScriptedReplies(), self.say)
        self.harness = design.harness(model=self.provider)
        self._folder = folder
        self._providers: list[Provider] = []
        self._background: Background | None = None

    # What a script does.

    def open(
        self,
        *replies: Reply,
        forever: Reply | None = None,
        tools: Iterable[AgentTool] = (),
        messages: Iterable[Message] = (),
        max_turns: int = 100,
        log: SessionLog | None = None,
    ) -> Harness:
        """Open a conversation, with a model that gives these replies; all that is said is kept."""
        self.provider = Provider(ScriptedReplies(*replies, forever=forever), self.say)
        self._providers.append(self.provider)
        self.harness = self.design.harness(
            model=self.provider,
            tools=tuple(tools),
            messages=messages,
            limits=Limits(max_turns=max_turns),
        )
        self.log = log
        if log is not None:
            self.harness.subscribe(persist_to(log))
        self.harness.observe(self._hear)
        return self.harness

    def new_log(self) -> SessionLog:
        """Return a log in a new file."""
        return self.design.log(self._folder / f"session-{len(self._providers)}.jsonl", Sync.SYSTEM)

    def begin(self, text: str = "Go.") -> Background:
        """Prompt, and let the run go on beside the script."""
        self._background = Background(self.harness.prompt(text))
        return self._background

    async def prompt(self, text: str) -> None:
        """Prompt, and wait until the run is over."""
        await driven(self.harness.prompt(text))

    async def busy(self, text: str = "Go.") -> None:
        """Begin a run, and let it come to the middle of its first tool."""
        await self.begin(text).until("tool_execution_start")
        await ticks(SETTLES_IN)

    def press(self) -> None:
        """Press the button, and do nothing else."""
        self.say("stop", "the button is pressed")
        self.harness.cancel()

    async def stop(self, grace: int) -> str:
        """Stop the run that goes on, and take down how that ended."""
        self.say("stop", f"the run is stopped, grace: {grace} turn(s)")
        ending = await self.design.stop(self.harness, self.running, grace)
        self.ended(ending)
        return ending

    def ended(self, how: str) -> None:
        """Take down how something ended."""
        self.say("ended", how)
        self.endings.append(how)

    def ended_as_recorded(self) -> None:
        """Take down how a run that was only asked to stop has ended: by its last message."""
        message = self.harness.messages[-1]
        is_aborted = message["role"] == "assistant" and message["stop_reason"] == "aborted"
        self.ended("clean" if is_aborted else "not at all")

    @property
    def running(self) -> "asyncio.Task[None]":
        """What drives the run."""
        assert self._background is not None
        return self._background.running

    def say(self, type: str, text: str) -> None:
        """Add a line to the timeline."""
        if not self.is_quiet:
            words = " ".join(text.split())
            if len(words) > TEXT_MAX_CHARS:
                words = f"{words[: TEXT_MAX_CHARS - 1]}…"
            line = TurnLine(n=len(self.lines) + 1, turn=self.turns.now, type=type, text=words)
            self.lines.append(line)

    def require(self, is_so: bool, what: str) -> None:
        """Take down what has to be so of every run, if it is not."""
        if not is_so:
            self.broken.append(what)

    def require_whole(self) -> None:
        """Require a valid record, and that the log holds all of it."""
        record = list(self.harness.messages)
        for problem in transcript_problems(record):
            self.require(False, problem)
        self.require(self.log is None or self.log.replay() == record, "the log is not the record")

    # How it ended.

    async def end(self) -> End:
        """Look at what there is, and ask for what the model is shown next."""
        await ticks(SETTLES_IN)
        self.require_whole()
        messages = self.harness.messages
        calls = sum(len(provider.asked) for provider in self._providers)
        request = self.harness.request_status
        running, log, files = self._running(), self._logged(), self._files()
        shown = await self._shown_next()
        await self._clear()
        return End(
            records=tuple(dict.fromkeys([*self.records, shape(messages)])),
            shown=shown,
            words=_last_words(messages) if self.words is None else self.words,
            calls=calls,
            request=request,
            running=running,
            endings=tuple(self.endings),
            log=log,
            files=files,
            refused=self.provider.refused,
            broken=tuple(self.broken),
        )

    def _running(self) -> tuple[str, ...]:
        goes_on = self._background is not None and not self.running.done()
        return (*(["the run"] if goes_on else []), *(c.line for c in self.shell.alive))

    def _logged(self) -> str | None:
        if self.log is None:
            return None
        lines = self.log.path.read_bytes().count(b"\n")
        return f"{lines} lines: {shape(self.log.replay())}"

    def _files(self) -> tuple[str, ...] | None:
        return tuple(self.shell.workspace.names()) if self.looks_at_files else None

    async def _shown_next(self) -> str:
        """Prompt once more, and return what the model is shown."""
        if self.harness.is_running:
            return "nothing, for the run is not over"
        before, self.is_quiet, self.provider.answers_all = len(self.provider.asked), True, True
        await self.prompt("And now?")
        asked = self.provider.asked[before:]
        return seen(asked[0]) if asked else "nothing, for the run is stopped at once"

    async def _clear(self) -> None:
        """End what still runs, so that the loop can be closed."""
        self.is_quiet = True
        self.turns.end()
        for command in self.shell.alive:
            command.kill()
        for _ in range(GONE_IN):
            if self._background is None or self.running.done():
                break
            self.running.cancel()
            await tick()

    # What is told of it.

    def _hear(self, event: Event) -> None:
        message, call = event.get("message"), event.get("call")
        if message is not None:
            self.say(_SAID_BY[message["role"]], _told(message))
        elif call is not None and event["type"] == "tool_execution_start":
            self.say("tool.start", _called(call))
        elif call is not None and "result" not in event:
            self.say("tool.left", f"{call['id']}: it has no result")


_SAID_BY = {"user": "user", "assistant": "assistant", "toolResult": "tool.result"}


def _last_words(messages: Sequence[Message]) -> str:
    """Return what the assistant said last, or why it did not."""
    replies = [message for message in messages if message["role"] == "assistant"]
    return _words(replies[-1]) if replies else ""


def _words(reply: AssistantMessage) -> str:
    return text_of(reply) or reply.get("error_message", "")


def _told(message: Message) -> str:
    match message["role"]:
        case "user":
            return text_of(message)
        case "toolResult":
            failed = " (error)" if message["is_error"] else ""
            return f"{message['tool_call_id']}: {message['content']}{failed}"
        case "assistant":
            failed = f"({message['stop_reason']})" if message["stop_reason"] in FAILED else ""
            calls = ", ".join(map(_called, calls_of(message)))
            return " ".join(part for part in (_words(message), calls, failed) if part)


def _called(call: ToolCall) -> str:
    arguments = ", ".join(f"{name}={value}" for name, value in call["arguments"].items())
    return f"{call['id']} {call['name']}({arguments})"
