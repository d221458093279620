"""What is out in the world: starting a send or a question, and handing over what comes back."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from landed.core.absorb import CameBack, Looked, Question, Replied
from landed.core.arrival import Checked, Observed, Priced, Readied
from landed.core.canonical import Json
from landed.core.contract import Contract
from landed.core.key import Ask
from landed.core.onlooker import NOBODY, Onlooker
from landed.core.operation import Operation
from landed.core.outcome import (
    AnswerLost,
    LookOutcome,
    NoAnswer,
    NotSent,
    Prepared,
    SendOutcome,
)
from landed.core.scope import (
    Asking,
    AskPrice,
    Check,
    Checking,
    Pricing,
    Running,
    Sending,
    Watch,
    Watching,
)
from landed.core.tool import Call, Tool
from landed.runtime.clock import Clock
from landed.runtime.observing import looked
from landed.runtime.sending import Lingering, Stop, answered, prepared, said, sent

UNCHECKED = "nobody could say whether it may still be done as it was agreed"


@dataclass(slots=True, eq=False)
class Calls:
    """The sends, questions and reads of one loop that this process is waiting for.

    `tell` takes what came back; `over` is called when a send has left its place to the next one.
    """

    tools: Mapping[str, Tool]
    contracts: Mapping[str, Contract]
    clock: Clock
    tell: Callable[[CameBack | Observed | Priced | Checked | Readied], None]
    over: Callable[[Operation], None]
    checker: Callable[[Check], Awaitable[Checked]]
    heard: Callable[[str, SendOutcome], None]
    onlooker: Onlooker = NOBODY
    running: dict[Running, "asyncio.Task[None]"] = field(
        default_factory=dict[Running, "asyncio.Task[None]"]
    )
    stops: dict[Sending, Stop] = field(default_factory=dict[Sending, Stop])
    lingering: dict[Lingering, str] = field(default_factory=dict[Lingering, str])

    def send(self, operation: Operation) -> None:
        """Start the send that the record says is out."""
        sending = Sending(operation=operation.id, attempt=operation.tries)
        self.running[sending] = task = asyncio.ensure_future(self._send(operation))
        task.add_done_callback(partial(self._send_over, sending, operation))

    def never_sent(self, operation: Operation, reason: str) -> None:
        """Say of a recorded send that it did not leave."""
        self._replied(operation, NotSent(reason=reason))
        self.over(operation)

    def ask(self, operation: Operation, question: Question) -> None:
        """Start a question."""
        asking = Asking(operation=operation.id)
        self.running[asking] = task = asyncio.ensure_future(self._ask(operation, question))
        task.add_done_callback(partial(self._ask_over, asking, operation, question))

    def prepare(self, operation: Operation) -> None:
        """Start computing what every send will use; bounded as a send is."""
        preparing = Asking(operation=operation.id)

        async def run() -> None:
            tool = self.tools.get(operation.tool)
            outcome: Prepared | NoAnswer = NoAnswer(reason=_unregistered(operation.tool))
            if tool is not None:
                outcome = await prepared(tool, self._call(operation))
            self.running.pop(preparing, None)
            self.tell(Readied(operation=operation.id, outcome=outcome))

        def over(ended: "asyncio.Task[None]") -> None:
            if self.running.get(preparing) is ended:
                del self.running[preparing]
                lost = NoAnswer(reason=_without_a_word(ended))
                self.tell(Readied(operation=operation.id, outcome=lost))

        self.running[preparing] = task = asyncio.ensure_future(run())
        task.add_done_callback(over)

    def watch(self, command: Watch) -> None:
        """Start a read that is a step of a plan."""
        plan, index = command.plan, command.index
        step = plan.steps[index]
        watching = Watching(plan=plan.id, index=index, observation=command.observation)

        def came_back(outcome: SendOutcome) -> None:
            self.tell(
                Observed(
                    plan=plan.id,
                    index=index,
                    observation=command.observation,
                    outcome=outcome,
                    at=self.clock.now(),
                )
            )

        read = self._read(step.tool, command.arguments, plan.ask, command.observation)
        self._start(watching, read, came_back)

    def price(self, command: AskPrice) -> None:
        """Start asking what an undo costs."""

        def came_back(outcome: SendOutcome) -> None:
            self.tell(
                Priced(
                    release=command.release,
                    observation=command.observation,
                    outcome=outcome,
                    at=self.clock.now(),
                )
            )

        read = self._read(command.tool, command.arguments, command.ask, command.observation)
        self._start(Pricing(release=command.release), read, came_back)

    def check(self, command: Check) -> None:
        """Start asking whether a step, or an undo, may still be carried out."""
        checking = Checking(subject=command.subject, index=command.index)
        lost = Checked(subject=command.subject, index=command.index, refused=UNCHECKED)

        async def run() -> None:
            came = await self.checker(command)
            self.running.pop(checking, None)
            self.tell(came)

        def over(ended: "asyncio.Task[None]") -> None:
            if self.running.pop(checking, None) is not None:
                reason = f"{UNCHECKED}: {_without_a_word(ended)}"
                self.tell(replace(lost, refused=reason))

        self.running[checking] = task = asyncio.ensure_future(run())
        task.add_done_callback(over)

    def _start(
        self,
        running: Running,
        read: Coroutine[object, object, SendOutcome],
        came_back: Callable[[SendOutcome], None],
    ) -> None:
        async def run() -> None:
            outcome = await read
            self.running.pop(running, None)
            came_back(outcome)

        def over(ended: "asyncio.Task[None]") -> None:
            if self.running.pop(running, None) is not None:
                came_back(AnswerLost(reason=_without_a_word(ended)))

        self.running[running] = task = asyncio.ensure_future(run())
        task.add_done_callback(over)

    async def _read(
        self, name: str, arguments: Mapping[str, Json], ask: Ask, id: str
    ) -> SendOutcome:
        tool = self.tools.get(name)
        if tool is None:
            return NotSent(reason=_unregistered(name))
        return await looked(tool, arguments, ask, id=id, clock=self.clock)

    def stop_waiting(self, operation: Operation) -> None:
        """End a send that can be ended; a thread goes on, and its late return is evidence."""
        task = self.running.get(Sending(operation=operation.id, attempt=operation.tries))
        tool = self.tools.get(operation.tool)
        if task is not None and tool is not None and tool.interruptible:
            task.cancel()

    def stop_midway(self, operation: Operation) -> None:
        """Tell a call that takes the stop token that it may end early."""
        token = self.stops.get(Sending(operation=operation.id, attempt=operation.tries))
        if token is not None:
            token.cancel()

    def shut_down(self, operation: Operation) -> None:
        """Stop waiting because this process ends: it is in doubt, and still wanted."""
        self.stop_waiting(operation)
        reason = "the process that sent it was shut down before the answer came"
        self._replied(operation, AnswerLost(reason=reason))

    @property
    def sends(self) -> bool:
        """Whether a send is in flight."""
        return any(isinstance(running, Sending) for running in self.running)

    def is_out(self, operation: str) -> bool:
        """Whether anything about the operation is still out, or a thread of it goes on."""
        if operation in self.lingering.values():
            return True
        return any(
            isinstance(running, Sending | Asking) and running.operation == operation
            for running in self.running
        )

    def _linger(self, operation: Operation, going_on: Lingering) -> None:
        self.lingering[going_on] = operation.id
        going_on.add_done_callback(partial(self._came_late, operation))

    def _came_late(self, operation: Operation, ended: Lingering) -> None:
        del self.lingering[ended]
        if not ended.cancelled() and ended.exception() is None:
            self._replied(operation, ended.result())

    def _send_over(
        self, sending: Sending, operation: Operation, ended: "asyncio.Task[None]"
    ) -> None:
        self.stops.pop(sending, None)
        if sending in self.running:
            lost = AnswerLost(reason=_without_a_word(ended))
            self._replied(operation, lost, bug=_bug(ended))
        self.over(operation)

    def _ask_over(
        self,
        asking: Asking,
        operation: Operation,
        question: Question,
        ended: "asyncio.Task[None]",
    ) -> None:
        if self.running.get(asking) is ended:
            lost = NoAnswer(reason=_without_a_word(ended))
            asked_at = self.clock.now()
            self._answered(operation, question, lost, asked_at=asked_at, bug=_bug(ended))

    async def _send(self, operation: Operation) -> None:
        tool = self.tools.get(operation.tool)
        if tool is None:
            self._replied(operation, NotSent(reason=_unregistered(operation.tool)))
            return
        call = self._call(operation)
        left_s = call.deadline_at - self.clock.now()
        if left_s <= 0:  # The process slept: sent now, it could outlive the key's retention.
            self._replied(operation, NotSent(reason="its deadline was over before it left"))
            return
        sending = Sending(operation=operation.id, attempt=operation.tries)
        if tool.contract.stops_midway:
            self.stops[sending] = token = Stop()
            call = replace(call, stop=token)
        call = self._watched(operation, None, call)
        outcome = await sent(
            tool,
            call,
            seconds=left_s,
            lingers=partial(self._linger, operation),
        )
        self._replied(operation, outcome)

    async def _ask(self, operation: Operation, question: Question) -> None:
        asked_at = self.clock.now()
        tool = self.tools.get(operation.tool)
        if tool is None:
            outcome: LookOutcome = NoAnswer(reason=_unregistered(operation.tool))
        else:
            call = self._watched(operation, question, self._call(operation))
            outcome = await answered(tool, call, question, operation.result)
        self._answered(operation, question, outcome, asked_at=asked_at)

    def _answered(
        self,
        operation: Operation,
        question: Question,
        outcome: LookOutcome,
        *,
        asked_at: float,
        bug: str = "",
    ) -> None:
        self.running.pop(Asking(operation=operation.id), None)
        now = self.clock.now()
        self.onlooker.came_back(operation, question, outcome, at=now, bug=bug)
        self.tell(
            Looked(
                operation=operation.id,
                question=question,
                attempt=operation.tries,
                outcome=outcome,
                asked_at=asked_at,
                at=now,
            )
        )

    def _watched(self, operation: Operation, question: Question | None, call: Call) -> Call:
        """Say that a call leaves, and return it with what the service's own trace follows."""
        trace = self.onlooker.leaves(operation, question, at=self.clock.now())
        return replace(call, trace=trace) if trace else call

    def _replied(self, operation: Operation, outcome: SendOutcome, *, bug: str = "") -> None:
        self.heard(self.contracts[operation.contract].service, outcome)
        self.running.pop(Sending(operation=operation.id, attempt=operation.tries), None)
        now = self.clock.now()
        self.onlooker.came_back(operation, None, outcome, at=now, bug=bug)
        self.tell(Replied(operation=operation.id, attempt=operation.tries, outcome=outcome, at=now))

    def _call(self, operation: Operation) -> Call:
        deadline_s = self.contracts[operation.contract].deadline_s
        return Call(
            operation=operation.id,
            tool=operation.tool,
            key=operation.key,
            arguments=operation.arguments,
            ask=operation.ask,
            epoch=operation.epoch,
            prepared=operation.prepared,
            attempt=operation.tries,
            sent_at=operation.last_sent_at,
            deadline_at=operation.last_sent_at + deadline_s,
        )


def _without_a_word(ended: "asyncio.Task[None]") -> str:
    """Say how a call ended that came back with nothing: cut off, or by no ordinary error."""
    error = None if ended.cancelled() else ended.exception()
    return "it was cut off" if error is None else said(error)


def _bug(ended: "asyncio.Task[None]") -> str:
    """Name the error that a call ended with which it should have caught; "" for none."""
    error = None if ended.cancelled() else ended.exception()
    return "" if error is None else type(error).__name__


def _unregistered(tool: str) -> str:
    return f"the tool {tool!r} is not registered here"
