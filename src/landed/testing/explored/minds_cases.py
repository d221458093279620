"""The restaurants and promises under which minds are changed, and how much trouble each gets."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from landed.core.contract import Contract, Effect, Order, WhileUnknown
from landed.testing.explored.minds_restaurant import House
from landed.testing.explored.minds_world import CANCEL, FEE, FEE_CENTS, TICK_S, Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The promises of `reserve`, the restaurant behind them, the everyday bounds and the deep ones.

    Without `deep` bounds it is the part of another case that is looked at every day.
    """

    reserve: Contract
    house: House = field(default_factory=House)
    bounds: Bounds = field(default_factory=Bounds)
    deep: Bounds | None = None


FREE = Contract(
    effect=Effect.REVERSIBLE,
    service="restaurant",
    keyed="key",
    compares_payload=True,
    lookup=True,
    close=True,
    escalate_after_s=1_000 * TICK_S,
    undo=CANCEL,
    undo_arguments={"id": "{result.id}"},
)
PRICED = replace(FREE, undo_priced_by=FEE, undo_price=FEE_CENTS)
DEAF = replace(
    FREE, keyed="", compares_payload=False, lookup=False, close=False, escalate_after_s=TICK_S
)

FIRST = replace(FREE, order=Order.RELEASE_FIRST, order_why="two holds cost twice")
REPLACE = replace(DEAF, while_unknown=WhileUnknown.REPLACE)

WIDE = Bounds()
TO_AND_FRO = Bounds(revisions=2, losses=0)
DEEP = Bounds(revisions=2, inbox=2)
# A key that nobody compares is not sent again: it is closed once its time is over.
UNCOMPARED = Bounds(send_by_ticks=1, ticks=25)

SATURDAY_FULL = House(full=frozenset({"Sat"}))
CHARGES = House(fees_cents=(2000, 3000))
KEYLESS = House(keyless=True)

CASES: Mapping[str, Case] = {
    "free": Case(reserve=FREE, bounds=replace(WIDE, inbox=2), deep=DEEP),
    "free-to-and-fro": Case(reserve=FREE, bounds=TO_AND_FRO),
    "full": Case(reserve=FREE, house=SATURDAY_FULL, bounds=TO_AND_FRO, deep=DEEP),
    "fee": Case(
        reserve=PRICED,
        house=CHARGES,
        bounds=replace(WIDE, late_ticks=0, shrugs=0),
        deep=replace(WIDE, inbox=2),
    ),
    "fee-shrugged-off": Case(reserve=PRICED, house=CHARGES, bounds=replace(WIDE, crashes=0)),
    "fee-to-and-fro": Case(
        reserve=PRICED,
        house=CHARGES,
        bounds=replace(TO_AND_FRO, crashes=0, shrugs=0),
        deep=replace(TO_AND_FRO, late_ticks=0, shrugs=0),
    ),
    "release-first": Case(reserve=FIRST, deep=DEEP),
    "release-first-full": Case(reserve=FIRST, house=SATURDAY_FULL, deep=DEEP),
    "lenient": Case(
        reserve=replace(FREE, compares_payload=False),
        house=House(lenient=True),
        bounds=UNCOMPARED,
        deep=replace(UNCOMPARED, inbox=2),
    ),
    "nobody-can-tell": Case(
        reserve=DEAF, house=KEYLESS, bounds=replace(WIDE, revisions=2), deep=DEEP
    ),
    "replaced-in-doubt": Case(reserve=REPLACE, house=KEYLESS, deep=DEEP),
}
