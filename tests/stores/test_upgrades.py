"""A schema of any age, with an operation in every state in it, is upgraded and worked on."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import landed
from landed.core.changes import Changes, Hold, Move
from landed.core.declared import digest_of
from landed.core.event import Event
from landed.core.journal import verify
from landed.core.operation import STATES, State
from landed.core.operation_record import from_record, to_record
from landed.core.outcome import Absent, Found, LookOutcome
from landed.core.session import contract_id, seeing
from landed.core.store import Store
from landed.core.tool import Call
from landed.runtime.parts import assemble, register
from landed.stores import opening
from landed.stores.migrate import Migration, migrations
from landed.stores.sqlite import open_sqlite
from landed.tools.function import FunctionTool
from tests.core.build import operation

pytestmark = [pytest.mark.anyio, pytest.mark.fault("X41")]

# Opens the store with a `landed` that knows no more than these migrations.
Opener = Callable[[Sequence[Migration]], Awaitable[Store]]

# What each becomes: what was out is found, what was not sent is, and the rest stays as it is.
ENDS = {
    **{state: state for state in State},
    **dict.fromkeys(
        (State.RECORDED, State.SENT, State.RESENT, State.ACCEPTED, State.UNKNOWN),
        State.CONFIRMED,
    ),
}


@dataclass
class Shop:
    """A service at which all that may have been sent has landed."""

    landed: set[str] = field(default_factory=set)
    sends: list[str] = field(default_factory=list)

    async def order(self, what: str, key: str) -> str:
        self.sends.append(key)
        self.landed.add(key)
        return what

    async def find(self, call: Call) -> LookOutcome:
        return Found(result="found") if call.key in self.landed else Absent()

    async def read_back(self, call: Call, result: object) -> LookOutcome:
        return await self.find(call)

    def tool(self) -> "FunctionTool[Any, Any]":
        return landed.tool(
            effect="irreversible",
            keyed="key",
            compares_payload=True,
            lookup=self.find,
            read_back=self.read_back,
            settlement_lag_s=30.0,
            target=("shelf/{what}",),
        )(self.order)


async def stand(store: Store, shop: Shop) -> None:
    """Have an operation of a worker that is gone stand in each state."""
    contract, now = shop.tool().contract, time.time()
    await store.commit(seeing(contract, tool="order", at=now))
    for state in State:
        id, name = f"op-{state}", f"target/default/order/shelf/{state}"
        made = operation(
            state,
            id=id,
            key=id,
            tool="order",
            arguments={"what": str(state)},
            contract=digest_of(contract),
            names=(name,),
            made_at=now,
            send_by=now + 900.0,
            session=f"of-{state}",
            version=1,
            epoch=0,
            worker="gone" if STATES[state].open else "",
        )
        if made.first_sent_at:
            made = replace(made, first_sent_at=now - 1.0, last_sent_at=now - 0.5)
            shop.landed.add(id)
        move = Move(after=to_record(made), event=Event(name="made", record=id, at=now))
        takes = (Hold(name=name, record=id),) if STATES[state].holds else ()
        await store.commit(Changes(moves=(move,), takes=takes))


async def check_upgrade(opened: Opener, known: Sequence[Migration], version: int) -> None:
    shop = Shop()
    old = await opened(known[:version])
    await stand(old, shop)
    before = await old.journal()
    await old.close()
    new = await opened(known)
    async with assemble(new, tools=register([shop.tool()]), worker="w1") as rt:
        assert rt.recovered == sum(STATES[state].open for state in State)
        for state in State:
            if STATES[state].open:
                await rt.resolve(f"op-{state}", patience_s=20.0)
        records = await new.load(*(f"op-{state}" for state in State))
        after = await new.journal()
        contracts = await new.load(contract_id(digest_of(shop.tool().contract)))
    assert {State(one.id.removeprefix("op-")): from_record(one).state for one in records} == ENDS
    assert shop.sends == ["op-recorded"], "what may have been sent is not sent again"
    assert after[: len(before)] == before, "what was written stays as it was"
    assert len(contracts) == 1
    for entry in after:
        verify(entry)


@pytest.fixture
def sqlite(path: str, monkeypatch: pytest.MonkeyPatch) -> Opener:
    async def open_at(known: Sequence[Migration]) -> Store:
        monkeypatch.setattr(opening, "migrations", lambda: known)
        return open_sqlite(path)

    return open_at


@pytest.mark.parametrize("version", [one.version for one in migrations()])
async def test_each_version_of_the_schema_in_sqlite_is_upgraded_and_recovered(
    version: int, sqlite: Opener
) -> None:
    await check_upgrade(sqlite, migrations(), version)
