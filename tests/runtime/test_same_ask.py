"""The same ask with another payload is refused, and the text names what is not the same."""

import pytest

import landed
from landed import Ask, ProposalError, Wanted


@landed.tool(effect="reversible")
async def refund(order: str, cents: int) -> None: ...


@landed.tool(effect="reversible")
async def note(order: str) -> None: ...


def call(**arguments: object) -> Wanted:
    return Wanted(tool="refund", arguments=arguments)  # type: ignore[arg-type]


OTHERS = [
    ([call(order="o1", cents=500)], "cents 400, now 500"),
    ([call(order="o2", cents=400)], "order 'o1', now 'o2'"),
    ([Wanted(tool="note", arguments={"order": "o1"})], "refund, now note"),
    ([call(order="o1", cents=400), call(order="o1", cents=1)], "1 steps, now 2"),
]


@pytest.mark.field("G6")
@pytest.mark.parametrize(("calls", "says"), OTHERS, ids=[says for _, says in OTHERS])
@pytest.mark.anyio
async def test_a_plan_under_a_call_id_that_was_used_for_another_names_the_difference(calls, says):
    async with landed.open("sqlite://:memory:", tools=[refund, note]) as rt:
        ask = Ask(call_id="c1")
        first = await rt.propose([call(order="o1", cents=400)], ask=ask)
        with pytest.raises(ProposalError) as refused:
            await rt.propose(calls, ask=ask)
        assert says in str(refused.value)
        assert first.plan in str(refused.value)
        again = await rt.propose([call(order="o1", cents=400)], ask=ask)
        assert (again.plan, again.replayed) == (first.plan, True)


@pytest.mark.field("G6")
@pytest.mark.anyio
async def test_one_call_under_a_used_call_id_names_the_field_and_both_values():
    async with landed.open("sqlite://:memory:", tools=[refund, note]) as rt:
        ask = Ask(call_id="c1")
        await rt.perform("refund", {"order": "o1", "cents": 400}, ask=ask)
        with pytest.raises(ProposalError, match="cents 400, now 500"):
            await rt.perform("refund", {"order": "o1", "cents": 500}, ask=ask)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
