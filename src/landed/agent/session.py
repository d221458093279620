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
from collections.abc import AsyncGenerator, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from landed.agent.account import account_of
from landed.agent.claims import Claim
from landed.agent.compaction import maybe_compact, needs_room
from landed.agent.effects import Effects, Seen
from landed.agent.harness import Harness
from landed.agent.journal_log import JournalLog, keep_in
from landed.agent.ledger import (
    closed,
    cut_off,
    inputs_in,
    notes,
    nth_of,
    pinned,
    told_states,
    unsupported_note,
)
from landed.agent.loop import Account, Event, Limits, Model, SteerMode
from landed.agent.messages import (
    FAILED,
    AssistantMessage,
    Message,
    ToolCall,
    UserMessage,
    assistant_message,
    calls_of,
    text_block,
    user_message,
)
from landed.agent.signal import Signal, unless_cancelled
from landed.agent.tool import AgentTool, ToolSpec
from landed.core.approval import approval_from
from landed.core.changes import Kind
from landed.core.doubt import pause_s
from landed.core.question import About, Question, QuestionState, question_from
from landed.core.session import Input, input_of
from landed.runtime.proposing import PLAN_PATIENCE_S
from landed.runtime.runtime import Runtime

BUSY = "already running; use steer() or follow_up()"
SETTLES_WITHIN_S = 30.0
"""How long an answer to a question about no plan is waited for before it is told as it stands."""


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
        self._inputs: dict[str, Input] = {}
        self._known: set[str] = set()
        self._heard: Input | None = None
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
        tools = (*self.setting.tools, *self.effects.tools())
        names = [tool.name for tool in tools]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two tools are called {twice[0]!r}; name one of them differently")
        self.harness = Harness(
            model=self._answer,
            tools=tools,
            system=self.setting.system,
            messages=await log.replay(),
            limits=self.setting.limits,
            steer_mode=self.setting.steer_mode,
        )
        self.harness.subscribe(self._follow)
        self.harness.subscribe(keep_in(log))
        entries = await log.entries()
        self._known = inputs_in([e["message"] for e in entries if e["type"] == "message"])
        await self._remember(*inputs_in(self.harness.messages))
        self._heard = self._last_heard()
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
        heard = await self._received(text, delivery=delivery, origin=origin)
        if heard.id in self._known:
            return self._finished(heard)
        return self._run(heard)

    async def steer(self, text: str, *, delivery: str = "") -> bool:
        """Receive what the user says during a run; it goes in as the `steer_mode` says.

        False where the run has ended by then: the words are durable, and `prompt` with the same
        `delivery` acts on them, or `resume`.
        """
        heard = await self._received(text, delivery=delivery, origin="user")
        if self.harness.is_running:
            self.harness.steer(_words(heard))
        return self.harness.is_running

    def cancel(self, by: str = "", reason: str = "") -> None:
        """Ask the run to stop; without one it does nothing. `landed.agent.button` does the rest."""
        self.harness.cancel(by or self.principal, reason)

    async def unfinished(self) -> bool:
        """Whether something was begun, or received, that nobody has answered yet."""
        return _is_open(self.harness.messages) or bool(await self._unheard())

    async def left(self) -> Sequence[Input]:
        """Return the inputs that nobody has answered yet, oldest first: what `resume` is for."""
        begun = [self._heard] if self._heard and _is_open(self.harness.messages) else []
        return [*begun, *await self._unheard()]

    def answer_to(self, turn: str) -> AssistantMessage | None:
        """Return the last reply to the words of a turn; None without one, or once summed up."""
        ids = {heard.id for heard in self._inputs.values() if heard.turn == turn}
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
        have, once what it began has come to rest.
        """
        if self.harness.is_running:
            raise RuntimeError(BUSY)
        return self._resumed()

    async def _resumed(self) -> AsyncGenerator[Event, None]:
        if _is_open(self.harness.messages) and self._heard is not None:
            async for event in self._finished(self._heard):
                yield event
        for heard in await self._unheard():
            async for event in self._run(heard):
                yield event

    # One run.

    async def _run(self, heard: Input) -> AsyncGenerator[Event, None]:
        """Act on an input that is durable, and end with an account of its turn."""
        await self._look_back(heard)
        before = await self._before(heard)
        run = self.harness.prompt(_words(heard), before=before)
        try:
            async for event in run:
                yield event
        finally:
            await run.aclose()
        yield {"type": "account", "account": await self._account(heard)}

    async def _finished(self, heard: Input) -> AsyncGenerator[Event, None]:
        """Go on with an input whose words are in the record already; only account for one done.

        A reply that failed is asked for again; one that somebody stopped is not.
        """
        if _is_open(self.harness.messages) or self._has_failed(heard):
            await self._look_back(heard)
            await self._settled(heard)
            run = self.harness.resume(before=await self._before(heard))
            try:
                async for event in run:
                    yield event
            finally:
                await run.aclose()
        yield {"type": "account", "account": await self._account(heard)}

    async def _look_back(self, heard: Input) -> None:
        """Find out what an input decided, and make room where the conversation needs it."""
        self._decided[heard.id] = await self._answered(heard)
        window = self.setting.window_tokens
        if window is None or not needs_room(self.harness.messages, window_tokens=window):
            return
        await maybe_compact(
            self.harness,
            self.log,
            self._model,
            window_tokens=window,
            pinned=await pinned(self.rt, self.log.session, tenant=self.log.tenant),
            tells=await self._states(told_states(self.harness.messages)),
        )

    async def _before(self, heard: Input) -> Sequence[Message]:
        """Return what stands before the next words: results that were cut off, late truth."""
        messages = self.harness.messages
        results = [
            await closed(self.effects, call, self._inputs.get(input))
            for call, input in cut_off(messages)
        ]
        decided = await self._plans(self._decided[heard.id])
        late = await notes(self.effects, [*messages, *results], heard, but=decided)
        flagged, self._flagged = self._flagged, ()
        return [*results, *late, *([unsupported_note(flagged)] if flagged else [])]

    async def _settled(self, heard: Input) -> None:
        """Wait until what a cut-off call began is at rest, so that its result can be the last."""
        for call, input in cut_off(self.harness.messages):
            for_whom = self._inputs.get(input, heard)
            if plan := await self.effects.plan_of(call, for_whom):
                await self.effects.at_rest(plan, for_whom, None)

    async def _account(self, heard: Input) -> Account:
        """Say what the records have of the turn, and keep in mind what they don't bear out."""
        own = [tool.name for tool in self.setting.tools]
        told = await account_of(self.rt, heard, self.harness.messages, own=own)
        self._flagged = told.claims
        return told.account

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
        heard = self._heard
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
        return {**reply, "tells": await self._states(plans)}

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

    # What was said.

    async def _received(self, text: str, *, delivery: str, origin: str) -> Input:
        heard = await self.rt.receive(
            text,
            session=self.log.session,
            principal=self.principal,
            tenant=self.log.tenant,
            delivery=delivery,
            origin=origin,
        )
        self._inputs[heard.id] = heard
        return heard

    async def _answered(self, heard: Input) -> Sequence[Question]:
        """Return the questions that an input answered with a strict yes or no, for code to do.

        What was meant is for the model to read, whatever the answer is.
        """
        records = await self.rt.driver.reader.records(tenant=heard.tenant, session=heard.session)
        asked = [question_from(r) for r in records if r.kind is Kind.QUESTION]
        by_it = [question for question in asked if question.input == heard.id]
        answers = (QuestionState.YES, QuestionState.NO)
        return [q for q in by_it if q.state in answers and q.about is not About.UNSURE]

    async def _unheard(self) -> Sequence[Input]:
        """Return the inputs that were acknowledged, never came into the record, and did nothing."""
        unacted = await self.rt.unacted(self.log.session, tenant=self.log.tenant)
        missing = [heard for heard in unacted if heard.id not in self._known]
        self._inputs.update({heard.id: heard for heard in missing})
        return missing

    async def _remember(self, *ids: str) -> None:
        records = await self.rt.driver.reader.load(*ids)
        self._inputs.update({record.id: input_of(record) for record in records})

    async def _states(self, plans: Iterable[str]) -> dict[str, str]:
        records = await self.rt.driver.reader.load(*plans)
        return {record.id: record.state for record in records}

    def _follow(self, event: Event) -> None:
        """Keep in mind whose words the model acts on, by which call: before the one that writes."""
        message = event.get("message")
        self._calling = event.get("call", self._calling)
        if event["type"] == "message_end" and message is not None and message["role"] == "user":
            self._heard = self._inputs.get(message.get("input", ""), self._heard)
            self._known |= inputs_in([message])

    def _has_failed(self, heard: Input) -> bool:
        """Whether the record ends with a reply to these words that failed."""
        last = self.harness.messages[-1]
        return heard == self._heard and last.get("stop_reason") == "error"

    def _is_stopping(self) -> bool:
        signal = self.harness.signal
        return signal is not None and signal.is_cancelled()

    def _last_heard(self) -> Input | None:
        users = [m for m in self.harness.messages if m["role"] == "user" and "input" in m]
        return self._inputs.get(users[-1].get("input", "")) if users else None

    def _nth(self, call: ToolCall | None) -> int:
        called = call or self._calling
        return 1 if called is None else nth_of(self.harness.messages, called)

    def _whose(self) -> Input:
        if self._heard is None:
            raise RuntimeError("nothing was said yet that an effect could be for")
        return self._heard


def _words(heard: Input) -> UserMessage:
    return {**user_message(heard.text), "input": heard.id}


def _is_open(messages: Sequence[Message]) -> bool:
    """Whether a record ends before its last words were answered, and nobody stopped it."""
    if not messages:
        return False
    last = messages[-1]
    if last["role"] != "assistant":
        return True
    return last["stop_reason"] not in FAILED and bool(calls_of(last))
