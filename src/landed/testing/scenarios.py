"""The scenarios of `landed demo`: each a few lines, right designs and wrong ones side by side."""

import asyncio

from landed.core.canonical import Json
from landed.core.value import Confirmed, Failed
from landed.testing.designs import KEY_PER_ATTEMPT, LOOKUP_ONLY, NAIVE_CANCEL, TIMEOUT_IS_NO
from landed.testing.models import Wanted
from landed.testing.revisions import SCENARIOS as REVISIONS
from landed.testing.scenario import Agent, Scenario
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.restaurant import Restaurant

BOOK = "book Friday 19:00 for 4"
TABLE: dict[str, Json] = {"day": "Fri", "time": "19:00", "party": 4}
PHRASES = {
    BOOK: (
        Wanted(call_id="c1", tool="check_availability", arguments=TABLE),
        Wanted(call_id="c2", tool="reserve_table", arguments=TABLE),
    )
}
FRIDAY = "R1 Fri 19:00 x4"
RESERVE = "/reservations"


async def book(agent: Agent) -> None:
    """The user asks once; the agent does what the model read, and answers from the records."""
    heard, calls = await agent.hear(BOOK, delivery="d1")
    for call in calls:
        await agent.do(heard, call)
    await agent.answer(heard)


async def book_stubbornly(agent: Agent) -> None:
    """As a host framework with its own retries: a call that failed is called again, as new."""
    heard, (look, reserve) = await agent.hear(BOOK, delivery="d1")
    await agent.do(heard, look)
    for attempt in range(1, 4):
        value = await agent.do(heard, reserve, call_id=f"{reserve.call_id}.{attempt}")
        if not isinstance(value, Failed):
            break
    await agent.answer(heard)


async def let_it_go(agent: Agent) -> None:
    """The caller stops waiting two seconds into the call, and asks later what became of it."""
    heard, (look, reserve) = await agent.hear(BOOK, delivery="d1")
    await agent.do(heard, look)
    call = asyncio.ensure_future(agent.do(heard, reserve))
    await asyncio.wait({call}, timeout=2.0)
    call.cancel()
    await asyncio.wait({call})
    assert call.cancelled() or not call.exception(), call.exception()
    await agent.rest(heard)
    await agent.answer(heard)


async def twice_at_once(agent: Agent) -> None:
    """The model's call is delivered twice at the same moment, under one call id."""
    heard, (look, reserve) = await agent.hear(BOOK, delivery="d1")
    await agent.do(heard, look)
    both = await asyncio.gather(agent.do(heard, reserve), agent.do(heard, reserve))
    assert all(isinstance(value, Confirmed) for value in both)
    await agent.answer(heard)


async def two_call_ids(agent: Agent) -> None:
    """The host dispatches the same call twice, under two call ids, while the first is in flight."""
    heard, (look, reserve) = await agent.hear(BOOK, delivery="d1")
    await agent.do(heard, look)
    await asyncio.gather(
        agent.do(heard, reserve, call_id="c2"), agent.do(heard, reserve, call_id="c3")
    )
    await agent.answer(heard)


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        name="reply-lost",
        line="The table is booked but the reply is lost: the key is looked up, one table.",
        script=book,
        phrases=PHRASES,
        faults=(Fault(path=RESERVE, kind="lose_reply"),),
        holds=(FRIDAY,),
        says=("Booked R1",),
    ),
    Scenario(
        name="reply-lost-naive",
        line="WRONG: a lost reply is taken for a no and the call is made again: two tables.",
        script=book_stubbornly,
        phrases=PHRASES,
        faults=(Fault(path=RESERVE, kind="lose_reply"),),
        design=TIMEOUT_IS_NO,
        holds=(FRIDAY, "R2 Fri 19:00 x4"),
        reconciled=False,
    ),
    Scenario(
        name="request-delayed",
        line="Given up while the request is still on its way: the key is closed, no table.",
        script=let_it_go,
        phrases=PHRASES,
        faults=(Fault(path=RESERVE, kind="delay_request", seconds=40.0),),
        says=("No table was booked",),
    ),
    Scenario(
        name="request-delayed-lookup-only",
        line="WRONG: the same, but 'not found' is taken for a no: a table nobody knows of.",
        script=let_it_go,
        phrases=PHRASES,
        faults=(Fault(path=RESERVE, kind="delay_request", seconds=40.0),),
        restaurant=Restaurant(strict=True, can_close=False),
        design=LOOKUP_ONLY,
        holds=(FRIDAY,),
        reconciled=False,
        says=("No table was booked",),
    ),
    Scenario(
        name="refused",
        line="The restaurant refuses before any effect: failed, and said so.",
        script=book,
        phrases=PHRASES,
        restaurant=Restaurant(strict=True, full=("Fri",)),
        says=("No table was booked", "Fri is full"),
    ),
    Scenario(
        name="refused-resend",
        line="The first request is late and its resend refused: that is no no; the key is closed.",
        script=book,
        phrases=PHRASES,
        faults=(
            Fault(path=RESERVE, kind="delay_request", nth=1, seconds=40.0),
            Fault(path=RESERVE, kind="refuse", nth=2),
        ),
        says=("No table was booked", "key closed"),
    ),
    Scenario(
        name="cancelled-wait",
        line="The caller stops waiting; the table was booked all the same, and is reported.",
        script=let_it_go,
        phrases=PHRASES,
        faults=(Fault(path=RESERVE, kind="delay_reply", seconds=40.0),),
        holds=(FRIDAY,),
        says=("Booked R1",),
    ),
    Scenario(
        name="cancelled-wait-naive",
        line="WRONG: a stopped wait is written down as cancelled: a table nobody knows of.",
        script=let_it_go,
        phrases=PHRASES,
        faults=(Fault(path=RESERVE, kind="delay_reply", seconds=40.0),),
        design=NAIVE_CANCEL,
        holds=(FRIDAY,),
        reconciled=False,
    ),
    Scenario(
        name="crash-before-send",
        line="Killed between the record and the send: the next process sends the same key.",
        script=book,
        phrases=PHRASES,
        kill=("before:send:reserve_table",),
        holds=(FRIDAY,),
        says=("Booked R1",),
    ),
    Scenario(
        name="crash-after-commit",
        line="Killed after the restaurant booked and before the agent heard: one table, found.",
        script=book,
        phrases=PHRASES,
        kill=("after:send:reserve_table",),
        holds=(FRIDAY,),
        says=("Booked R1",),
    ),
    Scenario(
        name="key-per-attempt",
        line="WRONG: each send gets a key of its own: the resend books a second table.",
        script=book,
        phrases=PHRASES,
        faults=(Fault(path=RESERVE, kind="lose_reply"),),
        design=KEY_PER_ATTEMPT,
        holds=(FRIDAY, "R2 Fri 19:00 x4"),
        reconciled=False,
    ),
    Scenario(
        name="duplicate-call",
        line="The same ask twice at once is one operation, and both callers hear of it.",
        script=twice_at_once,
        phrases=PHRASES,
        holds=(FRIDAY,),
        says=("Booked R1",),
    ),
    Scenario(
        name="double-dispatch",
        line="The same call under two call ids: the second is blocked while the first is out.",
        script=two_call_ids,
        phrases=PHRASES,
        holds=(FRIDAY,),
        says=("Booked R1", "was not asked for a second time"),
    ),
    *REVISIONS,
)

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
