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

CASES: Mapping[str, Case] = {
    "free": Case(reserve=FREE),
    "fee": Case(reserve=PRICED, house=House(fees_cents=(2000, 3000))),
    "full": Case(reserve=FREE, house=House(full=frozenset({"Sat"}))),
    "release-first": Case(
        reserve=replace(FREE, order=Order.RELEASE_FIRST, order_why="two holds cost twice"),
    ),
    "lenient": Case(
        reserve=replace(FREE, compares_payload=False),
        house=House(lenient=True),
        bounds=Bounds(send_by_ticks=1, ticks=25),
    ),
    "nobody-can-tell": Case(reserve=DEAF, house=House(keyless=True)),
    "nobody-can-tell-replace": Case(
        reserve=replace(DEAF, while_unknown=WhileUnknown.REPLACE), house=House(keyless=True)
    ),
    "to-and-fro": Case(reserve=FREE, bounds=Bounds(revisions=2, crashes=0, losses=0)),
}
DEEP = Bounds(revisions=2, crashes=1, losses=1, inbox=2, ticks=25, states_max=10_000_000)
