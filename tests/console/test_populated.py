"""The store that `landed serve --demo` opens with has something in every list of the console."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

import landed
from landed.core.case import Why
from landed.core.changes import Kind, Record
from landed.core.errors import LandedError
from landed.core.operation import State
from landed.core.plan import PlanState
from landed.runtime.runtime import Runtime
from landed.testing.populated.place import SETTINGS, place
from landed.testing.populated.scenes import SCENES, Stage, populate

PERSON = "ana"
WANTED_PLANS = {
    *(PlanState.PROPOSED, PlanState.RUNNING, PlanState.IN_DOUBT, PlanState.DONE),
    *(PlanState.PARTIAL, PlanState.UNDONE, PlanState.DECLINED, PlanState.ABANDONED),
    PlanState.SUPERSEDED,
}


@asynccontextmanager
async def opened(url: str = "sqlite://:memory:") -> AsyncGenerator[Runtime]:
    """The runtime of the demo, with nothing in its store."""
    with place(PERSON) as there:
        async with landed.open(
            url, tools=there.tools, permissions=there.permissions, settings=SETTINGS
        ) as rt:
            yield rt


def played(then: Callable[[Runtime], Awaitable[None]]) -> None:
    """Populate a store, and see what is in it; each page takes no time to be printed."""

    async def play() -> None:
        async with opened() as rt:
            await populate(rt, person=PERSON, seconds=5)
            await then(rt)

    asyncio.run(play())


async def records(rt: Runtime) -> list[Record]:
    """Every record there is, once."""
    entries = await rt.driver.store.journal(limit=5000)
    ids = dict.fromkeys(entry.id for entry in entries)
    return list(await rt.driver.store.load(*ids))


def test_every_list_has_something_in_it() -> None:
    async def see(rt: Runtime) -> None:
        held = await records(rt)
        of_kind = {kind: {str(r.state) for r in held if r.kind is kind} for kind in Kind}
        assert of_kind[Kind.PLAN] >= {str(state) for state in WANTED_PLANS}
        assert of_kind[Kind.OPERATION] >= {State.SENT, State.UNKNOWN, State.FAILED}
        assert "owed" in of_kind[Kind.RELEASE]
        assert {case.why for case in await rt.inbox()} >= {Why.UNDECIDED, Why.UNRECORDED}
        (undecided,) = [case for case in await rt.inbox() if case.why is Why.UNDECIDED]
        assert undecided.evidence

    played(see)


def test_what_waits_has_figures_look_alikes_and_words_to_type() -> None:
    async def see(rt: Runtime) -> None:
        asked = [r for r in await records(rt) if r.kind is Kind.QUESTION and r.state == "open"]
        texts = {r.session: str(r.frozen["text"]) for r in asked}
        refund = "refund 200.00 of 4412: 100.00 refunded before, 300.00 after"
        alike = "Possible duplicate: D1 for Marta, 605.00"
        assert refund in texts["order-4412"]
        assert alike in texts["marta-again"]
        assert alike in texts["trip"]
        assert "Type 3 or DELETE" in texts["trip"]
        assert "Marta's studio" in texts["parcels"]

    played(see)


def test_a_store_that_had_a_demo_takes_no_other(tmp_path: object) -> None:
    async def play() -> None:
        async with opened(f"sqlite:///{tmp_path}/demo.db") as rt:
            await SCENES[0](Stage(rt=rt, person=PERSON))
            with pytest.raises(LandedError, match="name a new one"):
                await populate(rt, person=PERSON)

    asyncio.run(play())
