"""A conversation as the chat leads it: over a runtime with effects, or alone in a file of its own.

Both offer the same verbs, so that a terminal and a script need not know which they have.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from landed.agent.effects import Seen
from landed.agent.harness import Harness
from landed.agent.loop import Account, Event
from landed.agent.messages import AssistantMessage
from landed.agent.session import AgentSession
from landed.core.question import QuestionState
from landed.core.value import Accepted, Blocked, Undecided, Unknown

OPEN = (Accepted, Blocked, Undecided, Unknown)
"""How an operation stands whose end nobody knows yet."""


class Talk(Protocol):
    """One conversation, one run at a time."""

    @property
    def harness(self) -> Harness:
        """What the runs are runs of."""
        ...

    def hear(self, text: str, *, delivery: str) -> AsyncGenerator[Event, None]:
        """Receive what the user says, durably, and act on it; the same delivery is heard once."""
        ...

    async def steer(self, text: str, *, delivery: str) -> bool:
        """Say something during a run; False where it has ended, and `hear` is what is left."""
        ...

    def watch(self, seen: Seen) -> None:
        """Tell somebody of plans as they stand, and how they come on."""
        ...

    async def left(self) -> Sequence[str]:
        """Return the words that nobody has answered yet, oldest first."""
        ...

    def finish(self) -> AsyncGenerator[Event, None]:
        """Finish what was left, without saying anything."""
        ...

    def answer(self, account: Account | None) -> AssistantMessage | None:
        """Return the last reply of the turn that an account is of, None where there is none."""
        ...

    async def still_open(self, account: Account) -> Sequence[str]:
        """Say what of a turn waits for the person, or is not known, a line for each."""
        ...


class WithEffects:
    """A conversation over a runtime."""

    def __init__(self, session: AgentSession) -> None:
        self.session = session

    @property
    def harness(self) -> Harness:
        """What the runs are runs of."""
        return self.session.harness

    async def hear(self, text: str, *, delivery: str) -> AsyncGenerator[Event, None]:
        """Receive what the user says, durably, and act on it; the same delivery is heard once."""
        async for event in await self.session.prompt(text, delivery=delivery):
            yield event

    async def steer(self, text: str, *, delivery: str) -> bool:
        """Say something during a run; False where it has ended, and `hear` is what is left."""
        return await self.session.steer(text, delivery=delivery)

    def watch(self, seen: Seen) -> None:
        """Tell somebody of plans as they stand, and how they come on."""
        self.session.seen = seen

    async def left(self) -> Sequence[str]:
        """Return the words that nobody has answered yet, oldest first."""
        return [heard.text for heard in await self.session.left()]

    async def finish(self) -> AsyncGenerator[Event, None]:
        """Finish what was left, from the records where it was begun."""
        async for event in await self.session.resume():
            yield event

    def answer(self, account: Account | None) -> AssistantMessage | None:
        """Return the last reply of the turn that an account is of, None where there is none."""
        return None if account is None else self.session.answer_to(account["turn"])

    async def still_open(self, account: Account) -> Sequence[str]:
        """Say what of a turn waits for the person, or is not known, a line for each."""
        rt = self.session.rt
        values = [await rt.status(id) for id in account["operations"]]
        told = [f"{v.operation} is not known yet" for v in values if isinstance(v, OPEN)]
        asked = await rt.driver.reader.load(*account["questions"])
        waits = [record.id for record in asked if record.state == QuestionState.OPEN]
        return [*told, *(f"{id} waits for your yes or no" for id in waits)]
