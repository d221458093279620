"""What is erased is gone, and what is left tells the truth about it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import pytest

from landed.core.changes import Kind
from landed.core.erasing import Erasure
from landed.core.errors import ProposalError
from landed.core.keeping import Selection
from landed.core.plan import Wanted
from landed.core.value import Confirmed
from landed.runtime.keeping import Tally
from landed.runtime.runtime import Runtime
from landed.stores.sqlite import SqliteStore
from landed.testing.sim import World
from landed.tools.function import tool
from tests.kept import (
    AS_ASKED,
    LATER,
    journal_of,
    keeper_of,
    said_of,
)
from tests.runtime.office import (
    DRAFT,
    INVOICE,
    PAY,
    OfficeRig,
    at_rest,
    proposed,
    refused,
    token_of,
)
from tests.runtime.rig import DROPPED, Rig, unkeyed

T = TypeVar("T")

SECRET = "4111-1111"
DAY = "2096-10-02"  # Of LATER.


@tool(effect="reversible", unique=("note/{number}",))
async def note(text: str, number: int = 7) -> dict[str, str]:
    """Keep a note."""
    return {"id": f"noted {text}"}


@pytest.fixture
def office() -> Iterator[OfficeRig]:
    with World() as world:
        yield OfficeRig(world)


def outside(rig: Rig, act: Callable[[SqliteStore], Awaitable[T]]) -> T:
    """Do something with the store while no agent runs."""
    return rig._outside(lambda: act(rig.sqlite.open_again()))


def erase(rig: Rig, erasure: Erasure = AS_ASKED, **chosen: object) -> Tally:
    """Erase what is chosen, when all is over."""
    selection = Selection(**chosen)  # type: ignore[arg-type]
    return outside(rig, lambda store: keeper_of(store).erase(selection, erasure))


def noted(rig: Rig) -> Confirmed:
    """Have the secret noted for an input."""

    async def script(rt: Runtime) -> Confirmed:
        heard = await rt.receive(f"note {SECRET}", principal="ana", delivery="d1")
        value = await rt.perform("note", {"text": SECRET}, ask=heard.ask("c1"))
        await rt.report(heard.turn)
        assert isinstance(value, Confirmed)
        return value

    return rig.run(script, note)


@pytest.mark.req("S4-17")
def test_the_details_go_and_everything_else_stays(rig: Rig) -> None:
    value = noted(rig)
    before = outside(rig, journal_of)
    names = dict(rig.sqlite._opened.reader.execute("SELECT name, record FROM name"))
    assert erase(rig, record=value.operation).erased == 3
    after = outside(rig, journal_of)
    assert [e.hash for e in after[: len(before)]] == [e.hash for e in before]
    assert [e.event for e in after[len(before) :]] == ["erased"] * 3
    assert SECRET not in "".join((e.body or b"").decode() for e in after)
    assert dict(rig.sqlite._opened.reader.execute("SELECT name, record FROM name")) == names
    assert names["ask/default/main/in-1/c1"] == value.operation
    assert names["unique/default/note%2F7"] == value.operation


def test_who_had_it_erased_when_and_why_is_in_the_journal(rig: Rig) -> None:
    value = noted(rig)
    erase(rig, record=value.operation)
    entries = outside(rig, lambda store: store.journal(record=value.operation))
    assert entries[-1].event == "erased"
    assert entries[-1].at == LATER
    assert b'"erased":{"by":"ana","why":"she asked for it"}' in (entries[-1].body or b"")


def test_every_read_says_that_it_was_erased_and_when(rig: Rig) -> None:
    value = noted(rig)
    erase(rig, record=value.operation)
    said = outside(rig, said_of)
    assert SECRET not in "".join(said)
    told = f"Done: note (its details were erased on {DAY})."
    assert any(f"text='{told}'" in each and "Item" in each for each in said)
    assert any(each.startswith("Report(") and told in each for each in said)
    assert any(f"text='(erased on {DAY})'" in each for each in said)
    assert any(f"(sus detalles se borraron el {DAY})" in each for each in said)


def test_the_same_ask_still_joins_and_another_is_still_refused(rig: Rig) -> None:
    value = noted(rig)
    erase(rig, record=value.operation)

    async def again(rt: Runtime) -> Confirmed:
        heard = await rt.receive("something else", principal="ana", delivery="d1")
        assert heard.text == f"(erased on {DAY})"
        with pytest.raises(ProposalError, match=f"arguments that were erased on {DAY}"):
            await rt.perform("note", {"text": "another"}, ask=heard.ask("c1"))
        joined = await rt.perform("note", {"text": SECRET}, ask=heard.ask("c1"))
        assert isinstance(joined, Confirmed)
        return joined

    joined = rig.run(again, note)
    assert (joined.operation, joined.replayed) == (value.operation, True)
    assert joined.text == f"Done: note (its details were erased on {DAY})."
    assert joined.result == {"(erased)": {"on": DAY}}


def test_erasing_twice_is_erasing_once(rig: Rig) -> None:
    value = noted(rig)
    erase(rig, record=value.operation)
    before = outside(rig, journal_of)
    assert erase(rig, session="main").erased == 0
    assert outside(rig, journal_of) == before


def test_what_is_open_is_refused_with_a_sentence(rig: Rig) -> None:
    async def stuck(rt: Runtime) -> None:
        await rt.perform("mail", {"to": SECRET}, patience_s=1.0)

    rig.far.wire.append(DROPPED)
    process = rig.start(stuck, unkeyed(rig.far))
    rig.world.timeline.drive(lambda: bool(rig.far.sends))
    (held,) = rig.operations()
    before = outside(rig, journal_of)
    with pytest.raises(ProposalError, match=f"{held.id} is sent: its details cannot be erased"):
        erase(rig, record=held.id)
    tally = erase(rig, session="main")
    assert (tally.erased, tally.busy, tally.refused) == (0, 1, [f"{held.id} is sent"])
    assert outside(rig, journal_of) == before
    rig.kill(process)


def test_nothing_is_erased_that_is_not_there(rig: Rig) -> None:
    with pytest.raises(ProposalError, match="there is no record 'op-x9' in default"):
        erase(rig, record="op-x9")


# Plans.


def run_plan(rig: OfficeRig, calls: tuple[Wanted, ...], *, yes: bool = True) -> str:
    """Have calls carried out for an input, and return the plan."""

    async def script(rt: Runtime) -> str:
        value = await proposed(rt, calls, said=f"for {SECRET}")
        if yes:
            await rt.approve(value.plan, token=token_of(value), principal="ana")
        return (await at_rest(rt, value.plan)).plan

    return rig.run(script)


def test_a_plan_that_was_carried_out_keeps_its_hash_and_who_agreed(office: OfficeRig) -> None:
    plan = run_plan(office, INVOICE)
    before = "".join(outside(office, said_of))
    tally = erase(office, record=plan)
    assert tally.erased > len(INVOICE)
    said = outside(office, said_of)
    (audit,) = [each for each in said if each.startswith("Audit(")]
    for kept in ("hash=", "basis="):
        value = audit.split(f"{kept}'", 1)[1].split("'", 1)[0]
        assert value.startswith("sha256:")
        assert f"{kept}'{value}'" in before
    assert "event='erased', actor='ana', reason='she asked for it'" in audit
    assert "Authorised(purpose=<Purpose.CONFIRM" in audit
    assert "by='ana'" in audit
    assert SECRET not in "".join(said)
    assert "ada@example.org" not in "".join(said)


def test_what_can_still_be_taken_back_is_refused(office: OfficeRig) -> None:
    plan = run_plan(office, (DRAFT,), yes=False)
    ended = office.world.clock.now()
    with pytest.raises(ProposalError, match=f"{plan} can be taken back until"):
        erase(office, replace(AS_ASKED, at=ended + 60.0), record=plan)
    assert erase(office, record=plan).erased == 2 + 1


@pytest.mark.parametrize("verb", ["retry", "undo", "revise"])
def test_what_was_erased_cannot_be_gone_on_with(office: OfficeRig, verb: str) -> None:
    office.office.refuses = {"issue"}
    plan = run_plan(office, INVOICE)
    erase(office, record=plan)
    office.office.refuses = set()

    async def go_on(rt: Runtime) -> None:
        if verb == "revise":
            heard = await rt.receive("rather this", principal="ana")
            turn = (await rt.plan(plan)).turn
            await rt.revise(turn, heard=heard, wanted=[DRAFT])
        else:
            await getattr(rt, verb)(plan, principal="ana")

    effects = list(office.office.effects)
    with pytest.raises(ProposalError):
        office.run(go_on)
    assert office.office.effects == effects


def test_a_proposal_nobody_answered_can_be_erased_and_is_not_shown_again(
    office: OfficeRig,
) -> None:
    async def propose(rt: Runtime) -> tuple[str, str]:
        value = await proposed(rt, (PAY,), said=SECRET)
        return value.plan, token_of(value)

    plan, token = office.run(propose)
    assert erase(office, record=plan).erased >= 2

    async def too_late(rt: Runtime) -> None:
        await asyncio.sleep(10_000.0)  # virtual time
        error = await refused(rt.approve(plan, token=token, principal="ana"))
        assert (error.problem, error.again) == ("expired", "")

    office.run(too_late)
    assert len(office.records(Kind.PLAN)) == 1
    assert office.office.effects == []
