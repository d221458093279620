"""A restaurant in memory, its tools, and an agent's conversation about them: for tests."""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import landed
from landed.agent.loop import Account, Event
from landed.agent.messages import Message, text_of
from landed.agent.session import AgentSession, Setting
from landed.core.tool import Call
from landed.testing.scripted import ScriptedReplies

SAYS = {"en": {"confirmed": "booked {id} ({day})"}}


@dataclass(slots=True, eq=False)
class Far:
    """What the far side holds.

    `reply` and `request` are events that a send waits for, `look` one that a lookup waits for.
    """

    tables: dict[str, str] = field(default_factory=dict[str, str])
    texts: list[str] = field(default_factory=list[str])
    closed: set[str] = field(default_factory=set[str])
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    request: asyncio.Event | None = None
    reply: asyncio.Event | None = None
    can_look: bool = True
    look: asyncio.Event | None = None
    on_interrupt: Literal["finish", "stop_and_resolve"] = "stop_and_resolve"

    def tools(self) -> Sequence[object]:
        """Return what an agent may call here."""

        async def look(call: Call) -> landed.Found | landed.Absent | landed.NoAnswer:
            if self.look is not None:
                await self.look.wait()
            if not self.can_look:
                return landed.NoAnswer(reason="nobody answers the phone")
            return self._held(call.key)

        async def close(call: Call) -> landed.Found | landed.Absent | landed.NoAnswer:
            self.closed.add(call.key)
            return await look(call)

        @landed.tool(effect="none")
        async def free(day: str) -> dict[str, bool]:
            """Say whether there is a table."""
            return {"free": True}

        @landed.tool(
            effect="reversible",
            keyed="key",
            lookup=look,
            close=close,
            on_interrupt=self.on_interrupt,
            says=SAYS,
        )
        async def reserve(day: str, key: str) -> dict[str, str]:
            """Reserve a table."""
            await self._book(day, key)
            return {"id": self._id(key)}

        @landed.tool(
            effect="irreversible",
            keyed="key",
            risk="confirm",
            says={"en": {"confirmed": "texted {to}"}},
        )
        async def text(to: str, key: str) -> str:
            """Send a text."""
            self.texts.append(to)
            return "sent"

        return (free, reserve, text)

    async def _book(self, day: str, key: str) -> None:
        if self.request is not None:
            self.arrived.set()
            await self.request.wait()
        if key in self.closed:
            raise landed.RefusedError(f"{key} is closed")
        self.tables.setdefault(key, day)
        self.arrived.set()
        if self.reply is not None:
            await self.reply.wait()

    def _held(self, key: str) -> landed.Found | landed.Absent:
        if key in self.tables:
            return landed.Found(result={"id": self._id(key)})
        return landed.Absent()

    def _id(self, key: str) -> str:
        return f"R{list(self.tables).index(key) + 1}"


@asynccontextmanager
async def conversation(
    far: Far,
    model: Any,
    *,
    store: str = "sqlite://:memory:",
    setting: Setting | None = None,
    settings: landed.Settings | None = None,
) -> AsyncGenerator[AgentSession]:
    """Open a store with the restaurant's tools, and ana's conversation about them."""
    async with landed.open(store, tools=far.tools(), settings=settings) as rt:
        yield await AgentSession.begin(
            rt, model=model, session="s1", principal="ana", setting=setting
        )


async def hears(session: AgentSession, words: str, **more: Any) -> list[Event]:
    """Have the agent act on some words; return the events."""
    return [event async for event in await session.prompt(words, **more)]


def account_of(events: Sequence[Event]) -> Account:
    """Return the account that ends a run."""
    assert "account" in events[-1]
    return events[-1]["account"]


def result_of(messages: Sequence[Message], call: str) -> str:
    """Return the last result of a call."""
    found = [m for m in messages if m["role"] == "toolResult" and m["tool_call_id"] == call]
    return text_of(found[-1])


def operation_in(text: str) -> str:
    """Return the operation that a text names."""
    found = re.search(r"op-[0-9a-z]+", text)
    assert found is not None, text
    return found.group()


def asked(model: ScriptedReplies) -> Sequence[Message]:
    """Return the last request to a model."""
    return model.calls[-1].messages
