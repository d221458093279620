"""How a stop is built: ours, and wrong designs that are often built instead.

A `StopDesign` is what a scenario is played with; its defaults are ours. `F2-…` names the failure
variant that a wrong one shows.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TextIO

from landed.agent.bash import CANCELLED, Shell, bash_tool
from landed.agent.compaction import compact, estimate_tokens, summarize
from landed.agent.guard import Check, guard
from landed.agent.harness import Harness
from landed.agent.log_lines import kept
from landed.agent.loop import Event, Model
from landed.agent.messages import Message, text_of
from landed.agent.render import FinalTextRenderer, Renderer
from landed.agent.session_log import SessionLog, Sync
from landed.agent.signal import CancelToken, Signal
from landed.agent.stop import stop_run
from landed.agent.tool import AgentTool, Telling, text_argument
from landed.testing.stops.loops import (
    catches_all,
    is_bounded_between,
    plain_loop,
    run_naively,
    runs_all,
    skips_the_rest,
)
from landed.testing.ticks import tick

Events = AsyncGenerator[Event, None]


class Stop(Protocol):
    """Stops the run that a task drives, after a grace in turns; says how it ended."""

    def __call__(self, harness: Harness, running: asyncio.Task[Any], grace: int) -> Awaitable[str]:
        """Stop it."""
        ...


class Compact(Protocol):
    """Puts a summary in place of a log's older part."""

    def __call__(
        self, log: SessionLog, model: Model, *, keep_recent_tokens: int
    ) -> Awaitable[object]:
        """Append it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StopDesign:
    """The parts of a stop. The defaults are ours."""

    harness: type[Harness] = Harness
    stop: Stop = stop_run
    bash: Callable[[Shell], AgentTool] = bash_tool
    guard: Callable[[AgentTool, Check], AgentTool] = guard
    renderer: Callable[[TextIO], Renderer] = FinalTextRenderer
    compact: Compact = compact
    log: Callable[[Path, Sync], SessionLog] = lambda path, sync: SessionLog(path, sync=sync)


OURS = StopDesign()


class PlainLoop(Harness):
    """F2-01: a plain loop, under which the button is never heard."""

    def _begun(self, said: Sequence[Message], token: CancelToken) -> Events:
        return _given(plain_loop(super()._begun(said, token)))


async def _given(events: Iterable[Event]) -> Events:
    for event in events:
        yield event


async def only_flags(harness: Harness, running: asyncio.Task[Any], grace: int) -> str:
    """F2-02: set a flag and hope; a tool that is deaf goes on."""
    harness.cancel()
    for _ in range(grace):
        await tick()
    return "clean" if running.done() else "STILL GOING"


class CatchesAll(Harness):
    """F2-03: whoever runs a tool takes the end of the run for a failure of the tool."""

    def _begun(self, said: Sequence[Message], token: CancelToken) -> Events:
        return run_naively(self._agent, said, self._messages, token, catches_all)


def guard_that_catches_all(tool: AgentTool, check: Check) -> AgentTool:
    """F2-04: take the end of the run for a reason to refuse the call."""

    async def execute(arguments: Mapping[str, Any], signal: Signal | None = None) -> str | Telling:
        try:
            if check(tool.name, arguments):
                raise PermissionError
            return await tool.execute(arguments, signal)
        except BaseException as error:
            raise RuntimeError(f"Tool call blocked: {type(error).__name__}") from None

    return replace(tool, execute=execute)


class TokenTooLate(Harness):
    """F2-05: the token is made when the first event is taken, not when the run begins."""

    late: CancelToken | None = None

    def _begun(self, said: Sequence[Message], token: CancelToken) -> Events:
        self.late = CancelToken()
        return super()._begun(said, self.late)

    def cancel(self, by: str = "", reason: str = "") -> None:
        """Press the button; before the first event there is none."""
        if self.late is not None:
            self.late.cancel(by, reason)


class SkipsTheRest(Harness):
    """F2-06: calls that are not run any more have no result, and the next request has holes."""

    def _begun(self, said: Sequence[Message], token: CancelToken) -> Events:
        return run_naively(self._agent, said, self._messages, token, skips_the_rest)


def guard_that_fails_open(tool: AgentTool, check: Check) -> AgentTool:
    """F2-07: let a call through where the check itself fails."""

    async def execute(arguments: Mapping[str, Any], signal: Signal | None = None) -> str | Telling:
        with suppress(Exception):
            if reason := check(tool.name, arguments):
                return f"Tool call blocked: {reason}"
        return await tool.execute(arguments, signal)

    return replace(tool, execute=execute)


class BoundedBetween(Harness):
    """F2-08: `max_turns` is looked at between a reply and its calls."""

    def _begun(self, said: Sequence[Message], token: CancelToken) -> Events:
        return run_naively(self._agent, said, self._messages, token, is_bounded_between)


class TokenKept(Harness):
    """F2-09: one token for the harness's life, and so one stop for all runs."""

    kept: CancelToken | None = None

    def _begun(self, said: Sequence[Message], token: CancelToken) -> Events:
        return super()._begun(said, self._one())

    def cancel(self, by: str = "", reason: str = "") -> None:
        """Press the button, for good."""
        self._one().cancel(by, reason)

    def _one(self) -> CancelToken:
        self.kept = self.kept or CancelToken()
        return self.kept


def bash_that_kills_where_it_looks(shell: Shell) -> AgentTool:
    """F2-10: kill a command only where the flag is seen, and not however it is left."""

    async def execute(arguments: Mapping[str, Any], signal: Signal | None = None) -> str | Telling:
        command = shell.start(text_argument(arguments, "command"))
        ended = asyncio.ensure_future(command.wait())
        try:
            while not ended.done():
                if signal is not None and signal.is_cancelled():
                    command.kill()
                    return CANCELLED
                await tick()
        finally:
            ended.cancel()  # The wait is over; the command goes on.
        return command.output().text

    return replace(bash_tool(shell), execute=execute)


async def eats_its_own_cancellation(
    harness: Harness, running: asyncio.Task[Any], grace: int
) -> str:
    """F2-11: swallow every cancellation while waiting, that of whoever stops too."""
    harness.cancel()
    for _ in range(grace):
        await tick()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return "hard"


class ErrorsOnly(FinalTextRenderer):
    """F2-12: a renderer that looks for "error" and finds nothing wrong with "aborted"."""

    def finish(self) -> bool:
        """Print the answer, or the error where it is called one."""
        assert self._last is not None
        is_error = self._last["stop_reason"] == "error"
        print(self._last.get("error_message") if is_error else text_of(self._last), file=self._out)
        return not is_error


class AsItIs(Harness):
    """A loop whose requests are its record as it is: what shows of F2-13 with a provider."""

    def _begun(self, said: Sequence[Message], token: CancelToken) -> Events:
        return run_naively(self._agent, said, self._messages, token, runs_all)


def cut_at_the_token(messages: Sequence[Message], *, keep_recent_tokens: int) -> int:
    """F2-13: cut where the tokens are up, on a tool result too."""
    cut = len(messages)
    while cut and estimate_tokens(messages[cut - 1 :]) <= keep_recent_tokens:
        cut -= 1
    return cut


async def compact_at_the_token(log: SessionLog, model: Model, *, keep_recent_tokens: int) -> bool:
    """Compact a log with `cut_at_the_token`, and else as ours does."""
    told = kept(log.path, log.entries())
    messages = [message for _, message in told]
    cut = cut_at_the_token(messages, keep_recent_tokens=keep_recent_tokens)
    summary = await summarize(model, messages[:cut])
    log.append_entry({"type": "compaction", "summary": summary, "first_kept_id": told[cut][0]})
    return True


class SkippingLog(SessionLog):
    """F2-14: a log that reads what it can, and appends at the end of the file."""

    def append(self, message: Message) -> str:
        """Write it behind whatever is there: behind half of a line, too."""
        lines = self.path.read_bytes().count(b"\n") if self.path.exists() else 0
        id = f"e{lines + 1}"
        with self.path.open("a") as file:
            file.write(json.dumps({"id": id, "type": "message", "message": message}) + "\n")
        return id

    def replay(self) -> list[Message]:
        """Return what can be read, and say nothing of the rest."""
        told: list[Message] = []
        for line in self.path.read_text().splitlines():
            with suppress(ValueError):
                told.append(json.loads(line)["message"])
        return told


NEVER_HEARD = StopDesign(harness=PlainLoop)
FLAG_ONLY = StopDesign(stop=only_flags)
SWALLOWED_BY_TOOL = StopDesign(harness=CatchesAll)
SWALLOWED_BY_GUARD = StopDesign(guard=guard_that_catches_all)
TOKEN_TOO_LATE = StopDesign(harness=TokenTooLate)
UNANSWERED_CALLS = StopDesign(harness=SkipsTheRest)
FAIL_OPEN = StopDesign(guard=guard_that_fails_open)
CUT_BETWEEN = StopDesign(harness=BoundedBetween)
TOKEN_KEPT = StopDesign(harness=TokenKept)
ORPHAN_PROCESS = StopDesign(bash=bash_that_kills_where_it_looks)
EATS_ITS_OWN = StopDesign(stop=eats_its_own_cancellation)
EXIT_ZERO = StopDesign(renderer=ErrorsOnly)
CUT_ON_RESULT = StopDesign(harness=AsItIs, compact=compact_at_the_token)
TORN_LINE_SKIPPED = StopDesign(log=lambda path, sync: SkippingLog(path, sync=sync))
