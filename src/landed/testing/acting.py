"""The agent that a scenario's script acts through: it hears, has its model read, and acts.

A script runs again from its start in every process, as any durable program would: what was heard,
proposed and revised before is joined by its delivery and its call id, and done once.
"""

import asyncio
from dataclasses import dataclass

from landed.core.changes import Kind
from landed.core.doubt import pause_s
from landed.core.history import Item, View
from landed.core.operation import Operation, State
from landed.core.operation_record import from_record
from landed.core.session import Input
from landed.core.store import Store
from landed.core.value import PlanValue, Unknown, Value
from landed.runtime.reader import Reader
from landed.runtime.runtime import Runtime
from landed.testing.models import Change, ScriptedModel, Wanted
from landed.testing.timeline import Timeline

SESSION = "s1"
TENANT = "default"
LOOKS_MAX = 100
TICK_S = 0.05
LOOK_S = 0.005
SOON_S = 1.0
SEEN_MAX_S = 120.0


@dataclass(slots=True, eq=False)
class Agent:
    """What a script acts through: one process of the agent, with its runtime and its model."""

    rt: Runtime
    model: ScriptedModel
    timeline: Timeline
    messages: list[str]
    session: str = SESSION

    async def hear(self, text: str, *, delivery: str) -> tuple[Input, tuple[Wanted, ...]]:
        """Receive the user's words and have the model read them."""
        received = await self.rt.receive(
            text, session=self.session, principal="ana", delivery=self._sent_as(delivery)
        )
        calls = self.model.read(text)
        asked = ", ".join(map(str, calls))
        self.timeline.add("model.read", f"{received.turn}: {asked}")
        return received, calls

    async def start(
        self, text: str, *, delivery: str, origin: str = "user"
    ) -> "tuple[Input, asyncio.Future[PlanValue]]":
        """Receive words that want something, and begin to carry that out as one plan."""
        heard = await self._listen(text, delivery=delivery, origin=origin)
        intent = self.model.intent(text)
        said = ", ".join(f"{name}={value}" for name, value in intent.items())
        self.timeline.add("model.read", f"{heard.turn}: {said}")
        proposed = self.rt.propose(ask=heard.ask("plan"), intent=intent, origin=origin)
        return heard, asyncio.ensure_future(proposed)

    async def carry_out(self, text: str, *, delivery: str, origin: str = "user") -> PlanValue:
        """Receive words that want something, and carry that out as one plan."""
        _, plan = await self.start(text, delivery=delivery, origin=origin)
        return await plan

    async def change(self, turn: str, text: str, *, delivery: str, origin: str = "user") -> Input:
        """Receive words that change what a turn wants, and carry the change out."""
        heard, carried_out = await self.begin_change(turn, text, delivery=delivery, origin=origin)
        await carried_out
        return heard

    async def begin_change(
        self, turn: str, text: str, *, delivery: str, origin: str = "user"
    ) -> "tuple[Input, asyncio.Future[None]]":
        """Receive words that change what a turn wants, and begin to carry the change out."""
        heard = await self._listen(text, delivery=delivery, origin=origin)
        change = self.model.change(text)
        self.timeline.add("model.read", f"revises {turn}: {change}")
        return heard, asyncio.ensure_future(self._act_on(heard, turn, change))

    async def _act_on(self, heard: Input, turn: str, change: Change) -> None:
        if change.claim:
            for operation in await self._in_doubt():
                await self.rt.ask(heard, change.unsure, claim=change.claim, operation=operation)
        elif change.unsure:
            await self.rt.ask(heard, change.unsure, turn=turn)
        else:
            also = {"also": dict(change.also)} if change.also else {}
            changed = {**change.change, **also}
            await self.rt.revise(turn, heard, change=changed, drop=change.drop)

    async def _in_doubt(self) -> list[str]:
        """Return what nobody could tell about: one operation, or none once that is settled."""
        _, operations = await read_session(self.rt.driver.store, self.session)
        return [o.id for o in operations if o.state is State.UNDECIDED][:1]

    async def until(self, type: str, words: str) -> None:
        """Wait until the timeline has such a line, for `SEEN_MAX_S` at most."""
        began = self.timeline.now()
        while (waited_s := self.timeline.now() - began) < SEEN_MAX_S:
            self.timeline.services(self.timeline)
            if any(line.type == type and words in line.text for line in self.timeline.lines):
                return
            await asyncio.sleep(LOOK_S if waited_s < SOON_S else TICK_S)

    async def _listen(self, text: str, *, delivery: str, origin: str = "user") -> Input:
        return await self.rt.receive(
            text,
            session=self.session,
            principal="ana",
            delivery=self._sent_as(delivery),
            origin=origin,
        )

    def _sent_as(self, delivery: str) -> str:
        """Return the delivery's id in the whole store, in which others may speak too."""
        return f"{self.session}/{delivery}"

    async def say(self, text: str, *, delivery: str) -> Input:
        """Receive words that answer a question, and wait until what they decide is at rest."""
        heard = await self._listen(text, delivery=delivery)
        await self.quiet()
        return heard

    async def quiet(self) -> None:
        """Wait until nothing of the session is open any more."""
        store, worker = self.rt.driver.store, self.rt.driver.worker
        for looks in range(LOOKS_MAX):
            await asyncio.sleep(pause_s(looks) or TICK_S)
            if not await store.open_records(tenant=TENANT, session=self.session, worker=worker):
                return

    async def do(self, heard: Input, call: Wanted, *, call_id: str = "") -> Value:
        """Perform one call that the model asked for."""
        ask = heard.ask(call_id or call.call_id)
        return await self.rt.perform(call.tool, call.arguments, ask=ask)

    async def rest(self, heard: Input) -> None:
        """Wait until nothing that was done for the turn is in doubt, or nobody can tell."""
        for looks in range(LOOKS_MAX):
            report = await self.rt.report(heard.turn)
            values = [await self.rt.status(id) for id in report.operations]
            unknown = [value for value in values if isinstance(value, Unknown)]
            if not unknown:
                return
            await asyncio.sleep(pause_s(looks))
            for value in unknown:
                await self.rt.resolve(value.operation)

    async def answer(self, heard: Input) -> None:
        """Tell the user what became of the turn, from the records."""
        report = await self.rt.report(heard.turn)
        self.messages.append(report.text)


async def read_session(
    store: Store, session: str = SESSION, *, view: View = View.CACHE
) -> tuple[tuple[Item, ...], list[Operation]]:
    """Return what the model is shown of a session, and its operations; nothing is claimed."""
    reader = Reader(store=store)
    items = await reader.history(session, tenant=TENANT, view=view)
    records = await reader.records(tenant=TENANT, session=session)
    return items, [from_record(r) for r in records if r.kind is Kind.OPERATION]
