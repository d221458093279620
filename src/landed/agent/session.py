"""An agent's conversation over a runtime: words are durable inputs, effects are operations.

    session = await AgentSession.begin(rt, model=model, session="monday", principal="ana")
    async for event in await session.prompt("Book Friday at seven for four."):
        …

What the user says is received before anything is done about it. A strict yes or no to the last
question is carried out by code and answered from the records; the model is not asked. Any other
words go to the model, whose calls are operations of the runtime. At the end of a run an `account`
says what the records have of the turn, and which of the model's last words they don't support.

The conversation is kept in the store's journal, so that a new process resumes it: `resume` finishes
what was begun, from the records, and sends nothing twice.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from landed.agent.account import account_of, claims_in
from landed.agent.claims.check import Claim
from landed.agent.compaction import maybe_compact, needs_room
from landed.agent.effects import Effects, Seen
from landed.agent.harness import Harness, Run
from landed.agent.hearing import Hearing
from landed.agent.journal_log import JournalLog, keep_in
from landed.agent.ledger import (
    closed,
    cut_off,
    is_unanswered,
    notes,
    nth_of,
    pinned,
    plan_states,
    told_states,
    unsupported_note,
    with_telling,
)
from landed.agent.log_lines import STOPPED, kept
from landed.agent.loop import Event, Limits, Model, SteerMode
from landed.agent.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    UserMessage,
    assistant_message,
    text_block,
    user_message,
)
from landed.agent.signal import CancelToken, Signal, to_its_end, unless_cancelled
from landed.agent.tool import AgentTool, Telling, ToolSpec
from landed.core.approval import approval_from
from landed.core.doubt import pause_s
from landed.core.question import About, Question
from landed.core.session import Input
from landed.runtime.proposing import PLAN_PATIENCE_S
from landed.runtime.runtime import Runtime

BUSY = "already running; use steer() or follow_up()"
SETTLES_WITHIN_S = 30.0
"""How long it is waited before what began earlier, or an answer set off, is told as it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How an agent's conversation is led; what is not given is as the harness has it.

    `tools` are those without an effect on the world outside; `offered` and `own_names` choose among
    the runtime's (`Effects`). With `window_tokens`, room is made before a prompt that needs it.
    """

    system: str = ""
    tools: Sequence[AgentTool] = ()
    limits: Limits = field(default_factory=Limits)
    steer_mode: SteerMode = SteerMode.AFTER_BATCH
    offered: Collection[str] | None = None
    own_names: bool = True
    window_tokens: int | None = None


class AgentSession:
    """One conversation of an open runtime; made by `begin`. Belongs to the runtime's event loop."""

    def __init__(
        self, rt: Runtime, log: JournalLog, model: Model, *, principal: str, setting: Setting
    ) -> None:
        self.rt = rt
        self.log = log
        self.principal = principal
        self.setting = setting
        self.seen = Seen()
        self._model = model
        self._hearing = Hearing(rt, log, principal=principal)
        self._is_left = False
        self._calling: ToolCall | None = None
        self._decided: dict[str, Sequence[Question]] = {}
        self._flagged: Sequence[Claim] = ()
        self.effects = Effects(
            rt=rt,
            whose=self._whose,
            stopping=self._is_stopping,
            offered=setting.offered,
            own_names=setting.own_names,
            patience_s=min(PLAN_PATIENCE_S, setting.limits.tool_s / 2),
            nth=self._nth,
            seen=Seen(
                plan=lambda value: self.seen.plan(value),
                progress=lambda progress: self.seen.progress(progress),
            ),
        )
        self.harness = Harness(model=self._answer)

    @classmethod
    async def begin(
        cls,
        rt: Runtime,
        *,
        model: Model,
        session: str = "main",
        principal: str = "",
        tenant: str = "default",
        setting: Setting | None = None,
    ) -> "AgentSession":
        """Take a conversation up as the journal has it, or begin one.

        Raises `ContractError` for a tool that cannot be shown, `ValueError` for two tools of one
        name, `LogError` for a line that cannot be read.
        """
        log = JournalLog(rt, session, tenant=tenant)
        self = cls(rt, log, model, principal=principal, setting=setting or Setting())
        entries = await log.entries()
        tools = (*self.setting.tools, *self.effects.tools())
        names = [tool.name for tool in tools]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two tools are called {twice[0]!r}; name one of them differently")
        self.harness = Harness(
            model=self._answer,
            tools=tools,
            system=self.setting.system,
            messages=[message for _, message in kept(log.path, entries)],
            limits=self.setting.limits,
            steer_mode=self.setting.steer_mode,
        )
        self.harness.subscribe(self._follow)
        self.harness.subscribe(keep_in(log))
        await self._hearing.begin(entries, self.harness.messages)
        self._is_left = bool(entries) and entries[-1]["type"] == STOPPED
        return self

    async def prompt(
        self, text: str, *, delivery: str = "", origin: str = "user"
    ) -> AsyncGenerator[Event, None]:
        """Receive what the user says, and return the run that acts on it.

        It is durable when this returns. The same `delivery` again is the same input: what was begun
        for it is finished. Raises `RuntimeError` while another run goes on.
        """
        if self.harness.is_running:
            raise RuntimeError(BUSY)
        heard = await self._hearing.received(text, delivery=delivery, origin=origin)
        return self._finished(heard) if self._hearing.is_known(heard) else self._run(heard)

    async def steer(self, text: str, *, delivery: str = "") -> bool:
        """Receive what the user says during a run; it goes in as the `steer_mode` says.

        A strict yes or no is carried out by code here too; the model is told so with the words, and
        how that stands. False where the run has ended by then: the words are durable, and `prompt`
        with the same `delivery` acts on them, or `resume`.
        """
        heard = await self._hearing.received(text, delivery=delivery, origin="user")
        words, questions = _words(heard), await self._hearing.answered(heard)
        plans = await self._plans(questions)
        for plan in plans:
            words = with_telling(words, await self.effects.told_of(plan, heard))
        if len(plans) < len(questions):
            told = await self.rt.report(heard.turn)
            words = with_telling(words, Telling(text=told.text, plans={}))
        if self.harness.is_running:
            self.harness.steer(words)
        return self.harness.is_running

    def cancel(self, by: str = "", reason: str = "") -> None:
        """Ask the run to stop; without one it does nothing. `landed.agent.button` does the rest."""
        self.harness.cancel(by or self.principal, reason)

    async def unfinished(self) -> bool:
        """Whether something was begun, or received, that nobody has answered yet."""
        return bool(await self.left())

    async def left(self) -> Sequence[Input]:
        """Return the inputs that nobody has answered yet, oldest first: what `resume` is for."""
        begun = [self._hearing.now] if self._hearing.now and self._is_begun() else []
        return [*begun, *await self._hearing.unheard()]

    def answer_to(self, turn: str) -> AssistantMessage | None:
        """Return the last reply to the words of a turn; None without one, or once summed up."""
        ids = self._hearing.of_turn(turn)
        found: AssistantMessage | None = None
        is_of_it = False
        for message in self.harness.messages:
            if message["role"] == "user" and "input" in message:
                is_of_it = message["input"] in ids
            elif message["role"] == "assistant" and is_of_it:
                found = message
        return found

    async def resume(self) -> AsyncGenerator[Event, None]:
        """Return the run that finishes what a process before this one left, oldest first.

        What was sent is not sent again: a call that was cut off gets the result that the records
        have, once what it began has come to rest. What a person stopped is not taken up again.
        """
        if self.harness.is_running:
            raise RuntimeError(BUSY)
        return self._resumed()

    async def _resumed(self) -> AsyncGenerator[Event, None]:
        for heard in await self.left():
            is_known = self._hearing.is_known(heard)
            async with aclosing(self._finished(heard) if is_known else self._run(heard)) as events:
                async for event in events:
                    yield event

    # One run.

    async def _run(self, heard: Input) -> AsyncGenerator[Event, None]:
        """Act on an input that is durable."""
        await self._look_back(heard)
        before = await self._before(heard)
        run = self.harness.prompt(_words(heard), before=before)
        async with aclosing(self._driven(run, heard)) as events:
            async for event in events:
                yield event

    async def _finished(self, heard: Input) -> AsyncGenerator[Event, None]:
        """Go on with an input whose words are in the record already; only account for one done.

        A reply that failed is asked for again; one that somebody stopped is not.
        """
        if not (self._is_begun() or self._has_failed(heard)):
            yield {"type": "account", "account": await account_of(self.rt, heard)}
            return
        await self._look_back(heard)
        await self._settled(heard)
        run = self.harness.resume(before=await self._before(heard))
        async with aclosing(self._driven(run, heard)) as events:
            async for event in events:
                yield event

    async def _driven(self, run: Run, heard: Input) -> AsyncGenerator[Event, None]:
        """Yield the events of a run, and then an account of each turn that it acted on.

        Words that came during it have a turn of their own. What a person has stopped hard is marked
        as left.
        """
        signal, turns = self.harness.signal, {heard.turn: heard}
        try:
            async for event in run:
                if (words := self._hearing.in_event(event)) is not None:
                    turns[words.turn] = words
                yield event
        finally:
            await run.aclose()
            if signal is not None and signal.is_cancelled() and self._is_begun():
                await to_its_end(self._leave(signal))
        *before, last = turns.values()
        for each in before:
            yield {"type": "account", "account": await account_of(self.rt, each)}
        own = [tool.name for tool in self.setting.tools]
        self._flagged = await claims_in(self.rt, self.harness.messages, own=own)
        yield {"type": "account", "account": await account_of(self.rt, last, self._flagged)}

    async def _leave(self, signal: CancelToken) -> None:
        """Write down that nobody is to go on with the last words, and who said so."""
        await self.log.append_entry({"type": STOPPED, "by": signal.by, "reason": signal.reason})
        self._is_left = True

    def _is_begun(self) -> bool:
        """Whether the last words were not answered yet, and nobody has stopped that."""
        return not self._is_left and is_unanswered(self.harness.messages)

    async def _look_back(self, heard: Input) -> None:
        """Find out what an input decided, and make room where the conversation needs it."""
        self._decided[heard.id] = await self._hearing.answered(heard)
        window = self.setting.window_tokens
        if window is None or not needs_room(self.harness.messages, window_tokens=window):
            return
        await maybe_compact(
            self.harness,
            self.log,
            self._model,
            window_tokens=window,
            pinned=await pinned(self.rt, self.log.session, tenant=self.log.tenant),
            tells=await plan_states(self.rt, told_states(self.harness.messages)),
        )

    async def _before(self, heard: Input) -> Sequence[Message]:
        """Return what stands before the next words: results that were cut off, late truth."""
        messages = self.harness.messages
        results = [
            await closed(self.effects, call, self._hearing.by_id(input))
            for call, input in cut_off(messages)
        ]
        decided = await self._plans(self._decided[heard.id])
        late = await notes(self.effects, [*messages, *results], heard, but=decided)
        flagged, self._flagged = self._flagged, ()
        return [*results, *late, *([unsupported_note(flagged)] if flagged else [])]

    async def _settled(self, heard: Input) -> None:
        """Wait in bounds until what a cut-off call began is at rest, so that its result can be."""
        for call, input in cut_off(self.harness.messages):
            for_whom = self._hearing.by_id(input) or heard
            if plan := await self.effects.plan_of(call, for_whom):
                await self.effects.at_rest(plan, for_whom, None, patience_s=SETTLES_WITHIN_S)

    # Who answers.

    async def _answer(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        signal: Signal | None = None,
        /,
    ) -> AssistantMessage:
        """Answer from the records where the user's words decided something, else by the model."""
        heard = self._hearing.now
        if heard is None or not self._decided.get(heard.id):
            return await self._model(system, messages, tools, signal)
        questions = self._decided.pop(heard.id)
        plans = await self._plans(questions)
        for plan in plans:
            await self.effects.at_rest(plan, heard, signal)
        if len(plans) < len(questions):
            await unless_cancelled(self._quiet(heard), signal)
        told = await self.rt.report(heard.turn)
        reply = assistant_message(text_block(told.text))
        return {**reply, "tells": await plan_states(self.rt, plans)}

    async def _plans(self, questions: Sequence[Question]) -> Sequence[str]:
        """Return the plans that questions were about; some are about none."""
        subjects = [q.subject for q in questions if q.about is About.PLAN]
        records = await self.rt.driver.reader.load(*subjects)
        return [approval_from(record).plan for record in records]

    async def _quiet(self, heard: Input) -> None:
        """Wait until nothing of the conversation is open here, for a bounded time."""
        store, worker = self.rt.driver.store, self.rt.driver.worker
        until = self.rt.driver.clock.now() + SETTLES_WITHIN_S
        looks = 0
        while self.rt.driver.clock.now() < until:
            if not await store.open_records(
                tenant=heard.tenant, session=heard.session, worker=worker
            ):
                return
            looks += 1
            await asyncio.sleep(pause_s(looks))

    def _follow(self, event: Event) -> None:
        """Keep in mind whose words the model acts on, by which call: before the one that writes."""
        message = event.get("message")
        self._calling = event.get("call", self._calling)
        if event["type"] == "message_end" and message is not None:
            self._is_left = False
            self._hearing.follow(message)

    def _has_failed(self, heard: Input) -> bool:
        """Whether the record ends with a reply to these words that failed."""
        last = self.harness.messages[-1]
        return heard == self._hearing.now and last.get("stop_reason") == "error"

    def _is_stopping(self) -> bool:
        signal = self.harness.signal
        return signal is not None and signal.is_cancelled()

    def _nth(self, call: ToolCall | None) -> int:
        called = call or self._calling
        return 1 if called is None else nth_of(self.harness.messages, called)

    def _whose(self) -> Input:
        if self._hearing.now is None:
            raise RuntimeError("nothing was said yet that an effect could be for")
        return self._hearing.now


def _words(heard: Input) -> UserMessage:
    return {**user_message(heard.text), "input": heard.id}
