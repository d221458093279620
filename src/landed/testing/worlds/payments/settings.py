"""How one payments service behaves, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

_FROM_ZERO = (
    *("retention_s", "lag_s", "drops", "breaks", "settles_after_s", "refuses_after_s"),
    "plans_last_s",
)

Slip = Literal["expiry", "fingerprint", "inputs", "once", "bare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Payments:
    """What the service offers, and how it misbehaves.

    orders            what was paid, in cents, by the order
    keyed             it looks at Idempotency-Key; else two requests are two refunds
    strict            a key reused with other details is refused (else the first answer is replayed)
    retention_s       a key is forgotten this long after its first use; the refund stays
    can_look_up, can_close
                      whether those endpoints exist
    refuses_after_s   requests must carry `X-Sent-At`, UTC seconds, and are refused once older
    lag_s             how far the replica is behind
    positions         whether answers to a POST carry a position
    drops             how many refunds, from the first on, are answered and never made
    breaks            how many, from the first on, are made and answered with a 500, which a key
                      then replays
    settles_after_s   a refund is pending (a 202) for this long; None for at once
    bounces           orders whose refunds, once pending, fail in the end
    events            how they are delivered: `in_order`, or `shuffled` (each twice, newest first)
    addresses         where customers live, by the order
    plans_last_s      a plan can be committed this long after its dry run
    can_abandon       whether plans can be given up
    plan_slips        in which ways commits are careless: `expiry` (an expired plan is applied),
                      `fingerprint` (the one that is sent is compared, not the plan's), `inputs`
                      (fresh ones beside the plan are taken), `once` (an applied plan is applied
                      again under another key), `bare` (a conflict names nothing)

    Raises ValueError for a negative number.
    """

    orders: Mapping[str, int] = field(default_factory=lambda: {"A17": 10_000})
    keyed: bool = True
    strict: bool = True
    retention_s: float | None = None
    can_look_up: bool = True
    can_close: bool = True
    refuses_after_s: float | None = None
    lag_s: float = 0.0
    positions: bool = True
    drops: int = 0
    breaks: int = 0
    settles_after_s: float | None = None
    bounces: tuple[str, ...] = ()
    events: Literal["in_order", "shuffled"] = "in_order"
    addresses: Mapping[str, str] = field(default_factory=dict[str, str])
    plans_last_s: float = 600.0
    can_abandon: bool = True
    plan_slips: tuple[Slip, ...] = ()

    def __post_init__(self) -> None:
        for name in ("bounces", "plan_slips"):
            object.__setattr__(self, name, tuple(getattr(self, name)))  # JSON knows only lists.
        for name in _FROM_ZERO:
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"{name} must be 0 or more")
        if any(cents < 0 for cents in self.orders.values()):
            raise ValueError("what was paid must be 0 or more")
