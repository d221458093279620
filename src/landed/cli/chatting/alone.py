"""A conversation in a file of its own: a log without a runtime, and so without effects."""

from collections.abc import AsyncGenerator, Sequence

from landed.agent.compaction import maybe_compact, needs_room
from landed.agent.effects import Seen
from landed.agent.harness import Harness
from landed.agent.loop import Account, Event, Model
from landed.agent.messages import FAILED, AssistantMessage, calls_of, text_of
from landed.agent.session_log import SessionLog, persist_to


class Alone:
    """A conversation whose tools change nothing."""

    def __init__(self, harness: Harness, log: SessionLog, model: Model, *, window: int) -> None:
        self.harness = harness
        harness.subscribe(persist_to(log))
        self._log = log
        self._model = model
        self._window = window

    async def hear(self, text: str, *, delivery: str) -> AsyncGenerator[Event, None]:
        """Act on what the user says; nothing is known of deliveries here."""
        if needs_room(self.harness.messages, window_tokens=self._window):
            await maybe_compact(self.harness, self._log, self._model, window_tokens=self._window)
        async for event in self.harness.prompt(text):
            yield event

    async def steer(self, text: str, *, delivery: str) -> bool:
        """Say something during a run; False where it has ended, and `hear` is what is left."""
        if self.harness.is_running:
            self.harness.steer(text)
            return True
        return False

    def watch(self, seen: Seen) -> None:
        """Do nothing: there are no plans."""

    async def left(self) -> Sequence[str]:
        """Return the words that the log ends with, where nobody has answered them yet."""
        messages = self.harness.messages
        last = messages[-1] if messages else None
        if last is None or (last["role"] == "assistant" and _is_over(last)):
            return []
        return [text_of(m) for m in messages if m["role"] == "user"][-1:]

    async def finish(self) -> AsyncGenerator[Event, None]:
        """Go on where the log ends."""
        async for event in self.harness.resume():
            yield event

    def answer(self, account: Account | None) -> AssistantMessage | None:
        """Return the last reply, if it is the last message."""
        last = self.harness.messages[-1] if self.harness.messages else None
        return last if last is not None and last["role"] == "assistant" else None

    async def still_open(self, account: Account) -> Sequence[str]:
        """Say that nothing is open: nothing here has an effect."""
        return []


def _is_over(last: AssistantMessage) -> bool:
    return last["stop_reason"] in FAILED or not calls_of(last)
