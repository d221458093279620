"""What people and models do in the scenarios of doubt, and the words they say."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from landed.core.canonical import Json
from landed.core.case import Ruling
from landed.core.value import Blocked, Confirmed, Failed, Unknown, Value
from landed.testing.doubts.places import NOTE, Notes
from landed.testing.doubts.teller import Teller
from landed.testing.models import Wanted

REFUND = "Refund 40.00 of A17."
THREE = "Refund 10.00 of B20, of A17 and of C31."
HUNDRED = "Refund 100.00 of A17."
MAKE_IT_120 = "Make that 120.00."
NAMED = "Refund 40.00 of A17, and call it refund-1."
TRANSFER = "Send 10 to bob."
WRITE = "Write the plan down."

DRAFT, EDITED = "draft 1", "draft 1, with ana's changes"
ATTEMPTS = 3
WITHIN_S = 600.0


def _refund(order: str, cents: int, *, call_id: str = "c1", reason: str = "") -> Wanted:
    arguments: dict[str, Json] = {"order": order, "cents": cents}
    if reason:
        arguments["reason"] = reason
    return Wanted(call_id=call_id, tool="refund_order", arguments=arguments)


PHRASES: Mapping[str, tuple[Wanted, ...]] = {
    REFUND: (_refund("A17", 4_000),),
    THREE: tuple(
        _refund(order, 1_000, call_id=f"c{n}") for n, order in enumerate(("B20", "A17", "C31"), 1)
    ),
    HUNDRED: (_refund("A17", 10_000),),
    MAKE_IT_120: (_refund("A17", 12_000, call_id="c2"),),
    NAMED: (
        _refund("A17", 4_000, reason="refund-1"),
        _refund("A17", 4_000, call_id="c2", reason="refund-1-again"),
    ),
    TRANSFER: (
        Wanted(call_id="c1", tool="transfer", arguments={"from": "ana", "to": "bob", "amount": 10}),
    ),
    WRITE: (Wanted(call_id="c1", tool="write_file", arguments={"path": NOTE, "content": DRAFT}),),
}


async def refund(teller: Teller) -> None:
    """The user asks once, and is told when everything has come to rest."""
    await _asked_once(teller, REFUND)


async def refund_three(teller: Teller) -> None:
    """The same for three orders."""
    await _asked_once(teller, THREE)


async def _asked_once(teller: Teller, words: str) -> None:
    heard, calls = await teller.hear(words, delivery="d1")
    for call in calls:
        await teller.do(heard, call)
    await teller.quiet()
    await teller.answer(heard)


async def refund_stubbornly(teller: Teller) -> None:
    """As a host framework with its own retries: a call that failed is called again, as new."""
    await _stubbornly(teller, REFUND)


async def transfer_stubbornly(teller: Teller) -> None:
    """The same for a transfer."""
    await _stubbornly(teller, TRANSFER)


async def _stubbornly(teller: Teller, words: str) -> None:
    heard, (call,) = await teller.hear(words, delivery="d1")
    for attempt in range(1, ATTEMPTS + 1):
        value = await teller.do(heard, call, call_id=f"{call.call_id}.{attempt}")
        if not isinstance(await teller.settled(value, within_s=WITHIN_S), Failed):
            break
    await teller.quiet()
    await teller.answer(heard)


async def write(teller: Teller) -> None:
    """A file is written; ana opens it and goes on by hand; what failed is written again."""
    heard, (call,) = await teller.hear(WRITE, delivery="d1")
    assert isinstance(teller.place, Notes)
    for attempt in range(1, ATTEMPTS + 1):
        value = await teller.do(heard, call, call_id=f"{call.call_id}.{attempt}")
        value = await teller.settled(value, within_s=WITHIN_S)
        if attempt == 1:
            teller.place.edit(EDITED)
        if not isinstance(value, Failed):
            break
    await teller.answer(heard)


async def asked_again(teller: Teller) -> None:
    """The model is told that nobody knows, and calls once more all the same."""
    heard, (call, again) = await teller.hear(NAMED, delivery="d1")
    value = await teller.do(heard, call)
    if isinstance(value, Unknown):
        await teller.do(heard, again)
    await teller.quiet()
    await teller.answer(heard)


async def change_the_amount(teller: Teller) -> None:
    """The user wants another amount while nobody knows about the first one.

    What is wanted is refunded at once where nothing blocks it; else what is missing, once it is
    known what was refunded.
    """
    heard, (call,) = await teller.hear(HUNDRED, delivery="d1")
    first = await teller.do(heard, call)
    changed, (wanted,) = await teller.hear(MAKE_IT_120, delivery="d2")
    second = await teller.do(changed, wanted)
    if isinstance(second, Blocked):
        first = await teller.settled(first, within_s=WITHIN_S)
        missing = _cents(wanted.arguments["cents"]) - _refunded(first)
        if missing > 0:
            rest = replace(wanted, arguments={**wanted.arguments, "cents": missing})
            await teller.do(changed, rest, call_id="c3")
    await teller.quiet()
    await teller.answer(changed)


def _refunded(value: Value) -> int:
    """Return how much an operation refunded, nothing where it failed."""
    if isinstance(value, Confirmed) and isinstance(value.result, Mapping):
        return _cents(value.result["cents"])
    assert isinstance(value, Failed), value
    return 0


def _cents(value: Json) -> int:
    assert isinstance(value, int)
    return value


async def let_it_go(teller: Teller) -> None:
    """The caller stops waiting two seconds into the call, and asks later what became of it."""
    heard, (call,) = await teller.hear(REFUND, delivery="d1")
    doing = asyncio.ensure_future(teller.do(heard, call))
    await asyncio.wait({doing}, timeout=2.0)
    doing.cancel()
    await asyncio.wait({doing})
    await teller.quiet()
    await teller.answer(heard)


async def swept(teller: Teller) -> None:
    """The user asks once; what the service holds is compared with the records before the answer."""
    heard, (call,) = await teller.hear(REFUND, delivery="d1")
    await teller.do(heard, call)
    await teller.sweep("refund_order")
    await teller.quiet()
    await teller.answer(heard)


async def ruled(teller: Teller) -> None:
    """Nobody can be asked; a person looks into the service's own books, and says how it is."""
    heard, (call,) = await teller.hear(REFUND, delivery="d1")
    await teller.do(heard, call)
    await teller.quiet()
    for case in await teller.cases():
        # What a person sees in the books, having searched for the key that the case shows.
        seen = teller.place.holds()
        ruling, made = (Ruling.LANDED, str(seen[0]["id"])) if seen else (Ruling.ABSENT, "")
        note = f"searched for {case.key} in their books"
        await teller.rule(case, ruling, note=note, made=made)
    await teller.answer(heard)


async def reconciled_at_once(teller: Teller) -> None:
    """Whoever starts finds the operation in doubt, and wants to know at once."""
    heard, (call,) = await teller.hear(REFUND, delivery="d1")
    value = await teller.do(heard, call)
    await teller.rt.resolve(value.operation)
    await teller.settled(value, within_s=WITHIN_S)
    await teller.quiet()
    await teller.answer(heard)
