"""Lists of what waits, what is under way and what is done: each thing once, by page, one's own."""

import asyncio
from collections.abc import Iterator

import pytest

from landed.core.errors import StoreError
from landed.core.key import Ask
from landed.core.operation import State
from landed.core.plan import PlanState
from landed.core.store import Page
from landed.runtime.listing import Lines, Listing
from landed.runtime.runtime import Runtime
from landed.testing.sim import World
from tests.runtime.office import INVOICE as TO_AGREE
from tests.runtime.office import OfficeRig, proposed
from tests.runtime.plan_rig import ANA, calls, propose, shelf
from tests.runtime.rig import DROPPED, Rig, Wire, booking, unkeyed
from tests.runtime.stores import Wrapped

SLOW = Wire(replies_s=10.0)
LONG = {"deadline_s": 100.0}


@pytest.fixture
def office() -> Iterator[OfficeRig]:
    """An office in a world of its own."""
    with World() as world:
        yield OfficeRig(world)


def listing(rt: Runtime, principal: str | None = None) -> Listing:
    """The lists of a runtime, as of now."""
    reader = rt.driver.reader
    now = rt.driver.clock.now()
    owners = None if principal is None else {"", principal}
    return Listing(reader=reader, tenant="default", now=now, owners=owners)


def seen(page: Lines) -> list[str]:
    """What a page is about: the plan's id, or the operation's; then its operations."""
    return [line.subject.id for line in page.lines]


def test_what_is_under_way_is_listed_with_the_operations_of_each_plan(rig: Rig) -> None:
    rig.far.wire += [SLOW, SLOW]

    async def script(rt: Runtime) -> tuple[Lines, Lines]:
        plan = asyncio.create_task(propose(rt, calls("put", "a", "b")))
        alone = asyncio.create_task(rt.perform("book", {"day": "Fri"}, ask=Ask(session="s2")))
        await asyncio.sleep(1.0)  # virtual time
        under_way = await listing(rt).running()
        await asyncio.gather(plan, alone)
        return under_way, await listing(rt).running()

    tools = (*shelf(rig.far, **LONG), booking(rig.far, **LONG))
    under_way, later = rig.run(script, *tools)

    of_alone, of_plan = under_way.lines
    assert of_plan.plan is not None
    assert [each.tool for each in of_plan.operations] == ["put"]
    assert "0 of 2" in of_plan.text
    assert (of_alone.plan, of_alone.subject.state) == (None, State.SENT)
    assert (of_alone.what, under_way.next) == ("book(day=Fri)", None)
    assert later == Lines(lines=(), next=None)


def test_what_is_done_is_listed_once_and_the_last_first(rig: Rig) -> None:
    async def script(rt: Runtime) -> list[Lines]:
        await rt.perform("book", {"day": "Fri"}, ask=Ask(session="s2"))
        kept = await propose(rt, calls("put", "a", "b"))
        taken = await propose(rt, calls("put", "c"), text="one more", session="s3")
        await rt.undo(taken.plan, principal=ANA)
        await rt.perform("book", {"day": "Sat"}, ask=Ask(session="s2"))
        assert kept.plan != taken.plan
        first = await listing(rt).done(limit=2)
        assert first.next is not None
        return [first, await listing(rt).done(first.next)]

    first, second = rig.run(script, *shelf(rig.far), booking(rig.far))

    saturday, undone = first.lines
    assert saturday.what == "book(day=Sat)"
    assert undone.plan is not None
    assert undone.plan.state is PlanState.UNDONE
    assert [each.tool for each in undone.operations] == ["put", "take_off"]
    kept, friday = second.lines
    assert [each.tool for each in kept.operations] == ["put", "put"]
    assert kept.undo_by is not None
    assert (undone.undo_by, friday.what) == (None, "book(day=Fri)")


def test_what_waits_for_a_person_is_listed_apart_until_it_is_too_late(office: OfficeRig) -> None:
    async def script(rt: Runtime) -> list[list[str]]:
        value = await proposed(rt, TO_AGREE)
        lists = [await listing(rt).waiting(), await listing(rt).running(), await listing(rt).done()]
        await asyncio.sleep(3700.0)  # virtual time
        late = [await listing(rt).waiting(), await listing(rt).done()]
        expired = late[1].lines[0].plan
        assert expired is not None
        assert (seen(lists[0]), expired.state) == ([value.plan], PlanState.EXPIRED)
        return [seen(each) for each in (*lists[1:], late[0])]

    assert office.run(script) == [[], [], []]


def test_what_a_person_has_to_rule_on_is_not_under_way_nor_done(rig: Rig) -> None:
    rig.far.wire.append(DROPPED)

    async def script(rt: Runtime) -> list[Lines]:
        await rt.perform("mail", {"to": "ana"})
        return [await listing(rt).running(), await listing(rt).done()]

    mail = unkeyed(rig.far, when_unknown="escalate")
    assert rig.run(script, mail) == [Lines(lines=(), next=None)] * 2
    assert rig.states() == [State.UNDECIDED]


def test_what_a_plan_that_is_over_left_in_doubt_has_a_line_of_its_own(rig: Rig) -> None:
    rig.far.wire.append(Wire(arrives_s=None))
    rig.far.silent_questions = 100

    async def script(rt: Runtime) -> tuple[Lines, Lines]:
        first = asyncio.create_task(propose(rt, calls("put", "a")))
        await asyncio.sleep(1.0)  # virtual time
        (line,) = (await listing(rt).running()).lines
        assert line.plan is not None
        heard = await rt.receive("rather b", principal=ANA)
        await rt.revise(line.plan.turn, heard, wanted=calls("put", "b"), patience_s=20.0)
        await first
        return await listing(rt).running(), await listing(rt).done()

    tools = shelf(rig.far, while_unknown="replace", **LONG)
    under_way, over = rig.run(script, *tools)

    assert PlanState.SUPERSEDED in [line.subject.state for line in over.lines]
    assert [(line.plan, line.what) for line in under_way.lines] == [(None, "put(what=a)")]


def test_somebody_is_shown_what_is_theirs_and_what_is_nobodys(rig: Rig) -> None:
    async def script(rt: Runtime) -> dict[str | None, list[str]]:
        for principal, session in (("ana", "s1"), ("bo", "s2"), ("", "s3")):
            heard = await rt.receive("book", principal=principal, session=session)
            await rt.perform("book", {"day": session}, ask=heard.ask("a"))
        people: tuple[str | None, ...] = (None, "ana", "cleo")
        lists = {each: await listing(rt, each).done() for each in people}
        return {who: [line.what[-3:-1] for line in page.lines] for who, page in lists.items()}

    found = rig.run(script, booking(rig.far))
    assert found == {None: ["s3", "s2", "s1"], "ana": ["s3", "s1"], "cleo": ["s3"]}


def test_plans_and_operations_are_listed_by_their_state(rig: Rig) -> None:
    rig.far.wire.append(Wire(arrives_s=1.0, refused="closed"))

    async def script(rt: Runtime) -> list[list[str]]:
        broken = await propose(rt, calls("put", "a"))
        done = await propose(rt, calls("put", "b"), text="again", session="s2")
        lists = listing(rt)
        assert seen(await lists.plans(PlanState.PARTIAL)) == [broken.plan]
        assert seen(await lists.plans(PlanState.RUNNING)) == []
        assert seen(await lists.plans()) == [done.plan, broken.plan]
        return [
            seen(await lists.operations(State.CONFIRMED)),
            seen(await lists.operations(State.UNKNOWN)),
            seen(await lists.operations()),
        ]

    confirmed, unknown, every = rig.run(script, *shelf(rig.far))
    assert confirmed == list(rig.far.results)
    assert (unknown, len(every)) == ([], 2)


class PagesCounted(Wrapped):
    """Counts how many records a store was asked for by listings."""

    asked = 0

    async def listed(self, **asked: object) -> Page:
        assert isinstance(asked["limit"], int)
        PagesCounted.asked += asked["limit"]
        return await self.inner.listed(**asked)


def test_a_page_looks_at_a_bounded_number_however_much_is_somebody_elses(rig: Rig) -> None:
    rig.wrap = PagesCounted
    PagesCounted.asked = 0

    async def script(rt: Runtime) -> tuple[list[str], int]:
        heard = await rt.receive("book", principal="ana", session="s1")
        await rt.perform("book", {"day": "mine"}, ask=heard.ask("a"))
        for n in range(60):
            heard = await rt.receive(f"book {n}", principal="bo", session="s2")
            await rt.perform("book", {"day": f"d{n}"}, ask=heard.ask("a"))
        after, found, pages = 0, list[str](), 0
        while True:
            page = await listing(rt, "ana").done(after, limit=1)
            found += [line.what for line in page.lines]
            pages += 1
            if page.next is None:
                return found, pages
            after = page.next

    found, pages = rig.run(script, booking(rig.far))
    assert found == ["book(day=mine)"]
    assert pages > 1
    assert PagesCounted.asked <= 2 * 10 * pages


def test_more_than_a_page_may_hold_is_cut_and_less_than_one_is_refused(rig: Rig) -> None:
    async def script(rt: Runtime) -> Lines:
        with pytest.raises(StoreError, match="ask for 1 to"):
            await listing(rt).done(limit=0)
        return await listing(rt).done(limit=10**6)

    assert rig.run(script, booking(rig.far)) == Lines(lines=(), next=None)
