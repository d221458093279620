"""The contracts that are explored, one for each way of finding out, and how much trouble each gets.

All times are in ticks. Contracts with more ways to find out have many more states, so they get less
trouble every day, and the deepest run (`--deep`) gives them less of it than it gives the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from landed.core.contract import Contract, Effect
from landed.testing.explored.world import TICK_S, Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One contract, the bounds it is explored in every day, and those of a deep run."""

    contract: Contract
    bounds: Bounds
    deep: Bounds


WIDE = Bounds()
SHORTER = replace(WIDE, troubled_ticks=3, late_replies=False)
NARROW = replace(SHORTER, troubled_ticks=2, send_by_ticks=1, sleepers=False)
AGEING = replace(SHORTER, sleepers=False)  # Long enough to send again what was forgotten.
RESTORED = replace(SHORTER, sleepers=False, let_gos=0, copies=0, restores=1)
DEEP = replace(WIDE, stale_questions=True, late_closes=True, states_max=2_000_000)

BARE = Contract(
    effect=Effect.REVERSIBLE,
    service="explored",
    deadline_s=TICK_S / 4,
    escalate_after_s=3 * TICK_S,
    max_tries=2,
)
ASSUMED = replace(BARE, effect=Effect.IRREVERSIBLE, assume_after_s=TICK_S)
READ_BACK = replace(BARE, read_back=True, settlement_lag_s=TICK_S)
REFUSES_LATE = replace(BARE, lookup=True, refuses_after_s=TICK_S)
# Half a tick more than a tick, so that a look can fall between "arrived" and "shown".
LAGGING = replace(REFUSES_LATE, settlement_lag_s=1.5 * TICK_S)
KEYED = replace(BARE, keyed="key", compares_payload=True)
KEYED_LOOKUP = replace(KEYED, lookup=True)
KEYED_READ_BACK = replace(KEYED, read_back=True, settlement_lag_s=TICK_S)
CLOSE = replace(KEYED_LOOKUP, close=True)
UNCOMPARED = replace(CLOSE, compares_payload=False)
# Here a request may be on its way for a tick; there a key may be sent again a tick later.
FORGETFUL = replace(KEYED_LOOKUP, retention_s=2 * TICK_S, deadline_s=TICK_S)
FORGETFUL_CLOSE = replace(KEYED, close=True, retention_s=2 * TICK_S)

CASES: Mapping[str, Case] = {
    "bare": Case(contract=BARE, bounds=replace(WIDE, looks=1), deep=replace(DEEP, inbox=1)),
    "assumed": Case(contract=ASSUMED, bounds=replace(SHORTER, inbox=2), deep=DEEP),
    "read-back": Case(contract=READ_BACK, bounds=SHORTER, deep=DEEP),
    "refuses-late": Case(contract=REFUSES_LATE, bounds=replace(WIDE, troubled_ticks=3), deep=DEEP),
    "refuses-late-lagging": Case(
        contract=LAGGING, bounds=replace(SHORTER, troubled_ticks=4), deep=DEEP
    ),
    "keyed": Case(contract=KEYED, bounds=SHORTER, deep=DEEP),
    "keyed-read-back": Case(contract=KEYED_READ_BACK, bounds=NARROW, deep=SHORTER),
    "keyed-lookup": Case(contract=KEYED_LOOKUP, bounds=NARROW, deep=SHORTER),
    "keyed-lookup-stale": Case(
        contract=KEYED_LOOKUP,
        bounds=replace(NARROW, stale_questions=True, let_gos=0, copies=0),
        deep=replace(NARROW, stale_questions=True),
    ),
    "keyed-lookup-close": Case(contract=CLOSE, bounds=NARROW, deep=SHORTER),
    "uncompared-lookup-close": Case(contract=UNCOMPARED, bounds=SHORTER, deep=DEEP),
    "forgetful": Case(
        contract=FORGETFUL, bounds=replace(AGEING, let_gos=0, copies=0), deep=SHORTER
    ),
    "forgetful-close": Case(
        contract=FORGETFUL_CLOSE, bounds=replace(AGEING, let_gos=0), deep=SHORTER
    ),
    "bare-restored": Case(contract=BARE, bounds=RESTORED, deep=replace(RESTORED, copies=1)),
    "refuses-late-restored": Case(
        contract=REFUSES_LATE, bounds=RESTORED, deep=replace(RESTORED, troubled_ticks=4)
    ),
    "close-restored": Case(contract=UNCOMPARED, bounds=RESTORED, deep=replace(RESTORED, let_gos=1)),
}
