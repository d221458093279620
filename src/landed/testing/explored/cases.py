"""The contracts that are explored: one for each way of finding out, in units of the tick."""

from collections.abc import Mapping
from dataclasses import replace

from landed.core.contract import Contract, Effect
from landed.testing.explored.world import TICK_S

_BARE = Contract(
    effect=Effect.REVERSIBLE,
    service="explored",
    deadline_s=TICK_S / 4,
    escalate_after_s=3 * TICK_S,
    max_tries=2,
)
_KEYED = replace(_BARE, keyed="key")
_COMPARED = replace(_KEYED, compares_payload=True)

CASES: Mapping[str, Contract] = {
    "bare": _BARE,
    "keyed": _COMPARED,
    "keyed-lookup": replace(_COMPARED, lookup=True),
    "keyed-lookup-close": replace(_COMPARED, lookup=True, close=True),
    "uncompared-lookup-close": replace(_KEYED, lookup=True, close=True),
    "forgetful": replace(_COMPARED, lookup=True, close=True, retention_s=TICK_S),
    "refuses-late": replace(_BARE, lookup=True, refuses_after_s=TICK_S),
    "refuses-late-lagging": replace(
        _BARE, lookup=True, refuses_after_s=TICK_S, settlement_lag_s=TICK_S
    ),
    "read-back": replace(_COMPARED, lookup=True, read_back=True, settlement_lag_s=TICK_S),
    "assumed": replace(_BARE, effect=Effect.IRREVERSIBLE, assume_after_s=TICK_S),
}
