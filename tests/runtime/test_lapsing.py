"""Plans that were kept and never begun come to an end, each with a reason: none waits for ever."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from hashlib import sha256
from typing import Any

import pytest

from landed.core.approval import token_digest
from landed.core.changes import Kind
from landed.core.errors import ProposalError
from landed.core.key import Ask
from landed.core.plan import PlanState, Wanted
from landed.core.session import Input
from landed.core.telling import LATE_YES_S
from landed.core.value import PlanValue
from landed.runtime.auditing import Auditor
from landed.runtime.lapsing import LAPSES_EVERY_S, Lapsing
from landed.runtime.listing import Listing
from landed.runtime.runtime import Runtime
from landed.testing.sim import World
from tests.runtime.office import DRAFT, PAY, OfficeRig, refused, token_of
from tests.runtime.test_plan_tokens import committed, kept

ANSWER_S = 600.0
END = Wanted(tool="draft", arguments={"amount": 700})


@pytest.fixture
def rig() -> Iterator[OfficeRig]:
    with World() as world:
        yield OfficeRig(world)


async def audited(rt: Runtime, plan: str) -> list[tuple[str, str, str]]:
    """Return the event rows of a plan: what happened, by whom, why."""
    auditor = Auditor(reader=rt.driver.reader)
    rows = (await auditor.audit(plan, now=rt.driver.clock.now())).events
    return [(row.event, row.actor, row.reason) for row in rows if row.record == plan]


async def task_ends(rt: Runtime, heard: Input, plan: PlanValue) -> None:
    assert await rt.abandon_turn(heard.turn, principal="ana") == (plan.plan,)


async def mind_changes(rt: Runtime, heard: Input, plan: PlanValue) -> None:
    other = await rt.receive("rather 700", principal="ana")
    await rt.revise(heard.turn, other, wanted=[END])


async def time_passes(rt: Runtime, heard: Input, plan: PlanValue) -> None:
    await asyncio.sleep(ANSWER_S + LAPSES_EVERY_S)  # virtual time


@pytest.mark.req("S3-27")
@pytest.mark.parametrize(
    ("ends", "by", "why"),
    [
        (task_ends, "ana", "the task is over"),
        (mind_changes, "ana", "the user changed their mind"),
        (time_passes, "clock", "nobody committed it in time"),
    ],
)
def test_each_trigger_abandons_with_its_reason_and_drops_the_token(
    rig: OfficeRig, ends: Callable[..., Awaitable[None]], by: str, why: str
) -> None:
    async def script(rt: Runtime) -> tuple[Any, ...]:
        heard = await rt.receive("draft 500", principal="ana")
        plan = await kept(rt, ask=heard.ask(""))
        before = await audited(rt, plan.plan)
        await ends(rt, heard, plan)
        error = await refused(committed(rt, plan))
        return before, await audited(rt, plan.plan), error.problem

    before, after, problem = rig.run(script)
    assert [event for event, *_ in before] == ["proposed"]
    assert after == [*before, ("abandoned", by, why)]
    assert problem == ("expired" if by == "clock" else "over")
    (token,) = [one for one in rig.records(Kind.APPROVAL) if one.frozen["purpose"] == "commit"]
    assert token.state == "lapsed"
    assert [args for what, args in rig.office.effects] in ([], [[700]])


@pytest.mark.req("S3-28")
def test_what_nobody_began_in_time_is_swept_whoever_it_was_that_left_it(rig: OfficeRig) -> None:
    async def leaves(rt: Runtime) -> list[str]:
        asks = (Ask(principal="ana"), Ask(principal="bo", session="s2"))
        return [(await kept(rt, ask=ask)).plan for ask in asks]

    async def sweeps(rt: Runtime) -> tuple[Any, ...]:
        reader, now = rt.driver.reader, rt.driver.clock.now
        lists = {
            who: Listing(reader=reader, tenant="default", now=now(), owners={who})
            for who in ("ana", "bo")
        }
        owned = {who: (await each.waiting()).lines[0].subject.id for who, each in lists.items()}
        await asyncio.sleep(ANSWER_S + LAPSES_EVERY_S)  # virtual time
        return owned, [await audited(rt, plan) for plan in owned.values()]

    ana, bo = rig.run(leaves)
    owned, rows = rig.run(sweeps)
    assert owned == {"ana": ana, "bo": bo}
    for each in rows:
        assert each[-1] == ("abandoned", "clock", "nobody committed it in time")
    assert [one.state for one in rig.records(Kind.PLAN, "s2")] == ["abandoned"]


def test_how_it_reads_once_its_time_is_over_is_how_it_is_written_down(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> list[Any]:
        plan = await kept(rt)
        seen: list[Any] = []
        await asyncio.sleep(ANSWER_S + 1.0)  # virtual time
        for _ in range(2):
            seen.append((await rt.plan(plan.plan), await audited(rt, plan.plan)))
            await asyncio.sleep(LAPSES_EVERY_S)  # virtual time
        return [(v.state, v.text, v.to_model, rows) for v, rows in seen]

    read, written = rig.run(script)
    assert read == written
    assert read[0] is PlanState.ABANDONED


@pytest.mark.req("S3-26")
def test_a_yes_that_comes_a_little_late_is_still_told_so(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> list[Any]:
        heard = await rt.receive("pay", principal="ana")
        plan = await rt.propose([PAY], ask=heard.ask("act"))
        await asyncio.sleep(ANSWER_S + 2 * LAPSES_EVERY_S)  # virtual time
        late = await refused(rt.approve(plan.plan, principal="ana"))
        again = await rt.plan(late.again)
        return [late.problem, again.state]

    assert rig.run(script) == ["expired", PlanState.PROPOSED]
    assert rig.office.done == []


def test_a_question_that_nobody_answered_for_a_day_is_closed_by_the_clock(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> list[Any]:
        heard = await rt.receive("pay", principal="ana")
        plan = await rt.propose([PAY], ask=heard.ask("act"))
        lapsing = Lapsing(rt.driver, ("default",))
        rounds = [await lapsing.round()]
        clock = rt.driver.clock
        for late_s in (LATE_YES_S - 60.0, LATE_YES_S, LATE_YES_S):
            rt.driver.clock = Later(clock, ANSWER_S + late_s)
            rounds.append(await lapsing.round())
        return [rounds, (await audited(rt, plan.plan))[-1]]

    rounds, row = rig.run(script)
    assert rounds == [0, 0, 1, 0]
    assert row == ("expired", "clock", "nobody answered in time")
    assert [one.state for one in rig.records(Kind.QUESTION)] == ["lapsed"]


class Later:
    """A clock that is so many seconds ahead of another."""

    def __init__(self, clock: Any, ahead_s: float) -> None:
        self.clock, self.ahead_s = clock, ahead_s

    def now(self) -> float:
        return self.clock.now() + self.ahead_s


def test_a_round_looks_at_a_bounded_number_and_the_next_goes_on_from_there(
    rig: OfficeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("landed.runtime.lapsing.PAGE", 1)

    async def script(rt: Runtime) -> list[int]:
        for _ in range(6):
            await kept(rt)
        rt.driver.clock = Later(rt.driver.clock, ANSWER_S)
        lapsing = Lapsing(rt.driver, ("default",))
        return [await lapsing.round() for _ in range(5)]

    rounds = rig.run(script)
    assert sum(rounds) == 6
    assert max(rounds) <= 4


def test_a_change_of_mind_is_about_what_was_begun_not_about_what_was_looked_at(
    rig: OfficeRig,
) -> None:
    async def script(rt: Runtime) -> list[Any]:
        rig.office.refuses = {"draft"}
        heard = await rt.receive("draft 500", principal="ana")
        ran = await rt.propose([DRAFT], ask=heard.ask("act"))
        rig.office.refuses = set()
        looked = await kept(rt, END, ask=heard.ask(""))
        other = await rt.receive("rather 900", principal="ana")
        wanted = [Wanted(tool="draft", arguments={"amount": 900})]
        await rt.revise(heard.turn, other, wanted=wanted)
        return [(await rt.plan(each.plan)).state for each in (ran, looked)]

    assert rig.run(script) == [PlanState.SUPERSEDED, PlanState.ABANDONED]
    assert rig.office.effects == [("draft", [900])]


def test_a_turn_ends_once_and_what_has_begun_goes_on(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> list[Any]:
        heard = await rt.receive("draft 500", principal="ana")
        ran = await rt.propose([DRAFT], ask=heard.ask("act"))
        asked = await rt.propose([PAY], ask=heard.ask("pay"))
        dropped = await rt.abandon_turn(heard.turn, why="done here", principal="ana")
        again = await rt.abandon_turn(heard.turn, principal="ana")
        late = await refused(rt.approve(asked.plan, principal="ana"))
        for wrong, tenant in ((heard.turn, "other"), ("turn-9", "default"), (ran.plan, "default")):
            with pytest.raises(ProposalError, match="there is no turn"):
                await rt.abandon_turn(wrong, tenant=tenant)
        states = [(await rt.plan(each.plan)).state for each in (ran, asked)]
        return [dropped == (asked.plan,), again, late.problem, states]

    ended = rig.run(script)
    assert ended == [True, (), "over", [PlanState.DONE, PlanState.ABANDONED]]


def digests_in_memory() -> set[str]:
    """Return the digest of every text of a token's length that an object here holds on to."""
    gc.collect()
    found: set[str] = set()
    for held in gc.get_objects():
        for each in gc.get_referents(held):
            if type(each) is str and len(each) == 32 and each.isascii():
                found.add(token_digest(each))
    return found


@pytest.mark.req("S3-34")
def test_when_the_task_is_over_its_token_is_nowhere() -> None:
    async def works(rt: Runtime) -> tuple[str, str, bool]:
        heard = await rt.receive("draft 500", principal="ana")
        plan = await kept(rt, ask=heard.ask(""))
        token = token_of(plan)
        return heard.turn, token_digest(token), token_digest(token) in digests_in_memory()

    async def script(rt: Runtime) -> tuple[bool, bool, str]:
        turn, digest, was_there = await works(rt)
        await rt.abandon_turn(turn, principal="ana")
        await asyncio.sleep(1.0)  # virtual time
        return was_there, digest in digests_in_memory(), digest

    with World() as world:
        for _ in range(3_034):
            world.ids.chance(1)  # A token that no other test has drawn, and left in memory.
        rig = OfficeRig(world)
        was_there, is_there, digest = rig.run(script)
        stored = rig.bodies()
    assert (was_there, is_there) == (True, False)
    assert digest in stored
    words = stored.replace('"', " ").split()
    assert digest not in {sha256(b"landed/token/1\n" + word.encode()).hexdigest() for word in words}
