"""Measures plans: four steps as one plan beside four single performs, and a long preview.

a plan shares the commit of one step's outcome with the next step's start, so that four steps
cost five durable commits where four performs cost eight; the preview of a hundred steps is
given in CPU, with the hash that a yes is bound to.
"""

import statistics
import time
from collections.abc import Awaitable, Callable

import landed
from landed.core.changes import Changes, Record
from landed.core.store import Store

STEPS = 4
PLANS = 60
ROUNDS = 5
LONG = 100
PREVIEWS = 10


def figures(asked: landed.Previewing) -> landed.Preview:
    """Say what the no-op would do."""
    number = asked.arguments["n"]
    return landed.Preview(summary=f"Do nothing, number {number}", basis={"n": number})


@landed.tool(effect="reversible")
async def nothing(n: int) -> dict[str, int]:
    """Do nothing, and say so."""
    return {"n": n}


@landed.tool(effect="reversible", risk="confirm", preview=figures)
async def shown(n: int) -> dict[str, int]:
    """Do nothing, after a yes."""
    return {"n": n}


class Counting:
    """A store that counts the units it is handed; all else is the inner store's."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.commits = 0

    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        """Count one unit, and write it."""
        self.commits += 1
        return await self._inner.commit(changes)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


async def as_plan(rt: landed.Runtime, ask: landed.Ask) -> None:
    """Carry four no-op steps out as one plan."""
    calls = [landed.Wanted(tool="nothing", arguments={"n": n}) for n in range(STEPS)]
    await rt.propose(calls, ask=ask)


async def as_performs(rt: landed.Runtime, ask: landed.Ask) -> None:
    """Carry the same four calls out one by one."""
    for n in range(STEPS):
        await rt.perform(nothing, {"n": n}, ask=ask)


Way = Callable[[landed.Runtime, landed.Ask], Awaitable[None]]


async def timed(path: str, way: Way) -> tuple[float, float]:
    """Return the wall time of one plan, and its commits, in a store of its own."""
    async with landed.open(f"sqlite:///{path}", tools=[nothing]) as rt:
        await way(rt, landed.Ask(session="warm"))
        counting = Counting(rt.driver.store)
        rt.driver.setting.store = counting  # type: ignore[assignment]
        begun = time.perf_counter()
        for n in range(PLANS):
            await way(rt, landed.Ask(session=f"s{n}"))
        return (time.perf_counter() - begun) / PLANS, counting.commits / PLANS


async def compare(directory: str) -> None:
    """Print the ratio of four performs to a plan of four, and the commits of each."""
    plans: list[tuple[float, float]] = []
    performs: list[tuple[float, float]] = []
    for n in range(ROUNDS):
        plans.append(await timed(f"{directory}/plan-{n}.db", as_plan))
        performs.append(await timed(f"{directory}/performs-{n}.db", as_performs))
    ratio = statistics.median(b[0] / a[0] for a, b in zip(plans, performs, strict=True))
    print(
        f"a plan of {STEPS}: {plans[0][1]:.0f} commits against {performs[0][1]:.0f} for {STEPS}"
        f" performs; they take {ratio:.2f} of its time"
    )


async def preview() -> None:
    """Print what previewing a hundred steps costs, hash included."""
    async with landed.open("sqlite://:memory:", tools=[shown]) as rt:
        calls = [landed.Wanted(tool="shown", arguments={"n": n}) for n in range(LONG)]
        await rt.preview(calls, ask=landed.Ask())
        taken: list[float] = []
        for _ in range(PREVIEWS):
            begun = time.process_time()
            plan = rt.planner.drafted(landed.Ask(), calls, {}, "user")
            ready = await rt.planner.ready(plan)
            assert ready.plan.hash
            taken.append((time.process_time() - begun) * 1e3)
        print(f"preview of {LONG} steps, hash included: {statistics.median(taken):.1f} ms of CPU")
