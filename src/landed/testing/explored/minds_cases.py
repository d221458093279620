"""The restaurants and promises under which minds are changed, and how much trouble each gets."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from landed.core.contract import Contract, Effect, Order, WhileUnknown
from landed.testing.explored.minds_restaurant import House
from landed.testing.explored.minds_world import CANCEL, FEE, FEE_CENTS, TICK_S, Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The promises of `reserve`, the restaurant behind them, and the everyday bounds."""

    reserve: Contract
    house: House = field(default_factory=House)
    bounds: Bounds = field(default_factory=Bounds)


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
DEEP = Bounds(revisions=2, inbox=2, ticks=25, states_max=10_000_000)

SATURDAY_FULL = House(full=frozenset({"Sat"}))
CHARGES = House(fees_cents=(2000, 3000))
KEYLESS = House(keyless=True)

CASES: Mapping[str, Case] = {
    "free": Case(reserve=FREE, bounds=replace(WIDE, inbox=2)),
    "free-to-and-fro": Case(reserve=FREE, bounds=TO_AND_FRO),
    "full": Case(reserve=FREE, house=SATURDAY_FULL, bounds=TO_AND_FRO),
    "fee": Case(reserve=PRICED, house=CHARGES, bounds=replace(WIDE, late_ticks=0, shrugs=0)),
    "fee-shrugged-off": Case(reserve=PRICED, house=CHARGES, bounds=replace(WIDE, crashes=0)),
    "fee-to-and-fro": Case(
        reserve=PRICED, house=CHARGES, bounds=replace(TO_AND_FRO, crashes=0, shrugs=0)
    ),
    "release-first": Case(reserve=FIRST),
    "release-first-full": Case(reserve=FIRST, house=SATURDAY_FULL),
    "lenient": Case(
        reserve=replace(FREE, compares_payload=False),
        house=House(lenient=True),
        # A key that nobody compares is not sent again: it is closed once its time is over.
        bounds=Bounds(send_by_ticks=1, ticks=25),
    ),
    "nobody-can-tell": Case(reserve=DEAF, house=KEYLESS, bounds=replace(WIDE, revisions=2)),
    "replaced-in-doubt": Case(reserve=REPLACE, house=KEYLESS),
}
