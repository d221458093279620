"""Random programs, then a random erasure: all that is open is as it was, and every read answers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landed.core.changes import Kind, Record
from landed.core.errors import LandedError
from landed.core.keeping import Glimpse, Selection, glimpse, strands, why_not
from landed.core.key import Ask
from landed.core.plan import Wanted
from landed.runtime.reader import Reader
from landed.runtime.runtime import Runtime
from landed.stores.sqlite import SqliteStore
from landed.testing.sim import World
from tests.kept import AS_ASKED, journal_of, keeper_of, records_of, said_of, sessions_of
from tests.runtime.office import OfficeRig, proposed
from tests.runtime.rig import SELDOM

T = TypeVar("T")
EXAMPLES = 20
SECRET = "4111-1111"
CALLS = (
    Wanted(tool="draft", arguments={"amount": 500}),
    Wanted(tool="issue", arguments={"draft": "$1"}),
    Wanted(tool="mail", arguments={"invoice": "$2", "to": SECRET}),
)


@dataclass(frozen=True)
class Does:
    """One thing that is done in a session: about the how-many-th plan, with how many calls."""

    what: str
    session: int
    nth: int
    calls: int


doing = st.builds(
    Does,
    what=st.sampled_from(
        [
            *("propose", "propose", "propose", "approve", "approve", "decline", "retry", "undo"),
            *("revise", "perform", "say yes", "say no", "say more", "wait", "break", "mend"),
        ]
    ),
    session=st.integers(0, 1),
    nth=st.integers(0, 5),
    calls=st.integers(1, 3),
)
chosen = st.builds(
    Selection,
    session=st.sampled_from(["", "s0", "s1"]),
    principal=st.sampled_from(["", "ana", "nobody"]),
)
ages = st.sampled_from([0.0, 60.0, 700.0, 4_000.0, 90_000.0])


class Program:
    """Does things in two conversations, in one process that drains or is killed."""

    def __init__(self, world: World) -> None:
        self.rig = OfficeRig(world, lease=SELDOM)
        self.plans: list[tuple[str, str, str]] = []  # Plan, session, token.

    async def live(self, rt: Runtime, does: Sequence[Does]) -> None:
        for one in does:
            with suppress(LandedError):
                await self.do(rt, one, f"s{one.session}")

    async def do(self, rt: Runtime, one: Does, session: str) -> None:
        calls = CALLS[: one.calls]
        match one.what:
            case "propose":
                value = await proposed(rt, calls, said=f"for {SECRET}", session=session)
                token = value.offer.token if value.offer else ""
                self.plans.append((value.plan, session, token))
            case "perform":
                ask = Ask(session=session, call_id=f"c{one.nth}", principal="ana")
                await rt.perform("draft", {"amount": 1000 + one.nth}, ask=ask)
            case "wait":
                await asyncio.sleep(700.0 * one.nth)  # virtual time
            case "break":
                self.rig.office.refuses = {"issue", "delete"}
            case "mend":
                self.rig.office.refuses = set()
            case said if said.startswith("say "):
                await rt.receive(said.removeprefix("say "), session=session, principal="ana")
            case verb if self.plans:
                await self.decide(rt, verb, calls, *self.plans[one.nth % len(self.plans)])
            case _:
                return

    async def decide(
        self, rt: Runtime, verb: str, calls: Sequence[Wanted], plan: str, session: str, token: str
    ) -> None:
        if verb == "revise":
            heard = await rt.receive(f"no, {SECRET}", session=session, principal="ana")
            await rt.revise((await rt.plan(plan)).turn, heard, wanted=calls)
        elif verb in ("approve", "decline"):
            await getattr(rt, verb)(token=token, principal="ana", session=session)
        else:
            await getattr(rt, verb)(plan, principal="ana")

    def outside(self, act: Callable[[SqliteStore], Awaitable[T]]) -> T:
        return self.rig._outside(lambda: act(self.rig.sqlite.open_again()))


async def glimpsed(store: SqliteStore) -> list[tuple[Glimpse, ...]]:
    """Return every strand, in every conversation."""
    found: list[tuple[Glimpse, ...]] = []
    for session in await sessions_of(store):
        reader = Reader(store=store)
        await reader.records(tenant="default", session=session)
        kept = await store.keeping().kept(tenant="default", session=session)
        found += strands([glimpse(each, reader.contracts) for each in kept])
    return found


@pytest.mark.services
@pytest.mark.timeout(300)
def test_whatever_is_erased_it_holds_in_many_more_programs() -> None:
    seen = sweep(150)
    assert all(seen.values()), f"the sweep saw too little: {seen}"


@pytest.mark.timeout(120)
def test_whatever_is_erased_the_open_is_as_it_was_and_every_read_answers() -> None:
    assert sweep(EXAMPLES)["erased"]


def sweep(examples: int) -> dict[str, int]:
    seen = {"erased": 0, "refused": 0, "open": 0}

    @settings(max_examples=examples, deadline=None)
    @given(
        does=st.lists(doing, min_size=1, max_size=12),
        killed=st.one_of(st.none(), st.integers(20, 300)),
        selection=chosen,
        age_s=ages,
    )
    def run(does: Sequence[Does], killed: int | None, selection: Selection, age_s: float) -> None:
        with World() as world:
            program = Program(world)
            process = program.rig.start(lambda rt: program.live(rt, does))
            if killed is not None:
                until = world.timeline.steps + killed
                world.timeline.drive(lambda: world.timeline.steps >= until or not process.alive)
                process.kill()
            else:
                world.wait(process)
            erased_and_read(program, selection, world.clock.now() + age_s, seen)
            goes_on(program)

    run()
    return seen


def erased_and_read(
    program: Program, selection: Selection, now: float, seen: dict[str, int]
) -> None:
    before = {each.id: each for each in program.outside(records_of)}
    every = program.outside(glimpsed)
    names = dict(program.rig.sqlite._opened.reader.execute("SELECT name, record FROM name"))
    erasure = replace(AS_ASKED, at=now)
    tally = program.outside(lambda store: keeper_of(store).erase(selection, erasure))
    after = {each.id: each for each in program.outside(records_of)}
    entries = program.outside(journal_of)
    said = program.outside(lambda store: said_of(store, now=now))
    assert dict(program.rig.sqlite._opened.reader.execute("SELECT name, record FROM name")) == names
    gone = {entry.id for entry in entries if entry.event == "erased"}
    for strand in every:
        if why_not(strand, now):
            assert not gone & {each.id for each in strand}
    for id, record in before.items():
        require_true(record, after[id], is_erased=id in gone)
    meant = [each for each in every if not why_not(each, now)]
    if selection == Selection():
        assert {e.id for s in meant for e in s if e.kind in (Kind.INPUT, Kind.PLAN)} <= gone
        if len(meant) == len(every):
            assert SECRET not in "".join(said)
    seen["erased"] += tally.erased
    seen["refused"] += tally.busy
    seen["open"] += sum(each.open for each in after.values())


def require_true(before: Record, after: Record, *, is_erased: bool) -> None:
    if not is_erased:
        assert after == before
        return
    assert not before.open
    assert (after.state, after.made) == (before.state, before.made)
    assert SECRET not in repr(after)


def goes_on(program: Program) -> None:
    """Let a process take over what is there: nothing of what is erased is in its way."""
    effects = len(program.rig.office.effects)
    program.rig.run(lambda rt: asyncio.sleep(100.0))  # virtual time
    assert len(program.rig.office.effects) >= effects
