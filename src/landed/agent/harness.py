"""One conversation: its only record, one run at a time, and what the user says meanwhile.

Everybody else reads a snapshot. `prompt` begins a run and hands it to whoever drives it; `steer`,
`follow_up` and `cancel` may come from anywhere, at any time. However a run ends (exhausted, closed,
cancelled, died of an error) the record is whole up to that point, and the next prompt is taken.
"""

import asyncio
import inspect
import weakref
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Sequence,
)
from typing import Literal

from landed.agent.loop import Agent, Event, Limits, Model, SteerMode, run_agent
from landed.agent.messages import Message, UserMessage, user_message
from landed.agent.repair import holes, interrupted
from landed.agent.request import RequestStatus, WatchedModel
from landed.agent.signal import CancelToken, to_its_end
from landed.agent.tool import AgentTool

Listener = Callable[[Event], Awaitable[None] | None]
"""Hears each event of each run, after the record changed and before the consumer.

What it returns to be awaited is awaited before anything else happens, through every cancel.
"""

Repair = Literal["view", "durable"]
"""Whether a call without a result is closed in each request only, or for good in the record."""

_ENDS: dict[str, Literal["agent_end", "turn_end", "tool_execution_end"]] = {
    "agent_start": "agent_end",
    "turn_start": "turn_end",
    "tool_execution_start": "tool_execution_end",
}


class Run(AsyncIterator[Event]):
    """The events of one run; whoever takes them drives it. Close it to leave it early."""

    def __init__(self, events: AsyncGenerator[Event, None], over: Callable[[], None]) -> None:
        self._events = events
        self._over = over
        self._is_begun = False

    async def __anext__(self) -> Event:
        """Go on to the next event."""
        self._is_begun = True
        return await self._events.__anext__()

    async def aclose(self) -> None:
        """End the run where it is; what it waits for is cancelled and over."""
        self._is_begun = True
        try:
            await self._events.aclose()
        finally:
            self._over()

    def __del__(self) -> None:
        """Let go of the harness, if nobody ever took an event; else the loop closes the events."""
        if not self._is_begun:
            self._over()


class Harness:
    """Owns one transcript, and runs an agent over it, one run at a time.

    Resume a conversation by giving its `messages`: there is no other state. With `repair="durable"`
    a call that was left without a result gets one in the record at the next prompt, marked
    `synthetic`; else only what the model is shown has one.
    """

    def __init__(
        self,
        *,
        model: Model,
        tools: Sequence[AgentTool] = (),
        system: str = "",
        messages: Iterable[Message] = (),
        limits: Limits | None = None,
        repair: Repair = "view",
        steer_mode: SteerMode | str = SteerMode.AFTER_BATCH,
    ) -> None:
        self._model = WatchedModel(model)
        self._agent = Agent(
            model=self._model,
            tools=tuple(tools),
            system=system,
            limits=limits or Limits(),
            steer_mode=SteerMode(steer_mode),
        )
        self._repair = repair
        self._messages = list(messages)
        self._token: CancelToken | None = None
        self._run: weakref.ref[Run] | None = None
        self._spoken = CancelToken()
        self._steering: deque[UserMessage] = deque()
        self._follow_ups: deque[UserMessage] = deque()
        self._savers: list[Listener] = []
        self._observers: list[Listener] = []

    @property
    def messages(self) -> tuple[Message, ...]:
        """The record as it is now."""
        return tuple(self._messages)

    @property
    def is_running(self) -> bool:
        """Whether a run was begun that is not exhausted, closed or dead."""
        return self._token is not None

    @property
    def signal(self) -> CancelToken | None:
        """The signal of the run that goes on, None without one."""
        return self._token

    @property
    def request_status(self) -> RequestStatus:
        """What became of the last request: "abandoned" may still go on, and be paid for."""
        return self._model.status

    def prompt(self, said: str | UserMessage, *, before: Sequence[Message] = ()) -> Run:
        """Begin a run with what the user says, and return it; it goes on as its events are taken.

        What is to stand `before` the user's words goes into the record with them: results for calls
        that have none, or what became known meanwhile. Raises `RuntimeError` while another one is
        running.
        """
        return self._prompted([*before, _message(said)])

    def resume(self, *, before: Sequence[Message] = ()) -> Run:
        """Go on where the record ends, and return the run, as `prompt` does; nobody says anything.

        For a record whose last words were not answered: the process died, or was stopped hard.
        """
        return self._prompted([*before])

    def _prompted(self, said: list[Message]) -> Run:
        self._require_rest("already running; use steer() or follow_up()")
        token = CancelToken()
        if self._repair == "durable":
            open_still = holes([*self._messages, *said])
            said = [*map(interrupted, open_still), *said]
        run = Run(self._events(said, token), lambda: self._ended(token))
        self._token, self._run = token, weakref.ref(run)
        return run

    def steer(self, said: str | UserMessage) -> None:
        """Say something that goes in before the next turn, as soon as all calls are answered.

        Which of them are still run is up to the `steer_mode`.
        """
        self._steering.append(_message(said))
        self._spoken.cancel()

    def follow_up(self, said: str | UserMessage) -> None:
        """Say something that goes in when the run would end; if it is stopped, in the next one."""
        self._follow_ups.append(_message(said))

    def cancel(self, by: str = "", reason: str = "") -> None:
        """Ask the run to stop, and say who asks and why; without a run it does nothing."""
        if self._token is not None:
            self._token.cancel(by, reason)

    async def aclose(self) -> None:
        """Close the run, if nobody drives it any more; without a run it does nothing."""
        run = self._run() if self._run is not None else None
        if run is not None and self.is_running:
            await run.aclose()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Let a saver hear every event; return what ends that. If it raises, the run ends."""
        return _added(self._savers, listener)

    def observe(self, listener: Listener) -> Callable[[], None]:
        """Let an onlooker hear every event; return what ends that. If it raises, it is reported."""
        return _added(self._observers, listener)

    def replace_messages(self, messages: Iterable[Message]) -> None:
        """Put another record in place of this one; raises `RuntimeError` during a run."""
        self._require_rest("messages cannot be replaced during a run")
        self._messages = list(messages)

    def _require_rest(self, otherwise: str) -> None:
        if self.is_running:
            raise RuntimeError(otherwise)

    def _begun(self, said: Sequence[Message], token: CancelToken) -> AsyncGenerator[Event, None]:
        """Begin the loop: here alone, so that `landed.testing.stops` can plant others."""
        return run_agent(
            self._agent,
            said,
            self._messages,
            token,
            steering=lambda: self._steering[0] if self._steering else None,
            follow_ups=lambda: self._follow_ups[0] if self._follow_ups else None,
            spoken=lambda: self._spoken,
        )

    async def _events(
        self, said: Sequence[Message], token: CancelToken
    ) -> AsyncGenerator[Event, None]:
        events = self._begun(said, token)
        begun: list[Event] = []
        try:
            async for event in events:
                self._take(event, begun)
                await self._tell(event)
                yield event
        finally:
            try:
                await events.aclose()
            finally:
                self._ended(token)
                self._close(begun)

    def _take(self, event: Event, begun: list[Event]) -> None:
        """Keep count: what has begun, and which message of a queue is in the record now."""
        if event["type"] in _ENDS:
            begun.append(event)
        elif event["type"] in _ENDS.values():
            begun.pop()
        for queue in (self._steering, self._follow_ups):
            if queue and queue[0] is event.get("message"):
                queue.popleft()
                if not self._steering:
                    self._spoken = CancelToken()

    async def _tell(self, event: Event) -> None:
        for listener in [*self._savers]:
            if listener in self._savers:
                saving = listener(event)
                if inspect.isawaitable(saving):
                    await to_its_end(_awaited(saving))
        for listener in [*self._observers]:
            _isolated(listener, event)

    def _close(self, begun: Sequence[Event]) -> None:
        """Tell the end of all that has begun; nothing that a listener raises hides why it ends."""
        for start in reversed(begun):
            end = start.copy()
            end["type"] = _ENDS[start["type"]]
            for listener in [*self._savers, *self._observers]:
                _isolated(listener, end)

    def _ended(self, token: CancelToken) -> None:
        if self._token is token:
            self._token = self._run = None


def _added(listeners: list[Listener], listener: Listener) -> Callable[[], None]:
    def remove() -> None:
        if listener in listeners:
            listeners.remove(listener)

    listeners.append(listener)
    return remove


def _message(said: str | UserMessage) -> UserMessage:
    return user_message(said) if isinstance(said, str) else said


async def _awaited(saving: Awaitable[None]) -> None:
    await saving


def _isolated(listener: Listener, event: Event) -> None:
    """Tell a listener whose failure is reported, and hides nothing; it is not waited for."""
    try:
        telling = listener(event)
    except Exception as error:
        _report(event, error)
        return
    if inspect.isawaitable(telling):
        going_on = asyncio.ensure_future(_awaited(telling))
        going_on.add_done_callback(lambda ended: _ended(event, ended))


def _ended(event: Event, ended: "asyncio.Future[None]") -> None:
    if not ended.cancelled() and (error := ended.exception()) is not None:
        _report(event, error)


def _report(event: Event, error: BaseException) -> None:
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"a listener failed at {event['type']}", "exception": error}
    )
