"""A conversation in a file of its own: a log without a runtime, and so without effects."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from landed.agent.compaction import maybe_compact, needs_room
from landed.agent.effects import Seen
from landed.agent.harness import Harness, Run
from landed.agent.log_lines import STOPPED
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
        entries = log.entries()
        self._is_left = bool(entries) and entries[-1]["type"] == STOPPED

    async def hear(self, text: str, *, delivery: str) -> AsyncGenerator[Event, None]:
        """Act on what the user says; nothing is known of deliveries here."""
        if needs_room(self.harness.messages, window_tokens=self._window):
            await maybe_compact(self.harness, self._log, self._model, window_tokens=self._window)
        async with aclosing(self._driven(self.harness.prompt(text))) as events:
            async for event in events:
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
        """Return the words that the log ends with, where nobody has answered or stopped them."""
        if self._is_left or not self._is_unanswered():
            return []
        return [text_of(m) for m in self.harness.messages if m["role"] == "user"][-1:]

    async def finish(self) -> AsyncGenerator[Event, None]:
        """Go on where the log ends."""
        async with aclosing(self._driven(self.harness.resume())) as events:
            async for event in events:
                yield event

    async def _driven(self, run: Run) -> AsyncGenerator[Event, None]:
        """Yield the events of a run; what a person has stopped hard is marked as left."""
        signal, self._is_left = self.harness.signal, False
        try:
            async for event in run:
                yield event
        finally:
            await run.aclose()
            if signal is not None and signal.is_cancelled() and self._is_unanswered():
                entry = {"type": STOPPED, "by": signal.by, "reason": signal.reason}
                self._log.append_entry(entry)
                self._is_left = True

    def _is_unanswered(self) -> bool:
        last = self.harness.messages[-1] if self.harness.messages else None
        return last is not None and not (last["role"] == "assistant" and _is_over(last))

    def answer(self, account: Account | None) -> AssistantMessage | None:
        """Return the last reply, if it is the last message."""
        last = self.harness.messages[-1] if self.harness.messages else None
        return last if last is not None and last["role"] == "assistant" else None

    async def still_open(self, account: Account) -> Sequence[str]:
        """Say that nothing is open: nothing here has an effect."""
        return []


def _is_over(last: AssistantMessage) -> bool:
    return last["stop_reason"] in FAILED or not calls_of(last)
