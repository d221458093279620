"""A yes in words to figures that have moved: nothing is done, and the plan is shown anew."""

import asyncio

import pytest

import landed
from landed import PlanState, Preview, Previewing, Wanted

CALL = [Wanted(tool="buy", arguments={"what": "the lamp"})]


class Shop:
    """A shop whose price moves, and what was bought there."""

    def __init__(self) -> None:
        self.price = 100
        self.bought: list[int] = []
        self.tool = landed.tool(
            effect="irreversible", risk="confirm", preview=self.figures, name="buy"
        )(self.buy)

    def figures(self, asked: Previewing) -> Preview:
        return Preview(summary=f"Buy it for {self.price}", basis={"price": self.price})

    async def buy(self, what: str) -> None:
        self.bought.append(self.price)


async def until_shown(rt: landed.Runtime, text: str) -> None:
    """Wait until somebody was shown these words."""
    while not any(text in item.text for item in await rt.history()):
        await asyncio.sleep(0)


@pytest.mark.req("K13", "K15")
@pytest.mark.fault("X68")
@pytest.mark.anyio
async def test_a_yes_in_words_to_a_price_that_moved_buys_nothing_and_shows_the_new_one() -> None:
    shop = Shop()
    async with landed.open("sqlite://:memory:", tools=[shop.tool]) as rt:
        heard = await rt.receive("buy the lamp", principal="ana")
        plan = await rt.propose(CALL, ask=heard.ask("1"))
        shop.price = 120

        await rt.receive("yes", principal="ana")
        await until_shown(rt, "Buy it for 120")

        assert shop.bought == []
        told = [item.text for item in await rt.history()]
        assert any("price: 100 ▸ 120" in text for text in told)
        assert (await rt.plan(plan.plan)).state is PlanState.SUPERSEDED

        await rt.receive("yes", principal="ana")
        while not shop.bought:
            await asyncio.sleep(0)
        assert shop.bought == [120]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
